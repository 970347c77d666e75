"""The old rows that may be removed from a state: those that no later run needs.

The history of a migration stays until it is signed off, and that of streams while they are being undone.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Self

from msgspec import Struct
from sqlalchemy import Column, ColumnElement, Connection, Table, and_, exists, false, func, not_, or_, select

from crossdock.state.db.schema import (
    audit_log,
    batches,
    begun_undos,
    bindings,
    dead_letters,
    intents,
    metadata,
    migration_runs,
    migrations,
    run_messages,
    runs,
    scheduled_runs,
    snapshots,
    taken_files,
)
from crossdock.state.tables.delivery_intents import UNSETTLED
from crossdock.state.tables.history_of_read_snapshots import COMPARED_SNAPSHOTS
from crossdock.state.tables.record_identity_and_scope import Scope
from crossdock.state.tables.run_history import COMPLETED
from crossdock.state.tables.scheduled_runs import RECENT

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


def removable_operations(_: Connection, ages: PurgeTimes) -> ColumnElement[bool]:
    return and_(
        _is_settled_before(ages.operations),
        _is_counter_stored_elsewhere(),
        _is_not_needed_by_migration_or_undo(intents),
    )


def operations_to_empty(_: Connection, ages: PurgeTimes) -> ColumnElement[bool]:
    has_data = _has_data_to_empty(intents, NO_INTENT_DATA)
    return and_(
        _is_settled_before(ages.operations),
        not_(_is_counter_stored_elsewhere()),
        has_data,
        _is_not_needed_by_migration_or_undo(intents),
    )


def removable_batches(_: Connection, ages: PurgeTimes) -> ColumnElement[bool]:
    """Select batches whose operations all go, or lose their data."""
    goes = and_(_is_settled_before(ages.operations), _is_not_needed_by_migration_or_undo(intents))
    is_needed = exists().where(intents.c.batch_id == batches.c.id, not_(goes))
    return and_(batches.c.created_at < ages.operations, not_(is_needed))


def dead_letters_to_empty(_: Connection, ages: PurgeTimes) -> ColumnElement[bool]:
    has_data = _has_data_to_empty(dead_letters, NO_DEAD_LETTER_DATA)
    return and_(dead_letters.c.refused_at < ages.others, has_data, _is_not_needed_by_migration_or_undo(dead_letters))


def removable_files(_: Connection, ages: PurgeTimes) -> ColumnElement[bool]:
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


def removable_snapshots(connection: Connection, ages: PurgeTimes) -> ColumnElement[bool]:
    """Select all but the latest snapshots of each stream, which the next one is compared with."""
    conditions = []
    for stream in connection.execute(select(snapshots.c.stream).distinct()).scalars():
        of = snapshots.c.stream == stream
        latest = select(snapshots.c.finished_at).where(of).order_by(snapshots.c.finished_at.desc())
        kept = connection.execute(latest.offset(COMPARED_SNAPSHOTS - 1).limit(1)).scalar()
        if kept is not None:
            conditions.append(and_(of, snapshots.c.finished_at < min(kept, ages.others)))
    return or_(false(), *conditions)


def removable_scheduled_runs(connection: Connection, ages: PurgeTimes) -> ColumnElement[bool]:
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


def removable_audit_entries(_: Connection, ages: PurgeTimes) -> ColumnElement[bool]:
    return audit_log.c.at < ages.audit


def removable_runs(connection: Connection, ages: PurgeTimes) -> ColumnElement[bool]:
    """Select finished runs that no row refers to, except the last of each job."""
    newer = runs.alias()
    finished = and_(runs.c.finished_at < ages.others, runs.c.status != "running")
    same_job = newer.c.job.is_not_distinct_from(runs.c.job)
    removed = {
        intents: removable_operations(connection, ages),
        scheduled_runs: removable_scheduled_runs(connection, ages),
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
