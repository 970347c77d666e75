"""Discrete-event simulation of clients that spend a hidden token bucket over a network: hours in seconds.

The server's bucket is implemented independently of the client's. Nothing here reads the machine's clock, so every
figure is the same in every run.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

START = datetime(2026, 11, 2, 22, 0, tzinfo=UTC)


class Time:
    """A clock that the events advance."""

    def __init__(self) -> None:
        self.s = 0.0

    def now(self) -> datetime:
        return START + timedelta(seconds=self.s)

    def monotonic(self) -> float:
        return self.s

    def sleep(self, seconds: float) -> None:
        raise AssertionError("a simulated client never sleeps")


@dataclass
class Server:
    """Adds *rate* tokens per second up to *burst*; a refused request takes none.

    Attributes:
        changes: (second, new rate).
        rival_per_s: Requests per second of another client.
        headers: The headers of an answer, from (server, whether it was accepted, second).
        unjust: The share of requests that are refused although there are tokens.
    """

    rate: float
    burst: int
    changes: Sequence[tuple[float, float]] = ()
    rival_per_s: float = 0.0
    headers: Callable[[Server, bool, float], Mapping[str, str]] = lambda *_: {}
    unjust: float = 0.0
    tokens: float = math.nan
    at: float = 0.0
    accepted: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    rival_accepted: int = 0
    rival_next: float = 0.0
    rng: random.Random = field(default_factory=lambda: random.Random(7))

    def __post_init__(self) -> None:
        self.tokens = self.burst if math.isnan(self.tokens) else self.tokens
        self._changes = list(self.changes)

    def arrive(self, t: float) -> bool:
        """Whether the request that arrives at *t* is accepted."""
        self._pass(t)
        unjust = self.unjust > 0 and self.rng.random() < self.unjust
        accepted = self.tokens >= 1 - 1e-9 and not unjust
        if accepted:
            self.tokens -= 1
        (self.accepted if accepted else self.refused).append(t)
        return accepted

    def _pass(self, t: float) -> None:
        while self.rival_per_s and self.rival_next <= t:
            self._fill(self.rival_next)
            if self.tokens >= 1:
                self.tokens -= 1
                self.rival_accepted += 1
            self.rival_next += 1 / self.rival_per_s
        self._fill(t)

    def _fill(self, t: float) -> None:
        while self._changes and self._changes[0][0] <= t:
            moment, rate = self._changes.pop(0)
            self._grow(moment)
            self.rate = rate
        self._grow(t)

    def _grow(self, t: float) -> None:
        self.tokens = min(self.burst, self.tokens + max(0.0, t - self.at) * self.rate)
        self.at = max(t, self.at)


class Pacer(Protocol):
    """What a simulated client asks of its allowance."""

    def take(self, wanted: int) -> Sequence[Any]: ...
    def wait_s(self) -> float: ...
    def room(self, in_flight: int) -> int: ...
    def answered(self, token: Any, *, accepted: bool, headers: Mapping[str, str]) -> None: ...


@dataclass
class Network:
    """*latency_s* is a round trip; each way takes half of it, longer by a share of up to *jitter*. A client needs
    *effort_s* to send a request."""

    latency_s: float = 0.05
    jitter: float = 0.3
    effort_s: float = 0.001


@dataclass
class Result:
    """What the server saw.

    Attributes:
        ratio: The time from the first request to the last answer, divided by the shortest that the bucket allows.
    """

    seconds: float
    ratio: float
    refused: int
    sent: int
    server: Server

    def rate_between(self, begin: float, end: float) -> float:
        return sum(begin <= t < end for t in self.server.accepted) / (end - begin)

    def refused_share(self) -> float:
        return self.refused / self.sent


def run(
    pacers: Sequence[Pacer],
    clock: Time,
    server: Server,
    *,
    work: int,
    network: Network,
    seed: int = 1,
    until: float = 1e9,
) -> Result:
    """Let *pacers*, each of another process, deliver *work* requests together, at most until second *until*."""
    rng, order = random.Random(seed), itertools.count()
    events: list[tuple[float, int, str, int, Any]] = [(0.0, next(order), "wake", i, None) for i in range(len(pacers))]
    left, free_at, in_flight, done, begun = work, [0.0] * len(pacers), [0] * len(pacers), 0, server.at
    wakes = [0.0] * len(pacers)
    rate, burst = server.rate, server.burst

    def half() -> float:
        return network.latency_s / 2 * (1 + rng.random() * network.jitter)

    while events and done < work:
        t, _, kind, who, data = heapq.heappop(events)
        if t > until:
            break
        clock.s = max(clock.s, t)
        pacer = pacers[who]
        if kind == "arrive":
            accepted = server.arrive(t)
            headers = server.headers(server, accepted, t)
            heapq.heappush(events, (t + half(), next(order), "answer", who, (data, accepted, headers)))
            continue
        if kind == "answer":
            token, accepted, headers = data
            in_flight[who] -= 1
            done += accepted
            left += not accepted
            pacer.answered(token, accepted=accepted, headers=headers)
        elif t < wakes[who]:
            continue  # replaced by a later alarm
        wanted = min(left, pacer.room(in_flight[who])) if t >= free_at[who] else 0
        taken = pacer.take(wanted) if wanted > 0 else []
        left -= len(taken)
        in_flight[who] += len(taken)
        leaves = max(t, free_at[who])
        for token in taken:
            leaves += network.effort_s
            heapq.heappush(events, (leaves + half(), next(order), "arrive", who, token))
        free_at[who] = leaves
        if left and pacer.room(in_flight[who]) > 0:
            wakes[who] = max(leaves, t + max(pacer.wait_s(), 0.0005))
            heapq.heappush(events, (wakes[who], next(order), "wake", who, None))
    let_in, refused = len(server.accepted), len(server.refused)
    seconds = clock.s - begun
    best = max((let_in - burst) / rate, 1e-9)
    return Result(seconds, seconds / best, refused, let_in + refused, server)
