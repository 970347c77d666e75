"""Purge of a state: all steps of `crossdock.state.upkeep.retention_steps`, then the remnants in the file."""

from __future__ import annotations

import sys
from collections import Counter

from crossdock.errors import StateError
from crossdock.state.db.database_creation_and_opening import StateUrl
from crossdock.state.db.database_errors import url_without_password
from crossdock.state.open_state import State
from crossdock.state.upkeep import retention_steps
from crossdock.state.upkeep.compact import rewrite_sqlite_file
from crossdock.state.upkeep.removable_rows import PurgeTimes
from crossdock.state.upkeep.retention_steps import PurgeResult


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
            more, batches = number >= retention_steps.BATCH, batches - 1
    return PurgeResult(**done), True
