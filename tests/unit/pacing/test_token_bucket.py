"""Exact bursts, no token twice, and exact waits."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.pacing.token_bucket import Bucket


@given(
    st.integers(1, 1000),
    st.integers(1, 500),
    st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 50)), max_size=60),
)
def test_no_window_ever_has_more_than_burst_and_rate(rate: int, burst: int, steps: list[tuple[int, int]]) -> None:
    """No window of time has more than ``burst + rate * window`` tokens."""
    bucket, now, taken = Bucket(rate, burst), 1000.0, []
    for pause_ms, wanted in steps:
        now += pause_ms / 1000
        count = min(wanted, bucket.tokens(now))
        if count:
            bucket = bucket.after_taking_tokens(now, count)
            taken.append((now, count))
    for first in range(len(taken)):
        total = 0
        for at, count in taken[first:]:
            total += count
            assert total <= burst + rate * (at - taken[first][0]) + 1e-6


@given(st.integers(1, 1000), st.integers(1, 100), st.integers(0, 300))
def test_the_wait_is_exactly_long_enough(rate: int, burst: int, spent: int) -> None:
    """A token is available after the wait, and none just before."""
    bucket = Bucket(rate, burst).after_taking_tokens(0.0, spent) if spent else Bucket(rate, burst)
    wait = bucket.wait_s(0.0)
    assert bucket.tokens(wait + 1e-6) >= 1
    if wait > 0:
        assert bucket.tokens(wait - 1e-3 / rate) == 0


@pytest.mark.parametrize(
    ("taken", "after_s", "tokens"),
    [
        pytest.param(0, 0.0, 10, id="full at first"),
        pytest.param(10, 0.0, 0, id="empty after the burst"),
        pytest.param(10, 0.5, 5, id="half full after half the time"),
        pytest.param(10, 5.0, 10, id="never more than full"),
        pytest.param(4, -3.0, 0, id="a clock that ran back gives nothing"),
    ],
)
def test_tokens_over_time(taken: int, after_s: float, tokens: int) -> None:
    """Ten tokens, ten per second."""
    bucket = Bucket(10, 10)
    bucket = bucket.after_taking_tokens(100.0, taken) if taken else bucket
    assert bucket.tokens(100.0 + after_s) == tokens


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (math.inf, 1), (math.nan, 1), (1, 0)])
def test_an_invalid_bucket_is_refused(rate: float, burst: int) -> None:
    """The rate must be positive and finite, and the burst at least one."""
    with pytest.raises(ValueError, match="not positive and finite|below one"):
        Bucket(rate, burst)


def test_a_cost_beyond_the_burst_is_refused() -> None:
    """No wait is long enough for more tokens than fit into the bucket."""
    with pytest.raises(ValueError, match="exceed a burst"):
        Bucket(1, 5).wait_s(0.0, 6)
