"""A forecast matches what the bucket allows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.allowances import configured

from crossdock.pacing.token_bucket import BucketState, LimitEstimate, forecast_request_duration


@given(st.integers(1, 500), st.integers(1, 3000), st.integers(0, 5000), st.integers(0, 3000))
def test_it_is_the_time_that_taking_the_tokens_needs(rate: int, burst: int, requests: int, spent: int) -> None:
    """All tokens are available after the predicted seconds, and not earlier."""
    bucket_state, _ = BucketState.from_estimate(configured(rate, burst)).take_available(0.0, spent, 0)
    seconds = forecast_request_duration(bucket_state, requests, 0.0).seconds
    assert seconds is not None
    level = bucket_state.bucket.level(0.0)
    assert level + rate * seconds >= requests - 1e-6
    assert seconds == 0 or level + rate * seconds <= requests + 1e-6


def test_an_unknown_limit_has_no_forecast() -> None:
    """Without a known burst there is no time."""
    unknown = forecast_request_duration(BucketState.from_estimate(LimitEstimate(10, "documented")), 500, 0.0)
    assert (unknown.at_once, unknown.rate_per_s, unknown.seconds) == (None, 10, None)
