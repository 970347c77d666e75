"""Rows that name no record, as dead letters."""

from __future__ import annotations

from typing import Any

import polars as pl

from crossdock.connector import Stream
from crossdock.delta.keyed_rows import FP, MAX_KEY_BYTES, OURS
from crossdock.errors import RefusedError
from crossdock.records import LINE, Record
from crossdock.state import DeadLetter, RecordIdentity

MAX_HELD_BYTES = 32 << 20
"""Of such rows, which are held until they are dead letters; about 16,000 of 12 columns."""
_LETTER_BYTES, _CELL_BYTES = 1_000, 64  # of each dead letter and of each cell in it, beside the text


class RowsWithoutKey:
    """Those of one stream in one run.

    Attributes:
        dead_letters: A dead letter for each row.
    """

    def __init__(self, stream: Stream[Any], name: str) -> None:
        self._stream, self._name = stream, name
        self._bytes = 0
        self.dead_letters: list[DeadLetter] = []

    def take(self, source: str, rows: pl.DataFrame) -> None:
        """Add *rows* of *source*.

        Raises:
            RefusedError: If they are too many to be kept.
        """
        text = rows.select(pl.col(pl.String).str.len_bytes().sum()).sum_horizontal().sum()
        self._bytes += int(text) + rows.height * (_LETTER_BYTES + _CELL_BYTES * rows.width)
        if self._bytes > MAX_HELD_BYTES:
            raise RefusedError(
                f"row after row has no key, {len(self.dead_letters) + rows.height:,} so far",
                where=f"{source}:{rows[LINE][-1]}",
                hint="is `key` the right column? So many rows are not kept as dead letters",
            )
        self.dead_letters += [self._dead_letter(source, row) for row in rows.iter_rows(named=True)]

    def _dead_letter(self, source: str, row: dict[str, Any]) -> DeadLetter:
        missing = next((name for name in self._stream.key if not row[name]), None)
        long = (name for name in self._stream.key if len((row[name] or "").encode()) > MAX_KEY_BYTES)
        why = "is empty" if missing else f"has more than {MAX_KEY_BYTES:,} bytes"
        cells = {name: row[name] for name in row if name not in OURS}
        return DeadLetter(
            identity=RecordIdentity(self._name, "", row[FP], row[FP], None, source, row[LINE]),
            stage="key",
            code="key_missing",
            pointer=missing or next(long, None),
            message=f"{why}, so the row names no record",
            raw=Record("", (cells,), source, (row[LINE],)).raw(),
            mapped=None,
        )
