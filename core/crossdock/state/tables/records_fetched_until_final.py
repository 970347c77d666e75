"""Records that are not final. Each run fetches them by key until they are final."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy import Connection, func, select

from crossdock.state.db import bulk_writes_and_key_queries
from crossdock.state.db.schema import followed_records
from crossdock.state.tables.record_identity_and_scope import DeleteByKey


class FollowedRecord(Struct, frozen=True):
    """A record that is not final. *missed* counts how many times in a row the source did not have it."""

    stream: str
    key_hash: int
    key: str
    read_at: datetime
    missed: int = 0


_FIELDS = tuple(followed_records.c[name] for name in FollowedRecord.__struct_fields__)
_DELETE = DeleteByKey(followed_records)


class FollowedRecords:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def put(self, records: Iterable[FollowedRecord]) -> None:
        rows = [{name: getattr(each, name) for name in FollowedRecord.__struct_fields__} for each in records]
        bulk_writes_and_key_queries.upsert_rows(self._connection, followed_records, rows)

    def forget(self, stream: str, key_hashes: Sequence[int]) -> None:
        _DELETE.run(self._connection, stream, key_hashes)

    def least_recently_read(self, stream: str, limit: int) -> list[FollowedRecord]:
        query = (
            select(*_FIELDS)
            .where(followed_records.c.stream == stream)
            .order_by(followed_records.c.read_at, followed_records.c.key_hash)
        )
        return [FollowedRecord(*row) for row in self._connection.execute(query.limit(limit))]

    def key_hashes(self, stream: str) -> set[int]:
        return set(
            self._connection.execute(
                select(followed_records.c.key_hash).where(followed_records.c.stream == stream)
            ).scalars()
        )

    def count(self, stream: str) -> int:
        query = select(func.count()).select_from(followed_records).where(followed_records.c.stream == stream)
        return int(self._connection.execute(query).scalar_one())
