"""Control sums that a manifest states about a file, compared with its rows."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import polars as pl

from crossdock.errors import RefusedError
from crossdock.reading.formats.control_totals import exact_numbers, plain


class StatedSums:
    def __init__(self, file: str, where: str, sums: Mapping[str, str]) -> None:
        self._file, self._where = file, where
        self._stated = {column: Decimal(text) for column, text in sums.items()}
        self._found = dict.fromkeys(sums, Decimal(0))

    def add(self, rows: pl.DataFrame) -> None:
        """Add *rows*. Raises RefusedError if a column is missing, or a cell is neither empty nor a number."""
        for column in self._found:
            if column not in rows.columns:
                hint = "correct manifest.sums in the config; it names columns of the file"
                raise RefusedError(f"missing column {column!r}", where=self._file, hint=hint)
            total = rows.select(exact_numbers(rows, column, file=self._file).sum()).item()
            self._found[column] += total or 0

    def check(self) -> None:
        """Compare, once all rows were added. Raises RefusedError if a sum is not as stated."""
        for column, stated in self._stated.items():
            if self._found[column] != stated:
                message = f"the sum of column {column!r} is {plain(self._found[column])}, but {self._where} states"
                hint = "the file or the manifest is not whole, or they are of different days: fetch them again"
                raise RefusedError(f"{message} {plain(stated)}", where=self._file, hint=hint)
