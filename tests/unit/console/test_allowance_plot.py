"""The drawing of the allowance during a run."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from crossdock.console.plot_shapes import (
    ALLOWANCE_PLOT_HEIGHT,
    ALLOWANCE_PLOT_WIDTH,
    LARGEST_GAP_WITHIN_BAND,
    plot_allowance,
)

SAMPLES = st.lists(
    st.tuples(st.floats(0, 90_000), st.integers(0, 100_000)), min_size=1, max_size=300, unique_by=lambda each: each[0]
).map(sorted)


@given(SAMPLES, st.floats(0, 90_000))
def test_a_plot_holds_every_sample(samples: list[tuple[float, int]], lasted: float) -> None:
    """No sample lies outside the drawing or its band; the drawing stays small."""
    plot = plot_allowance(samples, lasted)
    points = [point for band in plot.bands for point in band.corners]
    assert all(0 <= x <= ALLOWANCE_PLOT_WIDTH and 0 <= y <= ALLOWANCE_PLOT_HEIGHT for x, y in points)
    assert len(points) <= 2 * (ALLOWANCE_PLOT_WIDTH + 1)
    end, top = max(samples[-1][0], lasted, 1), max(1, *(tokens for _, tokens in samples))
    assert plot.top == f"{top:,} tokens"
    for seconds, tokens in samples:
        column = [y for x, y in points if x == round(ALLOWANCE_PLOT_WIDTH * seconds / end)]
        assert min(column) <= ALLOWANCE_PLOT_HEIGHT - round(ALLOWANCE_PLOT_HEIGHT * tokens / top) <= max(column)
    for before, after in pairwise(plot.bands):
        assert (
            after.first - (before.first + before.width) > LARGEST_GAP_WITHIN_BAND - 1
        )  # a band is at least one unit wide


def test_a_plot_is_broken_where_nothing_was_sent() -> None:
    """The allowance during a pause is unknown and not drawn."""
    working = [(float(second), second % 50) for second in (*range(100), *range(500, 600))]
    first, second = plot_allowance(working, 600).bands
    assert (first.first, second.first) == (0, 500)


def test_the_lower_edge_is_marked_in_quarters() -> None:
    """From the beginning of the run to its end."""
    assert plot_allowance([(0.0, 5)], 3600).times == ("0", "15 min 0 s", "30 min 0 s", "45 min 0 s", "1 h")
