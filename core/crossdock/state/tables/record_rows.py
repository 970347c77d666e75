"""Statements that tables with one row per stream and record share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, bindparam, delete, literal, select

from crossdock.state.db import sql_statements


@dataclass(frozen=True, slots=True)
class DeadLetterFilter:
    """Which records a person means; what is None does not limit it.

    Attributes:
        since: Refused at this instant or later.
    """

    stream: str | None = None
    key: str | None = None
    code: str | None = None
    since: datetime | None = None

    def conditions(self, table: Table) -> list[Any]:
        """On the columns that every kind of record has."""
        given = {"stream": self.stream, "key": self.key}
        return [table.c[name] == value for name, value in given.items() if value is not None]


def of_stream(table: Table) -> ColumnElement[bool]:
    return table.c.stream == bindparam("stream")


class RowsByKey:
    """Deletes rows of one stream; nearly always the stream has none at all, which one cheap statement shows."""

    def __init__(self, table: Table) -> None:
        self._any = select(literal(1)).select_from(table).where(of_stream(table)).limit(1)
        self._delete = sql_statements.Bulk(delete(table).where(of_stream(table), table.c.key_hash == bindparam("key")))

    def delete(self, connection: Connection, stream: str, key_hashes: Sequence[int]) -> None:
        if key_hashes and connection.execute(self._any, {"stream": stream}).first():
            self._delete.run(connection, {"key": key_hashes}, {"stream": stream})
