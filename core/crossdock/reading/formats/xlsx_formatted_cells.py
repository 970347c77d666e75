"""Cells of an xlsx file whose number format shows what their values lack: leading zeros, and the time of midnight."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from typing import Any

ShownValue = Callable[[Any], Any]
"""Returns the value of a cell as its number format shows it."""


def with_midnight(value: Any) -> Any:
    """Return a day as the time at which it begins: the library reads a time at midnight as a day."""
    is_day = isinstance(value, date) and not isinstance(value, datetime)
    return datetime.combine(value, time()) if is_day else value


class FormattedCells:
    def __init__(self, shown_values: Mapping[int, ShownValue]) -> None:
        self._shown_values = shown_values
        self._runs = dict[int, deque[tuple[int, int, ShownValue]]]()

    def add_cell(self, row: int, column: int, style: int) -> None:
        """Add a cell, counted from 1, if its style shows more than its value. Rows ascend."""
        if (shown_value := self._shown_values.get(style)) is None:
            return
        runs = self._runs.setdefault(column, deque())
        if runs and runs[-1][1] == row - 1 and runs[-1][2] is shown_value:
            runs[-1] = (runs[-1][0], row, shown_value)
        else:
            runs.append((row, row, shown_value))

    def replace_by_shown_values(self, row: int, cells: list[Any]) -> None:
        for column, runs in self._runs.items():
            while runs and runs[0][1] < row:
                runs.popleft()
            if runs and runs[0][0] <= row and column <= len(cells):
                cells[column - 1] = runs[0][2](cells[column - 1])
