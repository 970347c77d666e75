"""A view shows the bucket as it was last returned."""

from __future__ import annotations

import pytest
from tests.allowances import configured

from crossdock.pacing.token_bucket import BucketState, BucketStoreWithLastState, LimitEstimate, MemoryBucketStore
from crossdock.testing.manual_clock import ManualClock


def view_of(estimate: LimitEstimate) -> tuple[ManualClock, BucketStoreWithLastState]:
    clock = ManualClock()
    return clock, BucketStoreWithLastState(clock, MemoryBucketStore(clock, BucketState.from_estimate(estimate)))


def test_its_present_follows_the_clock() -> None:
    """Without another access the store's clock is extrapolated."""
    clock, view = view_of(configured(10, 100))
    assert view.take_available(40, 0).count == 40
    clock.advance(1.0)
    assert view.now == pytest.approx(clock.now().timestamp())
    assert view.last_state.bucket.level(view.now) == pytest.approx(70)


def test_resizing_keeps_the_level() -> None:
    """The tokens stay, up to the new burst, at another rate if one is given."""
    _, view = view_of(configured(10, 100))
    view.set_level(60)
    view.resize_to_estimate(configured(20, 50), rate_per_s=25.0)
    assert view.last_state.bucket.level(view.now) == pytest.approx(50)
    assert view.last_state.bucket.rate_per_s == 25


def test_tokens_taken_before_the_burst_was_known_count_against_it() -> None:
    """Thirty tokens of an unknown burst leave seventy of a hundred."""
    _, view = view_of(LimitEstimate(10, "documented"))
    view.take_available(30, 0)
    view.resize_to_estimate(LimitEstimate(10, "documented", 100, "reported"))
    assert view.last_state.bucket.tokens(view.now) == 70
