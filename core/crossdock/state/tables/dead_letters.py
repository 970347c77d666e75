"""Dead letters: records that were rejected, with the reason and their data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, func, select, update

from crossdock.state.db import sql_statements
from crossdock.state.db.schema import dead_letters as table
from crossdock.state.tables.record_identity import COLUMNS as IDENTITY
from crossdock.state.tables.record_identity import RecordIdentity, Step
from crossdock.state.tables.record_rows import DeadLetterFilter, RowsByKey, of_stream


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that was refused; *raw* and *mapped* hold its data and are shown only on request.

    Attributes:
        status: ``dropped`` once a person has said that it shall not be delivered as it reads.
    """

    identity: RecordIdentity
    stage: str
    code: str
    pointer: str | None
    message: str
    raw: dict[str, Any]
    mapped: dict[str, Any] | None
    step: Step = "whole"
    status: str = "refused"


class DeadLetterFacts(NamedTuple):
    """What a comparison needs to know of a dead letter."""

    key_hash: int
    fingerprint: int | None
    position: str | None
    status: str
    step: Step


_PLAIN = tuple(name for name in DeadLetter.__slots__ if name != "identity")
_COLUMNS = IDENTITY | {name: name for name in _PLAIN}
_ROWS = RowsByKey(table)
_PUT = sql_statements.upserting(table, (*_COLUMNS, "first_run_id", "attempts", "run_id", "refused_at"))
_STORIES = sql_statements.ByKey(
    select(table.c.key_hash, table.c.first_run_id, table.c.run_id, table.c.attempts).where(of_stream(table)),
    table.c.key_hash,
)


class DeadLetters:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def put(self, rejected: Sequence[DeadLetter], *, run_id: int, at: datetime) -> None:
        """Write dead letters; one of the same record replaces the older one and remembers the first run."""
        for stream in {each.identity.stream for each in rejected}:
            group = [each for each in rejected if each.identity.stream == stream]
            known = self._known(stream, [each.identity.key_hash for each in group])
            columns = sql_statements.by_column(group, **_COLUMNS)
            found = [known.get(each.identity.key_hash, (run_id, 0, 0)) for each in group]
            columns["first_run_id"] = [first_run for first_run, _, _ in found]
            # a transaction that is tried again counts once
            columns["attempts"] = [attempts + (last_run != run_id) for _, last_run, attempts in found]
            _PUT.run(self._connection, columns, {"run_id": run_id, "refused_at": at})

    def _known(self, stream: str, key_hashes: list[int]) -> dict[int, tuple[int, int, int]]:
        found = _STORIES.rows(self._connection, {"stream": stream}, key_hashes)
        return {key_hash: tuple(story) for key_hash, *story in found}

    def facts(self, stream: str) -> list[DeadLetterFacts]:
        """What a comparison needs to know of every dead letter of *stream*."""
        fields = (table.c.key_hash, table.c.record_fp, table.c.position, table.c.status, table.c.step)
        query = select(*fields).where(table.c.stream == stream)
        return [DeadLetterFacts(*row) for row in self._connection.execute(query)]

    def chosen(self, choice: DeadLetterFilter) -> list[DeadLetter]:
        """The letters of *choice* that are not dropped, oldest first."""
        fields = [table.c[name] for name in _COLUMNS]
        query = select(*fields).where(table.c.status == "refused", table.c.key != "", *choice.conditions(table))
        if choice.code is not None:
            query = query.where(table.c.code == choice.code)
        if choice.since is not None:
            query = query.where(table.c.refused_at >= choice.since)
        found = self._connection.execute(query.order_by(table.c.refused_at, table.c.key))
        return [DeadLetter(RecordIdentity.of_row(row), *(getattr(row, name) for name in _PLAIN)) for row in found]

    def drop(self, stream: str, key_hashes: Sequence[int]) -> None:
        """Remember that a person gave these up, as they read now."""
        for part in sql_statements.chunks(key_hashes):
            condition = (table.c.stream == stream) & table.c.key_hash.in_(part)
            self._connection.execute(update(table).where(condition).values(status="dropped"))

    def among(self, stream: str, key_hashes: Sequence[int]) -> set[int]:
        """Those of *key_hashes* that are dead letters."""
        return {key_hash for key_hash, *_ in _STORIES.rows(self._connection, {"stream": stream}, key_hashes)}

    def clear(self, stream: str, key_hashes: Sequence[int]) -> None:
        """Forget dead letters whose record got through after all."""
        _ROWS.delete(self._connection, stream, key_hashes)

    def clear_keyless(self, stream: str, sources: Sequence[str], *, run_id: int) -> None:
        """Forget rows without key of *sources*, unless *run_id* met them again: those files were read anew."""
        for part in sql_statements.chunks(sources):
            condition = (table.c.stream == stream) & (table.c.key == "") & (table.c.run_id != run_id)
            self._connection.execute(delete(table).where(condition, table.c.source.in_(part)))

    def listed(self, *, limit: int, status: str = "refused") -> list[dict[str, Any]]:
        """Dead letters of *status* with their story, by stream and newest first, at most *limit*."""
        order = (table.c.stream, table.c.refused_at.desc(), table.c.key)
        query = select(table).where(table.c.status == status).order_by(*order).limit(limit)
        return [dict(row) for row in self._connection.execute(query).mappings()]

    def count_before(self, run_id: int) -> int:
        """How many dead letters *run_id* has neither written nor met again."""
        query = select(func.count()).select_from(table).where(table.c.run_id < run_id, table.c.status == "refused")
        return int(self._connection.execute(query).scalar_one())
