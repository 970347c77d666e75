"""The tables of the state as SQL, kept for each version of the state."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import DDLElement
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable
from tests.compatibility.facts import HERE

from crossdock.state.db import schema


def kept() -> Path:
    """The file with the tables of this version of the state."""
    return HERE / f"tables_{schema.VERSION}.sql"


def described() -> str:
    """Return the statements that create all tables and indexes, as PostgreSQL takes them."""
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy has no types for it
    schema.unverified_bindings.dialect_kwargs["postgresql_where"] = schema.bindings.c.unverified.is_(
        True
    )  # as `engine`
    tables = sorted(schema.metadata.tables.values(), key=lambda table: table.name)
    indexes = sorted((index for table in tables for index in table.indexes), key=lambda index: str(index.name))
    statements: list[DDLElement] = [*map(CreateTable, tables), *map(CreateIndex, indexes)]
    lines = [str(each.compile(dialect=dialect)).strip() for each in statements]
    return "".join(f"{line.replace(chr(9), '  ').replace(', ' + chr(10), ',' + chr(10))};\n" for line in lines)


def write() -> None:
    kept().write_text(described(), encoding="utf-8")
