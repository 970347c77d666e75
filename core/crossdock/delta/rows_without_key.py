"""Rows without a key, as dead letters."""

from __future__ import annotations

from typing import Any

import polars as pl

from crossdock.connector import Stream
from crossdock.delta.row_preparation import FP, MAX_KEY_BYTES, is_ours
from crossdock.errors import RefusedError
from crossdock.records import LINE, Record
from crossdock.state import DeadLetter, RecordIdentity

MAX_HELD_BYTES = 32 << 20  # of these rows, until they are stored; about 16,000 rows of 12 columns
_DEAD_LETTER_BYTES, _CELL_BYTES = 1_000, 64  # of each dead letter and each of its cells, besides the text


class RowsWithoutKey:
    def __init__(self, stream: Stream[Any], name: str) -> None:
        self._stream, self._name = stream, name
        self._bytes = 0
        self.dead_letters: list[DeadLetter] = []

    def take(self, source: str, rows: pl.DataFrame) -> None:
        """Add *rows* of *source*. Raises RefusedError if the rows exceed `MAX_HELD_BYTES`."""
        text = rows.select(pl.col(pl.String).str.len_bytes().sum()).sum_horizontal().sum()
        self._bytes += int(text) + rows.height * (_DEAD_LETTER_BYTES + _CELL_BYTES * rows.width)
        if self._bytes > MAX_HELD_BYTES:
            raise RefusedError(
                f"{len(self.dead_letters) + rows.height:,} rows have no key, too many to keep as dead letters",
                where=f"{source}:{rows[LINE][-1]}",
                hint="check that `key` names the right columns",
            )
        self.dead_letters += [self._dead_letter(source, row) for row in rows.iter_rows(named=True)]

    def _dead_letter(self, source: str, row: dict[str, Any]) -> DeadLetter:
        empty = next((name for name in self._stream.key if not row[name]), None)
        long = (name for name in self._stream.key if len((row[name] or "").encode()) > MAX_KEY_BYTES)
        cells = {name: row[name] for name in row if not is_ours(name)}
        pointer = empty or next(long, None)
        message = "the key is empty" if empty else f"the key exceeds {MAX_KEY_BYTES:,} bytes"
        identity = RecordIdentity(self._name, "", row[FP], row[FP], None, source, row[LINE])
        raw = Record("", (cells,), source, (row[LINE],)).raw()
        return DeadLetter(identity, "key", "key_missing", pointer, message, raw, None)
