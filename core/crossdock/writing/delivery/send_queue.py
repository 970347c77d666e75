"""The queue of operations that are sent at once, after a pause within the retry budget, or when they are released."""

from __future__ import annotations

import dataclasses
import heapq
import math
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import count
from typing import Any

from crossdock.state import Intent
from crossdock.values import exact_json
from crossdock.values.clock import Clock
from crossdock.writing.delivery.circuit_breaker import CircuitBreaker
from crossdock.writing.delivery.operations_and_intents import payload_in_batch
from crossdock.writing.delivery.senders import SendTask

DELAYED = 20  # multiple of the limit of requests in flight: a bound on memory
MORE = 1.25  # times as many operations must be ready before they are put together again, which costs time for each
TOGETHER_S = 0.01  # retries of one request are due within this time, and share the next one
LOOK_AHEAD = 1_000  # operations of other kinds that a batch may pass over, so that mixed ones fill their batches


@dataclasses.dataclass(order=True, slots=True)
class _DelayedTask:
    ready_at: float
    number: int
    task: SendTask = dataclasses.field(compare=False)
    free: bool = dataclasses.field(compare=False)


class SendQueue:
    """The operations that are to be sent.

    Args:
        limit: Most requests in flight.
        sizes: How many operations a request takes, by resource and operation; otherwise one.
        mixed: The resources whose requests take operations of all kinds, and the member that those have in common.
        most_bytes: The most bytes of a request, by resource.
        size_of: Returns the bytes that an operation takes in one.
    """

    def __init__(
        self,
        clock: Clock,
        limit: int,
        rng: random.Random,
        sizes: Mapping[tuple[str, str], int] = {},
        mixed: Mapping[str, str | None] = {},
        most_bytes: Mapping[str, int] = {},
        size_of: Callable[[Intent], int] = lambda _: 0,
    ) -> None:
        self._clock, self._limit, self._sizes = clock, limit * max(sizes.values(), default=1), sizes
        self._mixed, self._most_bytes, self._size_of = mixed, most_bytes, size_of
        self._ready: deque[SendTask] = deque()
        self._delayed: list[_DelayedTask] = []
        self._held: list[SendTask] = []
        self._numbers = count()
        self._too_few = 0  # operations that were ready when no batch of them was full
        self._budget = RetryBudget(clock.monotonic())
        self.circuit_breaker = CircuitBreaker(limit, rng)

    def put(self, task: SendTask, *, first: bool = False) -> None:
        if task.is_led:
            return
        if first:
            self._ready.appendleft(task)
        else:
            self._ready.append(task)

    def delay(self, task: SendTask, seconds: float, *, free: bool = False) -> None:
        """Send *task* after *seconds*, when the retry budget allows. A *free* one costs no budget."""
        if task.is_led:
            return
        ready_at = self._clock.monotonic() + seconds
        heapq.heappush(self._delayed, _DelayedTask(ready_at, next(self._numbers), task, free))

    def hold_back(self, task: SendTask) -> None:
        if not task.is_led:
            self._held.append(task)

    def release_held_back(self, but: AbstractSet[str] = frozenset(), *, at_end: bool = True) -> None:
        """Make ready what is held back, except of the streams *but*, and *at_end* of a run what is to be sent again."""
        held, self._held = self._held, []
        for task in held:
            intent = task.intent
            waits = intent.identity.stream in but or (intent.is_to_be_sent_again and not at_end)
            (self._held if waits else self._ready).append(task)

    def remove_held_back(self, ids: AbstractSet[int]) -> None:
        self._held = [task for task in self._held if task.intent.id not in ids]

    def take_batches(self, number: int, *, only_full: bool = False) -> list[list[SendTask]]:
        """Take the operations of at most *number* requests. *only_full* leaves those that others could still join."""
        taken, left = list[list[SendTask]](), list[list[SendTask]]()
        if only_full and len(self._ready) < self._too_few * MORE:
            return taken
        while self._ready and len(taken) < number:
            batch, size = self._next_batch_and_size_limit()
            (left if only_full and len(batch) < size else taken).append(batch)
        self.put_back(left)
        self._too_few = 0 if taken else len(self._ready)
        return taken

    def _next_batch_and_size_limit(self) -> tuple[list[SendTask], int]:
        first = self._ready.popleft()
        size = self._batch_size(first)
        if first.stored is not None:
            for other in first.others:
                other.purpose, other.is_staged = first.purpose, first.is_staged
            return [first, *first.others], 1
        if size == 1:
            return [first], 1
        batch, others, records, kind = (
            [first],
            list[SendTask](),
            {_identity_of_record(first)},
            self._facts_shared_by_batch(first),
        )
        left = self._most_bytes.get(first.intent.resource, math.inf) - self._size_in_bytes(first)
        while size > len(batch) and self._ready and len(others) < LOOK_AHEAD:
            task = self._ready.popleft()
            fits = (
                self._facts_shared_by_batch(task) == kind
                and self._batch_size(task) == size
                and _identity_of_record(task) not in records
            )
            if fits and (left := left - self._size_in_bytes(task)) < 0:
                others.append(task)
                size = len(batch)
                break
            (batch if fits else others).append(task)
            records.add(_identity_of_record(task))
        self._ready.extendleft(reversed(others))
        return batch, size

    def _size_in_bytes(self, task: SendTask) -> int:
        if task.intent.resource not in self._most_bytes:
            return 0
        if task.size is None:
            task.size = self._size_of(task.intent)
        return task.size

    def _facts_shared_by_batch(self, task: SendTask) -> tuple[str, ...]:
        intent = task.intent
        if intent.resource in self._mixed:
            if task.group is None:
                task.group = _batch_group(intent, self._mixed[intent.resource])
            return task.purpose, intent.resource, task.group
        return task.purpose, intent.resource, intent.operation, intent.method, intent.path

    def _batch_size(self, task: SendTask) -> int:
        if task.purpose != "send":
            return 1
        most = self._sizes.get((task.intent.resource, task.intent.operation), 1)
        return most if task.batch_limit is None else min(most, task.batch_limit)

    def put_back(self, batches: Sequence[Sequence[SendTask]]) -> None:
        """Put back what `take_batches` has taken, at its place."""
        for batch in reversed(batches):
            self._ready.extendleft(task for task in reversed(batch) if not task.is_led)

    def record_sent(self, batches: Sequence[Sequence[SendTask]]) -> None:
        """Count the requests that are sent: first attempts earn retries."""
        self._budget.add_first_attempts(
            sum(batch[0].purpose == "send" and batch[0].intent.attempts == 0 for batch in batches)
        )
        for batch in batches:
            for number, task in enumerate(batch):
                if task.stored is None:
                    task.batch_size, task.is_first = len(batch), number == 0
                task.probe = self.circuit_breaker.is_open

    def remove_tasks(self, resource: str | None = None) -> list[SendTask]:
        """Take out the operations on *resource*, or all of them, also those that are held."""
        left = [*(delayed.task for delayed in self._delayed), *self._ready, *self._held]
        taken = [task for task in left if resource in {None, task.intent.resource}]
        out = {id(task) for task in taken}
        self._delayed = [delayed for delayed in self._delayed if id(delayed.task) not in out]
        heapq.heapify(self._delayed)
        self._ready = deque(task for task in self._ready if id(task) not in out)
        self._held = [task for task in self._held if id(task) not in out]
        return [each for task in taken for each in (task, *task.others)]

    def __bool__(self) -> bool:
        return bool(self._ready or self._delayed)

    @property
    def has_only_batches_awaiting_results(self) -> bool:
        """Whether nothing is left but stored batches that their target carries out later."""
        return not self._ready and bool(self._delayed) and all(each.task.is_pending for each in self._delayed)

    @property
    def needs_more_operations(self) -> bool:
        """Whether few are ready, and no outage delays the rest. Failing records must not block the others."""
        many = len(self._ready) >= self._limit or len(self._delayed) >= DELAYED * self._limit
        return not many and not (self and self.circuit_breaker.is_open)

    def move_due_and_count_ready(self) -> int:
        """Make retries ready whose pause is over and that the budget allows, and count the ready tasks."""
        now, due = self._clock.monotonic(), list[SendTask]()
        while (
            self._delayed
            and self._delayed[0].ready_at <= now
            and (self._delayed[0].free or self._budget.remaining(now))
        ):
            delayed = heapq.heappop(self._delayed)
            self._budget.spend(0 if delayed.free else 1 / self._batch_size(delayed.task))
            due.append(delayed.task)
        self._ready.extendleft(reversed(due))
        return len(self._ready)

    def seconds_to_next_task(self, now: float) -> float:
        """Return the seconds until a delayed task, and those shortly after it, are ready.

        0.0 without one, 1.0 if it only waits for the budget.
        """
        if not self._delayed:
            return 0.0
        first = self._delayed[0].ready_at
        if first <= now:
            return 1.0
        return max(each.ready_at for each in self._delayed if each.ready_at <= first + TOGETHER_S) - now


