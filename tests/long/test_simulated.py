"""The allowance on simulated time, with all combinations: ``pytest tests/long/test_simulated.py -n 2``, a minute."""

from __future__ import annotations

import pytest
from tests.unit.pacing import test_simulated as short
from tests.unit.pacing.test_simulated import BURSTS, DIALECTS, DOCUMENTED, EXTREMES, LATENCIES, LYING, NOTHING

from crossdock.pacing.token_bucket import LimitEstimate
from crossdock.sandbox.rate_limiter import RateLimitHeaderDialect

latencies = pytest.mark.parametrize("latency_s", LATENCIES)
extremes = pytest.mark.parametrize("latency_s", EXTREMES)
bursts = pytest.mark.parametrize("bursts", BURSTS)
dialects = pytest.mark.parametrize("dialect", DIALECTS)
estimates = pytest.mark.parametrize("before", [NOTHING, DOCUMENTED], ids=["nothing", "rate"])


@latencies
@bursts
def test_a_configured_bucket_is_fully_used(bursts: int, latency_s: float) -> None:
    """With bursts of both sizes at each latency."""
    short.test_a_configured_bucket_is_fully_used(bursts, latency_s)


@latencies
@bursts
@estimates
def test_a_hidden_bucket_is_learned(before: LimitEstimate, bursts: int, latency_s: float) -> None:
    """From nothing and from the documented rate, with bursts of both sizes at each latency."""
    short.test_a_hidden_bucket_is_learned(before, bursts, latency_s)


@pytest.mark.parametrize(("rate", "burst"), [(50.0, 2_000)])
def test_buckets_of_other_sizes_are_learned_too(rate: float, burst: int) -> None:
    """A large bucket that fills slowly."""
    short.test_buckets_of_other_sizes_are_learned_too(rate, burst)


@extremes
@dialects
def test_each_dialect_is_followed(dialect: RateLimitHeaderDialect, latency_s: float) -> None:
    """At the shortest and the longest latency."""
    short.test_each_dialect_is_followed(dialect, latency_s)


@extremes
@pytest.mark.parametrize("lying", LYING)
@dialects
def test_wrong_headers_neither_stall_nor_flood(dialect: RateLimitHeaderDialect, lying: float, latency_s: float) -> None:
    """In each dialect, whether some or all headers are wrong."""
    short.test_wrong_headers_neither_stall_nor_flood(dialect, lying, latency_s)


@latencies
@pytest.mark.parametrize("dialect", [None, *DIALECTS])
def test_a_rival_gets_its_half(dialect: RateLimitHeaderDialect | None, latency_s: float) -> None:
    """In each dialect and without headers, at each latency."""
    short.test_a_rival_gets_its_half(dialect, latency_s)


@latencies
@estimates
def test_a_change_of_the_limit_is_detected(before: LimitEstimate, latency_s: float) -> None:
    """From nothing and from the documented rate, at each latency."""
    short.test_a_change_of_the_limit_is_detected(before, latency_s)


@latencies
@dialects
def test_a_reported_change_of_the_limit_is_followed(dialect: RateLimitHeaderDialect, latency_s: float) -> None:
    """In each dialect, at each latency."""
    short.test_a_reported_change_of_the_limit_is_followed(dialect, latency_s)
