"""What the parts of one delivery share, and the run that operations are delivered for."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from crossdock.errors import CrossdockError, RefusedError
from crossdock.state import Intent, State, Unchanged
from crossdock.values.clock import Clock
from crossdock.writing.delivery.circuit_breaker import CircuitBreaker
from crossdock.writing.delivery.in_doubt_and_refusal_rules import NO_DOUBTS, StateDoubts
from crossdock.writing.delivery.operations_and_intents import batch_item
from crossdock.writing.delivery.records_of_concurrent_runs import RecordsOfRun, RecordsOfSession
from crossdock.writing.delivery.send_queue import SendQueue
from crossdock.writing.delivery.senders import SendTask
from crossdock.writing.targets.target import Target


class ForgottenRecords(Protocol):
    def can_tell_if_created(self, intent: Intent) -> bool:
        """Return whether all records were read that the create *intent* could have made."""

    def find_created_id_once(self, intent: Intent) -> str | None:
        """Return the id of the record that the create *intent* has made already, once per record; otherwise None."""


REPORTED_AT_MOST = 10  # reasons why stored batches were left out


@dataclass(frozen=True, slots=True)
class AdoptionRules:
    """What happens to records that a target has already, by the names of the streams.

    Attributes:
        adopting: Streams that take over a record with the same external id.
        matching: Streams that take over a record with another name, each with the member by which it is matched.
        rejecting: Streams that overwrite no member that others have changed.
    """

    adopting: frozenset[str] = frozenset()
    matching: Mapping[str, str] = field(default_factory=dict)
    rejecting: frozenset[str] = frozenset()


NOTHING_TAKEN_OVER = AdoptionRules()


@dataclass(slots=True)
class DeliveryContext:
    """One delivery. While *resuming*, it settles operations that may fail on every run.

    Attributes:
        holds_back: Whether one whose refusal may concern every record is sent once more when others have shown that.
        left_refusal: The first refusal of them that may concern every record of its resource.
    """

    target: Target
    clock: Clock
    rules: AdoptionRules = NOTHING_TAKEN_OVER
    doubts: StateDoubts = NO_DOUBTS
    forgotten: ForgottenRecords | None = None
    resuming: bool = False
    holds_back: bool = False
    left_refusal: CrossdockError | None = None
    stop: BaseException | None = None
    rng: random.Random = field(default_factory=random.Random)
    queue: SendQueue = field(init=False)
    refusals: list[CrossdockError] = field(default_factory=list)
    more_refusals: int = 0
    blocked: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        sizes: dict[tuple[str, str], int] = {
            (name, operation): kind.batch.size
            for name, kind in self.target.resources.items()
            if kind.batch is not None
            for operation in kind.batch.operations
        }
        profiles = {name: kind.batch for name, kind in self.target.resources.items() if kind.batch is not None}
        mixed = {name: profile.by for name, profile in profiles.items() if profile.mixed}
        limited = {name: profile.most_bytes for name, profile in profiles.items() if profile.most_bytes is not None}
        self.queue = SendQueue(
            self.clock, self.target.in_flight, self.rng, sizes, mixed, limited, self._intent_size_in_stored_batch
        )

    def _intent_size_in_stored_batch(self, intent: Intent) -> int:
        return self.target.stored_size(intent.resource, batch_item(intent, self.target))

    def stop_with(self, error: BaseException) -> None:
        self.stop = self.stop or error

    def add_undelivered_batch_error(self, error: CrossdockError) -> None:
        if len(self.refusals) < REPORTED_AT_MOST:
            self.refusals.append(error)
        else:
            self.more_refusals += 1

    def take_undelivered_batch_errors(self) -> Sequence[CrossdockError]:
        """Return why stored batches were left out since the last call. From now on they are tried again."""
        refusals, self.refusals = self.refusals, []
        if self.more_refusals:
            refusals.append(
                RefusedError(f"{self.more_refusals:,} more were left out for such reasons", code="delivery_stopped")
            )
        self.more_refusals = 0
        self.blocked.clear()
        return refusals

    def reset_after_stop(self) -> None:
        self.stop = None
        self.queue.circuit_breaker = CircuitBreaker(self.target.in_flight, self.rng)

    def leave_to_next_run(self, task: SendTask) -> None:
        """Leave an intent to the next run: in doubt if it may have been executed, otherwise pending.

        Of a stored batch the next run sees whether it was, so there is nothing that a person could decide yet.
        """
        intent = task.intent
        if task.retry_state.ambiguous:
            intent.status = "in_doubt" if task.stored is None else "sending"
        else:
            intent.status, intent.first_sent_at = "pending", None


@dataclass(slots=True)
class RequestCounters:
    """The requests of a run so far, including look-ups. *throttled* counts those that were answered 429."""

    requests: int = 0
    throttled: int = 0


@dataclass(frozen=True, slots=True)
class DeliveringRun:
    """A run for the parts that plan and deliver its operations.

    Attributes:
        warn: Called when a target becomes unavailable, and when it is available again.
        may_pause: Whether there is other work while a target is unavailable; see `Dispatcher.deliver`.
    """

    state: State
    id: int
    clock: Clock
    interrupt: threading.Event
    own_records: RecordsOfRun = field(default_factory=lambda: RecordsOfSession().begin_run())
    counters: RequestCounters = field(default_factory=RequestCounters)
    only_unchanged: Unchanged | None = None
    warn: Callable[[str], None] = lambda _: None
    may_pause: Callable[[], bool] = lambda: False
