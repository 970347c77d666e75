"""Reported levels tell the rate, unless they are made up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crossdock.pacing.samples import Sample
from crossdock.reading.sources.source_bucket import ReportedLevels


@given(rate=st.floats(0.1, 100), steps=st.lists(st.floats(0.01, 20), min_size=1, max_size=60))
def test_a_rate_is_never_too_high(rate: float, steps: list[float]) -> None:
    """However the level is rounded, and whether or not the bucket is full at times."""
    levels, now, level, accepted = ReportedLevels(), 0.0, 40.0, 0
    for step in steps:
        now, level = now + step, min(40.0, level + rate * step)
        if level < 1:
            continue
        level, accepted = level - 1, accepted + 1
        found = levels.rate(Sample(now, accepted, float(int(level))), 40)
        assert found is None or found <= rate * 1.001


def test_levels_that_are_always_zero_are_misleading() -> None:
    """Thirty requests in a row are accepted although the bucket is said to be empty."""
    levels = ReportedLevels()
    for number in range(30):
        assert not levels.misleading
        levels.check(Sample(float(number), number))
    assert levels.misleading


def test_tokens_beside_refused_requests_are_misleading() -> None:
    """Another limit is reported than the one that refuses."""
    levels = ReportedLevels()
    levels.refused(5.0)
    assert not levels.misleading
    levels.refused(5.0)
    assert levels.misleading
