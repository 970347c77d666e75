"""Drawings in the cells of a table."""

from __future__ import annotations

import pytest

from crossdock.cli.migrate.rehearsal_document_text_and_page import bar_drawing, histogram_drawing


@pytest.mark.parametrize(
    ("number", "of", "widths"), [(0, 9, []), (1, 9_000, [2]), (1, 4, [25]), (9, 9, [100]), (0, 0, [])]
)
def test_a_bar_is_as_long_as_the_share(number: int, of: int, widths: list[int]) -> None:
    """Little is still seen, and nothing is not drawn."""
    assert [width for _, _, width, _ in bar_drawing(number, of).rectangles] == widths


def test_a_histogram_has_a_column_for_each_number() -> None:
    """The highest fills the height; an empty one leaves its place."""
    assert histogram_drawing([10, 0, 5]).rectangles == [(0, 0, 32, 20), (66, 10, 32, 10)]
    assert histogram_drawing([]).rectangles == []
