"""Counts of records by stream, state or scope, and the size and contents of a state. Queries that block no writer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from functools import reduce
from operator import add
from pathlib import Path

from msgspec import Struct
from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    LargeBinary,
    Table,
    bindparam,
    cast,
    exists,
    func,
    literal_column,
    select,
    union,
)

from crossdock.state.db.schema import bindings, dead_letters, hints, intents, metadata, waiting_records
from crossdock.state.tables.intents_and_stored_batches import UNSETTLED, Status
from crossdock.state.tables.record_bindings import Bindings, UnverifiedParts
from crossdock.state.tables.record_identity_and_scope import Scope, scope_condition
from crossdock.values.run_states_and_tally import OpenCounts, RecordState

_IS_LIVE = bindings.c.deleted_at.is_(None)
_STATES = {
    "pending": RecordState.PENDING,
    "sending": RecordState.PENDING,
    "in_doubt": RecordState.IN_DOUBT,
    "handed_over": RecordState.HANDED_OVER,
    "overdue": RecordState.OVERDUE,
}


class KnownRecordCounts:
    """Counts that read an index entry of each record, which takes about a second for a million."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def delivered(self, scope: Scope) -> int:
        query = select(func.count()).select_from(bindings)
        return int(self._connection.execute(query.where(scope_condition(bindings, scope), _IS_LIVE)).scalar_one())

    def not_delivered(self, stream: str, scope: Scope) -> int:
        """Count the open records that the target does not have. One that is open in several states counts once."""
        rejected = select(dead_letters.c.key_hash).where(
            dead_letters.c.stream == stream, dead_letters.c.status == "rejected"
        )
        waiting = select(waiting_records.c.key_hash).where(waiting_records.c.stream == stream)
        unsettled = select(intents.c.key_hash).where(scope_condition(intents, scope), intents.c.status.in_(UNSETTLED))
        keys = union(rejected, waiting, unsettled).subquery()
        has = exists().where(scope_condition(bindings, scope), _IS_LIVE, bindings.c.key_hash == keys.c.key_hash)
        return int(self._connection.execute(select(func.count()).select_from(keys).where(~has)).scalar_one())


class OpenRecordCounts:
    def __init__(self, connection: Connection, unverified: UnverifiedParts) -> None:
        self._connection, self._unverified = connection, unverified

    def by_stream(self, streams: Collection[str], writers: Mapping[Scope, str] | None = None) -> dict[str, OpenCounts]:
        """Count the open records of each of *streams*, in their order.

        A record that waits for its second step while its first one is unsettled counts in both states. Operations of a
        renamed stream count for the stream in *writers*.
        """
        found: dict[str, dict[str, int]] = {name: {} for name in streams}
        for stream, state, number in self._counts_by_stream_and_state(writers or {}):
            if stream in found:
                found[stream][state] = found[stream].get(state, 0) + number
        return {name: OpenCounts(**numbers) for name, numbers in found.items()}

    def streams_with_rejected_or_waiting(self) -> set[str]:
        """Return the streams with such records, also those that the config no longer has; operations need no stream."""
        rejected = select(dead_letters.c.stream).where(dead_letters.c.status == "rejected").distinct()
        each = (rejected, select(waiting_records.c.stream).distinct())
        return {stream for query in each for stream in self._connection.execute(query).scalars()}

    def _counts_by_stream_and_state(self, writers: Mapping[Scope, str]) -> Iterator[tuple[str, str, int]]:
        rejected = select(dead_letters.c.stream, func.count()).where(dead_letters.c.status == "rejected")
        for stream, number in self._connection.execute(rejected.group_by(dead_letters.c.stream)):
            yield stream, "rejected", number
        waiting = select(waiting_records.c.stream, func.count()).group_by(waiting_records.c.stream)
        for stream, number in self._connection.execute(waiting):
            yield stream, "waiting", number
        by = intents.c.stream, intents.c.status, intents.c.target, intents.c.resource, intents.c.namespace
        unsettled = select(*by, func.count()).where(intents.c.status.in_(UNSETTLED)).group_by(*by)
        for stream, status, *scope, number in self._connection.execute(unsettled):
            if status != "handed_over":
                state = status if status in {"in_doubt", "overdue"} else "pending"
                yield writers.get(Scope(*scope), stream), state, number
        for each, number in self._unverified.unverified_binding_counts_by_scope():
            if each in writers:
                yield writers[each], "unverified", number


class OpenRecordTotal(Struct, frozen=True):
    """The number of records in one state, of which the first has been so *since*."""

    state: RecordState
    number: int
    since: datetime


