"""Frames as delimited text, quoted as most writers do: where quotes are needed, and around whole columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Literal

import polars as pl

_BATCH_ROWS = 16_384
_SAMPLE_ROWS = 200  # rows that show which columns are quoted


class _Comparing(BytesIO):
    """Compares what is written with *data* and stores none of it. `at` is -1 after the first difference."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._data, self.at = data, 0

    def write(self, part: Any, /) -> int:
        if self.at >= 0 and self._data.startswith(bytes(part), self.at):
            self.at += len(part)
        else:
            self.at = -1
        return len(part)


@dataclass(frozen=True, slots=True)
class RoundTrip:
    names: Sequence[str]
    delimiter: str
    quote: str
    end: str

    def gives(self, data: bytes, frame: pl.DataFrame, always: Sequence[str]) -> bool:
        """Return whether *frame* is written as *data*, with quotes around all cells of *always* and all that need
        quotes.

        A null is an empty cell without quotes, an empty text is one with quotes.
        """
        style: Literal["always", "necessary", "never"] = "always" if len(always) == len(self.names) else "necessary"
        if 0 < len(always) < len(self.names):
            style = "never"
            frame = frame.with_columns(self._in_quotes(name, each=name in always) for name in self.names)
        comparing = _Comparing(data)
        frame.write_csv(
            comparing,
            include_header=False,
            separator=self.delimiter,
            quote_char=self.quote,
            quote_style=style,
            line_terminator=self.end,
            batch_size=_BATCH_ROWS,
        )
        return comparing.at == len(data)

    def _in_quotes(self, name: str, *, each: bool) -> pl.Expr:
        column, quote = pl.col(name), pl.lit(self.quote)
        quoted = pl.concat_str(quote, column.str.replace_all(self.quote, self.quote * 2, literal=True), quote)
        if each:
            return quoted.alias(name)
        special = column.str.contains_any([self.quote, self.delimiter, "\n", "\r"])
        return pl.when(special | (column == "")).then(quoted).otherwise(column).alias(name)

    def quoted_columns(self, data: bytes, frame: pl.DataFrame) -> list[str]:
        """Return the columns of *data*, read as *frame*, whose cells have needless quotes, judged by the first rows."""
        quote, found, at = self.quote.encode(), set[str](), 0
        special = (quote, self.delimiter.encode(), b"\n", b"\r")
        for row in frame.head(_SAMPLE_ROWS).iter_rows():
            for name, cell in zip(self.names, row, strict=True):
                text = (cell or "").encode()
                quoted = quote + text.replace(quote, quote * 2) + quote
                in_quotes = data.startswith(quoted, at)
                if in_quotes and text and not any(mark in text for mark in special):
                    found.add(name)
                at += len(quoted if in_quotes else text) + 1
            at += len(self.end) - 1
        return [name for name in self.names if name in found]
