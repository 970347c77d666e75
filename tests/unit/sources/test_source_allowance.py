"""A source uses what the rate limit of an API permits, and is hardly ever refused.

The vendors are simulated. Shares are of what the vendor and the latency allow, for 400 requests unless stated. More
examples are in `tests.long.test_properties`.
"""

from __future__ import annotations

from datetime import timedelta
from random import Random
from statistics import mean, median
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.sources.simulated_vendors import (
    FixedWindow,
    Headers,
    NewVendor,
    Reader,
    SlidingWindow,
    TokenBucket,
    always_empty,
    amazon,
    another_limit,
    draft,
    retry_after,
    seconds,
    shopify,
    silent,
)

from crossdock.pacing.rate_limit_and_retry_settings import RateLimit
from crossdock.pacing.token_bucket import BucketState, LimitEstimate
from crossdock.reading.sources.api_token_buckets import RequestAllowanceOfRun, make_api_bucket
from crossdock.testing.manual_clock import ManualClock

BUCKETS = [(2.0, 1), (2.0, 2), (2.0, 40), (10.0, 10), (40.0, 40)]
LATENCIES = [pytest.param(ms / 1000, id=f"{ms} ms") for ms in (1, 20, 50, 200)]
WINDOWS = [FixedWindow, SlidingWindow]


@pytest.mark.parametrize(("rate", "burst"), BUCKETS)
def test_a_configured_limit_is_used_and_never_exceeded(rate: float, burst: int) -> None:
    """No request is refused, and 95 % of the limit is used."""
    limit = RateLimit(per_minute=int(rate * 60), burst=burst)
    result = Reader(TokenBucket, rate, burst, silent, limit=limit).run()
    assert (result.refused, result.used >= 0.95) == (0, True)


@pytest.mark.parametrize("headers", [silent, shopify, draft])
def test_a_configured_limit_below_that_of_the_api_is_never_exceeded(headers: Headers) -> None:
    """Whatever level the API reports."""
    limit = RateLimit(per_minute=120, burst=2)
    result = Reader(TokenBucket, 40.0, 40, headers, limit=limit).run()
    assert result.refused == 0
    assert result.used == pytest.approx(2 / 40 * 360 / 398, rel=0.05)


@pytest.mark.nightly(but=["20 ms"])
@pytest.mark.parametrize("latency_s", LATENCIES)
@pytest.mark.parametrize(("rate", "burst"), BUCKETS)
@pytest.mark.parametrize("headers", [draft, amazon])
def test_a_reported_rate_is_known_from_the_first_answer(
    rate: float, burst: int, headers: Headers, latency_s: float
) -> None:
    """At most one request is refused, to learn a burst that is not reported, and none in the second run."""
    reader = Reader(TokenBucket, rate, burst, headers, latency_s=latency_s)
    first, second = reader.run(), reader.run()
    assert (first.refused <= (headers is amazon), second.refused) == (True, 0)
    assert min(first.used, second.used) >= 0.95


@pytest.mark.nightly(but=["50 ms"])
@pytest.mark.parametrize("latency_s", LATENCIES)
@pytest.mark.parametrize("jitter", [0.0, 0.3])
@pytest.mark.parametrize(("rate", "burst"), [(2.0, 40), (10.0, 10), (40.0, 40)])
def test_a_level_that_is_reported_without_a_rate_is_enough(
    rate: float, burst: int, jitter: float, latency_s: float
) -> None:
    """The rate is learned without a refused request, as from Shopify's header."""
    reader = Reader(TokenBucket, rate, burst, shopify, latency_s=latency_s, jitter=jitter)
    runs = [reader.run(), reader.run()]
    assert [run.refused for run in runs] == [0, 0]
    assert min(run.used for run in runs) >= 0.95


@pytest.mark.nightly(but=["50 ms"])
@pytest.mark.parametrize("latency_s", LATENCIES)
@pytest.mark.parametrize(("rate", "burst"), BUCKETS)
@pytest.mark.parametrize("headers", [silent, retry_after])
def test_a_limit_that_is_not_reported_is_learned(rate: float, burst: int, headers: Headers, latency_s: float) -> None:
    """From at most 12 refused requests, which cost a short first run time; the second has at most 3, and uses 95 %."""
    reader = Reader(TokenBucket, rate, burst, headers, latency_s=latency_s)
    first, second = reader.run(), reader.run()
    assert (first.refused <= 12, first.used >= 0.75) == (True, True)
    assert (second.refused <= 3, second.used >= 0.95) == (True, True)


