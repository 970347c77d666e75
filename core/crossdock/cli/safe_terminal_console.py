"""A terminal console that shows foreign text without control characters, markup or broken keys, and its tables.

A table that is too wide for the terminal becomes blocks of lines, one for each row. A block has no line for an empty
cell or a count of 0.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from crossdock.printable import printable

SENTENCES = {"fix": 24, "note": 24, "step": 24, "value": 24, "waits for": 24, "what": 15, "why": 24}
"""The columns that may be wrapped, with the least width of one that has longer sentences."""
_GAP = 2  # between columns


class FittingTable:
    """Wraps only columns in `SENTENCES`: keys can only be copied from one line. Leaves out empty columns."""

    def __init__(
        self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[str]
    ) -> None:
        used = [place for place in range(len(columns)) if any(row[place] for row in rows)]
        self._title, self._numbers = printable(title), numbers
        self._columns = [printable(columns[place]) for place in used]
        self._rows = [[printable(row[place]) for place in used] for row in rows]

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        if not self._rows:
            yield Text.assemble((self._title, "bold"), ": none")
            return
        least = [self._least_width(place) for place in range(len(self._columns))]
        if sum(least) + _GAP * (len(least) - 1) <= options.max_width:
            yield self._rich_table(least, options.max_width)
        else:
            yield Text(self._title, "bold")
            yield from (
                Text(line, no_wrap=True, overflow="ignore") for line in self._lines_row_by_row(options.max_width)
            )

    def _column_cells(self, place: int) -> list[str]:
        return [row[place] for row in self._rows]

    def _least_width(self, place: int) -> int:
        column, cells = self._columns[place], self._column_cells(place)
        widest, head = max(map(cell_len, cells)), _longest_word_width(column)
        if column not in SENTENCES:
            return max(widest, head)
        return max(min(widest, SENTENCES[column]), head, *map(_longest_word_width, cells))

    def _rich_table(self, least: Sequence[int], max_width: int) -> Table:
        """Return the table. Sentences are wrapped first, then headings."""
        whole = sum(
            width if column in SENTENCES else max(width, cell_len(column))
            for column, width in zip(self._columns, least, strict=True)
        )
        is_narrow = whole + _GAP * (len(least) - 1) > max_width
        table = Table(title=self._title, title_justify="left", title_style="bold", box=None, pad_edge=False)
        table.header_style = "dim"
        for column, width in zip(self._columns, least, strict=True):
            is_sentence = column in SENTENCES
            table.add_column(
                Text(column, no_wrap=False),
                justify="right" if column in self._numbers else "left",
                no_wrap=not is_sentence,
                min_width=width,
                width=width if is_narrow and not is_sentence else None,
            )
        for row in self._rows:
            table.add_row(*row)
        return table

    def _lines_row_by_row(self, max_width: int) -> Iterator[str]:
        indent = max(map(cell_len, self._columns)) + 2
        for number, row in enumerate(self._rows):
            if number:
                yield ""
            for column, cell in zip(self._columns, row, strict=True):
                lines = wrapped(cell, max_width - indent) if column in SENTENCES else [cell]
                if cell and not (cell == "0" and column in self._numbers):
                    yield column + " " * (indent - cell_len(column)) + lines[0]
                    yield from (" " * indent + line for line in lines[1:])


def wrapped(text: str, width: int) -> list[str]:
    wrapper = textwrap.TextWrapper(
        max(width, 1), break_long_words=False, break_on_hyphens=False, replace_whitespace=False, expand_tabs=False
    )
    return wrapper.wrap(text) or [""]


def _longest_word_width(text: str) -> int:
    return max(map(cell_len, text.split(" ")))


_UNBOUNDED = 100_000  # characters


class PlainConsole(Console):
    """A console whose texts, also in tables, are made `printable`: one line each, without markup or emoji codes."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False, highlight=False)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print. Lines are wrapped between words on a terminal, and not at all when piped, whatever COLUMNS is."""
        if not all(isinstance(each, str | FittingTable) for each in objects):
            super().print(*objects, **options)
            return
        width = self.width
        if not self.is_terminal:
            self.width = _UNBOUNDED
        elif not options.get("soft_wrap"):
            objects = tuple(self._wrapped(each) if isinstance(each, str) else each for each in objects)
        options = {"crop": False, "overflow": "ignore", **options}
        try:
            super().print(*objects, **options)
        finally:
            self.width = width

    def render_str(self, text: str, **options: Any) -> Text:
        """Rich calls this for every `str`."""
        return super().render_str(printable(text), **options)

    def _wrapped(self, text: str) -> Text:
        return Text("\n".join(wrapped(printable(text), self.width)))
