"""The few statements that the dialects spell differently, that every table needs, or that are carried out in bulk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib import import_module
from itertools import repeat
from operator import attrgetter
from typing import Any, TypeVar

from sqlalchemy import (
    ARRAY,
    Column,
    ColumnElement,
    Connection,
    Delete,
    Dialect,
    Insert,
    Integer,
    LargeBinary,
    Select,
    Table,
    TypeDecorator,
    Update,
    bindparam,
    func,
    literal,
    literal_column,
    select,
    true,
    type_coerce,
)
from sqlalchemy.types import TypeEngine

from crossdock.state.db.column_types import ExactJson, Hash, UtcDateTime

CHUNK = 500  # parameters of one IN list: far below both databases' limits, large enough to be few
_HASH_BYTES = 16
_POSITIONAL = {"sqlite": "qmark", "postgresql": "format"}

_NOTHING: Mapping[str, Any] = {}

T = TypeVar("T")
Convert = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class _Compiled:
    text: str
    names: Sequence[str]
    converters: Mapping[str, Convert | None]
    constants: Mapping[str, Any]


class Bulk:
    """A statement that is compiled once for each database and then takes rows of plain values.

    Core's own way, from a dictionary and a type for every cell, costs several times what the databases take to write
    the row. On PostgreSQL the rows travel through one pipeline; COPY into a temporary table gains a fifth from a
    thousand rows on, and nothing for the hundred of a turn.

    Args:
        statement: An UPDATE or a DELETE, or for an INSERT what makes it, given the dialect's own ``insert``.
        columns: Of an INSERT: what each row gives.
        ready: Columns whose values come as the database keeps them, such as JSON that is text already.
    """

    def __init__(
        self,
        statement: Update | Delete | Callable[[Any], Insert],
        columns: Sequence[str] | None = None,
        *,
        ready: Sequence[str] = (),
    ) -> None:
        self._statement, self._columns, self._ready = statement, columns, ready
        self._compiled: dict[str, _Compiled] = {}

    def run(
        self, connection: Connection, columns: Mapping[str, Sequence[Any]], fixed: Mapping[str, Any] = _NOTHING
    ) -> int:
        """Carry it out for each row.

        Args:
            columns: Values by name, one for each row.
            fixed: What is the same in all rows, and not written in the statement itself.

        Returns:
            How many rows of the table it wrote.
        """
        count = len(next(iter(columns.values())))
        if not count:
            return 0
        compiled = self._for(connection.dialect)
        rows = list(zip(*self._cells(compiled, columns, fixed, count), strict=True))
        options = {"preserve_rowcount": True}
        return connection.exec_driver_sql(compiled.text, rows, execution_options=options).rowcount

    @staticmethod
    def _cells(
        compiled: _Compiled, columns: Mapping[str, Sequence[Any]], fixed: Mapping[str, Any], count: int
    ) -> Iterator[Iterable[Any]]:
        same = {**compiled.constants, **fixed}
        for name in compiled.names:
            convert = compiled.converters[name]
            if name in columns:
                yield _converted(convert, columns[name]) if convert else columns[name]
            else:
                yield repeat(convert(same[name]) if convert else same[name], count)

    def _for(self, dialect: Dialect) -> _Compiled:
        if dialect.name not in self._compiled:
            self._compiled[dialect.name] = self._compile(dialect)
        return self._compiled[dialect.name]

    def _compile(self, dialect: Dialect) -> _Compiled:
        another: Callable[..., Dialect] = type(dialect)
        positional = another(paramstyle=_POSITIONAL[dialect.name])
        given = self._statement
        statement = given if isinstance(given, Update | Delete) else given(_insert(dialect.name))
        compiled: Any = statement.compile(dialect=positional, column_keys=self._columns)
        names = compiled.positiontup or []
        binds = {name: compiled.binds[name] for name in names}
        converters = {
            name: None if name in self._ready else _converter(bind.type, dialect) for name, bind in binds.items()
        }
        constants = {name: bind.value for name, bind in binds.items() if not bind.required}
        return _Compiled(compiled.string, names, converters, constants)


def _converter(kind: TypeEngine[Any], dialect: Dialect) -> Convert | None:
    """What makes of a value of ours one that the driver takes."""
    if isinstance(kind, ExactJson | Hash | UtcDateTime):
        return partial(kind.process_bind_param, dialect=dialect)  # which is what any driver takes
    return None if isinstance(kind, LargeBinary) else kind.dialect_impl(dialect).bind_processor(dialect)


def _converted(convert: Convert, values: Iterable[Any]) -> Iterator[Any]:
    """The values, of which one that follows itself is converted once: all of a turn have the same instants."""
    before = made = None
    for value in values:
        if value is not before:
            before, made = value, convert(value)
        yield made


class ByKey:
    """A query for the rows of many keys: hashes, which travel as one parameter, or texts.

    What the database gives is made into our values column by column: Core's own way, cell by cell, takes as long as the
    database does.

    PostgreSQL is led to the index for each key by itself. Left to choose, it believes that a scope of which it has no
    statistics yet has a row or two, and reads the whole of it each time: a first load would take quadratic time.

    Args:
        query: All but the condition on *key*.
    """

    def __init__(self, query: Select[Any], key: Column[Any]) -> None:
        columns = list(query.selected_columns)
        self._kinds = [column.type if isinstance(column.type, TypeDecorator) else None for column in columns]
        self._query = query.with_only_columns(*(as_stored(column).label(column.name) for column in columns))
        self._key, self._of_hashes = key, isinstance(key.type, Hash)

    @cached_property
    def _at_once(self) -> Select[Any]:
        if not self._of_hashes:
            return self._query.where(self._key.in_(bindparam("keys", expanding=True)))
        joined = bindparam("keys", type_=LargeBinary)
        place = select(literal(1).label("place")).cte("places", recursive=True)
        place = place.union_all(
            select(place.c.place + _HASH_BYTES).where(place.c.place + _HASH_BYTES < func.length(joined))
        )
        each = func.substr(joined, place.c.place, _HASH_BYTES, type_=self._key.type)
        return self._query.where(self._key.in_(select(each)))

    @cached_property
    def _each(self) -> Select[Any]:
        keys = bindparam("keys", type_=ARRAY(self._key.type))
        wanted = func.unnest(keys).table_valued("key", name="wanted").render_derived()
        found = self._query.where(self._key == wanted.c.key).offset(literal_column("0")).lateral("found")
        return select(*found.c).select_from(wanted.join(found, true()))

    def rows(self, connection: Connection, place: Mapping[str, str], keys: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """What there is of *keys*, in no order; *place* holds the other parameters of the query."""
        if not keys:
            return iter(())
        if connection.dialect.name == "sqlite":
            joined = b"".join(key.to_bytes(_HASH_BYTES, "big") for key in keys) if self._of_hashes else list(keys)
            found = connection.execute(self._at_once, {**place, "keys": joined}).all()
        else:
            found = connection.execute(self._each, {**place, "keys": list(keys)}).all()
        columns = zip(self._kinds, zip(*found, strict=True), strict=False)  # none where nothing was found
        return zip(*(_made(kind, column, connection.dialect) for kind, column in columns), strict=True)


def _made(kind: TypeDecorator[Any] | None, column: Sequence[Any], dialect: Dialect) -> Iterable[Any]:
    return map(partial(kind.process_result_value, dialect=dialect), column) if kind else column


def by_column(items: Iterable[Any], *names: str, **others: str) -> dict[str, list[Any]]:
    """The attributes *names* of all *items*; *others* are given by parameter and attribute."""
    listed = list(items)
    attributes = {name: name for name in names} | others
    return {name: list(map(attrgetter(attribute), listed)) for name, attribute in attributes.items()}


def upsert(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert *rows*, or overwrite those whose primary key is there. All rows name the same columns."""
    if rows:
        names = tuple(rows[0])
        upserting(table, names).run(connection, {name: [row[name] for row in rows] for name in names})


