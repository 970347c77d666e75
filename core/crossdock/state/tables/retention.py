"""Retention: old records lose their data, and what no one needs any more goes. What is unsettled is never touched.

An operation's row may go only where its counter is remembered elsewhere: otherwise a later operation would mint an
idempotency key again that the platform may know (law 2). Where it is not, the row stays without its data.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Table, delete, func, select, tuple_, update

from crossdock.state.db import sql_statements
from crossdock.state.db.schema import dead_letters, intents, meta, runs, scheduled_runs, snapshots, taken_files
from crossdock.state.tables import content_digests, expiry
from crossdock.state.tables.expiry import NO_INTENT_DATA, NO_LETTER_DATA, Ages, Change
from crossdock.state.tables.scheduled_runs import ScheduledRuns

BATCH = 1_000  # rows in one transaction
_APPLIED = "retention_applied_at"


@dataclass(frozen=True, slots=True)
class PurgeResult:
    """How many rows were removed, or emptied of the records' data."""

    operations_removed: int = 0
    operations_emptied: int = 0
    dead_letters_emptied: int = 0
    runs_removed: int = 0
    nights_removed: int = 0
    files_removed: int = 0
    snapshots_removed: int = 0


class Retention:
    """Each step works on at most `BATCH` rows and returns on how many; on fewer when nothing is left to do."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def steps(self) -> Mapping[str, Callable[[Ages], int]]:
        """By name, as in `PurgeResult`, in the order of execution: runs stay while something refers to them."""
        return {
            "operations_removed": self._remove_operations,
            "operations_emptied": self._empty_operations,
            "dead_letters_emptied": self._empty_dead_letters,
            "nights_removed": self._remove_nights,
            "files_removed": self._remove_files,
            "snapshots_removed": self._remove_snapshots,
            "runs_removed": self._remove_runs,
        }

    def count(self, ages: Ages) -> PurgeResult:
        """What a purge would do now."""
        connection = self._connection
        return PurgeResult(
            operations_removed=self._count(intents, expiry.removable_operations(ages)),
            operations_emptied=self._count(intents, expiry.operations_to_empty(ages)),
            dead_letters_emptied=self._count(dead_letters, expiry.letters_to_empty(ages)),
            runs_removed=self._count(runs, expiry.removable_runs(connection, ages)),
            nights_removed=self._count(scheduled_runs, expiry.removable_nights(connection, ages)),
            files_removed=self._count(taken_files, expiry.removable_files(ages)),
            snapshots_removed=self._count(snapshots, expiry.removable_snapshots(connection, ages)),
        )

    def applied_at(self) -> datetime | None:
        """When the scheduler last came to the end of all steps."""
        text = self._connection.execute(select(meta.c.value).where(meta.c.name == _APPLIED)).scalar()
        return None if text is None else datetime.fromisoformat(text)

    def applied(self, at: datetime) -> None:
        sql_statements.upsert(self._connection, meta, [{"name": _APPLIED, "value": at.isoformat()}])

    def _remove_operations(self, ages: Ages) -> int:
        return self._remove(intents, expiry.removable_operations(ages))

    def _empty_operations(self, ages: Ages) -> int:
        return self._empty(intents, expiry.operations_to_empty(ages), NO_INTENT_DATA)

    def _empty_dead_letters(self, ages: Ages) -> int:
        return self._empty(dead_letters, expiry.letters_to_empty(ages), NO_LETTER_DATA)

    def _remove_nights(self, ages: Ages) -> int:
        """They count as run from then on; see `ScheduledRuns.begin`."""
        rows = self._chosen(scheduled_runs, expiry.removable_nights(self._connection, ages))
        latest: dict[str, datetime] = {}
        for row in rows:
            latest[row.job] = max(row.due, latest.get(row.job, row.due))
        for job, due in latest.items():
            ScheduledRuns(self._connection).end_until(job, due)
        return self._remove_rows(scheduled_runs, rows)

    def _remove_files(self, ages: Ages) -> int:
        rows = self._chosen(taken_files, expiry.removable_files(ages))
        contents = defaultdict(list)
        for row in rows:
            contents[row.stream, row.version].append(row.content_hash)
        for (stream, version), hashes in contents.items():
            content_digests.add(self._connection, "file", stream, version, hashes)
        return self._remove_rows(taken_files, rows)

    def _remove_snapshots(self, ages: Ages) -> int:
        rows = self._chosen(snapshots, expiry.removable_snapshots(self._connection, ages))
        contents = defaultdict(list)
        for row in rows:
            contents[row.stream].append(row.content)
        for stream, found in contents.items():
            content_digests.add(self._connection, "snapshot", stream, "", found)
        return self._remove_rows(snapshots, rows)

    def _remove_runs(self, ages: Ages) -> int:
        return self._remove(runs, expiry.removable_runs(self._connection, ages))

    def _count(self, table: Table, condition: ColumnElement[bool]) -> int:
        return int(self._connection.execute(select(func.count()).select_from(table).where(condition)).scalar_one())

    def _chosen(self, table: Table, condition: ColumnElement[bool]) -> list[Row[Any]]:
        """The primary keys of the first rows that meet *condition*."""
        return list(self._connection.execute(select(*table.primary_key).where(condition).limit(BATCH)))

    def _remove_rows(self, table: Table, rows: list[Row[Any]]) -> int:
        for part in sql_statements.chunks(rows):
            self._overwriting().execute(delete(table).where(tuple_(*table.primary_key).in_(list(part))))
        return len(rows)

    def _remove(self, table: Table, condition: ColumnElement[bool]) -> int:
        return self._overwriting().execute(delete(table).where(_batch(table, condition))).rowcount

    def _empty(self, table: Table, condition: ColumnElement[bool], change: Change) -> int:
        return self._overwriting().execute(update(table).where(_batch(table, condition)).values(change)).rowcount

    def _overwriting(self) -> Connection:
        """The connection, which from now on writes zeros over what it removes: gone even if the file stays as it is."""
        if self._connection.dialect.name == "sqlite":
            self._connection.exec_driver_sql("PRAGMA secure_delete=ON")
        return self._connection


def _batch(table: Table, condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """Some rows that meet *condition*."""
    key = tuple(table.primary_key)
    return tuple_(*key).in_(select(*key).where(condition).limit(BATCH).correlate(None))