def _batch_group(intent: Intent, member: str | None) -> str:
    if member is None:
        return ""
    return batch_group_of_payload(payload_in_batch(intent), member)


def batch_group_of_payload(payload: Mapping[str, Any], member: str | None) -> str:
    """Return what operations of one stored batch have in common: the value of *member*, as JSON."""
    return "" if member is None else exact_json.dumps(payload.get(member)).decode()


def _identity_of_record(task: SendTask) -> tuple[object, ...]:
    """Return what makes two operations on one record equal: they are never in one request."""
    intent = task.intent
    return (intent.target_id,) if intent.target_id is not None else (intent.scope, intent.identity.key_hash)


class RetryBudget:
    """The budget for retries: a tenth of the first attempts (Google SRE book, chapter 21) and some per second.

    Without it, a recovering target would receive a multiple of its load. The minimum allows retries on a poor network.
    """

    FLOOR = 10
    FLOOR_PER_S = 10.0

    def __init__(self, now: float) -> None:
        self._began, self._firsts, self._spent = now, 0, 0.0

    def add_first_attempts(self, number: int) -> None:
        self._firsts += number

    def remaining(self, now: float) -> int:
        return max(0, int(self.FLOOR + self._firsts / 10 + (now - self._began) * self.FLOOR_PER_S - self._spent))

    def spend(self, number: float) -> None:
        self._spent += number
