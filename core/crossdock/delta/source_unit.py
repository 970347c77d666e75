"""A file or page that was read, and the way to read its rows again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import polars as pl

from crossdock.reading.sources.source_context import writing
from crossdock.records import LINE, Again, kept
from crossdock.values.local_files import create_private

AT_ONCE = 10_000  # rows per frame
_VIEW_BYTES = 16  # for each cell, in addition to its text


@dataclass(slots=True)
class SourceUnit:
    """A file or page, or another batch of a source.

    Attributes:
        again: Reads the source again; None if its rows are stored.
        stored: Arrow files with its rows.
        held: Its prepared rows that may have changed; None if they were too many to hold.
        block: Holds them together with those of other small files instead; otherwise None.
    """

    source: str
    again: Again | None
    stored: list[Path]
    held: list[pl.DataFrame] | None = None
    block: pl.DataFrame | None = None

    def store(self, rows: pl.DataFrame | Path, path: Path) -> None:
        """Store *rows*, which cannot be read again, at *path*, unless they are in a file."""
        if isinstance(rows, pl.DataFrame):
            path.unlink(missing_ok=True)  # of an earlier attempt in this run
            with writing(path.parent), create_private(path) as part:
                rows.write_ipc(part)
        self.stored.append(path if isinstance(rows, pl.DataFrame) else rows)

    @property
    def holder(self) -> object:
        """The source of its records: the block, or the unit itself."""
        return self if self.block is None else self.block

    def rows(self) -> Iterator[pl.DataFrame]:
        return self.again(None) if self.again else map(kept, self.stored)

    def rows_at(self, lines: pl.Series) -> Iterator[pl.DataFrame]:
        """Yield the rows at *lines*, which are ascending and exist. Held rows are prepared already."""
        if self.held is None and self.again:
            yield from self.again(lines.to_list())
            return
        wanted = lines.to_frame(LINE)  # joined from the left: the result has the order of *lines*
        alike = groupby(self.held or (), key=lambda frame: frame.columns)
        for frame in self.rows() if self.held is None else (pl.concat(list(frames)) for _, frames in alike):
            found = wanted.join(frame, on=LINE, how="inner", maintain_order="left")[frame.columns]
            yield from found.iter_slices(AT_ONCE)


def without_other_rows(few: pl.DataFrame) -> pl.DataFrame:
    """Copy the texts of *few*: otherwise they keep the buffers of all rows alive that they were filtered from."""
    return few.with_columns(pl.col(pl.String) + "")


def size_in_memory(rows: pl.DataFrame) -> int:
    """Return the bytes that *rows* take, including those of their empty cells."""
    return int(rows.estimated_size()) + _VIEW_BYTES * rows.height * rows.width
