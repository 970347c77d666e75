"""Purging a state: all that `crossdock.state.retention` finds, and the remnants in the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from crossdock.errors import StateError
from crossdock.state import engine
from crossdock.state.engine import StateUrl
from crossdock.state.retention import Ages, Purged
from crossdock.state.store import State, Transaction


def purge(state: State, url: StateUrl, ages: Ages) -> Purged:
    """Purge in short transactions, so that one that is interrupted has done a part and can be repeated.

    Raises:
        StateError: If another run is at work on the state, or the database fails.
    """
    with state.exclusive("state purge"):
        done = Purged(
            _all(state, lambda tx: tx.retention.remove_operations(ages)),
            _all(state, lambda tx: tx.retention.empty_operations(ages)),
            _all(state, lambda tx: tx.retention.empty_dead_letters(ages)),
            _all(state, lambda tx: tx.retention.remove_runs(ages)),
        )
        if url.drivername == "sqlite":
            _rewrite(url)
    return done


def _all(state: State, step: Callable[[Transaction], int]) -> int:
    total = 0
    while True:
        with state.begin() as tx:
            done = step(tx)
        total += done
        if not done:
            return total


def _rewrite(url: StateUrl) -> None:
    """Write the file anew: runs leave remnants of what they overwrite in it, and so does the write-ahead log.

    Raises:
        StateError: If the disk cannot hold it twice, or somebody reads the state meanwhile.
    """
    try:
        with closing(sqlite3.connect(Path(url.database or ""), timeout=engine.BUSY_S, isolation_level=None)) as file:
            file.execute("VACUUM")
            (busy, _, _) = file.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.Error as error:
        raise _unfinished(url, str(error)) from None
    if busy:
        raise _unfinished(url, "somebody reads the state")


def _unfinished(url: StateUrl, reason: str) -> StateError:
    return StateError(
        f"the data is purged, but remnants may be left in the file: {reason}",
        where=url.render_as_string(hide_password=True),
        hint="purge again; it needs as much free disk as the state is large, and nobody at work on it",
    )
