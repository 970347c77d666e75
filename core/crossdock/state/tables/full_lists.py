"""When the full list of each stream was read."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, select

from crossdock.state.db import sql_statements
from crossdock.state.db.schema import full_lists


class FullLists:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def read_at(self, stream: str) -> datetime | None:
        """Return when the last full list of *stream* was read to its end; None if there was none."""
        return self._connection.execute(select(full_lists.c.read_at).where(full_lists.c.stream == stream)).scalar()

    def put(self, stream: str, *, at: datetime) -> None:
        sql_statements.upsert(self._connection, full_lists, [{"stream": stream, "read_at": at}])
