"""Requests in flight follow Little's law."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.pacing.request_allowance import ANSWER_WINDOW, FEWEST, InFlightLimit


def after(answers: int, latency_s: float, rate_per_s: float, ceiling: int = 128) -> InFlightLimit:
    """The limit after answers at *rate_per_s*."""
    found = InFlightLimit(ceiling)
    for n in range(answers):
        found.record_answer(n / rate_per_s, latency_s, rate_per_s)
    return found


@pytest.mark.parametrize(
    ("latency_s", "rate_per_s", "limit"),
    [
        pytest.param(0.01, 100.0, FEWEST, id="few are enough"),
        pytest.param(0.2, 200.0, 80, id="twice rate times latency"),
        pytest.param(1.0, 1000.0, 128, id="not more than the ceiling"),
    ],
)
def test_the_limit_follows_the_latency(latency_s: float, rate_per_s: float, limit: int) -> None:
    """Twice the rate times the latency, within bounds."""
    found = after(ANSWER_WINDOW, latency_s, rate_per_s)
    assert found.limit == pytest.approx(limit, abs=1)
    assert found.latency_s == latency_s


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 60), st.floats(0.01, 1e6)), max_size=200), st.integers(1, 128))
def test_the_limit_keeps_its_bounds(answers: list[tuple[float, float, float]], ceiling: int) -> None:
    """Whatever the latencies, the limit is at least 32 and at most the ceiling."""
    found, at = InFlightLimit(ceiling), 0.0
    for pause_s, latency_s, rate_per_s in answers:
        at += pause_s
        found.record_answer(at, latency_s, rate_per_s)
        assert min(FEWEST, ceiling) <= found.limit <= ceiling


def test_the_limit_is_lowered_slowly() -> None:
    """A single bunch of fast answers takes back a sixteenth."""
    found = after(ANSWER_WINDOW, 0.5, 100.0)
    before = found.limit
    for n in range(ANSWER_WINDOW // 4):
        found.record_answer(1 + n / 100, 0.001, 1.0)
    assert found.limit == before - before // 16
