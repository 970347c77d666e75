"""Records that did not get through: dead letters, and those that wait for another record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, bindparam, delete, func, literal, select, update

from crossdock.state.db import sql_statements
from crossdock.state.db.schema import refused, waiting


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that was refused; *raw* and *mapped* hold its data and are shown only on request.

    Attributes:
        status: ``dropped`` once a person has said that it shall not be delivered as it reads.
    """

    stream: str
    key_hash: int
    key: str
    record_fp: int
    stage: str
    code: str
    pointer: str | None
    message: str
    raw: dict[str, Any]
    mapped: dict[str, Any] | None
    source: str
    line: int
    position: str | None = None
    status: str = "refused"


@dataclass(frozen=True, slots=True)
class WaitingRecord:
    """A record that refers to others which are not delivered yet.

    Attributes:
        waits_for: ``[{resource, namespace, key}, ...]``.
    """

    stream: str
    key_hash: int
    key: str
    record_fp: int
    position: str | None
    waits_for: list[dict[str, str]]
    raw: dict[str, Any]
    source: str
    line: int


@dataclass(frozen=True, slots=True)
class Choice:
    """Which records a person means; what is None does not limit it.

    Attributes:
        since: Refused at this instant or later.
    """

    stream: str | None = None
    key: str | None = None
    code: str | None = None
    since: datetime | None = None

    def conditions(self, table: Table) -> list[Any]:
        """On the columns that every kind of record has."""
        given = {"stream": self.stream, "key": self.key}
        return [table.c[name] == value for name, value in given.items() if value is not None]


def _of_stream(table: Table) -> ColumnElement[bool]:
    return table.c.stream == bindparam("stream")


_BOTH = (refused, waiting)
_ANY = {table.name: select(literal(1)).select_from(table).where(_of_stream(table)).limit(1) for table in _BOTH}
_CLEAR = {
    table.name: sql_statements.Bulk(delete(table).where(_of_stream(table), table.c.key_hash == bindparam("key")))
    for table in _BOTH
}
_STORIES = sql_statements.ByKey(
    select(refused.c.key_hash, refused.c.first_run_id, refused.c.run_id, refused.c.attempts).where(_of_stream(refused)),
    refused.c.key_hash,
)
_SINCE = sql_statements.ByKey(
    select(waiting.c.key_hash, waiting.c.since).where(_of_stream(waiting)), waiting.c.key_hash
)