@pytest.mark.nightly(but=["40-1-0"])
@pytest.mark.parametrize(("rate", "burst", "jitter"), [(40, 1, 0), (40, 2, 0), (40, 2, 0.3), (40, 40, 0.3)])
def test_a_long_run_finds_a_high_limit_that_is_not_reported(rate: float, burst: int, jitter: float) -> None:
    """Of 4,000 requests at most one in a hundred is refused, and three of the second run's thousand."""
    reader = Reader(TokenBucket, rate, burst, silent, jitter=jitter)
    first, second = reader.run(4_000), reader.run(1_000)
    assert (first.refused <= 40, first.used >= 0.9) == (True, True)
    assert (second.refused <= 3, second.used >= 0.85) == (True, True)


@pytest.mark.parametrize(
    ("rate", "wait_s", "requests", "least"),
    [(10.0, 2, 600, (0.99, 0.98)), (40.0, 2, 2_400, (0.94, 0.98)), (40.0, 10, 6_000, (0.8, 0.9))],
)
def test_a_wait_that_the_server_demands_is_used_for_little_else(
    rate: float, wait_s: int, requests: int, least: tuple[float, float]
) -> None:
    """The bucket is full after it, and is spent at once when its rate is known; a higher rate is tried seldom."""
    reader = Reader(TokenBucket, rate, 40, seconds(wait_s), latency_s=0.007, jitter=0.3)
    runs = [reader.run(requests), reader.run(requests)]
    assert [run.used >= share for run, share in zip(runs, least, strict=True)] == [True, True]
    assert max(run.refused for run in runs) <= 4


@pytest.mark.nightly(but=["20.0-5-5-0.02-1.0-0.8"])
@pytest.mark.parametrize(
    ("rate", "burst", "wait_s", "latency_s", "jitter", "least"),
    [
        (20.0, 5, 5, 0.02, 1.0, 0.8),
        (10.0, 5, 10, 0.03, 0.3, 0.9),
        (10.0, 10, 30, 0.05, 1.0, 0.95),
        (16.0, 33, 30, 0.027, 0.3, 0.95),
        (20.0, 100, 60, 0.007, 0.3, 0.8),
    ],
)
def test_a_rate_is_not_taken_for_that_of_a_full_bucket_over_the_wait(
    rate: float, burst: int, wait_s: int, latency_s: float, jitter: float, least: float
) -> None:
    """At the same speed as before, the tokens of a bucket that is full after each wait would show a twentieth of it.

    One run in many waits once more, since it looks for a raised limit.
    """
    used = []
    for seed in range(12):
        reader = Reader(TokenBucket, rate, burst, seconds(wait_s), latency_s=latency_s, jitter=jitter, seed=seed)
        reader.run(1_000)
        used.append(reader.run(1_000).used)
    assert mean(used) >= least
    assert min(used) >= 0.4


@pytest.mark.parametrize("new_vendor", WINDOWS)
@pytest.mark.parametrize(("rate", "burst"), [(2.0, 40), (10.0, 10)])
def test_a_window_whose_level_is_reported_is_used(new_vendor: NewVendor, rate: float, burst: int) -> None:
    """As soon as the vendor reports new requests, they are sent."""
    result = Reader(new_vendor, rate, burst, draft).run()
    assert (result.refused <= 40, result.used >= 0.7) == (True, True)


SETTLES_TOO_LOW = pytest.mark.xfail(
    strict=True,
    reason="a sliding window refuses speeds below its limit while an earlier burst counts; the rate settles too low",
)


