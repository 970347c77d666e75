"""The size and contents of a state, from read-only queries that block no writer."""

from __future__ import annotations

from collections.abc import Mapping
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
    func,
    literal_column,
    select,
)

from crossdock.state.db.schema import intents, metadata
from crossdock.state.tables.delivery_intents import UNSETTLED, Status
from crossdock.state.tables.record_bindings import Bindings

SAMPLE = 200  # rows from which a table's size is estimated
_ENDS = (func.min, func.max)


class TableSize(Struct, frozen=True):
    """The rows of one table, and their size in bytes without indexes; on SQLite estimated from a sample."""

    name: str
    rows: int
    size: int


class Unsettled(Struct, frozen=True):
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
    oldest: Unsettled | None


class StateSize:
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

    def _oldest_unsettled_operation(self) -> Unsettled | None:
        fields = (intents.c.stream, intents.c.status, intents.c.created_at)
        query = select(*fields).where(intents.c.status.in_(UNSETTLED)).order_by(intents.c.created_at).limit(1)
        row = self._connection.execute(query).first()
        return None if row is None else Unsettled(*row)

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
