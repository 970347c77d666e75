"""How many records per second a load delivers."""

from __future__ import annotations

import pytest

from crossdock.migration.load_progress_and_duration import LEAST_S, WINDOW_S, DeliveryRate


def test_the_last_minute_counts() -> None:
    """A target that has become slower is seen as slow within a minute, whatever it took before."""
    rate = DeliveryRate()
    for _ in range(10_000):
        rate.record_delivered(0.01, 1)
    for _ in range(int(WINDOW_S * 2)):
        rate.record_delivered(1, 5)
    assert rate.rate_if_below_allowance(100) == pytest.approx(5, rel=0.1)


def test_what_says_nothing() -> None:
    """A short time, no record at all, and a rate near the allowance are no reason to expect less than the allowance."""
    rate = DeliveryRate()
    assert rate.rate_if_below_allowance(100) is None
    rate.record_delivered(LEAST_S / 2, 1)
    assert rate.rate_if_below_allowance(100) is None
    rate.record_delivered(LEAST_S, 440)
    assert rate.rate_if_below_allowance(100) is None
    assert rate.rate_if_below_allowance(200) == pytest.approx(98)
