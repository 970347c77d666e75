"""Purging a state: all that `crossdock.state.retention` finds, and the remnants in the file."""

from __future__ import annotations

from collections.abc import Callable

from crossdock.errors import StateError
from crossdock.state import compacting
from crossdock.state.engine import StateUrl
from crossdock.state.failures import place_of
from crossdock.state.retention import Ages, Purged
from crossdock.state.store import State, Transaction


def purge(state: State, url: StateUrl, ages: Ages) -> Purged:
    """Purge in short transactions, so that one that is interrupted has done a part and can be repeated.

    Raises:
        StateError: If another run is at work on the state, the database fails, or remnants are left in its file since
            the disk cannot hold it twice more or somebody reads the state meanwhile.
    """
    with state.exclusive("state purge"):
        done = Purged(
            _all(state, lambda tx: tx.retention.remove_operations(ages)),
            _all(state, lambda tx: tx.retention.empty_operations(ages)),
            _all(state, lambda tx: tx.retention.empty_dead_letters(ages)),
            _all(state, lambda tx: tx.retention.remove_runs(ages)),
        )
        # runs leave remnants of what they overwrite in the file, and so does its log
        if url.drivername == "sqlite" and (reason := compacting.rewrite(url)):
            raise _unfinished(url, reason)
    return done


def _all(state: State, step: Callable[[Transaction], int]) -> int:
    total = 0
    while True:
        with state.begin() as tx:
            done = step(tx)
        total += done
        if not done:
            return total


def _unfinished(url: StateUrl, reason: str) -> StateError:
    return StateError(
        f"the data is purged, but remnants may be left in the file: {reason}",
        where=place_of(url),
        hint="purge again; it needs as much free disk as the state is large, and nobody at work on it",
    )
