"""What is to leave, and when: at once, after a pause, or once the platform works again."""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import count

from crossdock.clock import Clock
from crossdock.delivery.circuit_breaker import CircuitBreaker
from crossdock.delivery.retry_budget import RetryBudget
from crossdock.delivery.senders import SendTask

DELAYED = 20  # a bound on memory


@dataclass(order=True, slots=True)
class _Delayed:
    ready_at: float
    number: int
    task: SendTask = field(compare=False)
    free: bool = field(compare=False)


class Outbox:
    """Errands in the order in which they leave.

    Attributes:
        circuit_breaker: Says how many may be on their way.
    """

    def __init__(self, clock: Clock, limit: int, rng: random.Random) -> None:
        self._clock, self._limit = clock, limit
        self._ready: deque[SendTask] = deque()
        self._delayed: list[_Delayed] = []
        self._held: list[SendTask] = []
        self._numbers = count()
        self._budget = RetryBudget(clock.monotonic())
        self.circuit_breaker = CircuitBreaker(limit, rng)

    def put(self, task: SendTask, *, first: bool = False) -> None:
        """To leave when its turn comes; *first* before all others."""
        if first:
            self._ready.appendleft(task)
        else:
            self._ready.append(task)

    def delay(self, task: SendTask, seconds: float, *, free: bool = False) -> None:
        """To leave after *seconds*, when the budget of retries allows; one that is *free* costs it nothing."""
        ready_at = self._clock.monotonic() + seconds
        heapq.heappush(self._delayed, _Delayed(ready_at, next(self._numbers), task, free))

    def hold(self, task: SendTask) -> None:
        """To leave once it is released."""
        self._held.append(task)

    def release(self, but: AbstractSet[str] = frozenset()) -> None:
        """Let what was held leave, except for what is of the streams *but*."""
        self._ready.extend(task for task in self._held if task.intent.identity.stream not in but)
        self._held = [task for task in self._held if task.intent.identity.stream in but]

    def take(self, number: int) -> list[SendTask]:
        """The next errands; first attempts earn retries."""
        taken = [self._ready.popleft() for _ in range(number)]
        self._budget.first(sum(task.purpose == "send" and task.intent.attempts == 0 for task in taken))
        for task in taken:
            task.probe = self.circuit_breaker.is_open
        return taken

    def clear(self) -> list[SendTask]:
        """Everything that did not leave; nothing is left."""
        left = [*(delayed.task for delayed in self._delayed), *self._ready, *self._held]
        for each in (self._delayed, self._ready, self._held):
            each.clear()
        return left

    def __bool__(self) -> bool:
        return bool(self._ready or self._delayed)

    @property
    def wants_more(self) -> bool:
        """True if new work should be made: little is ready, and what is left does not wait for the platform.

        What fails again and again waits here and must not keep back the rest, so `DELAYED` times the limit may wait.
        """
        many = len(self._ready) >= self._limit or len(self._delayed) >= DELAYED * self._limit
        return not many and not (self and self.circuit_breaker.is_open)

    def due(self) -> int:
        """How many errands are ready now; retries whose pause is over join them as far as the budget allows."""
        now = self._clock.monotonic()
        while self._delayed and self._delayed[0].ready_at <= now and (self._delayed[0].free or self._budget.left(now)):
            delayed = heapq.heappop(self._delayed)
            self._budget.spend(0 if delayed.free else 1)
            self._ready.appendleft(delayed.task)
        return len(self._ready)

    def next_s(self, now: float) -> float:
        """Seconds until a delayed errand is ready, 0.0 where there is none; 1.0 if it only waits for the budget."""
        if not self._delayed:
            return 0.0
        left = self._delayed[0].ready_at - now
        return left if left > 0 else 1.0
