"""Objects that the parts of one delivery share, and the run that operations are delivered for."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from crossdock.state import Intent, State, Unchanged
from crossdock.values.clock import Clock
from crossdock.writing.delivery.records_in_progress import OwnRecords, RecordsInProgress
from crossdock.writing.delivery.restored_state import NO_DOUBTS, StateDoubts
from crossdock.writing.delivery.send_queue import CircuitBreaker, SendQueue
from crossdock.writing.delivery.senders import SendTask
from crossdock.writing.targets.target import Target


class ForgottenRecords(Protocol):
    def knows(self, intent: Intent) -> bool:
        """Return whether all records were read that the create *intent* could have made."""

    def claim(self, intent: Intent) -> str | None:
        """Return the id of the record that the create *intent* has made already, once per record; otherwise None."""


@dataclass(frozen=True, slots=True)
class TakeOverRules:
    """What becomes of records that a target has already, by the settings of the streams.

    Attributes:
        adopting: Streams that take over records which the target has under their external ids.
        matching: Streams that take over records which the target has under other names, each with the member by which
            they are matched.
        rejecting: Streams that overwrite no member that others have changed.
    """

    adopting: frozenset[str] = frozenset()
    matching: Mapping[str, str] = field(default_factory=dict)
    rejecting: frozenset[str] = frozenset()


NOTHING_TAKEN_OVER = TakeOverRules()


@dataclass(slots=True)
class DeliveryContext:
    """One delivery: its target, its settings, and the reason to end.

    Attributes:
        forgotten: What the target has of records that the state may have forgotten; None if it was not asked.
        resuming: What an earlier run left is being settled; it may consist of records that fail on every run.
        stop: The first reason to end.
    """

    target: Target
    clock: Clock
    rules: TakeOverRules = NOTHING_TAKEN_OVER
    doubts: StateDoubts = NO_DOUBTS
    forgotten: ForgottenRecords | None = None
    resuming: bool = False
    stop: BaseException | None = None
    rng: random.Random = field(default_factory=random.Random)
    queue: SendQueue = field(init=False)

    def __post_init__(self) -> None:
        self.queue = SendQueue(self.clock, self.target.in_flight, self.rng)

    def stop_with(self, error: BaseException) -> None:
        self.stop = self.stop or error

    def reset(self) -> None:
        self.stop = None
        self.queue.circuit_breaker = CircuitBreaker(self.target.in_flight, self.rng)

    def leave(self, task: SendTask) -> None:
        """Leave an intent to the next run: in doubt if it may have been executed, otherwise pending."""
        intent = task.intent
        if task.retry_state.ambiguous:
            intent.status = "in_doubt"
        else:
            intent.status, intent.first_sent_at = "pending", None


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
