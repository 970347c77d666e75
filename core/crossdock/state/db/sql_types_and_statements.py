"""Column types that keep values exact, bulk writes and look-ups by key: what differs in SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, cached_property, partial
from importlib import import_module
from itertools import repeat
from operator import attrgetter
from typing import Any, TypeVar

from msgspec import Struct
from sqlalchemy import (
    ARRAY,
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    DateTime,
    Delete,
    Dialect,
    Insert,
    Integer,
    LargeBinary,
    Select,
    String,
    Table,
    Text,
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

from crossdock.values import exact_json


class UtcDateTime(TypeDecorator[datetime]):
    """An aware time. On SQLite, which has no time zones, it is ISO text in UTC, which sorts by time."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(DateTime(timezone=True) if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time in the state needs a time zone")
        instant = value.astimezone(UTC)
        return instant if dialect.name == "postgresql" else instant.isoformat(timespec="microseconds")

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:  # noqa: ARG002  SQLAlchemy's signature
        if value is None or isinstance(value, datetime):
            return None if value is None else value.astimezone(UTC)
        return datetime.fromisoformat(value)


class ExactJson(TypeDecorator[Any]):
    """JSON as canonical text: numbers are read as the `Decimal` or `int` that was stored."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002  SQLAlchemy's signature
        return None if value is None else exact_json.dumps(value).decode()

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:  # noqa: ARG002  SQLAlchemy's signature
        return None if value is None else exact_json.loads_trusted_canonical(value)


class Hash(TypeDecorator[int]):
    """An unsigned hash of up to 128 bits, stored as 16 bytes, most significant first."""

    impl = LargeBinary(16)
    cache_ok = True

    def process_bind_param(self, value: int | None, dialect: Dialect) -> bytes | None:  # noqa: ARG002  SQLAlchemy's signature
        return None if value is None else value.to_bytes(16, "big")

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> int | None:  # noqa: ARG002  SQLAlchemy's signature
        return None if value is None else int.from_bytes(value, "big")


def scope_columns() -> list[Column[object]]:
    return [
        Column("target", String(64), primary_key=True),
        Column("resource", String(32), primary_key=True),
        Column("namespace", String(128), primary_key=True),
    ]


def record_data_and_place_columns() -> list[Column[object]]:
    return [
        Column("key", Text, nullable=False),
        Column("record_fp", Hash),
        Column("position", Text),
        Column("raw", ExactJson, nullable=False),
        Column("source", Text, nullable=False),
        Column("line", BigInteger, nullable=False),
    ]


def stream_and_key_columns() -> list[Column[object]]:
    return [Column("stream", String(192), primary_key=True), Column("key_hash", Hash, primary_key=True)]


CHUNK = 500  # parameters of one IN list: far below the limit of both databases
_HASH_BYTES = 16
_PARAMSTYLES = {"sqlite": "qmark", "postgresql": "format"}

T = TypeVar("T")
Convert = Callable[[Any], Any]


class _CompiledStatement(Struct, frozen=True):
    text: str
    names: Sequence[str]
    converters: Mapping[str, Convert | None]
    constants: Mapping[str, Any]


def column_without_index(column: Column[Any]) -> ColumnElement[str]:
    """Return a text column without its index, which SQLite, as it has no statistics, would prefer to a better one."""
    return column.concat(literal_column("''"))


def id_order_without_index(connection: Connection, number: Column[int]) -> ColumnElement[int]:
    """Return *number* to order the rows by that a condition finds.

    For the first of many rows, PostgreSQL would read the whole table in this order until it has found them.
    """
    return number + literal_column("0") if connection.dialect.name == "postgresql" else number


class BulkStatement:
    """A statement that is compiled once for each database and then executed for rows of plain values.

    SQLAlchemy's conversions by row and cell cost several times what the databases need to write the row. Values of the
    columns *ready* are already in the database's form, such as JSON text.
    """

    def __init__(
        self,
        statement: Update | Delete | Callable[[Any], Insert],
        columns: Sequence[str] | None = None,
        *,
        ready: Sequence[str] = (),
    ) -> None:
        self._statement, self._columns, self._ready = statement, columns, ready
        self._compiled: dict[str, _CompiledStatement] = {}

    def run(
        self, connection: Connection, columns: Mapping[str, Sequence[Any]], fixed: Mapping[str, Any] | None = None
    ) -> int:
        """Execute the statement for each row and return the number of rows written. *fixed* is the same for all."""
        count = len(next(iter(columns.values())))
        if not count:
            return 0
        dialect = connection.dialect
        if dialect.name not in self._compiled:
            self._compiled[dialect.name] = self._compile(dialect)
        compiled = self._compiled[dialect.name]
        rows = list(
            zip(*_parameter_columns(compiled, columns, {**compiled.constants, **(fixed or {})}, count), strict=True)
        )
        return connection.exec_driver_sql(compiled.text, rows, execution_options={"preserve_rowcount": True}).rowcount

    def _compile(self, dialect: Dialect) -> _CompiledStatement:
        new_dialect: Callable[..., Dialect] = type(dialect)
        positional = new_dialect(paramstyle=_PARAMSTYLES[dialect.name])
        given = self._statement
        statement = given if isinstance(given, Update | Delete) else given(_insert_of_dialect(dialect.name))
        compiled: Any = statement.compile(dialect=positional, column_keys=self._columns)
        names = compiled.positiontup or []
        binds = {name: compiled.binds[name] for name in names}
        converters = {
            name: None if name in self._ready else _converter_to_database(bind.type, dialect)
            for name, bind in binds.items()
        }
        constants = {name: bind.value for name, bind in binds.items() if not bind.required}
        return _CompiledStatement(compiled.string, names, converters, constants)


def _parameter_columns(
    compiled: _CompiledStatement, columns: Mapping[str, Sequence[Any]], fixed: Mapping[str, Any], count: int
) -> Iterator[Iterable[Any]]:
    for name in compiled.names:
        convert = compiled.converters[name]
        if name in columns:
            yield _converted_values(convert, columns[name]) if convert else columns[name]
        else:
            yield repeat(convert(fixed[name]) if convert else fixed[name], count)


def _converter_to_database(kind: TypeEngine[Any], dialect: Dialect) -> Convert | None:
    if isinstance(kind, ExactJson | Hash | UtcDateTime):
        return partial(kind.process_bind_param, dialect=dialect)
    return None if isinstance(kind, LargeBinary) else kind.dialect_impl(dialect).bind_processor(dialect)


def _converted_values(convert: Convert, values: Iterable[Any]) -> Iterator[Any]:
    """Convert the values. Equal neighbours, such as the times of one transaction, are converted once."""
    last = result = None
    for value in values:
        if value is not last:
            last, result = value, convert(value)
        yield result


class QueryByKeys:
    """A query for the rows of many keys: hashes, which are sent as one parameter, or texts.

    Results are converted by column: conversion by cell takes as long as the database itself. PostgreSQL is made to use
    the index for each key: without statistics of a new scope it would scan the whole scope, in quadratic time.
    """

    def __init__(self, query: Select[Any], key: Column[Any]) -> None:
        columns = list(query.selected_columns)
        self._kinds = [column.type if isinstance(column.type, TypeDecorator) else None for column in columns]
        self._query = query.with_only_columns(*(unconverted_column(column).label(column.name) for column in columns))
        self._key, self._is_hash = key, isinstance(key.type, Hash)

    @cached_property
    def _sqlite_query(self) -> Select[Any]:
        if not self._is_hash:
            return self._query.where(self._key.in_(bindparam("keys", expanding=True)))
        joined = bindparam("keys", type_=LargeBinary)
        start = select(literal(1).label("start")).cte("starts", recursive=True)
        start = start.union_all(
            select(start.c.start + _HASH_BYTES).where(start.c.start + _HASH_BYTES < func.length(joined))
        )
        each = func.substr(joined, start.c.start, _HASH_BYTES, type_=self._key.type)
        return self._query.where(self._key.in_(select(each)))

    @cached_property
    def _postgresql_query(self) -> Select[Any]:
        keys = bindparam("keys", type_=ARRAY(self._key.type))
        wanted = func.unnest(keys).table_valued("key", name="wanted").render_derived()
        found = self._query.where(self._key == wanted.c.key).offset(literal_column("0")).lateral("found")
        return select(*found.c).select_from(wanted.join(found, true()))

    def rows(
        self, connection: Connection, parameters: Mapping[str, str], keys: Sequence[Any]
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of *keys* in any order. *parameters* are those of the query."""
        if not keys:
            return iter(())
        dialect = connection.dialect
        if dialect.name == "sqlite":
            joined = b"".join(key.to_bytes(_HASH_BYTES, "big") for key in keys) if self._is_hash else list(keys)
            found = connection.execute(self._sqlite_query, {**parameters, "keys": joined}).all()
        else:
            found = connection.execute(self._postgresql_query, {**parameters, "keys": list(keys)}).all()
        columns = zip(self._kinds, zip(*found, strict=True), strict=False)  # empty if nothing was found
        return zip(*(_converted_results(kind, column, dialect) for kind, column in columns), strict=True)


