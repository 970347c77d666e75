"""The burst is what was accepted until the first refusal, less what was added."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.pacing.limit_learner import BurstEstimator
from crossdock.pacing.samples import Sample


@given(st.integers(1, 5000), st.integers(1, 200), st.integers(1, 60))
def test_a_full_bucket_that_is_emptied(burst: int, rate: int, seconds: int) -> None:
    """*burst* tokens and those of *seconds* were accepted."""
    estimator = BurstEstimator(full=True)
    estimator.add(Sample(0.0, 0))
    assert estimator.under_way
    estimator.add_empty(Sample(seconds, burst + rate * seconds))
    assert not estimator.under_way
    assert estimator.burst(rate) == burst
    assert estimator.mean_per_s() == pytest.approx(rate + burst / seconds)


def test_a_slow_start_leaves_the_bucket_full() -> None:
    """The sample with the highest level counts, not the first."""
    estimator = BurstEstimator(full=True)
    for at, accepted in ((0.0, 0), (10.0, 5), (12.0, 60)):
        estimator.add(Sample(at, accepted))
    estimator.add_empty(Sample(14.0, 125))
    assert estimator.burst(10.0) == 80


def test_without_a_full_start_or_an_end_there_is_no_estimate() -> None:
    """The burst stays unknown."""
    running, partial = BurstEstimator(full=True), BurstEstimator(full=False)
    for estimator in (running, partial):
        estimator.add(Sample(0.0, 0))
    partial.add_empty(Sample(1.0, 100))
    assert (running.burst(10.0), partial.burst(10.0)) == (None, None)
    assert running.mean_per_s() == 1.0