class Refused:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def put(self, letters: Sequence[DeadLetter], *, run_id: int, at: datetime) -> None:
        """Write dead letters; one of the same record replaces the older one and remembers the first run."""
        for stream in {letter.stream for letter in letters}:
            group = [letter for letter in letters if letter.stream == stream]
            known = self._known(stream, [letter.key_hash for letter in group])
            rows = []
            for letter in group:
                first_run, last_run, attempts = known.get(letter.key_hash, (run_id, 0, 0))
                facts = {name: getattr(letter, name) for name in DeadLetter.__slots__}
                again = attempts + (last_run != run_id)  # a transaction that is tried again counts once
                story = {"attempts": again, "first_run_id": first_run, "run_id": run_id, "refused_at": at}
                rows.append(facts | story)
            sql_statements.upsert(self._connection, refused, rows)

    def _known(self, stream: str, key_hashes: list[int]) -> dict[int, tuple[int, int, int]]:
        found = _STORIES.rows(self._connection, {"stream": stream}, key_hashes)
        return {key_hash: tuple(story) for key_hash, *story in found}

    def fingerprints(self, stream: str) -> list[tuple[int, int, str, str | None]]:
        """Key hash, record fingerprint, status and position of every dead letter of *stream*."""
        fields = (refused.c.key_hash, refused.c.record_fp, refused.c.status, refused.c.position)
        return [tuple(row) for row in self._connection.execute(select(*fields).where(refused.c.stream == stream))]

    def chosen(self, choice: Choice) -> list[DeadLetter]:
        """The letters of *choice* that are not dropped, oldest first."""
        fields = [refused.c[name] for name in DeadLetter.__slots__]
        query = select(*fields).where(refused.c.status == "refused", refused.c.key != "", *choice.conditions(refused))
        if choice.code is not None:
            query = query.where(refused.c.code == choice.code)
        if choice.since is not None:
            query = query.where(refused.c.refused_at >= choice.since)
        return [
            DeadLetter(*row) for row in self._connection.execute(query.order_by(refused.c.refused_at, refused.c.key))
        ]

    def drop(self, stream: str, key_hashes: Sequence[int]) -> None:
        """Remember that a person gave these up, as they read now."""
        for part in sql_statements.chunks(key_hashes):
            condition = (refused.c.stream == stream) & refused.c.key_hash.in_(part)
            self._connection.execute(update(refused).where(condition).values(status="dropped"))

    def among(self, stream: str, key_hashes: Sequence[int]) -> set[int]:
        """Those of *key_hashes* that are dead letters."""
        return {key_hash for key_hash, *_ in _STORIES.rows(self._connection, {"stream": stream}, key_hashes)}

    def clear(self, stream: str, key_hashes: Sequence[int]) -> None:
        """Forget dead letters whose record got through after all."""
        _clear(self._connection, refused, stream, key_hashes)

    def clear_keyless(self, stream: str, sources: Sequence[str], *, run_id: int) -> None:
        """Forget rows without key of *sources*, unless *run_id* met them again: those files were read anew."""
        for part in sql_statements.chunks(sources):
            condition = (refused.c.stream == stream) & (refused.c.key == "") & (refused.c.run_id != run_id)
            self._connection.execute(delete(refused).where(condition, refused.c.source.in_(part)))

    def listed(self, *, limit: int, status: str = "refused") -> list[dict[str, Any]]:
        """Dead letters of *status* with their story, by stream and newest first, at most *limit*."""
        order = (refused.c.stream, refused.c.refused_at.desc(), refused.c.key)
        query = select(refused).where(refused.c.status == status).order_by(*order).limit(limit)
        return [dict(row) for row in self._connection.execute(query).mappings()]

    def count_before(self, run_id: int) -> int:
        """How many dead letters *run_id* has neither written nor met again."""
        query = (
            select(func.count()).select_from(refused).where(refused.c.run_id < run_id, refused.c.status == "refused")
        )
        return int(self._connection.execute(query).scalar_one())


class Waiting:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def put(self, records: Sequence[WaitingRecord], *, run_id: int, at: datetime) -> None:
        """Write waiting records; one that waited already keeps its *since*."""
        for stream in {record.stream for record in records}:
            group = [record for record in records if record.stream == stream]
            found = _SINCE.rows(self._connection, {"stream": stream}, [record.key_hash for record in group])
            since = {key_hash: started for key_hash, started in found}
            rows = [
                {name: getattr(record, name) for name in WaitingRecord.__slots__}
                | {"run_id": run_id, "since": since.get(record.key_hash, at)}
                for record in group
            ]
            sql_statements.upsert(self._connection, waiting, rows)

    def of(self, stream: str) -> list[WaitingRecord]:
        """Everything that waits in *stream*, longest first."""
        return self.chosen(Choice(stream))

    def fingerprint(self, stream: str, key_hash: int) -> int | None:
        """What a record reads that waits; None if it does not."""
        query = select(waiting.c.record_fp).where(waiting.c.stream == stream, waiting.c.key_hash == key_hash)
        return self._connection.execute(query).scalar()

    def chosen(self, choice: Choice) -> list[WaitingRecord]:
        """The waiting records of *choice*, longest first."""
        fields = [waiting.c[name] for name in WaitingRecord.__slots__]
        query = select(*fields).where(*choice.conditions(waiting)).order_by(waiting.c.since, waiting.c.key)
        return [WaitingRecord(*row) for row in self._connection.execute(query)]

    def clear(self, stream: str, key_hashes: Sequence[int]) -> None:
        """Forget records that wait no longer."""
        _clear(self._connection, waiting, stream, key_hashes)

    def listed(self, *, limit: int) -> list[dict[str, Any]]:
        """Waiting records, longest first, at most *limit*."""
        query = select(waiting).order_by(waiting.c.since, waiting.c.stream, waiting.c.key).limit(limit)
        return [dict(row) for row in self._connection.execute(query).mappings()]


def _clear(connection: Connection, table: Table, stream: str, key_hashes: Sequence[int]) -> None:
    """Nearly always there is nothing of the stream at all, which is quickly seen."""
    if key_hashes and connection.execute(_ANY[table.name], {"stream": stream}).first():
        _CLEAR[table.name].run(connection, {"key": key_hashes}, {"stream": stream})
