"""What the parts of one delivery share, the run that operations are delivered for, and the records it works on.

Of several runs of a session none overwrites what another has written since it read. For each target one run plans at a
time, and its operations are stored before the next run plans. A run leaves out records that another run works on, or
has worked on since the run began to read: it may have read an older version.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from msgspec import Struct

from crossdock.errors import CrossdockError, RefusedError
from crossdock.state import Intent, Scope, State, Unchanged
from crossdock.values.clock import Clock
from crossdock.writing.delivery.in_doubt_and_refusal_rules import NO_DOUBTS, StateDoubts
from crossdock.writing.delivery.operations_and_intents import batch_item_of_intent
from crossdock.writing.delivery.send_queue_and_threads import CircuitBreaker, SendQueue, SendTask
from crossdock.writing.targets.target import Target

Record = tuple[Scope, int]
"""A record's scope and key hash."""


class _LastRunOfRecord(Struct):
    """The last run that worked on a record. *ended* is None while it does."""

    run: RecordsOfRun
    ended: int | None = None


class RecordsOfConcurrentRuns:
    """The records of one session. Times are increasing numbers, since a clock may show the same time twice."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.turns: dict[str, threading.Lock] = {}  # by target; held while planning, which may read the target
        self.time = 0
        self.runs: list[RecordsOfRun] = []
        self.marks: dict[Record, _LastRunOfRecord] = {}

    def begin_run(self) -> RecordsOfRun:
        run = RecordsOfRun(self)
        with self.lock:
            self.runs.append(run)
        return run


class RecordsOfRun:
    """The records of one run, which only its own thread changes."""

    def __init__(self, all_records: RecordsOfConcurrentRuns) -> None:
        self._all = all_records
        self._since: int | None = None  # when it began to read what it plans; None while it reads nothing
        self._own: set[Record] = set()
        self._turn: threading.Lock | None = None  # while it is held

    def end_run(self) -> None:
        self.end_exclusive_planning()
        self._since = None
        with self._all.lock:
            self._all.runs.remove(self)
            for record in self._own:
                self._store_end_or_remove_mark(record)
            self._remove_unneeded_marks()

    def record_begin_of_reading(self) -> None:
        """Record that the run begins to read what it will plan."""
        with self._all.lock:
            self._all.time += 1
            self._since = self._all.time
            self._remove_unneeded_marks()

    def record_that_all_read_is_planned(self) -> None:
        """Record that everything read is planned."""
        with self._all.lock:
            self._since = None
            self._remove_unneeded_marks()

    def begin_exclusive_planning_and_find_busy(self, scope: Scope, key_hashes: Iterable[int]) -> set[int]:
        """Return what this run must not plan now. No other run plans for the target until `end_exclusive_planning`."""
        if self._turn is None:
            with self._all.lock:
                turn = self._all.turns.setdefault(scope.target, threading.Lock())
            turn.acquire()
            self._turn = turn
        with self._all.lock:
            if not self._all.marks:
                return set()
            return {key_hash for key_hash in key_hashes if self._is_busy_or_newer_in_other_run((scope, key_hash))}

    def _is_busy_or_newer_in_other_run(self, record: Record) -> bool:
        mark = self._all.marks.get(record)
        return mark is not None and mark.run is not self and self.may_have_read_older_version(mark)

    def may_have_read_older_version(self, mark: _LastRunOfRecord) -> bool:
        """Return whether this run may have read an older version of the record."""
        return mark.ended is None or (self._since is not None and mark.ended > self._since)

    def is_busy_in_other_run(self, scope: Scope, key_hash: int) -> bool:
        with self._all.lock:
            mark = self._all.marks.get((scope, key_hash))
            return mark is not None and mark.run is not self and mark.ended is None

    def record_begin_of_work(self, intents: Iterable[Intent]) -> None:
        """Record that the run is about to store *intents*."""
        with self._all.lock:
            for intent in intents:
                record = intent.scope, intent.identity.key_hash
                self._all.marks[record] = _LastRunOfRecord(self)
                self._own.add(record)

    def end_exclusive_planning(self) -> None:
        if self._turn is not None:
            turn, self._turn = self._turn, None
            turn.release()

    def record_end_of_work(self, intent: Intent) -> None:
        record = intent.scope, intent.identity.key_hash
        with self._all.lock:
            self._own.discard(record)
            self._store_end_or_remove_mark(record)

    def without_records_of_other_runs(self, unsettled: Iterable[Intent]) -> list[Intent]:
        with self._all.lock:
            marks = ((intent, self._all.marks.get((intent.scope, intent.identity.key_hash))) for intent in unsettled)
            return [intent for intent, mark in marks if mark is None or mark.run is self or mark.ended is not None]

    def _store_end_or_remove_mark(self, record: Record) -> None:
        mark = self._all.marks.get(record)
        if mark is None or mark.run is not self:
            return
        self._all.time += 1
        mark.ended = self._all.time
        if not self._is_mark_needed(mark):
            del self._all.marks[record]

    def _is_mark_needed(self, mark: _LastRunOfRecord) -> bool:
        return any(run is not mark.run and run.may_have_read_older_version(mark) for run in self._all.runs)

    def _remove_unneeded_marks(self) -> None:
        done = [record for record, mark in self._all.marks.items() if not self._is_mark_needed(mark)]
        for record in done:
            if self._all.marks[record].ended is not None:
                del self._all.marks[record]


class RecordsForgottenByState(Protocol):
    def can_tell_if_created(self, intent: Intent) -> bool:
        """Return whether all records were read that the create *intent* could have made."""

    def take_id_of_created_record(self, intent: Intent) -> str | None:
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
    forgotten: RecordsForgottenByState | None = None
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
        return self.target.stored_size(intent.resource, batch_item_of_intent(intent, self.target))

    def stop_delivery_with_error(self, error: BaseException) -> None:
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

    def clear_stop_and_circuit_breaker(self) -> None:
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
    own_records: RecordsOfRun = field(default_factory=lambda: RecordsOfConcurrentRuns().begin_run())
    counters: RequestCounters = field(default_factory=RequestCounters)
    only_unchanged: Unchanged | None = None
    warn: Callable[[str], None] = lambda _: None
    may_pause: Callable[[], bool] = lambda: False
