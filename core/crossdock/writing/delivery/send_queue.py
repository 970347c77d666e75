"""The queue of requests that are sent at once, after a pause, or when they are released, and its circuit breaker."""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import count

from crossdock.pacing.backoff import DOUBLINGS, pause_s
from crossdock.values.clock import Clock
from crossdock.writing.delivery.senders import SendTask

DELAYED = 20  # multiple of the limit of requests in flight: a bound on memory
WATCHED = 20  # latest outcomes
OPENS_AT = 16  # failures among them: in an outage nearly all fail; at half of them, work still gets done
FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 30.0  # between two probes; half of it is fixed, half is jitter


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


class CircuitBreaker:
    """Limits the requests in flight, on the caller's clock.

    It opens after `OPENS_AT` failures among the last `WATCHED` outcomes, and then lets one probe through after each
    pause. After a successful probe the limit grows by one with each success, as in TCP, up to *limit*.
    """

    def __init__(self, limit: int, rng: random.Random) -> None:
        self._limit, self._rng = limit, rng
        self._latest: deque[bool] = deque(maxlen=WATCHED)
        self._window = limit
        self._probe_at: float | None = None  # set while it is open
        self.probes = 0
        self.failing_since: float | None = None
        self.worked = False

    @property
    def is_open(self) -> bool:
        return self._probe_at is not None

    def room(self, now: float, in_flight: int) -> int:
        if self._probe_at is not None:
            return 1 if in_flight == 0 and now >= self._probe_at else 0
        return max(0, self._window - in_flight)

    def wait_s(self, now: float) -> float:
        return 0.0 if self._probe_at is None else max(0.0, self._probe_at - now)

    def succeeded(self) -> None:
        """Record that the target decided on a request, whatever the decision."""
        self.worked, self.failing_since, self.probes = True, None, 0
        if self._probe_at is not None:
            self._probe_at, self._window = None, 1
            self._latest.clear()
        elif self._window < self._limit:
            self._window += 1
        self._latest.append(True)

    def failed(self, now: float, retry_after_s: float | None, *, probe: bool) -> None:
        """Record that a request got no decision. Only a *probe* was sent while the breaker was open."""
        if self.failing_since is None:
            self.failing_since = now
        self._latest.append(False)
        if self._probe_at is not None:
            if not probe:
                return
            self.probes += 1
        elif self._latest.count(False) < OPENS_AT:
            return
        longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(self.probes, DOUBLINGS))
        pause = longest / 2 + pause_s(1, base_s=longest / 2, cap_s=longest, rng=self._rng)
        self._probe_at = now + max(pause, retry_after_s or 0.0)
