"""Purge of a state, all steps of retention and then the remnants in the file, and release of the space of rows."""

from __future__ import annotations

import sqlite3
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

from sqlalchemy import text

from crossdock.errors import StateError
from crossdock.state import retention
from crossdock.state.db import database_opening_and_errors
from crossdock.state.db.database_opening_and_errors import (
    StateUrl,
    database_errors_as_state_errors,
    url_without_password,
)
from crossdock.state.db.schema import metadata
from crossdock.state.open_state import State
from crossdock.state.retention import PurgeResult, PurgeTimes


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
            sqlite3.connect(Path(url.database or ""), timeout=database_opening_and_errors.BUSY_S, isolation_level=None)
        ) as file:
            file.execute("VACUUM")
            (busy, _, _) = file.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.Error as error:
        return str(error)
    return "another process is reading the state" if busy else None


def _vacuum_postgresql(url: StateUrl) -> None:
    server = database_opening_and_errors.open_or_create_less_durable_database(url)
    try:
        with database_errors_as_state_errors(url), server.connect() as connection:
            autocommit = connection.execution_options(isolation_level="AUTOCOMMIT")
            for table in metadata.sorted_tables:
                autocommit.execute(text(f"VACUUM (ANALYZE) {table.name}"))
    finally:
        server.dispose()


def purge_rows_and_rewrite_file(state: State, url: StateUrl, purge_times: PurgeTimes) -> PurgeResult:
    """Purge in short transactions while no run uses the state. An interrupted purge can be repeated."""
    done, _ = purge_in_batches(state, purge_times, batches=sys.maxsize)
    # runs leave remnants of overwritten rows in the file and its log
    if url.drivername == "sqlite" and (reason := rewrite_sqlite_file(url)):
        raise StateError(
            f"the data is purged, but remnants may be left in the file: {reason}",
            where=url_without_password(url),
            hint="purge again with free disk space of twice the state's size, while no process is using it",
            code="state_not_purged",
        )
    return done


def purge_in_batches(state: State, ages: PurgeTimes, *, batches: int) -> tuple[PurgeResult, bool]:
    """Remove or empty at most *batches* batches, each in a transaction. Return also whether nothing is left to do."""
    with state.begin_read_only() as tx:
        names = list(tx.retention.steps)
    done: Counter[str] = Counter()
    for name in names:
        more = True
        while more:
            if not batches:
                return PurgeResult(**done), False
            with state.begin() as tx:
                number = tx.retention.steps[name](ages)
            done[name] += number
            more, batches = number >= retention.BATCH, batches - 1
    return PurgeResult(**done), True
