"""Waiting records: records whose references have not been delivered yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, func, literal, select, tuple_, update

from crossdock.state.db import bulk_writes_and_key_queries
from crossdock.state.db.schema import waiting_records
from crossdock.state.tables.dead_letters import ALL, RecordFilter
from crossdock.state.tables.record_identity_and_scope import COLUMNS as IDENTITY
from crossdock.state.tables.record_identity_and_scope import DeleteByKey, RecordIdentity, in_stream_of_parameter


@dataclass(frozen=True, slots=True)
class Wait:
    """A record and the records it waits for: ``[{resource, namespace, key}, ...]``.

    With *idle_under*, only its references can release it while the mapping has that version.
    """

    identity: RecordIdentity
    waits_for: list[dict[str, str]]
    idle_under: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class WaitingRecord(Wait):
    raw: dict[str, Any]


@dataclass(frozen=True, slots=True)
class WaitingCount:
    """Records of one stream that wait for the same records, the longest waiting one *since* then."""

    stream: str
    waits_for: list[dict[str, str]]
    number: int
    since: datetime
    first_key: str


class WaitingPlace(NamedTuple):
    """The place of a waiting record in the order of `WaitingRecords.page`."""

    since: datetime
    stream: str
    key_hash: int


_COLUMNS = IDENTITY | {"waits_for": "waits_for", "raw": "raw"}
_PUT = bulk_writes_and_key_queries.upsert_statement(waiting_records, (*_COLUMNS, "idle_under", "run_id", "since"))
_DELETE = DeleteByKey(waiting_records)
_FIELDS = [waiting_records.c[name] for name in _COLUMNS]
_WAIT = [waiting_records.c[name] for name in (*IDENTITY, "waits_for", "idle_under")]
_WAITS_AMONG = bulk_writes_and_key_queries.QueryByKeys(
    select(*_WAIT).where(in_stream_of_parameter(waiting_records)), waiting_records.c.key_hash
)
_IDLE = bulk_writes_and_key_queries.BulkStatement(
    update(waiting_records)
    .where(in_stream_of_parameter(waiting_records), waiting_records.c.key_hash == bindparam("hash"))
    .values(idle_under=bindparam("version"))
)
_AMONG = bulk_writes_and_key_queries.QueryByKeys(
    select(*_FIELDS).where(in_stream_of_parameter(waiting_records)), waiting_records.c.key_hash
)
_SINCE = bulk_writes_and_key_queries.QueryByKeys(
    select(waiting_records.c.key_hash, waiting_records.c.since).where(in_stream_of_parameter(waiting_records)),
    waiting_records.c.key_hash,
)
_WAITS = bulk_writes_and_key_queries.QueryByKeys(
    select(waiting_records.c.key_hash, waiting_records.c.waits_for).where(in_stream_of_parameter(waiting_records)),
    waiting_records.c.key_hash,
)


class WaitingRecords:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def put(self, records: Sequence[WaitingRecord], *, run_id: int, at: datetime) -> None:
        """Write waiting records. One that waited before keeps its *since*."""
        for stream in {record.identity.stream for record in records}:
            group = [record for record in records if record.identity.stream == stream]
            hashes = [record.identity.key_hash for record in group]
            since = dict(_SINCE.rows(self._connection, {"stream": stream}, hashes))
            columns = bulk_writes_and_key_queries.as_columns(group, "idle_under", **_COLUMNS)
            columns["since"] = [since.get(key_hash, at) for key_hash in hashes]
            _PUT.run(self._connection, columns, {"run_id": run_id})

    def waits_of_stream(self, stream: str, key_hashes: Sequence[int] | None = None) -> list[Wait]:
        """Return the waiting records of *stream*, longest waiting first, or of *key_hashes* in any order."""
        if key_hashes is not None:
            return [_wait_of_row(row) for row in _WAITS_AMONG.rows(self._connection, {"stream": stream}, key_hashes)]
        query = (
            select(*_WAIT)
            .where(waiting_records.c.stream == stream)
            .order_by(waiting_records.c.since, waiting_records.c.key)
        )
        return [_wait_of_row(row) for row in self._connection.execute(query)]

    def waiting_since_by_key_hash(self, stream: str, before: datetime) -> dict[int, datetime]:
        """Return since when those records of *stream* wait that began to wait *before* then, by key hash."""
        query = select(waiting_records.c.key_hash, waiting_records.c.since).where(
            waiting_records.c.stream == stream, waiting_records.c.since < before
        )
        return {key_hash: since for key_hash, since in self._connection.execute(query)}

    def mark_waiting_only_for_references(self, stream: str, key_hashes: Sequence[int], version: str) -> None:
        """Record that only their references can release these records while the mapping has this version."""
        _IDLE.run(self._connection, {"hash": key_hashes}, {"stream": stream, "version": version})

    def records_among(self, stream: str, key_hashes: Sequence[int]) -> list[WaitingRecord]:
        return [_record_of_row(row) for row in _AMONG.rows(self._connection, {"stream": stream}, key_hashes)]

    def fingerprint(self, stream: str, key_hash: int) -> int | None:
        query = select(waiting_records.c.record_fp).where(
            waiting_records.c.stream == stream, waiting_records.c.key_hash == key_hash
        )
        return self._connection.execute(query).scalar()

    def matching(self, choice: RecordFilter) -> list[WaitingRecord]:
        query = (
            select(*_FIELDS)
            .where(*choice.conditions(waiting_records))
            .order_by(waiting_records.c.since, waiting_records.c.key)
        )
        found = self._connection.execute(query)
        return [_record_of_row(row) for row in found]

    def longest_waiting(self, stream: str, number: int) -> list[WaitingRecord]:
        query = (
            select(*_FIELDS)
            .where(waiting_records.c.stream == stream)
            .order_by(waiting_records.c.since, waiting_records.c.key)
            .limit(number)
        )
        return [_record_of_row(row) for row in self._connection.execute(query)]

    def remove_records(self, stream: str, key_hashes: Sequence[int]) -> None:
        _DELETE.run(self._connection, stream, key_hashes)

    def listed(self, *, limit: int, choice: RecordFilter = ALL) -> list[dict[str, Any]]:
        query = select(waiting_records).where(*choice.conditions(waiting_records))
        query = query.order_by(waiting_records.c.since, waiting_records.c.stream, waiting_records.c.key).limit(limit)
        return [dict(row) for row in self._connection.execute(query).mappings()]

    def page(
        self,
        choice: RecordFilter,
        *,
        after: WaitingPlace | None,
        limit: int,
        waits_for: Sequence[list[dict[str, str]]] | None = None,
    ) -> list[dict[str, Any]]:
        """Return at most *limit* waiting records of *choice* *after* a place, longest waiting first.

        Args:
            waits_for: Only records that wait for exactly one of these.
        """
        order = tuple(waiting_records.c[name] for name in WaitingPlace._fields)
        query = select(waiting_records).where(*choice.conditions(waiting_records)).order_by(*order).limit(limit)
        if after is not None:
            place = (literal(value, column.type) for value, column in zip(after, order, strict=True))
            query = query.where(tuple_(*order) > tuple_(*place))
        if waits_for is None:
            return [dict(row) for row in self._connection.execute(query).mappings()]
        found = list[dict[str, Any]]()
        for part in bulk_writes_and_key_queries.chunks(waits_for):
            rows = self._connection.execute(query.where(waiting_records.c.waits_for.in_(part))).mappings()
            found = sorted([*found, *map(dict, rows)], key=itemgetter(*WaitingPlace._fields))[:limit]
        return found

    def count(self, choice: RecordFilter) -> int:
        query = select(func.count()).select_from(waiting_records).where(*choice.conditions(waiting_records))
        return int(self._connection.execute(query).scalar_one())

    def counts_by_awaited_records(self, choice: RecordFilter) -> list[WaitingCount]:
        numbers = func.count(), func.min(waiting_records.c.since), func.min(waiting_records.c.key)
        query = select(waiting_records.c.stream, waiting_records.c.waits_for, *numbers).where(
            *choice.conditions(waiting_records)
        )
        return [
            WaitingCount(*row)
            for row in self._connection.execute(query.group_by(waiting_records.c.stream, waiting_records.c.waits_for))
        ]

    def awaited_references(self, stream: str, key_hashes: Sequence[int]) -> dict[int, list[dict[str, str]]]:
        return dict(_WAITS.rows(self._connection, {"stream": stream}, key_hashes))


def _record_of_row(row: Iterable[Any]) -> WaitingRecord:
    *identity, waits_for, raw = row
    return WaitingRecord(RecordIdentity(*identity), waits_for, raw)


def _wait_of_row(row: Iterable[Any]) -> Wait:
    *identity, waits_for, idle_under = row
    return Wait(RecordIdentity(*identity), waits_for, idle_under=idle_under)
