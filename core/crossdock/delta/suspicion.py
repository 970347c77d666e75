"""Suspicious cells of one stream in one run, and the limit beyond which it imports nothing."""

from __future__ import annotations

from typing import Any

import polars as pl

from crossdock.connector import Stream
from crossdock.delta.row_preparation import is_ours
from crossdock.errors import RefusedError
from crossdock.reading.formats.suspicious_cells import Suspicion, suspicious
from crossdock.records import JSON


class SuspiciousCells:
    """Counts them, if the stream declares a limit.

    Attributes:
        found: The suspicious cells of each examined frame.
    """

    def __init__(self, stream: Stream[Any]) -> None:
        self._stream, self._limit = stream, stream.suspicious
        self.found: list[Suspicion] = []

    def checked(self, source: str, rows: pl.DataFrame) -> pl.DataFrame:
        """Return *rows* of *source* after examining the columns that the stream uses, or all if it may use any.

        Raises:
            RefusedError: If there are more suspicious cells than the limit allows.
        """
        if self._limit is None:
            return rows
        stream = self._stream
        names = rows.columns if stream.uses is None else sorted(stream.used_columns)
        for each in suspicious(rows, [name for name in names if name != JSON and not is_ours(name)]):
            self.found.append(each)
            if self.number > self._limit.at_most:
                hint = "Have the sender correct the export; suspicious.at_most is how many such cells are accepted."
                message = f"{self.number:,} suspicious cells, and at most {self._limit.at_most:,} are accepted; {each}"
                raise RefusedError(message, where=f"{source}:{each.line}", hint=hint)
        return rows

    @property
    def number(self) -> int:
        return sum(each.cells for each in self.found)
