"""Compacting a state: giving back the room of what is gone, and telling the database what it holds."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import text

from crossdock.errors import StateError
from crossdock.state.db import engine
from crossdock.state.db.database_errors import place_of, translated
from crossdock.state.db.engine import StateUrl
from crossdock.state.db.schema import metadata
from crossdock.state.store import State


def compact(state: State, url: StateUrl) -> None:
    """Write the file of a SQLite state anew; on PostgreSQL let the room of removed rows be used again.

    Raises:
        StateError: If another run is at work on the state, the disk cannot hold a SQLite file twice more, or somebody
            reads it meanwhile.
    """
    with state.exclusive("state compact"):
        if url.drivername != "sqlite":
            _vacuum(url)
        elif reason := rewrite(url):
            raise StateError(
                f"the state cannot be compacted: {reason}",
                where=place_of(url),
                hint="it needs twice as much free disk as the state is large, and nobody who reads it",
            )


def rewrite(url: StateUrl) -> str | None:
    """Write the file of a SQLite state anew, without what its pages and its log hold of older days.

    Returns:
        Why that was not done, or not to its end.
    """
    try:
        with closing(sqlite3.connect(Path(url.database or ""), timeout=engine.BUSY_S, isolation_level=None)) as file:
            file.execute("VACUUM")
            (busy, _, _) = file.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.Error as error:
        return str(error)
    return "somebody reads the state" if busy else None


def _vacuum(url: StateUrl) -> None:
    server = engine.open_shared(url)
    try:
        with translated(url), server.connect() as connection:
            alone = connection.execution_options(isolation_level="AUTOCOMMIT")
            for table in metadata.sorted_tables:
                alone.execute(text(f"VACUUM (ANALYZE) {table.name}"))
    finally:
        server.dispose()
