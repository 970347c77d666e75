"""Small drawings for the cells of a table: a bar for a share, and a histogram."""

from __future__ import annotations

from collections.abc import Sequence

from crossdock.cli.html_elements import Drawing

_WIDTH, _HEIGHT = 100, 20  # units
_LEAST = 2  # minimum length of a bar, so that a small number is not mistaken for none


def bar(number: int, of: int) -> Drawing:
    """Draw a bar whose length is the share of *number*; a share of nothing is an empty bar."""
    return _drawing([_rect(0, 0, _scaled(number, of, _WIDTH), _HEIGHT)])


def histogram(numbers: Sequence[int]) -> Drawing:
    step, most = _WIDTH // max(len(numbers), 1), max(numbers, default=0)
    heights = (_scaled(number, most, _HEIGHT) for number in numbers)
    return _drawing([_rect(at * step, _HEIGHT - high, max(step - 1, 1), high) for at, high in enumerate(heights)])


def _scaled(number: int, of: int, units: int) -> int:
    return max(_LEAST, round(units * number / of)) if number and of else 0


def _rect(x: int, y: int, width: int, height: int) -> str:
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}"/>' if width and height else ""


def _drawing(shapes: Sequence[str]) -> Drawing:
    frame = f'<svg class="cell" viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none">'
    return Drawing(f"{frame}{''.join(shapes)}</svg>")