@cache
def upserting(table: Table, names: tuple[str, ...], *, ready: tuple[str, ...] = ()) -> Bulk:
    """Inserts rows of these columns, or overwrites those whose primary key is there."""

    def build(insert: Any) -> Insert:
        statement = insert(table)
        keys = [column.name for column in table.primary_key]
        changes = {name: statement.excluded[name] for name in names if name not in keys}
        made: Insert = statement.on_conflict_do_update(index_elements=keys, set_=changes)
        return made

    return Bulk(build, names, ready=ready)


def inserting(table: Table, names: Sequence[str], *, unless: str) -> Bulk:
    """Inserts rows of these columns, but for those whose value of the column *unless* is there already."""
    return Bulk(lambda insert: insert(table).on_conflict_do_nothing(index_elements=[unless]), names)


class Ids:
    """Numbers for new rows of a table, which no other row has or will be given.

    SQLite has one writer at a time, so there they are the next ones. PostgreSQL's sequence hands them out.
    """

    def __init__(self, table: Table) -> None:
        sequence = func.pg_get_serial_sequence(table.name, "id")
        each = func.generate_series(1, bindparam("count", type_=Integer)).table_valued("number")
        self._last = select(func.max(table.c.id))
        self._next = select(func.nextval(sequence)).select_from(each)

    def new(self, connection: Connection, count: int) -> Sequence[int]:
        """So many, ascending."""
        if connection.dialect.name == "sqlite":
            last = connection.execute(self._last).scalar() or 0
            return range(last + 1, last + 1 + count)
        return connection.execute(self._next, {"count": count}).scalars().all()


def _insert(dialect: str) -> Any:
    return import_module(f"sqlalchemy.dialects.{dialect}").insert  # the other one is not even loaded


def as_stored(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """*column* without what its type makes of a value."""
    stored = column.type.impl_instance if isinstance(column.type, TypeDecorator) else column.type
    return type_coerce(column, stored)


def chunks(values: Sequence[T], size: int = CHUNK) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]
