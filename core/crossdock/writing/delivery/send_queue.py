"""The queue of requests that are sent at once, after a pause within the retry budget, or when they are released."""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import count

from crossdock.values.clock import Clock
from crossdock.writing.delivery.circuit_breaker import CircuitBreaker
from crossdock.writing.delivery.senders import SendTask

DELAYED = 20  # multiple of the limit of requests in flight: a bound on memory


@dataclass(order=True, slots=True)
class _Delayed:
    ready_at: float
    number: int
    task: SendTask = field(compare=False)
    free: bool = field(compare=False)


class SendQueue:
    def __init__(self, clock: Clock, limit: int, rng: random.Random) -> None:
        self._clock, self._limit = clock, limit
        self._ready: deque[SendTask] = deque()
        self._delayed: list[_Delayed] = []
        self._held: list[SendTask] = []
        self._numbers = count()
        self._budget = RetryBudget(clock.monotonic())
        self.circuit_breaker = CircuitBreaker(limit, rng)

    def put(self, task: SendTask, *, first: bool = False) -> None:
        if first:
            self._ready.appendleft(task)
        else:
            self._ready.append(task)

    def delay(self, task: SendTask, seconds: float, *, free: bool = False) -> None:
        """Send *task* after *seconds*, when the retry budget allows. A *free* one costs no budget."""
        ready_at = self._clock.monotonic() + seconds
        heapq.heappush(self._delayed, _Delayed(ready_at, next(self._numbers), task, free))

    def hold(self, task: SendTask) -> None:
        self._held.append(task)

    def release(self, but: AbstractSet[str] = frozenset()) -> None:
        self._ready.extend(task for task in self._held if task.intent.identity.stream not in but)
        self._held = [task for task in self._held if task.intent.identity.stream in but]

    def take(self, number: int) -> list[SendTask]:
        taken = [self._ready.popleft() for _ in range(number)]
        self._budget.first(sum(task.purpose == "send" and task.intent.attempts == 0 for task in taken))
        for task in taken:
            task.probe = self.circuit_breaker.is_open
        return taken

    def clear(self) -> list[SendTask]:
        left = [*(delayed.task for delayed in self._delayed), *self._ready, *self._held]
        for each in (self._delayed, self._ready, self._held):
            each.clear()
        return left

    def __bool__(self) -> bool:
        return bool(self._ready or self._delayed)

    @property
    def wants_more(self) -> bool:
        """Whether few are ready, and no outage delays the rest. Failing records must not block the others."""
        many = len(self._ready) >= self._limit or len(self._delayed) >= DELAYED * self._limit
        return not many and not (self and self.circuit_breaker.is_open)

    def due(self) -> int:
        """Make retries ready whose pause is over and that the budget allows, and count the ready tasks."""
        now = self._clock.monotonic()
        while self._delayed and self._delayed[0].ready_at <= now and (self._delayed[0].free or self._budget.left(now)):
            delayed = heapq.heappop(self._delayed)
            self._budget.spend(0 if delayed.free else 1)
            self._ready.appendleft(delayed.task)
        return len(self._ready)

    def next_s(self, now: float) -> float:
        """Return the seconds until a delayed task is ready; 0.0 without one, 1.0 if it only waits for the budget."""
        if not self._delayed:
            return 0.0
        left = self._delayed[0].ready_at - now
        return left if left > 0 else 1.0


class RetryBudget:
    """The budget for retries: a tenth of the first attempts (Google SRE book, chapter 21) and some per second.

    Without it, a recovering target would receive a multiple of its load. The minimum allows retries on a poor network.
    """

    FLOOR = 10
    FLOOR_PER_S = 10.0

    def __init__(self, now: float) -> None:
        self._began, self._firsts, self._spent = now, 0, 0

    def first(self, number: int) -> None:
        self._firsts += number

    def left(self, now: float) -> int:
        return max(0, int(self.FLOOR + self._firsts / 10 + (now - self._began) * self.FLOOR_PER_S) - self._spent)

    def spend(self, number: int) -> None:
        self._spent += number
