"""An estimate stays within the configured limit, and makes a bucket."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.pacing.token_bucket import UNLIMITED, LimitEstimate


@given(st.floats(allow_nan=True, allow_infinity=True), st.integers(-5, 5))
def test_an_impossible_limit_is_rejected(rate: float, burst: int) -> None:
    """The rate must be positive and finite, and the burst at least one."""
    if 0 < rate < math.inf and burst >= 1:
        assert LimitEstimate(rate, "set", burst, "set").bucket().burst == burst
    else:
        with pytest.raises(ValueError, match="not positive and finite|below one"):
            LimitEstimate(rate, "set", burst, "set")


@given(st.floats(0.01, 1e6), st.integers(-10, 10**6))
def test_the_configured_limit_caps_every_other(rate: float, burst: int) -> None:
    """Neither a reported nor a learned value exceeds what is configured."""
    estimate = (
        LimitEstimate(most_per_s=10, most_at_once=50)
        .with_capped_rate(rate, "reported")
        .with_capped_burst(burst, "learned")
    )
    assert estimate.rate_per_s == min(rate, 10)
    assert estimate.burst == max(1, min(burst, 50))


@pytest.mark.parametrize(
    ("estimate", "spendable"),
    [
        pytest.param(LimitEstimate(), UNLIMITED, id="unknown"),
        pytest.param(LimitEstimate(10, "set", 1000, "set"), 1000, id="configured"),
        pytest.param(LimitEstimate(10, "set", 1000, "learned"), 990, id="learned: one percent less"),
        pytest.param(LimitEstimate(10, "set", 1, "learned"), 1, id="never less than one"),
    ],
)
def test_spendable(estimate: LimitEstimate, spendable: int) -> None:
    """A learned burst is accurate to one percent."""
    assert estimate.burst_with_safety_margin == estimate.bucket().burst == spendable


@pytest.mark.parametrize(
    ("most", "configured"),
    [
        pytest.param(LimitEstimate(), LimitEstimate(), id="nothing"),
        pytest.param(LimitEstimate(most_per_s=5), LimitEstimate(5, "set", 1, "documented", most_per_s=5), id="a rate"),
        pytest.param(
            LimitEstimate(most_at_once=7), LimitEstimate(None, "unknown", 7, "set", most_at_once=7), id="a burst"
        ),
    ],
)
def test_what_is_configured_remains_without_reports(most: LimitEstimate, configured: LimitEstimate) -> None:
    """Whatever was reported or learned; a rate without a burst lets one request through at once."""
    assert most.with_capped_rate(2, "reported").with_capped_burst(3, "learned").configured_limit() == configured
