"""The drawing of a night."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from crossdock.console.plot_shapes import (
    ALLOWANCE_PLOT_WIDTH,
    REFUSALS_HEIGHT,
    plot_allowance_and_refusals,
    runs_within_day_of_newest,
)
from crossdock.state import RunRecord

NOW = datetime(2026, 3, 29, 6, tzinfo=UTC)


def run(number: int, ago_h: float, *, minutes: int = 60, throttled: int = 0, samples: bool = True) -> RunRecord:
    began, lasts_ms = NOW - timedelta(hours=ago_h), minutes * 60_000
    timings = {"samples": [[0, 100], [lasts_ms, 50]] if samples else []}
    ended = began + timedelta(minutes=minutes)
    return RunRecord(
        number, None, "2026-03-28", began, ended, "done", 1_000, throttled, None, lasts_ms, timings=timings
    )


def test_a_night_has_the_runs_of_24_hours() -> None:
    """Before now; if nothing ran since, before the end of the last run."""
    runs = [run(3, 1), run(2, 20), run(1, 40)]
    assert [each.id for each in runs_within_day_of_newest(runs, NOW)] == [2, 3]
    assert [each.id for each in runs_within_day_of_newest(runs[2:], NOW)] == [1]
    assert runs_within_day_of_newest([], NOW) == []


def test_runs_are_drawn_apart_with_their_refusals() -> None:
    """A bar is as high as its run has refused requests, and lies below its run."""
    drawn = plot_allowance_and_refusals([run(1, 10, throttled=10), run(2, 5), run(3, 1, throttled=40)], NOW)
    assert drawn is not None
    small, large = drawn.refusals
    assert (small[3], large[3]) == (REFUSALS_HEIGHT // 4, REFUSALS_HEIGHT)
    assert (small[0], large[0] + large[2]) == (0, ALLOWANCE_PLOT_WIDTH)
    assert drawn.plot.times == ["20:00Z", "22:30Z", "01:00Z", "03:30Z", "06:00Z"]
    assert "3 runs had between 50 and 100 tokens, and 50 requests were refused." in drawn.description


def test_runs_that_sent_nothing_have_no_plot() -> None:
    """A run of which no allowance is known."""
    assert plot_allowance_and_refusals([run(1, 2, samples=False)], NOW) is None
