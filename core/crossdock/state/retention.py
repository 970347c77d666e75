"""Retention: removes old rows that no later run needs, or the records' data in them. Unsettled operations stay.

An operation's row is removed only if its counter is stored elsewhere too: otherwise a later operation would get an
idempotency key that a target may know (law 2). If it is not, the row stays without its data. The history of a migration
stays until it is signed off, and that of streams while they are being undone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Self

from msgspec import Struct
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Table,
    and_,
    delete,
    exists,
    false,
    func,
    not_,
    or_,
    select,
    tuple_,
    update,
)

from crossdock.state.db import sql_types_and_statements
from crossdock.state.db.schema import (
    audit_log,
    batches,
    begun_undos,
    bindings,
    dead_letters,
    intents,
    meta,
    metadata,
    migration_runs,
    migrations,
    run_messages,
    runs,
    scheduled_runs,
    snapshots,
    taken_files,
)
from crossdock.state.tables.inputs_of_streams import COMPARED_SNAPSHOTS, PurgedInputKind, add_purged_digests
from crossdock.state.tables.intents_and_stored_batches import UNSETTLED
from crossdock.state.tables.record_identity_and_scope import Scope
from crossdock.state.tables.run_history import COMPLETED, RunConfigs, Runs
from crossdock.state.tables.scheduled_runs import RECENT, ScheduledRuns

MAX_AGE = timedelta(days=36_525)
AUDIT_KEPT = timedelta(days=366)  # at least
_OPEN_MIGRATION = migrations.c.signed_off_at.is_(None)
NO_INTENT_DATA: dict[str, Any] = {"body": None, "before": None, "after": None, "raw": {}}
NO_DEAD_LETTER_DATA: dict[str, Any] = {"raw": {}, "mapped": None}


class PurgeTimes(Struct, frozen=True):
    """Rows that ended before these times may be purged.

    Attributes:
        operations: Not while a target keeps idempotency keys.
        audit: Not for a year.
    """

    operations: datetime
    others: datetime
    audit: datetime

    @classmethod
    def from_age(cls, now: datetime, older_than: timedelta, *, keys_kept_s: int) -> Self:
        remembered = timedelta(seconds=min(keys_kept_s, MAX_AGE // timedelta(seconds=1)))
        return cls(
            operations=now - max(older_than, remembered),
            others=now - older_than,
            audit=now - max(older_than, AUDIT_KEPT),
        )


def removable_operations_condition(_: Connection, ages: PurgeTimes) -> ColumnElement[bool]:
    return and_(
        _is_settled_before(ages.operations),
        _is_counter_stored_elsewhere(),
        _is_not_needed_by_migration_or_undo(intents),
    )


def operations_to_empty_condition(_: Connection, ages: PurgeTimes) -> ColumnElement[bool]:
    has_data = _has_data_to_empty(intents, NO_INTENT_DATA)
    return and_(
        _is_settled_before(ages.operations),
        not_(_is_counter_stored_elsewhere()),
        has_data,
        _is_not_needed_by_migration_or_undo(intents),
    )


def removable_batches_condition(_: Connection, ages: PurgeTimes) -> ColumnElement[bool]:
    """Select batches whose operations all go, or lose their data."""
    goes = and_(_is_settled_before(ages.operations), _is_not_needed_by_migration_or_undo(intents))
    is_needed = exists().where(intents.c.batch_id == batches.c.id, not_(goes))
    return and_(batches.c.created_at < ages.operations, not_(is_needed))


def dead_letters_to_empty_condition(_: Connection, ages: PurgeTimes) -> ColumnElement[bool]:
    has_data = _has_data_to_empty(dead_letters, NO_DEAD_LETTER_DATA)
    return and_(dead_letters.c.refused_at < ages.others, has_data, _is_not_needed_by_migration_or_undo(dead_letters))


def removable_files_condition(_: Connection, ages: PurgeTimes) -> ColumnElement[bool]:
    """Keep the last file of each stream: an unchanged snapshot is not read again, and an older one is stale."""
    later, fresher = taken_files.alias(), taken_files.alias()
    newer = or_(
        later.c.accepted_at > taken_files.c.accepted_at,
        and_(later.c.accepted_at == taken_files.c.accepted_at, later.c.stamp > taken_files.c.stamp),
    )
    same = later.c.stream == taken_files.c.stream, later.c.version == taken_files.c.version, later.c.status == "done"
    return and_(
        taken_files.c.status == "done",
        not_(exists().where(_OPEN_MIGRATION)),  # the report names the files
        func.coalesce(taken_files.c.seen_at, taken_files.c.accepted_at) < ages.others,
        exists().where(*same, newer),
        exists().where(fresher.c.stream == taken_files.c.stream, fresher.c.stamp > taken_files.c.stamp),
    )


def removable_snapshots_condition(connection: Connection, ages: PurgeTimes) -> ColumnElement[bool]:
    """Select all but the latest snapshots of each stream, which the next one is compared with."""
    conditions = []
    for stream in connection.execute(select(snapshots.c.stream).distinct()).scalars():
        of = snapshots.c.stream == stream
        latest = select(snapshots.c.finished_at).where(of).order_by(snapshots.c.finished_at.desc())
        kept = connection.execute(latest.offset(COMPARED_SNAPSHOTS - 1).limit(1)).scalar()
        if kept is not None:
            conditions.append(and_(of, snapshots.c.finished_at < min(kept, ages.others)))
    return or_(false(), *conditions)


def removable_scheduled_runs_condition(connection: Connection, ages: PurgeTimes) -> ColumnElement[bool]:
    """Keep the last run of each job, which decides what is due, and those that estimate its duration."""
    table = scheduled_runs
    conditions = []
    for job in connection.execute(select(table.c.job).distinct()).scalars():
        of, is_done = table.c.job == job, table.c.status.in_(COMPLETED)
        last = select(func.max(table.c.due)).where(of, table.c.status != "running").scalar_subquery()
        done = select(table.c.due).where(of, is_done).order_by(table.c.due.desc())
        kept = connection.execute(done.offset(RECENT - 1).limit(1)).scalar()
        measured = is_done if kept is None else and_(is_done, table.c.due >= kept)
        ended = and_(table.c.status != "running", table.c.finished_at < ages.others)
        conditions.append(and_(of, ended, table.c.due < last, not_(measured)))
    return or_(false(), *conditions)


def removable_audit_entries_condition(_: Connection, ages: PurgeTimes) -> ColumnElement[bool]:
    return audit_log.c.at < ages.audit


def removable_runs_condition(connection: Connection, ages: PurgeTimes) -> ColumnElement[bool]:
    """Select finished runs that no row refers to, except the last of each job."""
    newer = runs.alias()
    finished = and_(runs.c.finished_at < ages.others, runs.c.status != "running")
    same_job = newer.c.job.is_not_distinct_from(runs.c.job)
    removed = {
        intents: removable_operations_condition(connection, ages),
        scheduled_runs: removable_scheduled_runs_condition(connection, ages),
    }
    referred = (
        exists().where(column == runs.c.id, *([not_(removed[table])] if table in removed else []))
        for table, column in _columns_referring_to_runs()
    )
    return and_(finished, exists().where(newer.c.id > runs.c.id, same_job), *(not_(each) for each in referred))


def _columns_referring_to_runs() -> Iterator[tuple[Table, Column[Any]]]:
    for table in metadata.sorted_tables:
        for column in table.columns:
            if column.references(runs.c.id) and table is not run_messages:  # its rows end with their run
                yield table, column


def _is_not_needed_by_migration_or_undo(table: Table) -> ColumnElement[bool]:
    own = migration_runs.c.run_id == table.c.run_id
    undone = exists().where(begun_undos.c.stream == table.c.stream)
    return not_(undone) & not_(exists().where(own, migration_runs.c.migration_id == migrations.c.id, _OPEN_MIGRATION))


def _is_settled_before(before: datetime) -> ColumnElement[bool]:
    settled_at = intents.c.settled_at
    return and_(intents.c.status.not_in(UNSETTLED), settled_at.is_not(None), settled_at < before)


def _is_counter_stored_elsewhere() -> ColumnElement[bool]:
    """Require that a binding or a later operation has the counter: new counters are derived from both."""
    names, later = (*Scope.__struct_fields__, "key_hash"), intents.alias()
    bound = [bindings.c[name] == intents.c[name] for name in names]
    same = [later.c[name] == intents.c[name] for name in names]
    return or_(
        exists().where(*bound, bindings.c.counter >= intents.c.counter),
        exists().where(*same, later.c.counter > intents.c.counter),
    )


def _has_data_to_empty(table: Table, emptied: dict[str, Any]) -> ColumnElement[bool]:
    return or_(
        *(table.c[name].is_not(None) if empty is None else table.c[name] != empty for name, empty in emptied.items())
    )


BATCH = 1_000  # rows in one transaction
_APPLIED = "retention_applied_at"
_EXPIRED: Mapping[str, tuple[Table, Callable[[Connection, PurgeTimes], ColumnElement[bool]]]] = {
    "operations_removed": (intents, removable_operations_condition),
    "operations_emptied": (intents, operations_to_empty_condition),
    "files_out_removed": (batches, removable_batches_condition),
    "dead_letters_emptied": (dead_letters, dead_letters_to_empty_condition),
    "nights_removed": (scheduled_runs, removable_scheduled_runs_condition),
    "files_removed": (taken_files, removable_files_condition),
    "snapshots_removed": (snapshots, removable_snapshots_condition),
    "runs_removed": (runs, removable_runs_condition),
    "audit_entries_removed": (audit_log, removable_audit_entries_condition),
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


class RetentionSteps:
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
        sql_types_and_statements.upsert_rows(self._connection, meta, [{"name": _APPLIED, "value": at.isoformat()}])

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
        for part in sql_types_and_statements.chunks_of_in_list(rows):
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
            ScheduledRuns(self._connection).mark_unrecorded_runs_finished_until(job, due)

    def _mark_removed_runs(self, run_ids: Sequence[int]) -> None:
        """Record until when runs are removed, so that sums of older ones are not taken for whole."""
        for part in sql_types_and_statements.chunks_of_in_list(run_ids):
            query = select(func.max(runs.c.started_at)).where(runs.c.id.in_(part))
            Runs(self._connection).mark_removed_until(self._connection.execute(query).scalar_one())

    def _store_digests_of_removed_inputs(self, kind: PurgedInputKind, removed: list[tuple[str, str, str]]) -> None:
        contents = defaultdict(list)
        for stream, version, content in removed:
            contents[stream, version].append(content)
        for (stream, version), found in contents.items():
            add_purged_digests(self._connection, kind, stream, version, found)

    def _overwriting_connection(self) -> Connection:
        """Return the connection, set to overwrite removed data with zeros, since the file keeps its size."""
        if self._connection.dialect.name == "sqlite":
            self._connection.exec_driver_sql("PRAGMA secure_delete=ON")
        return self._connection
