"""The run that operations are delivered for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from crossdock.state import State, Unchanged
from crossdock.values.clock import Clock
from crossdock.writing.delivery.records_in_progress import OwnRecords, RecordsInProgress


@dataclass(slots=True)
class Counters:
    """Of a run so far. *requests* counts attempts, look-ups among them; *throttled* those that were answered 429."""

    requests: int = 0
    throttled: int = 0


@dataclass(frozen=True, slots=True)
class DeliveringRun:
    """A run, as everything sees it that plans and delivers its operations.

    Attributes:
        id: In the state.
        interrupt: Set when the run shall end early.
        own_records: What other runs of the session must not work on; by default there are no others.
        counters: To count in.
        only_unchanged: Of the operations that it adds, as of `Intent`.
        warn: Called when a target becomes unavailable, and when it is available again.
        may_pause: Whether there is other work while a target is unavailable; see `Dispatcher.deliver`.
    """

    state: State
    id: int
    clock: Clock
    interrupt: threading.Event
    own_records: OwnRecords = field(default_factory=lambda: RecordsInProgress().begin())
    counters: Counters = field(default_factory=Counters)
    only_unchanged: Unchanged | None = None
    warn: Callable[[str], None] = lambda _: None
    may_pause: Callable[[], bool] = lambda: False
