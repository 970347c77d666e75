"""Counts of what was read or left out only because the format of a file declares it; the run's report shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from threading import Lock
from typing import Literal

from msgspec import Struct

ShortLines = Literal["refuse", "pad"]
LongLines = Literal["refuse", "drop_empty", "drop"]
BlankLines = Literal["refuse", "at_end", "skip"]
Leniency = Literal[
    "short",
    "long",
    "blank",
    "comment",
    "commented_row",
    "sheet",
    "hidden_sheet",
    "total_row",
    "unset",
    "without_elements",
    "set",
    "absent",
    "elsewhere",
]
_SENTENCES: dict[Leniency, str] = {
    "short": "{} filled up",
    "long": "{} cut to the declared columns",
    "blank": "{} left out",
    "comment": "{} left out",
    "commented_row": "{} with as many delimiters as a row left out",
    "sheet": "{} not read",
    "hidden_sheet": "{} not read",
    "total_row": "{} of tables left out",
    "unset": "{} read as empty",
    "without_elements": "{} gave no row",
    "set": "{} not read",
    "absent": "{} found in no record",
    "elsewhere": "{} with the name of a record not read",
}
_LINES: dict[Leniency, str] = {
    "short": "short line",
    "long": "long line",
    "blank": "blank line",
    "comment": "comment line",
    "commented_row": "comment line",
    "sheet": "other sheet",
    "hidden_sheet": "hidden sheet",
    "total_row": "total row",
    "unset": "unset cell",
    "without_elements": "empty table",
    "set": "other EDI message",
    "absent": "column",
    "elsewhere": "element",
}


class Leniencies:
    """Counts for one file. Threads may share it."""

    def __init__(self) -> None:
        self._counts, self._lock = Counter[Leniency](), Lock()

    def add(self, what: Leniency, count: int) -> None:
        if count:
            with self._lock:
                self._counts[what] += count

    @property
    def elsewhere(self) -> str:
        """What has the name of a record, and may be one that was not read; empty if there is nothing of the kind."""
        return self._text(["elsewhere"])

    def __bool__(self) -> bool:
        return bool(self._counts)

    def __str__(self) -> str:
        return self._text(_SENTENCES)

    def _text(self, of: Iterable[Leniency]) -> str:
        counted = ((what, self._counts[what]) for what in of if self._counts[what])
        return ", ".join(
            _SENTENCES[what].format(f"{number:,} {_LINES[what]}{'s' * (number != 1)}") for what, number in counted
        )


class FittingCells(Struct, frozen=True):
    short_lines: ShortLines | None
    long_lines: LongLines | None
    leniencies: Leniencies

    def pad_or_cut_cells(self, cells: list[str], width: int) -> list[str]:
        if len(cells) < width and self.short_lines == "pad":
            self.leniencies.add("short", 1)
            return cells + [""] * (width - len(cells))
        if len(cells) > width and (self.long_lines == "drop" or (self.allows_long_lines and not any(cells[width:]))):
            self.leniencies.add("long", 1)
            return cells[:width]
        return cells

    @property
    def allows_long_lines(self) -> bool:
        return self.long_lines not in {None, "refuse"}
