"""Which rows a state may lose once they are old enough: those on which nothing depends that a later run does.

What is not named here never goes: bindings, cursors, removals, waiting records, and dead letters with their reasons.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

from sqlalchemy import Column, ColumnElement, Connection, Table, and_, exists, false, func, not_, or_, select

from crossdock.state.db.schema import (
    bindings,
    dead_letters,
    intents,
    metadata,
    runs,
    scheduled_runs,
    snapshots,
    taken_files,
)
from crossdock.state.tables.intents import UNSETTLED
from crossdock.state.tables.scheduled_runs import RECENT
from crossdock.state.tables.snapshot_history import COMPARED_SNAPSHOTS

MAX_AGE = timedelta(days=36_525)

Change = dict[str, Any]
NO_INTENT_DATA: Change = {"body": None, "before": None, "after": None, "raw": {}}
NO_LETTER_DATA: Change = {"raw": {}, "mapped": None}


@dataclass(frozen=True, slots=True)
class Ages:
    """Before when something must have ended to be purged.

    Attributes:
        operations: For operations: no later than where the platform's memory of idempotency keys begins.
        others: For everything else.
    """

    operations: datetime
    others: datetime

    @classmethod
    def at(cls, now: datetime, older_than: timedelta, *, keys_kept_s: int) -> Self:
        """What is *older_than* that at *now*.

        Args:
            keys_kept_s: How many seconds the platform remembers idempotency keys.
        """
        remembered = timedelta(seconds=min(keys_kept_s, MAX_AGE // timedelta(seconds=1)))
        return cls(operations=now - max(older_than, remembered), others=now - older_than)


def removable_operations(ages: Ages) -> ColumnElement[bool]:
    return and_(_settled(ages.operations), _remembered())


def operations_to_empty(ages: Ages) -> ColumnElement[bool]:
    return and_(_settled(ages.operations), not_(_remembered()), _holds_data(intents, NO_INTENT_DATA))


def letters_to_empty(ages: Ages) -> ColumnElement[bool]:
    return and_(dead_letters.c.refused_at < ages.others, _holds_data(dead_letters, NO_LETTER_DATA))


def removable_files(ages: Ages) -> ColumnElement[bool]:
    """Files that are worked through, and listed by their source no longer.

    The latest of each stream stays: a snapshot that has not changed is not read again, and an older one is stale.
    """
    later, fresher = taken_files.alias(), taken_files.alias()
    newer = or_(
        later.c.accepted_at > taken_files.c.accepted_at,
        and_(later.c.accepted_at == taken_files.c.accepted_at, later.c.stamp > taken_files.c.stamp),
    )
    same = later.c.stream == taken_files.c.stream, later.c.version == taken_files.c.version, later.c.status == "done"
    return and_(
        taken_files.c.status == "done",
        func.coalesce(taken_files.c.seen_at, taken_files.c.accepted_at) < ages.others,
        exists().where(*same, newer),
        exists().where(fresher.c.stream == taken_files.c.stream, fresher.c.stamp > taken_files.c.stamp),
    )


def removable_snapshots(connection: Connection, ages: Ages) -> ColumnElement[bool]:
    """All but the latest of each stream, which the next one is compared with."""
    conditions = []
    for stream in connection.execute(select(snapshots.c.stream).distinct()).scalars():
        of = snapshots.c.stream == stream
        latest = select(snapshots.c.finished_at).where(of).order_by(snapshots.c.finished_at.desc())
        kept = connection.execute(latest.offset(COMPARED_SNAPSHOTS - 1).limit(1)).scalar()
        if kept is not None:
            conditions.append(and_(of, snapshots.c.finished_at < min(kept, ages.others)))
    return or_(false(), *conditions)


def removable_nights(connection: Connection, ages: Ages) -> ColumnElement[bool]:
    """All that ended but the last of each job, which the next is due after, and those that tell how long it takes."""
    conditions = []
    for job in connection.execute(select(scheduled_runs.c.job).distinct()).scalars():
        of, is_done = scheduled_runs.c.job == job, scheduled_runs.c.status == "done"
        last = select(func.max(scheduled_runs.c.due)).where(of, scheduled_runs.c.status != "running").scalar_subquery()
        done = select(scheduled_runs.c.due).where(of, is_done).order_by(scheduled_runs.c.due.desc())
        kept = connection.execute(done.offset(RECENT - 1).limit(1)).scalar()
        measured = is_done if kept is None else and_(is_done, scheduled_runs.c.due >= kept)
        ended = and_(scheduled_runs.c.status != "running", scheduled_runs.c.finished_at < ages.others)
        conditions.append(and_(of, ended, scheduled_runs.c.due < last, not_(measured)))
    return or_(false(), *conditions)


def removable_runs(connection: Connection, ages: Ages) -> ColumnElement[bool]:
    """Finished runs that nothing refers to; the newest of each job stays, since the next one is due after it."""
    newer = runs.alias()
    finished = and_(runs.c.finished_at < ages.others, runs.c.status != "running")
    same_job = newer.c.job.is_not_distinct_from(runs.c.job)
    goes = {
        intents: removable_operations(ages),
        taken_files: removable_files(ages),
        scheduled_runs: removable_nights(connection, ages),
    }
    referred = (
        exists().where(column == runs.c.id, *([not_(goes[table])] if table in goes else []))
        for table, column in _references()
    )
    return and_(finished, exists().where(newer.c.id > runs.c.id, same_job), *(not_(each) for each in referred))


def _references() -> Iterator[tuple[Table, Column[Any]]]:
    """Every column that refers to a run."""
    for table in metadata.sorted_tables:
        for column in table.columns:
            if column.references(runs.c.id):
                yield table, column


def _settled(before: datetime) -> ColumnElement[bool]:
    settled_at = intents.c.settled_at
    return and_(intents.c.status.not_in(UNSETTLED), settled_at.is_not(None), settled_at < before)


def _remembered() -> ColumnElement[bool]:
    """The record's binding, live or not, or a later operation of it holds the counter, or a later one.

    Counters are minted from both (see `Dispatcher`), and the latest operation goes only where the binding holds its.
    """
    names, later = ("target", "resource", "namespace", "key_hash"), intents.alias()
    bound = [bindings.c[name] == intents.c[name] for name in names]
    same = [later.c[name] == intents.c[name] for name in names]
    return or_(
        exists().where(*bound, bindings.c.counter >= intents.c.counter),
        exists().where(*same, later.c.counter > intents.c.counter),
    )


def _holds_data(table: Table, change: Change) -> ColumnElement[bool]:
    return or_(
        *(table.c[name].is_not(None) if empty is None else table.c[name] != empty for name, empty in change.items())
    )
