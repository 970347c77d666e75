"""Small drawings for the cells of a table: a bar for a share, and a histogram."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from crossdock.cli.page_tables import Drawing, Rectangle

_WIDTH, _HEIGHT = 100, 20  # units
_LEAST = 2  # minimum length of a bar, so that a small number is not mistaken for none


def bar(number: int, of: int) -> Drawing:
    """Draw a bar whose length is the share of *number*; a share of nothing is an empty bar."""
    return _drawing([(0, 0, _scaled(number, of, _WIDTH), _HEIGHT)])


def histogram(numbers: Sequence[int]) -> Drawing:
    step, most = _WIDTH // max(len(numbers), 1), max(numbers, default=0)
    heights = (_scaled(number, most, _HEIGHT) for number in numbers)
    return _drawing([(at * step, _HEIGHT - high, max(step - 1, 1), high) for at, high in enumerate(heights)])


def _scaled(number: int, of: int, units: int) -> int:
    return max(_LEAST, round(units * number / of)) if number and of else 0


def _drawing(rectangles: Iterable[Rectangle]) -> Drawing:
    shown = [(x, y, width, height) for x, y, width, height in rectangles if width and height]
    return Drawing(_WIDTH, _HEIGHT, shown)
