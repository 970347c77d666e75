"""Retention: old records lose their data, and what no one needs any more goes. What is unsettled is never touched.

An operation's row may go only where a live binding remembers its counter: without either, a later operation would mint
an idempotency key again that the platform may know (law 2). Where none does, the row stays without its data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Table,
    and_,
    delete,
    exists,
    func,
    not_,
    or_,
    select,
    tuple_,
    update,
)

from crossdock.state.intents import UNSETTLED
from crossdock.state.schema import bindings, intents, metadata, refused, runs

BATCH = 1_000  # rows in one transaction

Change = dict[str, Any]
_NO_INTENT_DATA: Change = {"body": None, "before": None, "after": None, "raw": {}}
_NO_LETTER_DATA: Change = {"raw": {}, "mapped": None}


@dataclass(frozen=True, slots=True)
class Ages:
    """Before when something must have ended to be purged.

    Attributes:
        operations: For operations: no later than where the platform's memory of idempotency keys begins.
        others: For dead letters and runs.
    """

    operations: datetime
    others: datetime


@dataclass(frozen=True, slots=True)
class Purged:
    """How many rows were removed, or emptied of the records' data."""

    operations_removed: int
    operations_emptied: int
    dead_letters_emptied: int
    runs_removed: int


class Retention:
    """Each method works on at most `BATCH` rows and returns on how many; 0 when nothing is left to do."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def count(self, ages: Ages) -> Purged:
        """What a purge would do now."""
        return Purged(
            self._count(intents, _removable(ages.operations)),
            self._count(intents, _to_empty(ages.operations)),
            self._count(refused, _letters(ages.others)),
            self._count(runs, _forgotten(ages)),
        )

    def remove_operations(self, ages: Ages) -> int:
        return self._remove(intents, _removable(ages.operations))

    def empty_operations(self, ages: Ages) -> int:
        return self._empty(intents, _to_empty(ages.operations), _NO_INTENT_DATA)

    def empty_dead_letters(self, ages: Ages) -> int:
        return self._empty(refused, _letters(ages.others), _NO_LETTER_DATA)

    def remove_runs(self, ages: Ages) -> int:
        """Of finished runs that nothing refers to; the newest of each job stays, since the next one is due after it."""
        return self._remove(runs, _forgotten(ages))

    def _count(self, table: Table, condition: ColumnElement[bool]) -> int:
        return int(self._connection.execute(select(func.count()).select_from(table).where(condition)).scalar_one())

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
    """The first rows that meet *condition*."""
    key = tuple(table.primary_key)
    chosen = select(*key).where(condition).order_by(*key).limit(BATCH).correlate(None)
    return tuple_(*key).in_(chosen)


def _settled(before: datetime) -> ColumnElement[bool]:
    settled_at = intents.c.settled_at
    return and_(intents.c.status.not_in(UNSETTLED), settled_at.is_not(None), settled_at < before)


def _remembered() -> ColumnElement[bool]:
    """A binding that is looked up holds the counter, or a later one (see `Dispatcher`'s minting)."""
    names = ("target", "resource", "namespace", "key_hash")
    same = [bindings.c[name] == intents.c[name] for name in names]
    return exists().where(*same, bindings.c.deleted_at.is_(None), bindings.c.counter >= intents.c.counter)


def _removable(before: datetime) -> ColumnElement[bool]:
    return and_(_settled(before), _remembered())


def _to_empty(before: datetime) -> ColumnElement[bool]:
    return and_(_settled(before), not_(_remembered()), _holds_data(intents, _NO_INTENT_DATA))


def _letters(before: datetime) -> ColumnElement[bool]:
    return and_(refused.c.refused_at < before, _holds_data(refused, _NO_LETTER_DATA))


def _holds_data(table: Table, change: Change) -> ColumnElement[bool]:
    return or_(
        *(table.c[name].is_not(None) if empty is None else table.c[name] != empty for name, empty in change.items())
    )


def _forgotten(ages: Ages) -> ColumnElement[bool]:
    newer = runs.alias()
    finished = and_(runs.c.finished_at < ages.others, runs.c.status != "running")
    same_job = newer.c.job.is_not_distinct_from(runs.c.job)
    return and_(
        finished,
        exists().where(newer.c.id > runs.c.id, same_job),
        *(runs.c.id.not_in(select(column).where(*condition)) for column, condition in _references(ages)),
    )


def _references(ages: Ages) -> Iterator[tuple[Column[Any], list[ColumnElement[bool]]]]:
    """Every column that refers to a run, and in which rows it counts: operations that can be removed do not."""
    for table in metadata.sorted_tables:
        for column in table.columns:
            if column.references(runs.c.id):
                staying = [not_(_removable(ages.operations))] if table is intents else []
                yield column, [column.is_not(None), *staying]
