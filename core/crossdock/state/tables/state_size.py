"""How large a state is, and what is in it; no writer waits for it to be told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import add
from pathlib import Path

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
    text,
)

from crossdock.state.db.schema import intents, metadata
from crossdock.state.tables.bindings import Bindings
from crossdock.state.tables.intents import UNSETTLED, Status

SAMPLE = 200  # rows that stand for all of a table's
_ENDS = (func.min, func.max)


@dataclass(frozen=True, slots=True)
class TableSize:
    """What is in one table.

    Attributes:
        size: Bytes of its rows, without indexes; on SQLite as a sample of them tells.
    """

    name: str
    rows: int
    size: int


@dataclass(frozen=True, slots=True)
class Unsettled:
    """An operation that is pending, sending or in doubt, and since when it stands in the state."""

    stream: str
    status: Status
    since: datetime


@dataclass(frozen=True, slots=True)
class Contents:
    """What a state holds.

    Attributes:
        size: Bytes on disk: of SQLite's file and its log, or of all tables with their indexes.
        free: Bytes inside of it that hold nothing; on PostgreSQL None, since nobody knows.
        bindings: Live ones by resource.
        unsettled: Operations by status, those of `UNSETTLED` alone.
    """

    size: int
    free: int | None
    tables: tuple[TableSize, ...]
    bindings: Mapping[str, int]
    unsettled: Mapping[str, int]
    oldest: Unsettled | None


class StateSize:
    def __init__(self, connection: Connection, bindings: Bindings) -> None:
        self._connection, self._bindings = connection, bindings

    def contents(self) -> Contents:
        """Counts are exact; live bindings take longest, some ten seconds for ten million, since each row is read."""
        return Contents(
            self.size(),
            self._pragma("freelist_count") * self._pragma("page_size") if self._is_file else None,
            tuple(self._table(table) for table in metadata.sorted_tables),
            self._bindings.count(),
            dict(self._unsettled()),
            self._oldest(),
        )

    def size(self) -> int:
        """Bytes on disk, as in `Contents`."""
        if not self._is_file:
            return sum(map(self._total, metadata.tables))
        path = self._connection.exec_driver_sql(
            "SELECT file FROM pragma_database_list WHERE name = 'main'"
        ).scalar_one()
        return sum(map(_file_size, (Path(path), Path(f"{path}-wal"))))

    @property
    def _is_file(self) -> bool:
        return self._connection.dialect.name == "sqlite"

    def _table(self, table: Table) -> TableSize:
        rows = self._connection.execute(select(func.count()).select_from(table)).scalar_one()
        return TableSize(table.name, rows, self._sampled(table, rows) if self._is_file else self._data(table.name))

    def _unsettled(self) -> Iterator[tuple[str, int]]:
        status = intents.c.status
        query = select(status, func.count()).where(status.in_(UNSETTLED)).group_by(status)
        yield from (tuple(row) for row in self._connection.execute(query))

    def _oldest(self) -> Unsettled | None:
        fields = (intents.c.stream, intents.c.status, intents.c.created_at)
        query = select(*fields).where(intents.c.status.in_(UNSETTLED)).order_by(intents.c.created_at).limit(1)
        row = self._connection.execute(query).first()
        return None if row is None else Unsettled(*row)

    def _pragma(self, name: str) -> int:
        return int(self._connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())

    def _sampled(self, table: Table, rows: int) -> int:
        """Rows all over the table are looked up by their numbers: reading it through could take minutes."""
        number: ColumnElement[int] = literal_column("rowid", Integer)
        first, last = (self._connection.execute(select(end(number)).select_from(table)).scalar() for end in _ENDS)
        if first is None or last is None:
            return 0
        sizes = (func.coalesce(func.length(cast(column, LargeBinary)), 0) for column in table.columns)
        query = (
            select(reduce(add, sizes)).select_from(table).where(number >= bindparam("place")).order_by(number).limit(1)
        )
        places = range(first, last + 1, 1 + (last - first) // SAMPLE)
        found = [self._connection.execute(query, {"place": place}).scalar_one() for place in places]
        total: int = sum(found)
        return rows * total // len(found)

    def _data(self, table: str) -> int:
        return int(self._connection.execute(text("SELECT pg_table_size(:name)"), {"name": table}).scalar_one())

    def _total(self, table: str) -> int:
        return int(self._connection.execute(text("SELECT pg_total_relation_size(:name)"), {"name": table}).scalar_one())


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0  # a log goes with the last process that has the state open
