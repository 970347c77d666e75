"""Compaction: releases the space of removed rows and refreshes the database's statistics."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import text

from crossdock.errors import StateError
from crossdock.state.db import database_creation_and_opening
from crossdock.state.db.database_creation_and_opening import StateUrl
from crossdock.state.db.database_errors import translated_database_errors, url_without_password
from crossdock.state.db.schema import metadata


def release_space_of_removed_rows(url: StateUrl) -> None:
    """Rewrite the file of a SQLite state that no run uses; on PostgreSQL make the space of removed rows reusable."""
    if url.drivername != "sqlite":
        _vacuum_postgresql(url)
    elif reason := rewrite_sqlite_file(url):
        raise StateError(
            f"the state cannot be compacted: {reason}",
            where=url_without_password(url),
            hint="it needs free disk space of twice the state's size, and no process may be reading the state",
            code="state_not_compacted",
        )


def rewrite_sqlite_file(url: StateUrl) -> str | None:
    """Rewrite a SQLite file without remnants in its pages and its log. Return why that failed, or None."""
    try:
        with closing(
            sqlite3.connect(
                Path(url.database or ""), timeout=database_creation_and_opening.BUSY_S, isolation_level=None
            )
        ) as file:
            file.execute("VACUUM")
            (busy, _, _) = file.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.Error as error:
        return str(error)
    return "another process is reading the state" if busy else None


def _vacuum_postgresql(url: StateUrl) -> None:
    server = database_creation_and_opening.open_or_create_unchecked_database(url)
    try:
        with translated_database_errors(url), server.connect() as connection:
            autocommit = connection.execution_options(isolation_level="AUTOCOMMIT")
            for table in metadata.sorted_tables:
                autocommit.execute(text(f"VACUUM (ANALYZE) {table.name}"))
    finally:
        server.dispose()
