"""Retention: removes old rows, or the records' data in them. Unsettled operations are never touched.

An operation's row is removed only if its counter is stored elsewhere too: otherwise a later operation would get an
idempotency key that a target may know (law 2). If it is not, the row stays without its data.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Table, delete, func, select, tuple_, update

from crossdock.state.db import bulk_writes_and_key_queries
from crossdock.state.db.schema import (
    audit_log,
    batches,
    dead_letters,
    intents,
    meta,
    runs,
    scheduled_runs,
    snapshots,
    taken_files,
)
from crossdock.state.tables.purged_input_digests import Kind, add
from crossdock.state.tables.run_history import RunConfigs, Runs
from crossdock.state.tables.scheduled_runs import ScheduledRuns
from crossdock.state.upkeep.removable_rows import (
    NO_DEAD_LETTER_DATA,
    NO_INTENT_DATA,
    PurgeTimes,
    dead_letters_to_empty,
    operations_to_empty,
    removable_audit_entries,
    removable_batches,
    removable_files,
    removable_operations,
    removable_runs,
    removable_scheduled_runs,
    removable_snapshots,
)

BATCH = 1_000  # rows in one transaction
_APPLIED = "retention_applied_at"
_EXPIRED: Mapping[str, tuple[Table, Callable[[Connection, PurgeTimes], ColumnElement[bool]]]] = {
    "operations_removed": (intents, removable_operations),
    "operations_emptied": (intents, operations_to_empty),
    "files_out_removed": (batches, removable_batches),
    "dead_letters_emptied": (dead_letters, dead_letters_to_empty),
    "nights_removed": (scheduled_runs, removable_scheduled_runs),
    "files_removed": (taken_files, removable_files),
    "snapshots_removed": (snapshots, removable_snapshots),
    "runs_removed": (runs, removable_runs),
    "audit_entries_removed": (audit_log, removable_audit_entries),
}
_EMPTIED = {
    "operations_emptied": NO_INTENT_DATA,
    "dead_letters_emptied": NO_DEAD_LETTER_DATA,
}


class PurgeResult(Struct, frozen=True):
    operations_removed: int = 0
    operations_emptied: int = 0
    dead_letters_emptied: int = 0
    runs_removed: int = 0
    nights_removed: int = 0
    files_removed: int = 0
    snapshots_removed: int = 0
    files_out_removed: int = 0
    audit_entries_removed: int = 0


class Retention:
    """The steps of retention. Each handles at most `BATCH` rows and returns their number; fewer when it is finished."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def steps(self) -> Mapping[str, Callable[[PurgeTimes], int]]:
        """The steps by name, as in `PurgeResult`. Runs come after the rows that refer to them."""
        return {name: partial(self._empty_rows if name in _EMPTIED else self._remove_rows, name) for name in _EXPIRED}

    def count_removable(self, ages: PurgeTimes) -> PurgeResult:
        counts = {}
        for name, (table, condition) in _EXPIRED.items():
            query = select(func.count()).select_from(table).where(condition(self._connection, ages))
            counts[name] = int(self._connection.execute(query).scalar_one())
        return PurgeResult(**counts)

    def last_applied_time(self) -> datetime | None:
        text = self._connection.execute(select(meta.c.value).where(meta.c.name == _APPLIED)).scalar()
        return None if text is None else datetime.fromisoformat(text)

    def store_applied_time(self, at: datetime) -> None:
        bulk_writes_and_key_queries.upsert_rows(self._connection, meta, [{"name": _APPLIED, "value": at.isoformat()}])

    def _remove_rows(self, name: str, ages: PurgeTimes) -> int:
        table, condition = _EXPIRED[name]
        query = select(*table.primary_key).where(condition(self._connection, ages)).limit(BATCH)
        rows = list(self._connection.execute(query))
        if table is scheduled_runs:
            self._mark_removed_scheduled_runs_finished(rows)
        elif table is taken_files:
            self._store_digests_of_removed_inputs("file", [(row.stream, row.version, row.content_hash) for row in rows])
        elif table is snapshots:
            self._store_digests_of_removed_inputs("snapshot", [(row.stream, "", row.content) for row in rows])
        elif table is runs:
            self._mark_removed_runs([row.id for row in rows])
        for part in bulk_writes_and_key_queries.chunks(rows):
            self._overwriting_connection().execute(delete(table).where(tuple_(*table.primary_key).in_(list(part))))
        if table is runs:
            RunConfigs(self._overwriting_connection()).remove_unused()
        return len(rows)

    def _empty_rows(self, name: str, ages: PurgeTimes) -> int:
        table, condition = _EXPIRED[name]
        key = tuple(table.primary_key)
        batch = select(*key).where(condition(self._connection, ages)).limit(BATCH).correlate(None)
        changed = update(table).where(tuple_(*key).in_(batch)).values(_EMPTIED[name])
        return self._overwriting_connection().execute(changed).rowcount

    def _mark_removed_scheduled_runs_finished(self, rows: Sequence[Any]) -> None:
        """Record that removed scheduled runs are finished; see `ScheduledRuns.begin_unless_finished`."""
        latest: dict[str, datetime] = {}
        for row in rows:
            latest[row.job] = max(row.due, latest.get(row.job, row.due))
        for job, due in latest.items():
            ScheduledRuns(self._connection).mark_finished_until(job, due)

    def _mark_removed_runs(self, run_ids: Sequence[int]) -> None:
        """Record until when runs are removed, so that sums of older ones are not taken for whole."""
        for part in bulk_writes_and_key_queries.chunks(run_ids):
            query = select(func.max(runs.c.started_at)).where(runs.c.id.in_(part))
            Runs(self._connection).mark_removed_until(self._connection.execute(query).scalar_one())

    def _store_digests_of_removed_inputs(self, kind: Kind, removed: list[tuple[str, str, str]]) -> None:
        contents = defaultdict(list)
        for stream, version, content in removed:
            contents[stream, version].append(content)
        for (stream, version), found in contents.items():
            add(self._connection, kind, stream, version, found)

    def _overwriting_connection(self) -> Connection:
        """Return the connection, set to overwrite removed data with zeros, since the file keeps its size."""
        if self._connection.dialect.name == "sqlite":
            self._connection.exec_driver_sql("PRAGMA secure_delete=ON")
        return self._connection
