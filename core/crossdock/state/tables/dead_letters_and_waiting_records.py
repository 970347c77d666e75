"""Records that were rejected, with the reason and their data, and records that wait for their references."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple

from msgspec import Struct
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Table,
    Text,
    bindparam,
    delete,
    exists,
    func,
    literal,
    null,
    or_,
    select,
    tuple_,
    type_coerce,
    update,
)

from crossdock.state.db import sql_types_and_statements
from crossdock.state.db.schema import (
    attempts,
    batches,
    dead_letters,
    hints,
    intents,
    runs,
    source_equals_condition,
    waiting_records,
)
from crossdock.state.tables.record_identity_and_scope import IDENTITY_COLUMNS as IDENTITY
from crossdock.state.tables.record_identity_and_scope import (
    DeleteByStreamAndKey,
    RecordIdentity,
    Step,
    stream_condition_with_parameter,
)


class DeadLetter(Struct, frozen=True):
    """A rejected record, or one that an operator has ``dropped``. *raw* and *mapped* are shown only on request."""

    identity: RecordIdentity
    stage: str
    code: str
    pointer: str | None
    message: str
    raw: dict[str, Any]
    mapped: dict[str, Any] | None
    step: Step = "whole"
    status: str = "rejected"


class DeadLetterFacts(NamedTuple):
    key_hash: int
    fingerprint: int | None
    position: str | None
    status: str
    step: Step


class RecordFilter(Struct, frozen=True):
    """A choice of records. None does not restrict them.

    Attributes:
        stream: A stream, or a connection for all its streams, also for those that the config does not have any more.
        since: The earliest time of rejection.
        source: The file or page that they were read from.
        text: A part of the message that says why they are open, in upper or lower case.
        handed_over_in: The name of the stored batch that they are a part of.
        key_hash: Of *key*; with it, indexes find the record.
    """

    stream: str | None = None
    key: str | None = None
    code: str | None = None
    since: datetime | None = None
    source: str | None = None
    text: str | None = None
    handed_over_in: str | None = None
    key_hash: int | None = None

    def conditions(self, any_table: Table) -> list[Any]:
        """Return those conditions that *any_table* has columns for."""
        given = {"key": self.key, "code": self.code, "key_hash": self.key_hash}
        found = [
            any_table.c[name] == value for name, value in given.items() if value is not None and name in any_table.c
        ]
        if self.stream is not None:
            found.append(self._is_of_stream(any_table))
        if self.since is not None and any_table is dead_letters:
            found.append(dead_letters.c.refused_at >= self.since)
        if self.source is not None and "source" in any_table.c:
            found.append(source_equals_condition(any_table, self.source))
        if self.text is not None and any_table in _SAYS:
            found.append(_SAYS[any_table](self.text))
        if self.handed_over_in is not None and any_table is intents:
            named = select(batches.c.id).where(batches.c.name == self.handed_over_in)
            found.append(intents.c.batch_id.in_(named))
        return found

    def includes_stream(self, name: str) -> bool:
        return self.stream in {None, name, name.partition(".")[0]}

    def _is_of_stream(self, any_table: Table) -> ColumnElement[bool]:
        stream = self.stream or ""
        is_named = self._unindexed_if_less_selective(any_table.c.stream) == stream
        prefix = f"{stream}."
        return is_named if "." in stream else or_(is_named, func.substr(any_table.c.stream, 1, len(prefix)) == prefix)

    def status_column(self, any_table: Table) -> ColumnElement[str]:
        """Return the column of the status, to compare with it."""
        return self._unindexed_if_less_selective(any_table.c.status)

    def _unindexed_if_less_selective(self, column: Column[str]) -> ColumnElement[str]:
        """Return *column* without its index if the index of files or of batches finds fewer records."""
        has_file = self.source is not None or self.handed_over_in is not None
        return sql_types_and_statements.column_without_index(column) if has_file else column


def _attempt_message_contains(text: str) -> ColumnElement[bool]:
    of_intent = attempts.c.intent_id == intents.c.id
    return exists().where(of_intent, attempts.c.message.icontains(text, autoescape=True))


_SAYS: Mapping[Table, Callable[[str], ColumnElement[bool]]] = {
    dead_letters: lambda text: dead_letters.c.message.icontains(text, autoescape=True),
    waiting_records: lambda text: type_coerce(waiting_records.c.waits_for, Text).icontains(text, autoescape=True),
    hints: lambda text: hints.c.error.icontains(text, autoescape=True),
    intents: _attempt_message_contains,
}


ALL_RECORDS = RecordFilter()


class DeadLetterPlace(NamedTuple):
    """The place of a dead letter in the order of `DeadLetters.page`."""

    stream: str
    code: str
    refused_at: datetime
    key_hash: int


class DeadLetterGroup(NamedTuple):
    """Dead letters of one stream with one reason, of one file if they are grouped by it.

    Attributes:
        first_run_id: The run that rejected the first of them first; it began at *first_at*.
    """

    stream: str
    code: str
    source: str | None
    number: int
    first_run_id: int
    first_at: datetime


_PLAIN = tuple(name for name in DeadLetter.__struct_fields__ if name != "identity")
_COLUMNS = IDENTITY | {name: name for name in _PLAIN}
_DELETE = DeleteByStreamAndKey(dead_letters)
_PUT = sql_types_and_statements.upsert_statement(
    dead_letters, (*_COLUMNS, "first_run_id", "attempts", "run_id", "refused_at")
)
_ATTEMPTS = sql_types_and_statements.QueryByKeys(
    select(dead_letters.c.key_hash, dead_letters.c.first_run_id, dead_letters.c.run_id, dead_letters.c.attempts).where(
        stream_condition_with_parameter(dead_letters)
    ),
    dead_letters.c.key_hash,
)
_CODES = sql_types_and_statements.QueryByKeys(
    select(dead_letters.c.key_hash, dead_letters.c.code, dead_letters.c.status).where(
        stream_condition_with_parameter(dead_letters)
    ),
    dead_letters.c.key_hash,
)


def _conditions_of_status_and_filter(status: str, choice: RecordFilter) -> list[ColumnElement[bool]]:
    return [choice.status_column(dead_letters) == status, *choice.conditions(dead_letters)]


class DeadLetters:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def put(self, rejected: Sequence[DeadLetter], *, run_id: int, at: datetime) -> None:
        """Write dead letters. One that replaces an older one of its record keeps that one's first run."""
        for stream in {each.identity.stream for each in rejected}:
            group = [each for each in rejected if each.identity.stream == stream]
            key_hashes = [each.identity.key_hash for each in group]
            rows = _ATTEMPTS.rows(self._connection, {"stream": stream}, key_hashes)
            known = {key_hash: facts for key_hash, *facts in rows}
            found = [known.get(key_hash, [run_id, 0, 0]) for key_hash in key_hashes]
            columns = sql_types_and_statements.attributes_as_columns(group, **_COLUMNS)
            columns["first_run_id"] = [first_run for first_run, _, _ in found]
            # a transaction that is retried counts once
            columns["attempts"] = [attempts + (last_run != run_id) for _, last_run, attempts in found]
            _PUT.run(self._connection, columns, {"run_id": run_id, "refused_at": at})

    def facts_of_all_letters_of_stream(self, stream: str) -> list[DeadLetterFacts]:
        fields = (
            dead_letters.c.key_hash,
            dead_letters.c.record_fp,
            dead_letters.c.position,
            dead_letters.c.status,
            dead_letters.c.step,
        )
        query = select(*fields).where(dead_letters.c.stream == stream)
        return [DeadLetterFacts(*row) for row in self._connection.execute(query)]

    def rejected_identities_with_reason_codes(self, stream: str) -> list[tuple[RecordIdentity, str]]:
        """Return the rejected records of *stream* with their reason codes, in the order of their places."""
        query = select(*(dead_letters.c[name] for name in IDENTITY), dead_letters.c.code)
        query = query.where(dead_letters.c.stream == stream, dead_letters.c.status == "rejected")
        found = self._connection.execute(query.order_by(dead_letters.c.source, dead_letters.c.line, dead_letters.c.key))
        return [(RecordIdentity.of_table_row(row), row.code) for row in found]

    def rejected_matching(self, choice: RecordFilter) -> list[DeadLetter]:
        """Return the rejected dead letters of *choice*, oldest first, including those of rows without a key."""
        fields = [dead_letters.c[name] for name in _COLUMNS]
        query = select(*fields).where(*_conditions_of_status_and_filter("rejected", choice))
        found = self._connection.execute(query.order_by(dead_letters.c.refused_at, dead_letters.c.key))
        return [DeadLetter(RecordIdentity.of_table_row(row), *(getattr(row, name) for name in _PLAIN)) for row in found]

    def get(self, stream: str, key_hash: int) -> dict[str, Any] | None:
        """Return all columns of the dead letter of a record, rejected or dropped."""
        found = self._connection.execute(
            select(dead_letters).where(dead_letters.c.stream == stream, dead_letters.c.key_hash == key_hash)
        )
        row = found.mappings().first()
        return None if row is None else dict(row)

    def mark_dropped(self, stream: str, key_hashes: Sequence[int]) -> None:
        for part in sql_types_and_statements.chunks_of_in_list(key_hashes):
            condition = (dead_letters.c.stream == stream) & dead_letters.c.key_hash.in_(part)
            self._connection.execute(update(dead_letters).where(condition).values(status="dropped"))

    def set_fingerprints_of_dropped(self, stream: str, fingerprints: Mapping[int, int | None]) -> None:
        """Store what the same rows of dropped records are now, after a change of the mapping."""
        for key_hash, record_fp in fingerprints.items():
            condition = (
                (dead_letters.c.stream == stream)
                & (dead_letters.c.key_hash == key_hash)
                & (dead_letters.c.status == "dropped")
            )
            self._connection.execute(update(dead_letters).where(condition).values(record_fp=record_fp))

    def key_hashes_among(self, stream: str, key_hashes: Sequence[int]) -> set[int]:
        return {key_hash for key_hash, *_ in _ATTEMPTS.rows(self._connection, {"stream": stream}, key_hashes)}

    def remove_records(self, stream: str, key_hashes: Sequence[int]) -> None:
        _DELETE.run(self._connection, stream, key_hashes)

    def has_rejected_row_without_key(self, stream: str, sources: Sequence[str]) -> bool:
        """Return whether a row of *sources* without a key is rejected."""
        query = select(dead_letters.c.key_hash).where(
            dead_letters.c.stream == stream, dead_letters.c.key == "", dead_letters.c.status == "rejected"
        )
        parts = sql_types_and_statements.chunks_of_in_list(sources)
        return any(
            self._connection.execute(query.where(dead_letters.c.source.in_(part)).limit(1)).first() for part in parts
        )

    def replace_dead_letters_without_key(
        self, stream: str, rejected: Sequence[DeadLetter], sources: Sequence[str] | None, *, run_id: int, at: datetime
    ) -> None:
        """Replace the keyless dead letters of *sources*, or of all with None, except dropped ones."""
        keyless = (dead_letters.c.stream == stream) & (dead_letters.c.key == "")
        dropped = set(
            self._connection.execute(
                select(dead_letters.c.key_hash).where(keyless, dead_letters.c.status == "dropped")
            ).scalars()
        )
        self.put([each for each in rejected if each.identity.key_hash not in dropped], run_id=run_id, at=at)
        earlier = delete(dead_letters).where(
            keyless, dead_letters.c.status == "rejected", dead_letters.c.run_id != run_id
        )
        for part in [None] if sources is None else sql_types_and_statements.chunks_of_in_list(sources):
            self._connection.execute(earlier if part is None else earlier.where(dead_letters.c.source.in_(part)))

    def listed(
        self, *, limit: int, status: str = "rejected", choice: RecordFilter = ALL_RECORDS
    ) -> list[dict[str, Any]]:
        """Return all columns of at most *limit* dead letters of *status* and *choice*, by stream and newest first."""
        order = (dead_letters.c.stream, dead_letters.c.refused_at.desc(), dead_letters.c.key)
        query = (
            select(dead_letters).where(*_conditions_of_status_and_filter(status, choice)).order_by(*order).limit(limit)
        )
        return [dict(row) for row in self._connection.execute(query).mappings()]

    def page(
        self, status: str, choice: RecordFilter, *, after: DeadLetterPlace | None, limit: int
    ) -> list[dict[str, Any]]:
        """Return at most *limit* dead letters *after* a place, by stream and reason, longest rejected first."""
        order = tuple(dead_letters.c[name] for name in DeadLetterPlace._fields)
        query = (
            select(dead_letters).where(*_conditions_of_status_and_filter(status, choice)).order_by(*order).limit(limit)
        )
        if after is not None:
            place = (literal(value, column.type) for value, column in zip(after, order, strict=True))
            query = query.where(tuple_(*order) > tuple_(*place))
        return [dict(row) for row in self._connection.execute(query).mappings()]

    def groups_by_reason(
        self, status: str, choice: RecordFilter, *, by_source: bool, limit: int
    ) -> list[DeadLetterGroup]:
        """Count the dead letters of *choice* by stream and reason, and by file, the largest groups first."""
        by = [dead_letters.c.stream, dead_letters.c.code, *([dead_letters.c.source] if by_source else [])]
        facts = func.count().label("number"), func.min(dead_letters.c.first_run_id).label("first_run_id")
        query = select(*by, *facts).where(*_conditions_of_status_and_filter(status, choice)).group_by(*by)
        found = query.order_by(facts[0].desc(), *by).limit(limit).subquery()
        source = found.c.source if by_source else null()
        columns = found.c.stream, found.c.code, source, found.c.number, found.c.first_run_id, runs.c.started_at
        joined = select(*columns).join(runs, runs.c.id == found.c.first_run_id)
        rows = self._connection.execute(joined.order_by(found.c.number.desc(), found.c.stream, found.c.code))
        return [DeadLetterGroup(*row) for row in rows]

    def count(self, choice: RecordFilter, *, status: str = "rejected") -> int:
        query = select(func.count()).select_from(dead_letters).where(*_conditions_of_status_and_filter(status, choice))
        return int(self._connection.execute(query).scalar_one())

    def counts_by_status(self, choice: RecordFilter) -> dict[str, int]:
        """Count the dead letters of *choice* by status."""
        # SQLite would read each row by its place in the index of the status, although it has to read almost all
        by_index = choice.key is None and choice.source is None and choice.text is None
        status = (
            dead_letters.c.status if by_index else sql_types_and_statements.column_without_index(dead_letters.c.status)
        )
        query = select(status, func.count()).where(*choice.conditions(dead_letters)).group_by(status)
        return {name: number for name, number in self._connection.execute(query)}

    def reason_counts(self, choice: RecordFilter) -> list[tuple[str, str, int]]:
        """Count the rejected dead letters of *choice* by stream and reason code, the most frequent first."""
        number = func.count().label("number")
        query = select(dead_letters.c.stream, dead_letters.c.code, number).where(
            *_conditions_of_status_and_filter("rejected", choice)
        )
        query = query.group_by(dead_letters.c.stream, dead_letters.c.code)
        found = self._connection.execute(query.order_by(number.desc(), dead_letters.c.stream, dead_letters.c.code))
        return [(stream, code, count) for stream, code, count in found]

    def reason_code_by_key_hash(self, stream: str, key_hashes: Sequence[int]) -> dict[int, str]:
        rows = _CODES.rows(self._connection, {"stream": stream}, key_hashes)
        return {key_hash: code for key_hash, code, status in rows if status == "rejected"}


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


