"""Cursors, where incremental streams continue, and when the full list of each stream was read."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, delete, select

from crossdock.state.db import bulk_writes_and_key_queries
from crossdock.state.db.schema import cursors, full_lists


class Cursors:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get_if_same_version(self, stream: str, version: str) -> str | None:
        """Return where *stream* continues; None under another version, so that a changed mapping reads all again."""
        query = select(cursors.c.value).where(cursors.c.stream == stream, cursors.c.version == version)
        return self._connection.execute(query).scalar()

    def mapping_version_of_cursor(self, stream: str) -> str | None:
        return self._connection.execute(select(cursors.c.version).where(cursors.c.stream == stream)).scalar()

    def put_or_forget(self, stream: str, version: str, value: str | None) -> None:
        if value is not None:
            self.put(stream, version, value)
        else:
            self.forget(stream)

    def forget(self, stream: str) -> None:
        self._connection.execute(delete(cursors).where(cursors.c.stream == stream))

    def put(self, stream: str, version: str, value: str) -> None:
        bulk_writes_and_key_queries.upsert_rows(
            self._connection, cursors, [{"stream": stream, "version": version, "value": value}]
        )


class FullLists:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def last_read_time(self, stream: str) -> datetime | None:
        """Return when the last full list of *stream* was read to its end; None if there was none."""
        return self._connection.execute(select(full_lists.c.read_at).where(full_lists.c.stream == stream)).scalar()

    def put_read_time(self, stream: str, *, at: datetime) -> None:
        bulk_writes_and_key_queries.upsert_rows(self._connection, full_lists, [{"stream": stream, "read_at": at}])
