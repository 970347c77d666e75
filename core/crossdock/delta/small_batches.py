"""Batches of many small files together: polars takes about as long for one row as for a thousand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from crossdock.connector import Stream
from crossdock.delta.row_preparation import UNIT, prepare
from crossdock.errors import CrossdockError
from crossdock.records import RawBatch

SMALL = 1_000  # rows of a file
_ROWS_AT_ONCE, _FILES_AT_ONCE, _BYTES_AT_ONCE = 10_000, 1_000, 4 << 20


@dataclass
class SmallBatches:
    stream: Stream[Any]
    units: list[int] = field(default_factory=list)
    _batches: list[RawBatch] = field(default_factory=list)
    _rows: int = 0
    _bytes: int = 0

    def fits(self, batch: RawBatch) -> bool:
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

    def take_back(self, unit: int) -> list[RawBatch]:
        """Remove and return the batch of *unit*, because others of the same unit follow."""
        if not self.units or self.units[-1] != unit:
            return []
        self.units.pop()
        batch = self._batches.pop()
        self._rows -= batch.load().height
        return [batch]

    def prepared(self, trimmed_rows: Callable[[int], object]) -> pl.DataFrame:
        """Prepare all rows as `prepare` does, each with its `UNIT`, and empty the collection.

        Raises:
            RefusedError: See `prepare`.
        """
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
            trimmed_rows(number)
        return frame.with_columns(numbers.explode(UNIT)[UNIT].drop_nulls())
