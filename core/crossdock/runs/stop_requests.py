"""Requests of other processes to stop a run in order, such as those of ``crossdock stop``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from crossdock.errors import ConfigError, StateError
from crossdock.state import RunRecord, State, Transaction
from crossdock.values.clock import call_periodically_in_thread

LOOKS_EVERY_S = 1.0


class RunInterrupt(threading.Event):
    """Is set by itself, or with the *interrupt* of the process, which may have other runs."""

    def __init__(self, interrupt: threading.Event) -> None:
        super().__init__()
        self._interrupt = interrupt

    def is_set(self) -> bool:
        return super().is_set() or self._interrupt.is_set()


@contextmanager
def stop_on_request(state: State, run_id: int, interrupt: RunInterrupt, tell: Callable[[], None]) -> Iterator[None]:
    """Set *interrupt* once somebody has asked the run to stop, and call *tell*, from another thread."""

    def goes_on() -> bool:
        try:
            asked = state.run_read_only(lambda tx: tx.runs.is_stop_requested(run_id))
        except StateError:
            return True  # the run has the same error, and ends
        if asked:
            interrupt.set()
            tell()
        return not asked

    with call_periodically_in_thread(goes_on, LOOKS_EVERY_S, "stop requests"):
        yield


def request_stop(tx: Transaction, run_id: int | None) -> RunRecord:
    """Ask run *run_id*, or the one in progress, to stop. Raises ConfigError if it is not in progress."""
    run = next(iter(tx.runs.listed(limit=1, status="running")), None) if run_id is None else tx.runs.get(run_id)
    if run is None or run.status != "running":
        name = "no run" if run_id is None else f"run {run_id} is not"
        raise ConfigError(f"{name} in progress", hint="'crossdock runs' lists the runs", code="run_not_active")
    tx.runs.request_stop(run.id)
    return run