def _converted_results(kind: TypeDecorator[Any] | None, column: Sequence[Any], dialect: Dialect) -> Iterable[Any]:
    return map(partial(kind.process_result_value, dialect=dialect), column) if kind else column


def attributes_as_columns(items: Iterable[Any], *names: str, **others: str) -> dict[str, list[Any]]:
    """Return the attributes *names* of all *items* as columns. *others* map a parameter to another attribute name."""
    listed = list(items)
    attributes = {name: name for name in names} | others
    return {name: list(map(attrgetter(attribute), listed)) for name, attribute in attributes.items()}


def upsert_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert *rows*, or overwrite those whose primary key exists. All rows have the same columns."""
    if rows:
        names = tuple(rows[0])
        upsert_statement(table, names).run(connection, {name: [row[name] for row in rows] for name in names})


@cache
def upsert_statement(table: Table, names: tuple[str, ...], *, ready: tuple[str, ...] = ()) -> BulkStatement:
    def build(insert: Any) -> Insert:
        statement = insert(table)
        keys = [column.name for column in table.primary_key]
        changes = {name: statement.excluded[name] for name in names if name not in keys}
        built: Insert = (
            statement.on_conflict_do_update(index_elements=keys, set_=changes)
            if changes
            else statement.on_conflict_do_nothing(index_elements=keys)
        )
        return built

    return BulkStatement(build, names, ready=ready)


def insert_or_ignore_statement(table: Table, names: Sequence[str], *, unique_column: str) -> BulkStatement:
    return BulkStatement(lambda insert: insert(table).on_conflict_do_nothing(index_elements=[unique_column]), names)


class IdAllocator:
    """Allocates ids for new rows of a table. PostgreSQL has a sequence, and SQLite has one writer at a time."""

    def __init__(self, table: Table) -> None:
        sequence = func.pg_get_serial_sequence(table.name, "id")
        each = func.generate_series(1, bindparam("count", type_=Integer)).table_valued("number")
        self._last = select(func.max(table.c.id))
        self._next = select(func.nextval(sequence)).select_from(each)

    def allocate_ids(self, connection: Connection, count: int) -> Sequence[int]:
        if connection.dialect.name == "sqlite":
            last = connection.execute(self._last).scalar() or 0
            return range(last + 1, last + 1 + count)
        return connection.execute(self._next, {"count": count}).scalars().all()


def _insert_of_dialect(dialect: str) -> Any:
    return import_module(f"sqlalchemy.dialects.{dialect}").insert  # does not load the other dialect


def unconverted_column(column: ColumnElement[Any]) -> ColumnElement[Any]:
    stored = column.type.impl_instance if isinstance(column.type, TypeDecorator) else column.type
    return type_coerce(column, stored)


def chunks_of_in_list(values: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), CHUNK):
        yield values[start : start + CHUNK]
