"""Leading zeros that cells of an xlsx file show but their numbers lack: 17 in the number format ``00000`` is 00017.

Number formats are those of ECMA-376, part 1, 18.8.31.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

_TOKEN = re.compile(r'(0)|\\(.)|"([^"]*)"|([- ])|\[\$[^\]]*\]', re.DOTALL)
_LEAST_DIGITS = 2
_EXACT = 10**15  # Excel keeps 15 digits of a number

Shape = tuple[str, ...]
"""The output of a number format; each empty text is a digit."""


def shape_of(code: str) -> Shape | None:
    """Return what the number format *code* shows of a number that is not negative.

    Returns None unless that is only digits with leading zeros and the characters between them.
    """
    shape, place = list[str](), 0
    while place < len(code) and code[place] != ";":
        token = _TOKEN.match(code, place)
        if token is None:
            return None
        text = token[token.lastindex] if token.lastindex else ""
        shape += ("" if token[1] else text,) if text else ()
        place = token.end()
    return tuple(shape) if shape.count("") >= _LEAST_DIGITS else None


def shown(value: Any, shape: Shape) -> Any:
    """Return a whole number as *shape* shows it, and any other value unchanged."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return value
    number = Decimal(repr(value))
    if not 0 <= number < _EXACT or number != number.to_integral_value():
        return value
    text = str(int(number)).zfill(shape.count(""))
    digits = iter([text[: len(text) - shape.count("") + 1], *text[len(text) - shape.count("") + 1 :]])
    return "".join(part or next(digits) for part in shape)


class ShownZeros:
    """The cells of one sheet whose number formats show leading zeros, as runs of rows for each column."""

    def __init__(self, shapes: Mapping[int, Shape]) -> None:
        self._shapes = shapes
        self._runs = dict[int, deque[tuple[int, int, Shape]]]()

    def add(self, row: int, column: int, style: int) -> None:
        """Add a cell, by its numbers from 1, if its style has such a format. Rows ascend."""
        if (shape := self._shapes.get(style)) is None:
            return
        runs = self._runs.setdefault(column, deque())
        if runs and runs[-1][1] == row - 1 and runs[-1][2] is shape:
            runs[-1] = (runs[-1][0], row, shape)
        else:
            runs.append((row, row, shape))

    def apply(self, row: int, cells: list[Any]) -> None:
        for column, runs in self._runs.items():
            while runs and runs[0][1] < row:
                runs.popleft()
            if runs and runs[0][0] <= row and column <= len(cells):
                cells[column - 1] = shown(cells[column - 1], runs[0][2])
