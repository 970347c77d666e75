"""The few statements that the dialects spell differently, or that every table needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeVar

from sqlalchemy import Column, ColumnElement, Connection, Table, TypeDecorator, type_coerce

CHUNK = 500  # parameters of one IN list: far below both databases' limits, large enough to be few

T = TypeVar("T")


def upsert(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert *rows*, or overwrite those whose primary key is there. All rows name the same columns."""
    if not rows:
        return
    insert = _insert(connection, table)
    keys = [column.name for column in table.primary_key]
    changes = {name: insert.excluded[name] for name in rows[0] if name not in keys}
    connection.execute(insert.on_conflict_do_update(index_elements=keys, set_=changes), list(rows))


def insert_new(connection: Connection, table: Table, unique: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert *rows*, but for those whose value of the column *unique* is there already."""
    connection.execute(_insert(connection, table).on_conflict_do_nothing(index_elements=[unique]), list(rows))


def _insert(connection: Connection, table: Table) -> Any:
    dialect = import_module(f"sqlalchemy.dialects.{connection.dialect.name}")  # the other one is not even loaded
    return dialect.insert(table)


def as_stored(column: Column[Any]) -> ColumnElement[Any]:
    """*column* without what its type makes of a value."""
    stored = column.type.impl_instance if isinstance(column.type, TypeDecorator) else column.type
    return type_coerce(column, stored)


def chunks(values: Sequence[T], size: int = CHUNK) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]
