"""Plots of bars and of steps."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from crossdock.console.plot_shapes import BAR_PLOT_HEIGHT, TIMELINE_LENGTH, BarValue, bar_plot, timeline_of_one_step
from crossdock.runs.tables_and_sentences_of_run import StepSpans, StepTime


@given(st.lists(st.none() | st.integers(0, 10**12), min_size=1, max_size=40))
def test_every_known_number_has_a_bar_inside_the_plot(numbers: list[int | None]) -> None:
    """The highest one touches the edge; what is not zero can be seen; each has its text."""
    plot = bar_plot("Rows", [BarValue(str(place), number, f"{number}") for place, number in enumerate(numbers)])
    known = [(place, number) for place, number in enumerate(numbers) if number is not None]
    assert [bar.text for bar in plot.bars] == [f"{place}: {number}" for place, number in known]
    for bar, (_, number) in zip(plot.bars, known, strict=True):
        x, y, width, height = bar.rectangle
        assert 0 <= x < x + width <= plot.width
        assert y + height == BAR_PLOT_HEIGHT
        assert (height > 0) is (number > 0)
        assert 0 <= height <= BAR_PLOT_HEIGHT
    if highest := max((number for _, number in known), default=0):
        assert (plot.top, max(bar.rectangle[3] for bar in plot.bars)) == (str(highest), BAR_PLOT_HEIGHT)


SPANS = st.lists(st.tuples(st.integers(0, 10**8), st.integers(0, 10**7)), min_size=1, max_size=20)


@given(SPANS)
def test_every_step_is_on_the_time_axis(spans: list[tuple[int, int]]) -> None:
    """However short it is."""
    times = tuple((timedelta(milliseconds=began), timedelta(milliseconds=lasted)) for began, lasted in spans)
    whole = max(began + lasted for began, lasted in times) or timedelta.resolution
    drawn = timeline_of_one_step(StepSpans(StepTime("step", timedelta(), 1), min(times)[0], times), whole)
    assert all(0 <= x < x + width <= TIMELINE_LENGTH for x, _, width, _ in drawn.rectangles)