class OpenRecordTotals:
    """Counts by indexes: 100,000 rejected records take about 10 ms."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def by_state(self) -> list[OpenRecordTotal]:
        """Return the states that records are in, in the order of `RecordState`, without unverified and dropped ones."""
        found: dict[RecordState, OpenRecordTotal] = {}
        for each in self._totals_of_tables():
            known = found.get(each.state)
            number, since = (0, each.since) if known is None else (known.number, known.since)
            found[each.state] = OpenRecordTotal(each.state, number + each.number, min(since, each.since))
        return [found[state] for state in RecordState if state in found]

    def _totals_of_tables(self) -> Iterator[OpenRecordTotal]:
        rejected = dead_letters.c.status == "rejected"
        for state, table, since, condition in (
            (RecordState.REJECTED, dead_letters, dead_letters.c.refused_at, [rejected]),
            (RecordState.WAITING, waiting_records, waiting_records.c.since, []),
            (RecordState.INBOX, hints, hints.c.first_at, []),
        ):
            query = select(func.count(), func.min(since)).select_from(table).where(*condition)
            number, first = self._connection.execute(query).one()
            if number:
                yield OpenRecordTotal(state, number, first)
        counts = select(intents.c.status, func.count().label("number"), func.min(intents.c.id).label("first"))
        unsettled = counts.where(intents.c.status.in_(UNSETTLED)).group_by(intents.c.status).subquery()
        first = select(unsettled.c.status, unsettled.c.number, intents.c.created_at)
        for status, number, at in self._connection.execute(first.join(intents, intents.c.id == unsettled.c.first)):
            yield OpenRecordTotal(_STATES[status], number, at)


SAMPLE = 200  # rows from which a table's size is estimated
_ENDS = (func.min, func.max)


class TableSize(Struct, frozen=True):
    """The rows of one table, and their size in bytes without indexes; on SQLite estimated from a sample."""

    name: str
    rows: int
    size: int


class UnsettledOperation(Struct, frozen=True):
    stream: str
    status: Status
    since: datetime


class StateContents(Struct, frozen=True):
    """The contents of a state. *size* is in bytes on disk, with log or indexes; *free* is None on PostgreSQL."""

    size: int
    free: int | None
    tables: tuple[TableSize, ...]
    bindings: Mapping[str, int]
    unsettled: Mapping[str, int]
    oldest: UnsettledOperation | None


class StateSizeAndContents:
    def __init__(self, connection: Connection, bindings: Bindings) -> None:
        self._connection, self._bindings = connection, bindings

    def contents(self) -> StateContents:
        """Return the contents with exact counts. Counting bindings takes about ten seconds for ten million."""
        return StateContents(
            self.total_size(),
            self._query_integer("PRAGMA freelist_count") * self._query_integer("PRAGMA page_size")
            if self._is_sqlite
            else None,
            tuple(self._size_of_table(table) for table in metadata.sorted_tables),
            self._bindings.counts_by_resource(),
            self._unsettled_counts_by_status(),
            self._oldest_unsettled_operation(),
        )

    def total_size(self) -> int:
        if not self._is_sqlite:
            return sum(self._query_integer(f"SELECT pg_total_relation_size('{name}')") for name in metadata.tables)
        query = "SELECT file FROM pragma_database_list WHERE name = 'main'"
        path = self._connection.exec_driver_sql(query).scalar_one()
        return sum(map(_file_size, (Path(path), Path(f"{path}-wal"))))

    @property
    def _is_sqlite(self) -> bool:
        return self._connection.dialect.name == "sqlite"

    def _size_of_table(self, table: Table) -> TableSize:
        rows = self._connection.execute(select(func.count()).select_from(table)).scalar_one()
        if self._is_sqlite:
            return TableSize(table.name, rows, self._estimated_size(table, rows))
        return TableSize(table.name, rows, self._query_integer(f"SELECT pg_table_size('{table.name}')"))

    def _unsettled_counts_by_status(self) -> dict[str, int]:
        status = intents.c.status
        query = select(status, func.count().label("number")).where(status.in_(UNSETTLED)).group_by(status)
        return {row.status: row.number for row in self._connection.execute(query)}

    def _oldest_unsettled_operation(self) -> UnsettledOperation | None:
        fields = (intents.c.stream, intents.c.status, intents.c.created_at)
        query = select(*fields).where(intents.c.status.in_(UNSETTLED)).order_by(intents.c.created_at).limit(1)
        row = self._connection.execute(query).first()
        return None if row is None else UnsettledOperation(*row)

    def _query_integer(self, query: str) -> int:
        return int(self._connection.exec_driver_sql(query).scalar_one())

    def _estimated_size(self, table: Table, rows: int) -> int:
        """Estimate from rows at regular distances: reading the whole table could take minutes."""
        number: ColumnElement[int] = literal_column("rowid", Integer)
        first, last = (self._connection.execute(select(end(number)).select_from(table)).scalar() for end in _ENDS)
        if first is None or last is None:
            return 0
        sizes = (func.coalesce(func.length(cast(column, LargeBinary)), 0) for column in table.columns)
        query = select(reduce(add, sizes)).where(number >= bindparam("start")).order_by(number).limit(1)
        starts = range(first, last + 1, 1 + (last - first) // SAMPLE)
        found = [self._connection.execute(query, {"start": start}).scalar_one() for start in starts]
        total: int = sum(found)
        return rows * total // len(found)


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0  # the last process that closes the state removes the log
