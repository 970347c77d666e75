"""A forecast is what the bucket does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.allowances import known

from crossdock.pacing.bucket_store import BucketState
from crossdock.pacing.forecast import forecast, timetable
from crossdock.pacing.limit_estimate import LimitEstimate


@given(st.integers(1, 500), st.integers(1, 3000), st.integers(0, 5000), st.integers(0, 3000))
def test_it_is_what_taking_them_needs(rate: int, burst: int, requests: int, spent: int) -> None:
    """After the seconds that it tells all tokens are there, and not one token's time earlier."""
    bucket_state, _ = BucketState.of(known(rate, burst)).taken(0.0, spent, 0)
    seconds = forecast(bucket_state, requests, 0.0).seconds
    assert seconds is not None
    level = bucket_state.bucket.level(0.0)
    assert level + rate * seconds >= requests - 1e-6
    assert seconds == 0 or level + rate * seconds <= requests + 1e-6


def test_an_unknown_limit_has_no_forecast() -> None:
    """Nobody guesses when a bucket of unknown size is done."""
    told = forecast(BucketState.of(LimitEstimate(10, "documented")), 500, 0.0)
    assert (told.at_once, told.rate_per_s, told.seconds) == (None, 10, None)


def test_what_can_wait() -> None:
    """What does not fit until the hour waits, and what comes after it may still fit."""
    slots = timetable(BucketState.of(known(10, 100)), [("invoices", 400), ("products", 900), ("lots", 200)], 0.0, 60.0)
    assert [(slot.name, slot.in_time) for slot in slots] == [("invoices", True), ("products", False), ("lots", True)]
    assert [slot.ends_s for slot in slots] == [pytest.approx(30), pytest.approx(120), pytest.approx(50)]
