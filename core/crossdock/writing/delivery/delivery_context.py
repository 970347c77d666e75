"""Objects that the parts of one delivery share."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from crossdock.state import Intent, Unchanged
from crossdock.values.clock import Clock
from crossdock.writing.delivery.circuit_breaker import CircuitBreaker
from crossdock.writing.delivery.send_queue import SendQueue
from crossdock.writing.delivery.senders import SendTask
from crossdock.writing.targets.target import Target


class ForgottenRecords(Protocol):
    def knows(self, intent: Intent) -> bool:
        """Return whether all records were read that the create *intent* could have made."""

    def claim(self, intent: Intent) -> str | None:
        """Return the id of the record that the create *intent* has made already, once per record; otherwise None."""


@dataclass(slots=True)
class DeliveryContext:
    """One delivery: its target, its settings, and the reason to end.

    Attributes:
        adopting: Streams that take over records which the target already has under their external ids.
        matching: Streams that take over records with other names, each with the member by which they are matched.
        rejecting: Streams that never overwrite a member which somebody else has changed.
        only_unchanged: The value of `Intent.only_unchanged` for new operations.
        state_restored: Whether the state is a restored backup, so that what looks new may have been delivered before.
        forgotten: Records of the target that the state may have forgotten; None if they were not read.
        resuming: Whether operations of an earlier run are being settled. They may fail on every run.
        stop: The first reason to end.
    """

    target: Target
    clock: Clock
    adopting: frozenset[str] = frozenset()
    matching: Mapping[str, str] = field(default_factory=dict)
    rejecting: frozenset[str] = frozenset()
    only_unchanged: Unchanged | None = None
    state_restored: bool = False
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
