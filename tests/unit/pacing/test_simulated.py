"""A hidden bucket can be learned, and other guarantees of the allowance, on simulated time.

Each figure is the same in every run; the same cases against a real server are in `tests/benchmarks`. The suite takes
some combinations, `tests.long.test_simulated` all of them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from tests.allowances import configured
from tests.unit.pacing.simulation import START, Network, Result, Server, Time, run

from crossdock.pacing import answer_headers as read_headers
from crossdock.pacing.request_allowance import RequestAllowance, TakenToken
from crossdock.pacing.token_bucket import UNLIMITED, BucketState, LimitEstimate, MemoryBucketStore
from crossdock.sandbox import rate_limiter
from crossdock.sandbox.rate_limiter import RateLimitHeaderDialect, ReportedQuota

RATE, BURST = 10_000 / 60, 2_000
CONFIGURED = configured(RATE, BURST)
DOCUMENTED = LimitEstimate(RATE, "documented")
NOTHING = LimitEstimate()
LATENCIES = (0.001, 0.05, 0.2)
EXTREMES = (0.001, 0.2)
BURSTS = (3, 10)
LYING = (0.1, 1.0)
DIALECTS: Sequence[RateLimitHeaderDialect] = ("draft10", "draft07", "triple", "x-ratelimit")

Headers = Callable[[Server, bool, float], Mapping[str, str]]


class Client:
    """An allowance behind the interface of the simulation."""

    def __init__(self, clock: Time, store: MemoryBucketStore) -> None:
        self.allowance = RequestAllowance(clock, store, ceiling=100)
        self.take, self.wait_s, self.room = (
            self.allowance.take_available,
            self.allowance.wait_s,
            self.allowance.free_in_flight_slots,
        )

    def answered(self, token: TakenToken, *, accepted: bool, headers: Mapping[str, str]) -> None:
        wait = headers.get("retry-after")
        read = read_headers.read_rate_limit_headers(headers) if headers else None
        self.allowance.record_answer(
            token, accepted=accepted, headers=read, retry_after_s=float(wait) if wait else None
        )


def reporting(dialect: RateLimitHeaderDialect, lying: float = 0.0) -> Headers:
    """The sandbox's headers in *dialect*; a share *lying* of them reports a full or an empty bucket."""
    rng = random.Random(3)

    def headers(server: Server, accepted: bool, t: float) -> Mapping[str, str]:
        more = max(1, math.ceil((1 - server.tokens % 1) / server.rate))
        left, full = int(server.tokens + 1e-9), math.ceil((server.burst - server.tokens) / server.rate)
        quota = ReportedQuota(server.burst, left, more, full, START.timestamp() + t)
        if rng.random() < lying:
            plenty = rng.random() < 0.5
            quota = ReportedQuota(server.burst, server.burst if plenty else 0, 3600, 0 if plenty else 3600, quota.now)
        policy = rate_limiter.policy_headers(dialect, server.burst, math.ceil(server.burst / server.rate))
        advice = {} if accepted else {"retry-after": str(more)}
        return {**policy, **rate_limiter.remaining_headers(dialect, quota), **advice}

    return headers


