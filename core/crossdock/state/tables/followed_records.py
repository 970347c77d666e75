"""Records that are not final: each run fetches them by their keys until they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select

from crossdock.state.db import sql_statements
from crossdock.state.db.reading_tables import followed_records as table
from crossdock.state.tables.record_version import DeleteByKey


@dataclass(frozen=True, slots=True)
class FollowedRecord:
    """A record that is not final.

    Attributes:
        read_at: When it was read, or asked for, last.
        missed: How often in succession the source did not have it.
    """

    stream: str
    key_hash: int
    key: str
    read_at: datetime
    missed: int = 0


_FIELDS = tuple(table.c[name] for name in FollowedRecord.__slots__)
_DELETE = DeleteByKey(table)


class FollowedRecords:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def put(self, records: Iterable[FollowedRecord]) -> None:
        rows = [{name: getattr(each, name) for name in FollowedRecord.__slots__} for each in records]
        sql_statements.upsert(self._connection, table, rows)

    def forget(self, stream: str, key_hashes: Sequence[int]) -> None:
        """These are final, or do not exist any more."""
        _DELETE.run(self._connection, stream, key_hashes)

    def oldest(self, stream: str, limit: int) -> list[FollowedRecord]:
        """At most *limit* records of *stream*, those first that were read longest ago."""
        query = select(*_FIELDS).where(table.c.stream == stream).order_by(table.c.read_at, table.c.key_hash)
        return [FollowedRecord(*row) for row in self._connection.execute(query.limit(limit))]

    def key_hashes(self, stream: str) -> set[int]:
        """Those of all records of *stream* that are not final."""
        return set(self._connection.execute(select(table.c.key_hash).where(table.c.stream == stream)).scalars())

    def count(self, stream: str) -> int:
        query = select(func.count()).select_from(table).where(table.c.stream == stream)
        return int(self._connection.execute(query).scalar_one())
