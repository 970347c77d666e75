"""A source uses what the rate limit of an API permits, and is hardly ever refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.pacing.bucket_store import BucketState
from crossdock.pacing.rate_limit import RateLimit
from crossdock.sources.source_allowance import QueryCosts, SourceAllowance
from crossdock.testing.manual_clock import ManualClock
from crossdock.transport.http_answers import Answer

REQUESTS = 400
LATENCY_S = 0.02

Headers = Callable[[float, int, float], Mapping[str, str]]


def silent(rate: float, burst: int, tokens: float) -> Mapping[str, str]:
    return {}


def shopify(rate: float, burst: int, tokens: float) -> Mapping[str, str]:
    return {"x-shopify-shop-api-call-limit": f"{burst - int(tokens)}/{burst}"}


def draft(rate: float, burst: int, tokens: float) -> Mapping[str, str]:
    policy = f"{burst};w={burst / rate:g}"
    return {
        "ratelimit-limit": str(burst),
        "ratelimit-remaining": str(int(tokens)),
        "ratelimit-policy": policy,
    }


def amazon(rate: float, burst: int, tokens: float) -> Mapping[str, str]:
    return {"x-amzn-ratelimit-limit": str(rate)}


@dataclass
class Result:
    """The share of requests that were refused, the share of the limit that was used, and what was learned."""

    refused: float
    used: float
    state: BucketState


def read(rate: float, burst: int, limit: RateLimit, headers: Headers, earlier: BucketState | None = None) -> Result:
    """Let a source send requests one by one to a server with a full token bucket."""
    clock = ManualClock()
    allowance = SourceAllowance(clock, limit, earlier)
    tokens, at, accepted = float(burst), 0.0, 0
    while accepted < REQUESTS:
        token = allowance.take(None)
        clock.sleep(LATENCY_S / 2)
        now = clock.monotonic()
        tokens, at = min(burst, tokens + (now - at) * rate), now
        is_accepted = tokens >= 1 - 1e-9
        tokens, accepted = tokens - is_accepted, accepted + is_accepted
        answer = Answer(200 if is_accepted else 429, headers(rate, burst, tokens), b"")
        clock.sleep(LATENCY_S / 2)
        allowance.answered(token, answer, throttled=not is_accepted)
    least_s = max(REQUESTS * LATENCY_S, (REQUESTS - burst) / rate)
    return Result(allowance.throttled / REQUESTS, least_s / clock.monotonic(), allowance.bucket_state)


BUCKETS = [(2.0, 2), (2.0, 40), (40.0, 40), (10.0, 10)]


@pytest.mark.parametrize(("rate", "burst"), BUCKETS)
def test_a_configured_limit_is_used_and_never_exceeded(rate: float, burst: int) -> None:
    """No request is refused, and 95 % of the limit is used."""
    result = read(rate, burst, RateLimit(per_minute=int(rate * 60), burst=burst), silent)
    assert (result.refused, result.used >= 0.95) == (0.0, True)


@pytest.mark.parametrize(("rate", "burst"), BUCKETS)
@pytest.mark.parametrize("headers", [draft, amazon])
def test_a_reported_limit_is_known_from_the_first_answers(rate: float, burst: int, headers: Headers) -> None:
    """At most one request in a hundred is refused in the first run, none in the second."""
    first = read(rate, burst, RateLimit(), headers)
    assert (first.refused <= 0.01, first.used >= 0.95) == (True, True)
    second = read(rate, burst, RateLimit(), headers, first.state)
    assert second.refused == 0.0


@pytest.mark.parametrize(("rate", "burst"), [bucket for bucket in BUCKETS if bucket[1] > 2])
def test_a_level_that_is_reported_without_a_rate(rate: float, burst: int) -> None:
    """The rate is learned, within the same limits."""
    first = read(rate, burst, RateLimit(), shopify)
    assert (first.refused <= 0.01, first.used >= 0.95) == (True, True)
    assert read(rate, burst, RateLimit(), shopify, first.state).refused == 0.0


@pytest.mark.parametrize(("rate", "burst"), [(2.0, 2), (2.0, 40), (10.0, 10)])
def test_a_limit_that_is_not_reported_is_learned(rate: float, burst: int) -> None:
    """From a few refusals."""
    result = read(rate, burst, RateLimit(), silent)
    assert (result.refused <= 0.03, result.used >= 0.95) == (True, True)


def test_a_rate_without_a_burst_spreads_requests_evenly() -> None:
    """Until the API reports more, nothing is sent at once."""
    result = read(2.0, 40, RateLimit(per_minute=120), silent)
    assert result.refused == 0.0
    assert result.state.estimate.burst == 1


@given(
    rate=st.integers(1, 50),
    most=st.integers(1, 1000),
    costs=st.lists(st.integers(1, 1000), min_size=1, max_size=30),
)
def test_a_query_whose_cost_is_known_is_never_refused(rate: int, most: int, costs: list[int]) -> None:
    """It waits until its cost is available, and no longer."""
    bucket, now, level = QueryCosts(), 0.0, float(most)
    for number, wanted in enumerate(costs):
        cost, query = min(wanted, most), str(number % 3)
        for is_known in (False, True):  # the first time tells the cost
            wait_s = bucket.wait_s(query, now)
            now, level = now + wait_s, min(most, level + wait_s * rate)
            assert not is_known or level >= cost - 1e-3
            level -= cost if level >= cost else 0
            status = {"maximumAvailable": most, "currentlyAvailable": level, "restoreRate": rate}
            body = {"extensions": {"cost": {"requestedQueryCost": cost, "throttleStatus": status}}}
            assert bucket.read(query, body, now)
