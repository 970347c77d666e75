"""Files and pages, and the way to read their rows again. Small ones are prepared together, which is faster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import polars as pl
from msgspec import Struct

from crossdock.connector import Stream
from crossdock.delta.row_preparation import UNIT, prepare
from crossdock.errors import CrossdockError
from crossdock.reading.sources.run_context import os_errors_as_state_errors
from crossdock.values.raw_rows_and_records import LINE, Again, RawBatch, read_arrow_file
from crossdock.values.safe_local_files import create_private_file

AT_ONCE = 10_000  # rows per frame
PART_OF_PAGE = "#"  # stands before the number of a part, in the name of a page that was divided
_VIEW_BYTES = 16  # for each cell, in addition to its text
SMALL = 1_000  # rows of a file
_ROWS_AT_ONCE, _FILES_AT_ONCE, _BYTES_AT_ONCE = 10_000, 1_000, 4 << 20


class SourceUnit(Struct):
    """A file or page, or another batch of a source.

    Attributes:
        again: Reads the source again; None if its rows are stored.
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
            with os_errors_as_state_errors(path.parent), create_private_file(path) as part:
                rows.write_ipc(part)
        self.stored.append(path if isinstance(rows, pl.DataFrame) else rows)

    @property
    def rows_holder(self) -> object:
        """The source of its records: the block, or the unit itself."""
        return self if self.block is None else self.block

    def read_rows(self) -> Iterator[pl.DataFrame]:
        return self.again(None) if self.again else map(read_arrow_file, self.stored)

    def read_rows_at_lines(self, lines: pl.Series) -> Iterator[pl.DataFrame]:
        """Yield the rows at *lines*, which are ascending and exist. Held rows are prepared already."""
        if self.held is None and self.again:
            yield from self.again(lines.to_list())
            return
        wanted = lines.to_frame(LINE)  # joined from the left: the result has the order of *lines*
        alike = groupby(self.held or (), key=lambda frame: frame.columns)
        for frame in self.read_rows() if self.held is None else (pl.concat(list(frames)) for _, frames in alike):
            found = wanted.join(frame, on=LINE, how="inner", maintain_order="left")[frame.columns]
            yield from found.iter_slices(AT_ONCE)


def without_shared_buffers(few: pl.DataFrame) -> pl.DataFrame:
    """Copy the texts of *few*: otherwise they keep the buffers of all rows alive that they were filtered from."""
    return few.with_columns(pl.col(pl.String) + "")


def size_in_memory(rows: pl.DataFrame) -> int:
    """Return the bytes that *rows* take, including those of their empty cells."""
    return int(rows.estimated_size()) + _VIEW_BYTES * rows.height * rows.width


@dataclass
class SmallBatches:
    stream: Stream[Any]
    units: list[int] = field(default_factory=list)
    _batches: list[RawBatch] = field(default_factory=list)
    _rows: int = 0
    _bytes: int = 0

    def is_small_without_special_checks(self, batch: RawBatch) -> bool:
        """Return whether *batch* is small, can be read again, and needs no special check."""
        stream = self.stream
        is_plain = not (stream.group_by or stream.order_by or stream.suspicious or batch.deleted or not batch.again)
        return is_plain and isinstance(batch.rows, pl.DataFrame) and batch.rows.height <= SMALL

    def has_room(self, batch: RawBatch) -> bool:
        rows = batch.load()
        return not self._batches or (
            self._rows + rows.height <= _ROWS_AT_ONCE
            and len(self._batches) < _FILES_AT_ONCE
            and self._bytes + rows.estimated_size() <= _BYTES_AT_ONCE
            and rows.schema == self._batches[-1].load().schema
        )

    def add(self, unit: int, batch: RawBatch) -> None:
        rows = batch.load()
        self.units.append(unit)
        self._batches.append(batch)
        self._rows += rows.height
        self._bytes += int(rows.estimated_size())

    def pop_batch_of_unit(self, unit: int) -> list[RawBatch]:
        """Remove and return the batch of *unit*, because others of the same unit follow."""
        if not self.units or self.units[-1] != unit:
            return []
        self.units.pop()
        batch = self._batches.pop()
        self._rows -= batch.load().height
        self._bytes -= int(batch.load().estimated_size())
        return [batch]

    def prepare_all(self, report_trimmed_count: Callable[[int], object]) -> pl.DataFrame:
        """Prepare all rows as `prepare` does, each with its `UNIT`, and empty the collection."""
        batches, units = self._batches, self.units
        self._batches, self.units, self._rows, self._bytes = [], [], 0, 0
        frames = [batch.load() for batch in batches]
        heights = pl.Series([rows.height for rows in frames], dtype=pl.UInt32)
        numbers = pl.DataFrame({UNIT: pl.Series(units, dtype=pl.UInt32)}).select(pl.col(UNIT).repeat_by(heights))
        trimmed = list[int]()
        try:
            frame = prepare(self.stream, batches[0].source, pl.concat(frames), trimmed.append)
        except CrossdockError:
            for batch, rows in zip(batches, frames, strict=True):
                prepare(self.stream, batch.source, rows)  # raises the error with the name of the file
            raise
        for number in trimmed:
            report_trimmed_count(number)
        return frame.with_columns(numbers.explode(UNIT)[UNIT].drop_nulls())