@pytest.mark.parametrize(
    ("new_vendor", "rate", "burst"),
    [
        *((FixedWindow, rate, burst) for rate, burst in [(2.0, 2), (2.0, 40), (10.0, 10)]),
        *((SlidingWindow, rate, burst) for rate, burst in [(2.0, 2), (10.0, 10)]),
        pytest.param(SlidingWindow, 2.0, 40, marks=SETTLES_TOO_LOW),
    ],
)
def test_a_window_that_is_not_reported_is_read_to_the_end(new_vendor: NewVendor, rate: float, burst: int) -> None:
    """It does not behave like a bucket, so more requests are refused and less of it is used."""
    result = Reader(new_vendor, rate, burst, silent).run()
    assert (result.refused <= 60, result.used >= 0.4) == (True, True)


def test_a_level_that_is_made_up_is_ignored() -> None:
    """A server that always reports an empty bucket, and has no limit, is read at full speed in the end."""
    reader = Reader(TokenBucket, 1000.0, 1000, always_empty)
    assert reader.run(5_000).used >= 0.5


def test_the_level_of_another_limit_is_ignored() -> None:
    """Requests that are refused although tokens are reported show that the report is about something else."""
    result = Reader(TokenBucket, 2.0, 2, another_limit).run()
    assert (result.refused <= 8, result.used >= 0.85) == (True, True)


@pytest.mark.parametrize(("before", "after"), [(2.0, 10.0), (10.0, 2.0)])
def test_a_limit_that_changes_between_runs_is_learned_again(before: float, after: float) -> None:
    """A lower one from refused requests; a higher one after a thousand requests, by sending faster and faster."""
    reader = Reader(TokenBucket, before, 10, silent)
    reader.run()
    reader.run(2_500, rate=after)
    last = reader.run()
    assert (last.refused <= 4, last.used >= 0.85) == (True, True)


@pytest.mark.nightly(but=["4.0-True-0"])
@pytest.mark.parametrize("agreed", [0, 1])
@pytest.mark.parametrize(("rate", "refused"), [(4.0, True), (1e6, False)])
def test_a_rate_that_was_learned_too_low_is_found_by_short_runs(agreed: int, rate: float, refused: bool) -> None:
    """The limit was raised, or an outage was taken for it: also if no request is refused because the reader is slow."""
    estimate = LimitEstimate(0.5, "learned", 20, "learned", agreed)
    earlier = BucketState(estimate.bucket(0.0), estimate, spent=1_000, refused=7, as_of=1.0)
    reader = Reader(TokenBucket, rate, 20, silent, earlier=earlier, latency_s=0.1)
    runs = [reader.run(300) for _ in range(30)]
    assert runs[-1].used >= 0.85
    assert any(run.refused for run in runs) == refused
    assert sum(run.refused for run in runs) <= 0.01 * 300 * len(runs)


@pytest.mark.nightly(but=["2.0-40"])
@pytest.mark.parametrize(("rate", "burst"), [(0.5, 1), (0.5, 20), (2.0, 40), (10.0, 10)])
def test_looking_for_a_raised_limit_costs_little(rate: float, burst: int) -> None:
    """Where the limit is as it was, short runs use it fully, and hardly a request is refused."""
    reader = Reader(TokenBucket, rate, burst, silent)
    reader.run(2_000)
    runs = [reader.run(300) for _ in range(30)]
    assert mean(run.used for run in runs) >= 0.95
    assert sum(run.refused for run in runs) <= 0.005 * 300 * len(runs)


@pytest.mark.parametrize("agreed", [0, 1, 5])
def test_what_a_stored_state_has_learned_is_used_at_once(agreed: int) -> None:
    """Also that of an earlier version, which counted how often a rate was confirmed."""
    estimate = LimitEstimate(2.0, "learned", 40, "learned", agreed)
    earlier = BucketState(estimate.bucket(0.0), estimate, spent=1_000, refused=7, as_of=1.0)
    result = Reader(TokenBucket, 2.0, 40, silent, earlier=earlier).run()
    assert (result.refused <= 3, result.used >= 0.95) == (True, True)
    assert result.state.spent >= 1_400


def test_a_rate_without_a_burst_spreads_requests_evenly() -> None:
    """Until the API reports more, nothing is sent at once."""
    result = Reader(TokenBucket, 2.0, 40, silent, limit=RateLimit(per_minute=120)).run()
    assert result.refused == 0
    assert result.state.estimate.burst == 1