def each_once(*values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Combinations in which each value of each parameter is at least once."""
    return [tuple(each[number % len(each)] for each in values) for number in range(max(map(len, values)))]


def simulated(
    before: LimitEstimate,
    *,
    bursts: float,
    latency_s: float,
    server: Server | None = None,
    clients: int = 1,
    until: float = 1e9,
    seed: int = 1,
) -> tuple[Result, LimitEstimate]:
    """Deliver *bursts* times what the bucket holds; what the server saw, and the estimate at the end."""
    clock, server = Time(), server or Server(RATE, BURST)
    store = MemoryBucketStore(clock, BucketState.from_estimate(before))
    pacers = [Client(clock, store) for _ in range(clients)]
    work = round(bursts * server.burst)
    result = run(pacers, clock, server, work=work, network=Network(latency_s), seed=seed, until=until)
    return result, pacers[0].allowance.limit_estimate


@pytest.mark.nightly(but=["3-0.2"])
@pytest.mark.parametrize(("bursts", "latency_s"), each_once(BURSTS, LATENCIES))
def test_a_configured_bucket_is_fully_used(bursts: int, latency_s: float) -> None:
    """Rate and burst configured: within 2 % of the optimum at any latency, and no 429."""
    result, _ = simulated(CONFIGURED, bursts=bursts, latency_s=latency_s)
    assert result.ratio <= 1.02
    assert result.refused == 0


@pytest.mark.parametrize("latency_s", LATENCIES)
def test_a_burst_is_sent_at_once(latency_s: float) -> None:
    """As many requests as the bucket holds: no 429, and 0.9 of the speed of an unpaced client."""
    paced, _ = simulated(CONFIGURED, bursts=1, latency_s=latency_s)
    unpaced, _ = simulated(configured(1e6, 10**6), bursts=1, latency_s=latency_s)
    assert paced.refused == 0
    assert unpaced.seconds >= 0.9 * paced.seconds


@pytest.mark.nightly(but=["before0"])
@pytest.mark.parametrize(
    ("before", "bursts", "latency_s"), [(NOTHING, 3, 0.05), (NOTHING, 10, 0.2), (DOCUMENTED, 3, 0.001)]
)
def test_a_hidden_bucket_is_learned(before: LimitEstimate, bursts: int, latency_s: float) -> None:
    """Nothing reported: within 8 % and 2 % refused; the second run, with the estimate, within 3 % and 0.2 %."""
    first, learned = simulated(before, bursts=bursts, latency_s=latency_s)
    assert first.ratio <= 1.08
    assert first.refused_share() <= 0.02
    assert learned.burst == pytest.approx(BURST, rel=0.03)
    assert learned.rate_per_s == pytest.approx(RATE, rel=0.03)
    second, _ = simulated(learned, bursts=bursts, latency_s=latency_s, seed=2)
    assert second.ratio <= 1.03
    assert second.refused_share() <= 0.002


@pytest.mark.parametrize(("rate", "burst"), [(2.0, 40), (20.0, 100)])
def test_buckets_of_other_sizes_are_learned_too(rate: float, burst: int) -> None:
    """A shop's 40 tokens at two per second, and a larger one: within 8 %, then within 3 %."""
    first, learned = simulated(NOTHING, bursts=10, latency_s=0.05, server=Server(rate, burst))
    second, _ = simulated(learned, bursts=10, latency_s=0.05, server=Server(rate, burst))
    assert first.ratio <= 1.08
    assert second.ratio <= 1.03
    assert second.refused_share() <= 0.02


def in_the_last(result: Result, seconds: float) -> float:
    """Accepted requests per second."""
    end = result.server.accepted[-1]
    return result.rate_between(end - seconds, end)


@pytest.mark.nightly(but=["draft07"])
@pytest.mark.parametrize(("dialect", "latency_s"), each_once(DIALECTS, EXTREMES))
def test_each_dialect_is_followed(dialect: RateLimitHeaderDialect, latency_s: float) -> None:
    """In any dialect nothing is refused, and the whole rate is used within a minute."""
    server = Server(RATE, BURST, headers=reporting(dialect))
    result, learned = simulated(NOTHING, bursts=4, latency_s=latency_s, server=server)
    assert result.ratio <= 1.03
    assert result.refused == 0
    assert learned.burst == BURST
    assert in_the_last(result, 20) == pytest.approx(RATE, rel=0.1)


@pytest.mark.nightly(but=["10.0-10", "None-10-draft10"])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("per_s", "burst"), [(10.0, 10), (10.0, None), (None, 10)])
def test_a_configured_maximum_is_never_exceeded(
    dialect: RateLimitHeaderDialect, per_s: float | None, burst: int | None
) -> None:
    """A server whose bucket is larger reports what it holds, of which no more than the configured limit is spent."""
    server = Server(RATE, BURST, headers=reporting(dialect))
    most = LimitEstimate(most_per_s=per_s or math.inf, most_at_once=burst or UNLIMITED)
    before = most.with_capped_rate(per_s or RATE, "set" if per_s else "documented")
    before = before.with_capped_burst(burst, "set") if burst else before
    result, _ = simulated(before, bursts=1.5 if burst is None else 0.1, latency_s=0.05, server=server)
    at_once = burst + 2 if burst else BURST + 105  # an unknown burst is known once the first requests are answered
    for number, moment in enumerate(result.server.accepted):
        assert number + 1 <= at_once + (per_s or RATE) * (moment - result.server.accepted[0])


