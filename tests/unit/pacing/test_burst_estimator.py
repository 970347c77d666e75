"""The burst is what was accepted until the first refusal, less what was added."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.pacing.rate_limit_learner import BucketSample, BurstEstimator


@given(st.integers(1, 5000), st.integers(1, 200), st.integers(1, 60))
def test_a_full_bucket_that_is_emptied(burst: int, rate: int, seconds: int) -> None:
    """*burst* tokens and those of *seconds* were accepted."""
    estimator = BurstEstimator(full=True)
    estimator.record_accepted_request(BucketSample(0.0, 1))
    assert estimator.is_observing
    estimator.record_empty_bucket(BucketSample(seconds, burst + rate * seconds))
    assert not estimator.is_observing
    assert estimator.burst(rate) == burst
    assert estimator.mean_accepted_per_s() == pytest.approx(rate + (burst - 1) / seconds)


def test_a_slow_start_leaves_the_bucket_full() -> None:
    """The sample with the highest level counts, not the first."""
    estimator = BurstEstimator(full=True)
    for at, accepted in ((0.0, 1), (10.0, 6), (12.0, 61)):
        estimator.record_accepted_request(BucketSample(at, accepted))
    estimator.record_empty_bucket(BucketSample(14.0, 125))
    assert estimator.burst(10.0) == 80


def test_without_a_full_start_or_an_end_there_is_no_estimate() -> None:
    """The burst stays unknown."""
    running, partial = BurstEstimator(full=True), BurstEstimator(full=False)
    for estimator in (running, partial):
        estimator.record_accepted_request(BucketSample(0.0, 1))
    partial.record_empty_bucket(BucketSample(1.0, 100))
    assert (running.burst(10.0), partial.burst(10.0)) == (None, None)
    assert running.mean_accepted_per_s() == 1.0


def test_a_refused_first_request_tells_nothing() -> None:
    """The bucket was empty before."""
    estimator = BurstEstimator(full=True)
    estimator.record_empty_bucket(BucketSample(1.0, 0))
    assert estimator.burst(10.0) is None


def test_a_known_burst_is_lowered_and_never_raised() -> None:
    """More accepted requests than an earlier run learned show nothing; a bucket that is empty before them does."""
    for accepted, burst in ((80, 50), (40, 40)):
        estimator = BurstEstimator(50, full=True)
        estimator.record_accepted_request(BucketSample(0.0, 1))
        estimator.record_empty_bucket(BucketSample(1.0, accepted))
        assert estimator.burst(0.001) == burst


def test_requests_close_together_are_from_more_than_one_token() -> None:
    """A bucket of one token would have refused the second, whatever its rate."""
    for second_at, burst in ((0.1, 2), (1.0, 1)):
        estimator = BurstEstimator(full=True)
        estimator.record_accepted_request(BucketSample(0.0, 1))
        estimator.record_accepted_request(BucketSample(second_at, 2))
        estimator.record_empty_bucket(BucketSample(second_at + 0.2, 2))
        assert estimator.burst(50.0) == burst