def test_waits_are_told() -> None:
    """Before each wait with its length, and once a request need not wait."""
    clock, told = ManualClock(), list[timedelta]()
    allowance = RequestAllowanceOfRun(clock, make_api_bucket(clock, RateLimit(per_minute=60)), told.append)
    for _ in range(3):
        allowance.wait_for_token(None)
    clock.sleep(5.0)
    allowance.wait_for_token(None)
    assert told == [timedelta(), timedelta(seconds=1), timedelta(seconds=1), timedelta()]
    assert allowance.usage.requests == 4
    assert allowance.usage.waited_s == pytest.approx(2.0)


of_any_bucket = given(
    rate=st.floats(0.5, 100),
    burst=st.integers(1, 100),
    latency_s=st.floats(0.001, 0.3),
    jitter=st.floats(0, 0.3),
    headers=st.sampled_from([silent, retry_after, shopify, draft, amazon]),
)
of_any_silent_bucket = given(
    rate=st.floats(0.5, 500),
    burst=st.integers(1, 100),
    share=st.floats(0.01, 0.8),
    jitter=st.sampled_from([0.0, 0.1, 0.3]),
    factor=st.sampled_from([1 / 3, 3.0]),
)


@settings(max_examples=5)
@of_any_bucket
def test_any_bucket_is_read_without_many_refusals(**bucket: Any) -> None:
    """At most one request in ten is refused, in each of three runs."""
    is_read_without_many_refusals(**bucket)


def is_read_without_many_refusals(rate: float, burst: int, latency_s: float, jitter: float, headers: Headers) -> None:
    reader = Reader(TokenBucket, rate, burst, headers, latency_s=latency_s, jitter=jitter)
    runs = [reader.run() for _ in range(3)]
    assert max(run.refused for run in runs) <= 40


@settings(max_examples=2)
@of_any_silent_bucket
def test_any_bucket_that_is_not_reported_is_used(**bucket: Any) -> None:
    """After 3,000 requests at least 80 %, in later runs too, and again after the limit has changed."""
    is_used_without_a_report(**bucket)


def is_used_without_a_report(rate: float, burst: int, share: float, jitter: float, factor: float) -> None:
    """As the test above says.

    *share* is the latency, of the time in which one token is added. A bucket of one token refuses a request that
    arrives early, so that what the latency varies cannot be used. A reader that is hardly faster than the limit meets
    it late.
    """
    latency_s = min(0.5, share / rate)
    reader = Reader(TokenBucket, rate, burst, silent, latency_s=latency_s, jitter=jitter)
    reader.begin()
    first, second, _, third = reader.read(400), reader.read(600), reader.read(2_000), reader.read(1_000)
    later = [reader.run(1_000), reader.run(1_000)]
    reader.begin()
    reader.read(500)
    reader.vendor.rate *= factor
    reader.read(3_000)
    changed = reader.read(1_000)
    assert first.refused <= 25
    assert max(run.refused for run in (second, third, *later)) <= 15
    assert min(run.used for run in (third, changed, *later)) >= 0.8


@pytest.mark.nightly
def test_most_buckets_that_are_not_reported_are_used_almost_fully() -> None:
    """Half of them at least 98 %, with at most one request in 200 refused in the first thousand and none later."""
    most_buckets_are_used_almost_fully(10)


def most_buckets_are_used_almost_fully(number: int) -> None:
    random, runs = Random(1), []
    for _ in range(number):
        rate, burst = 10 ** random.uniform(-0.3, 2.7), random.randint(1, 100)
        latency_s = min(0.5, random.uniform(0.01, 0.8) / rate)
        reader = Reader(TokenBucket, rate, burst, silent, latency_s=latency_s, jitter=random.choice((0.0, 0.1, 0.3)))
        reader.begin()
        first = reader.read(1_000)
        reader.read(1_000)
        runs.append((reader.read(1_000).used, first.refused, reader.run(1_000).refused))
    used, refused, later = (median(column) for column in zip(*runs, strict=True))
    assert used >= 0.98
    assert (refused <= 5, later) == (True, 0)
