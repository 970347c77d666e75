"""The facts that the sign-off of a migration needs: its exceptions, and what was sent since a time."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, exists, func, or_, select, true

from crossdock.state.db.schema import dead_letters, intents, migration_runs, taken_files


class DeadLetterCount(NamedTuple):
    """The ``rejected`` or ``dropped`` dead letters of one stream with the same reason code."""

    stream: str
    code: str
    status: str
    records: int


class MigrationOutcome:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def dead_letter_counts(self, streams: Collection[str]) -> list[DeadLetterCount]:
        by = dead_letters.c.stream, dead_letters.c.code, dead_letters.c.status
        query = select(*by, func.count()).where(dead_letters.c.stream.in_(streams)).group_by(*by).order_by(*by)
        return [DeadLetterCount(*row) for row in self._connection.execute(query)]

    def dead_letter_files_and_lines(
        self, group: DeadLetterCount, *, limit: int, reads_files: bool = False
    ) -> list[tuple[str, int]]:
        """Return file and line of dead letters. A stream that *reads_files* reads nothing else."""
        source, line = dead_letters.c.source, dead_letters.c.line
        is_file = exists().where(taken_files.c.stream == dead_letters.c.stream, taken_files.c.name == source)
        query = select(source, line).where(
            line > 0,
            dead_letters.c.stream == group.stream,
            dead_letters.c.code == group.code,
            dead_letters.c.status == group.status,
            true() if reads_files else is_file,
        )
        rows = self._connection.execute(query.order_by(source, line).limit(limit))
        return [(name, number) for name, number in rows]

    def settled_times(self, streams: Collection[str], since: datetime, *, limit: int) -> list[datetime]:
        """Return the settlement times of the last *limit* operations of *streams* settled after *since*."""
        settled_at = intents.c.settled_at
        last = (
            select(settled_at)
            .where(settled_at.is_not(None), intents.c.stream.in_(streams))
            .order_by(intents.c.id.desc())
            .limit(limit)
        ).subquery()
        query = select(last.c.settled_at).where(last.c.settled_at > since)
        return list(self._connection.execute(query).scalars())

    def unneeded_write_counts(self, migration_id: int) -> dict[str, int]:
        """Return the number of operations that wrote nothing, because the target held the record already, by stream."""
        own = migration_runs.c.run_id == intents.c.run_id, migration_runs.c.migration_id == migration_id
        query = select(intents.c.stream, func.count()).where(
            exists().where(*own), intents.c.status == "delivered", intents.c.untouched.is_(True)
        )
        rows = self._connection.execute(query.group_by(intents.c.stream).order_by(intents.c.stream))
        return {stream: number for stream, number in rows}

    def count_operations_since(self, streams: Collection[str], at: datetime) -> int:
        query = select(func.count()).where(
            intents.c.stream.in_(streams), or_(intents.c.created_at > at, intents.c.settled_at > at)
        )
        return int(self._connection.execute(query).scalar_one())
