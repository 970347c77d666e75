"""Cursors: where each incremental stream continues."""

from __future__ import annotations

from sqlalchemy import Connection, delete, select

from crossdock.state.db import sql_statements
from crossdock.state.db.schema import cursors


class Cursors:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, stream: str, version: str) -> str | None:
        """Return where *stream* continues; None under another version, so that a changed mapping reads all again."""
        query = select(cursors.c.value).where(cursors.c.stream == stream, cursors.c.version == version)
        return self._connection.execute(query).scalar()

    def version(self, stream: str) -> str | None:
        return self._connection.execute(select(cursors.c.version).where(cursors.c.stream == stream)).scalar()

    def put_or_forget(self, stream: str, version: str, value: str | None) -> None:
        if value is not None:
            self.put(stream, version, value)
        else:
            self.forget(stream)

    def forget(self, stream: str) -> None:
        self._connection.execute(delete(cursors).where(cursors.c.stream == stream))

    def put(self, stream: str, version: str, value: str) -> None:
        sql_statements.upsert(self._connection, cursors, [{"stream": stream, "version": version, "value": value}])
