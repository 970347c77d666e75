"""A file or page that was read, and how its rows are read a second time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import polars as pl

from crossdock.records import LINE, Again, kept

AT_ONCE = 10_000  # rows per frame


@dataclass(slots=True)
class SourceUnit:
    """A file or page, or what a source returned at once.

    Attributes:
        again: Reads the source again; None if its rows are stored.
        stored: Arrow files with its rows.
        held: Its rows that may have changed, prepared; None if they were too many to hold.
    """

    source: str
    again: Again | None
    stored: list[Path]
    held: list[pl.DataFrame] | None = None

    def rows(self) -> Iterator[pl.DataFrame]:
        """All rows."""
        return self.again(None) if self.again else map(kept, self.stored)

    def rows_at(self, lines: pl.Series) -> Iterator[pl.DataFrame]:
        """The rows at *lines*, which are ascending and exist; held rows are prepared already."""
        if self.held is None and self.again:
            yield from self.again(lines.to_list())
            return
        wanted = lines.to_frame(LINE)  # joined from the left: the result has the order of *lines*
        alike = groupby(self.held or (), key=lambda frame: frame.columns)
        for frame in self.rows() if self.held is None else (pl.concat(list(frames)) for _, frames in alike):
            found = wanted.join(frame, on=LINE, how="inner", maintain_order="left").select(frame.columns)
            yield from found.iter_slices(AT_ONCE)