_WAITING_COLUMNS = IDENTITY | {"waits_for": "waits_for", "raw": "raw"}
_PUT_WAITING = sql_types_and_statements.upsert_statement(
    waiting_records, (*_WAITING_COLUMNS, "idle_under", "run_id", "since")
)
_DELETE_WAITING = DeleteByStreamAndKey(waiting_records)
_FIELDS = [waiting_records.c[name] for name in _WAITING_COLUMNS]
_WAIT = [waiting_records.c[name] for name in (*IDENTITY, "waits_for", "idle_under")]
_WAITS_AMONG = sql_types_and_statements.QueryByKeys(
    select(*_WAIT).where(stream_condition_with_parameter(waiting_records)), waiting_records.c.key_hash
)
_IDLE = sql_types_and_statements.BulkStatement(
    update(waiting_records)
    .where(stream_condition_with_parameter(waiting_records), waiting_records.c.key_hash == bindparam("hash"))
    .values(idle_under=bindparam("version"))
)
_AMONG = sql_types_and_statements.QueryByKeys(
    select(*_FIELDS).where(stream_condition_with_parameter(waiting_records)), waiting_records.c.key_hash
)
_SINCE = sql_types_and_statements.QueryByKeys(
    select(waiting_records.c.key_hash, waiting_records.c.since).where(stream_condition_with_parameter(waiting_records)),
    waiting_records.c.key_hash,
)
_WAITS = sql_types_and_statements.QueryByKeys(
    select(waiting_records.c.key_hash, waiting_records.c.waits_for).where(
        stream_condition_with_parameter(waiting_records)
    ),
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
            columns = sql_types_and_statements.attributes_as_columns(group, "idle_under", **_WAITING_COLUMNS)
            columns["since"] = [since.get(key_hash, at) for key_hash in hashes]
            _PUT_WAITING.run(self._connection, columns, {"run_id": run_id})

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
        _DELETE_WAITING.run(self._connection, stream, key_hashes)

    def listed(self, *, limit: int, choice: RecordFilter = ALL_RECORDS) -> list[dict[str, Any]]:
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
        for part in sql_types_and_statements.chunks_of_in_list(waits_for):
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
