"""The rate follows from the requests accepted between two moments at which the bucket was empty."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.pacing.limit_estimate import LimitEstimate
from crossdock.pacing.samples import Sample
from crossdock.pacing.unreported_rate import PROBE_INTERVAL_S, RateEstimator, RateProbe

LATENCY_S = 0.05


@given(st.integers(5, 1000), st.integers(2, 8))
def test_a_steady_rate_is_found_and_confirmed(rate: int, count: int) -> None:
    """Samples of an empty bucket every four seconds yield the rate; each after the second confirms it."""
    estimator = RateEstimator()
    for second in range(0, 4 * count, 4):
        estimator.add_empty(Sample(second, rate * second), LATENCY_S)
    assert estimator.rate_per_s == pytest.approx(rate)
    assert estimator.agreed == count - 2


def test_another_rate_replaces_the_estimate() -> None:
    """A rate that differs by more than the noise is adopted at once."""
    estimator = RateEstimator()
    for second, accepted in ((0, 0), (4, 400), (8, 800), (12, 1000)):
        estimator.add_empty(Sample(second, accepted), LATENCY_S)
    assert (estimator.rate_per_s, estimator.agreed) == (50, 0)


def test_close_samples_are_counted_and_yield_no_rate() -> None:
    """Samples within half a second are too noisy."""
    estimator = RateEstimator()
    for tenth in range(4):
        estimator.add_empty(Sample(tenth / 10, tenth), LATENCY_S)
    assert (estimator.rate_per_s, estimator.too_soon) == (None, 3)


def test_reported_levels_yield_a_rate() -> None:
    """A level that falls from 90 to 60 while 100 requests are accepted in five seconds: 14 tokens per second."""
    estimator = RateEstimator()
    changed = [estimator.add_level(Sample(s, 20 * s, 90 - 6 * s), LATENCY_S, burst=100) for s in range(6)]
    assert changed == [False, False, False, True, False, False]
    assert estimator.rate_per_s == pytest.approx(14)


def test_a_rate_of_another_user_is_adopted() -> None:
    """The rate and its confirmations are taken over; the same rate changes nothing."""
    estimator = RateEstimator()
    estimator.adopt(LimitEstimate(5, "learned", agreed=2))
    estimator.adopt(LimitEstimate(5, "learned", agreed=7))
    assert (estimator.rate_per_s, estimator.agreed) == (5, 2)


def test_a_probe_doubles_until_a_request_is_refused() -> None:
    """The excess starts at ten percent without confirmations, and doubles every second."""
    probe = RateProbe(0.0)
    assert probe.factor(1.0, agreed=0) == pytest.approx(1.2)
    assert probe.factor(1.0 + PROBE_INTERVAL_S / 2, agreed=0) is None
    assert probe.factor(2.0, agreed=0) == pytest.approx(1.4)
    probe.refused(2.5)
    assert probe.factor(2.5, agreed=0) == pytest.approx(1.1)
    assert probe.factor(3.0, agreed=5) == pytest.approx(1.002, abs=2e-4)