@pytest.mark.nightly(but=["draft10"])
@pytest.mark.parametrize(("dialect", "lying", "latency_s"), each_once(DIALECTS[::2], LYING, EXTREMES[::-1]))
def test_wrong_headers_neither_stall_nor_flood(dialect: RateLimitHeaderDialect, lying: float, latency_s: float) -> None:
    """Headers that report a full or an empty bucket at random are detected: the whole rate, and few refusals."""
    server = Server(RATE, BURST, headers=reporting(dialect, lying))
    result, _ = simulated(NOTHING, bursts=4, latency_s=latency_s, server=server)
    assert result.ratio <= 1.08
    assert result.refused_share() <= 0.02
    assert in_the_last(result, 20) == pytest.approx(RATE, rel=0.1)


@pytest.mark.nightly(but=["None-0.001"])
@pytest.mark.parametrize(("dialect", "latency_s"), each_once([None, *DIALECTS[1::2]], LATENCIES))
def test_a_rival_gets_its_half(dialect: RateLimitHeaderDialect | None, latency_s: float) -> None:
    """Another client takes half of the rate: we take the other half, with headers and without."""
    server = Server(RATE, BURST, rival_per_s=RATE / 2)
    if dialect:
        server.headers = reporting(dialect)
    result, _ = simulated(NOTHING, bursts=30, latency_s=latency_s, server=server, until=90)
    assert result.rate_between(60, 90) == pytest.approx(RATE / 2, rel=0.1)
    assert result.refused_share() <= 0.03


@pytest.mark.nightly
@pytest.mark.parametrize("share", [0.02, 0.1])
def test_random_refusals_slow_nothing_down(share: float) -> None:
    """A platform that refuses a share at random, without headers, is still used at nearly its rate."""
    result, _ = simulated(NOTHING, bursts=12, latency_s=0.05, server=Server(RATE, BURST, unjust=share), until=120)
    assert result.rate_between(60, 120) >= 0.75 * RATE


CHANGES = ((60.0, RATE / 2), (120.0, RATE))


@pytest.mark.nightly
@pytest.mark.parametrize(("before", "latency_s"), [(NOTHING, 0.2)])
def test_a_change_of_the_limit_is_detected(before: LimitEstimate, latency_s: float) -> None:
    """Without headers: halved within 10 s, doubled within 60 s, and at most 2 % refused in all."""
    server = Server(RATE, BURST, changes=CHANGES)
    result, _ = simulated(before, bursts=30, latency_s=latency_s, server=server, until=215)
    assert result.rate_between(70, 80) == pytest.approx(RATE / 2, rel=0.1)
    assert max(result.rate_between(t, t + 5) for t in range(120, 180)) >= 0.9 * RATE
    assert result.rate_between(180, 215) >= 0.9 * RATE
    assert result.refused_share() <= 0.02


@pytest.mark.parametrize(("dialect", "latency_s"), [("triple", 0.2)])
def test_a_reported_change_of_the_limit_is_followed(dialect: RateLimitHeaderDialect, latency_s: float) -> None:
    """With headers: both within 10 s."""
    server = Server(RATE, BURST, changes=((20.0, RATE / 2), (50.0, RATE)), headers=reporting(dialect))
    result, _ = simulated(DOCUMENTED, bursts=30, latency_s=latency_s, server=server, until=75)
    assert result.rate_between(30, 50) == pytest.approx(RATE / 2, rel=0.1)
    assert result.rate_between(60, 75) == pytest.approx(RATE, rel=0.1)
    assert result.refused_share() <= 0.02


@pytest.mark.nightly(but=["0.001"])
@pytest.mark.parametrize("latency_s", LATENCIES)
def test_processes_share(latency_s: float) -> None:
    """Four clients on one bucket: within 5 %, and in no window more requests than it allows."""
    result, _ = simulated(CONFIGURED, bursts=2.5, latency_s=latency_s, clients=4)
    assert result.ratio <= 1.05
    assert result.refused == 0
    arrived = result.server.accepted
    for start in range(0, len(arrived), 97):
        for end in range(start, len(arrived), 89):
            assert end - start + 1 <= BURST + RATE * (arrived[end] - arrived[start]) + 1e-6
