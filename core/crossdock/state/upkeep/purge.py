"""Purging a state: all that `crossdock.state.tables.retention` finds, and the remnants in the file."""

from __future__ import annotations

import sys
from collections import Counter

from crossdock.errors import StateError
from crossdock.state.db.database_errors import place_of
from crossdock.state.db.engine import StateUrl
from crossdock.state.store import State
from crossdock.state.tables import retention
from crossdock.state.tables.expiry import Ages
from crossdock.state.tables.retention import PurgeResult
from crossdock.state.upkeep import compact


def purge(state: State, url: StateUrl, ages: Ages) -> PurgeResult:
    """Purge in short transactions, so that one that is interrupted has done a part and can be repeated.

    Raises:
        StateError: If another run is at work on the state, the database fails, or remnants are left in its file since
            the disk cannot hold it twice more or somebody reads the state meanwhile.
    """
    with state.exclusive("state purge"):
        done, _ = work(state, ages, batches=sys.maxsize)
        # runs leave remnants of what they overwrite in the file, and so does its log
        if url.drivername == "sqlite" and (reason := compact.rewrite(url)):
            raise _unfinished(url, reason)
    return done


def work(state: State, ages: Ages, *, batches: int) -> tuple[PurgeResult, bool]:
    """Remove or empty at most so many batches of rows, one in a transaction, of a state that is held.

    Returns:
        What was done, and whether nothing is left to do.
    """
    with state.look() as tx:
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


def _unfinished(url: StateUrl, reason: str) -> StateError:
    return StateError(
        f"the data is purged, but remnants may be left in the file: {reason}",
        where=place_of(url),
        hint="purge again; it needs as much free disk as the state is large, and nobody at work on it",
    )
