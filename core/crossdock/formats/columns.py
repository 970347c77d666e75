"""Delimited text to columns at the speed of polars, where it can be proved that polars reads it right.

Quotes are taken off first, in bulk: splitting at the quote character gives what is outside and what is inside of quotes
in turn, and the places where the two meet tell whether every quote is where it may be. Delimiters and line ends inside
of cells become marks (control characters, which the text does not hold), so that polars sees one plain line a record.
Then the delimiters must be as many as rows and columns ask for; polars itself refuses a line that has too many, so no
line has too few. Whatever fails a proof goes to the referee, which finds the fault and its place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO

import polars as pl
from polars.exceptions import PolarsError

from crossdock.formats.text import Piece

LINE = "_line"

_BYTE_ORDER_MARK = "\ufeff".encode()
_LATER_CONTROLS = re.compile(b"\xc2[\x80-\x9f]")  # U+0080 to U+009F
_CONTROLS = [bytes([code]) for code in (*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F)]


@dataclass(frozen=True, slots=True)
class Shape:
    """How the records of one file look.

    Attributes:
        names: The columns.
        delimiter: One character or several.
        quote: What encloses cells; None if nothing does.
        crlf: How lines end.
        never: How no row begins: the trailer's prefix, cut at the delimiters. Nor is any row the header.
    """

    names: Sequence[str]
    delimiter: str
    quote: str | None
    crlf: bool
    never: Sequence[str] | None


class Columns:
    """Turns whole records of one shape into frames."""

    def __init__(self, shape: Shape) -> None:
        delimiter = shape.delimiter.encode()
        free = [control for control in _CONTROLS[1:9] if control != delimiter]
        self._names = list(shape.names)
        self._delimiter = delimiter
        self._between = delimiter if len(delimiter) == 1 else free[0]
        self._marks = dict(zip((delimiter, b"\n", b"\r"), free[1:], strict=False))
        self._quote = shape.quote.encode() if shape.quote else None
        self._crlf = shape.crlf
        self._end = b"\r\n" if shape.crlf else b"\n"
        self._plain_lines = not shape.crlf and self._between == delimiter and len(self._names) > 1
        self._never = [self._flat_start(self._names) + b"\n"]
        self._never_quoted = [self._quoted_start(self._names) + self._end]
        if shape.never is not None:
            self._never.append(self._flat_start(shape.never))
            self._never_quoted.append(self._quoted_start(shape.never)[:-1])
        self._controls = [control for control in _CONTROLS if control != delimiter]

    def frame(self, piece: Piece) -> pl.DataFrame | None:
        """The rows of *piece*; None if it is not plain that they are in order."""
        data, ends = piece.data, piece.ends
        if any(control in data for control in self._controls) or (b"\xef" in data and _BYTE_ORDER_MARK in data):
            return None
        if _LATER_CONTROLS.search(data):
            return None
        if not data.endswith(b"\n"):
            data, ends = data + self._end, ends + 1
        frame = self._all_quoted(data, ends)
        special = self._names
        if frame is None:
            frame, special = self._some_quoted(data, ends)
        if frame is None:
            return None
        lines = pl.int_range(piece.line, piece.line + frame.height, dtype=pl.UInt64, eager=True)
        if frame.height < ends:  # each line end inside of cells moves the rows that follow
            inner = pl.sum_horizontal(pl.col(special).str.count_matches("\n", literal=True)).cast(pl.UInt64)
            counts = frame.select(inner).to_series()
            lines += counts.cum_sum() - counts
        return frame.insert_column(frame.width, lines.alias(LINE))

    def _all_quoted(self, data: bytes, ends: int) -> pl.DataFrame | None:
        """Where every cell is quoted, polars must write again, byte by byte, what it has read."""
        quote, width = self._quote, len(self._names)
        if quote is None or len(self._delimiter) > 1 or not data.startswith(quote) or data.count(quote) < width * ends:
            return None
        if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
            return None
        if self._holds(data, self._never_quoted):
            return None
        frame = self._read(data, quote.decode())
        if frame is None:
            return None
        again = BytesIO()
        frame.write_csv(
            again,
            include_header=False,
            separator=self._delimiter.decode(),
            quote_char=quote.decode(),
            quote_style="always",
            line_terminator=self._end.decode(),
        )
        return frame if again.getbuffer() == data else None

    def _some_quoted(self, data: bytes, ends: int) -> tuple[pl.DataFrame | None, list[str]]:
        """The rows, and the columns that hold delimiters or line ends."""
        flat = self._flat(data)
        if flat is None or self._holds(flat, self._never):
            return None, []
        rows = ends - flat.count(self._marks[b"\n"])
        if flat.count(self._between) != rows * (len(self._names) - 1):
            return None, []
        frame = self._read(flat, None)
        if frame is None or frame.height != rows:
            return None, []
        used = {mark.decode(): special.decode() for special, mark in self._marks.items() if mark in flat}
        if not used:
            return frame, []
        marked = frame.select(pl.all().str.contains_any(list(used)).any()).row(0)
        names = [name for name, is_marked in zip(self._names, marked, strict=True) if is_marked]
        return frame.with_columns(pl.col(names).str.replace_many(used)), names

    @staticmethod
    def _holds(text: bytes, starts: Sequence[bytes]) -> bool:
        return any(text.startswith(start) or b"\n" + start in text for start in starts)

    def _flat_start(self, cells: Sequence[str]) -> bytes:
        return self._between.join(self._masked(cell.encode()) for cell in cells)

    def _quoted_start(self, cells: Sequence[str]) -> bytes:
        quote = self._quote or b""
        return self._delimiter.join(quote + cell.encode().replace(quote, quote * 2) + quote for cell in cells)

    def _flat(self, data: bytes) -> bytes | None:
        """One line a record, cells unquoted and what is special in them masked."""
        quote = self._quote
        if quote is None or quote not in data:
            return self._outside(data)
        parts = data.split(quote)
        if not self._plain_lines or b"\r" in data:
            outside = self._outside(quote.join(parts[::2]))
            if outside is None:
                return None
            parts[::2] = outside.split(quote)
        inside = self._inside(quote.join(parts[1::2]))
        if inside is None or len(parts) % 2 == 0:
            return None
        first, *middle, last = parts[::2]
        ends = (self._between, b"\n")
        apart = set(middle)
        if (first and not first.endswith(ends)) or not last.startswith(ends):
            return None
        if not all(part.startswith(ends) and part.endswith(ends) for part in apart if part):
            return None
        if b"" in apart:  # between two quotes that stand for one
            parts[::2] = [first, *(part or quote for part in middle), last]
        parts[1::2] = inside.split(quote)
        return b"".join(parts)

    def _outside(self, text: bytes) -> bytes | None:
        """Text outside of quotes with one kind of line end and delimiters of one byte; None if lines are odd."""
        if self._crlf:
            returns = text.count(b"\r")
            if returns != text.count(b"\r\n") or returns != text.count(b"\n"):
                return None
            text = text.replace(b"\r\n", b"\n")
        elif b"\r" in text:
            return None
        if len(self._names) == 1 and (b"\n\n" in text or text.startswith(b"\n")):
            return None  # a blank line; where there are more columns, it lacks delimiters
        return text if self._between == self._delimiter else text.replace(self._delimiter, self._between)

    def _inside(self, text: bytes) -> bytes | None:
        """Text inside of quotes with marks for what is special outside; None for a lone CR."""
        if b"\r" in text and text.count(b"\r") != text.count(b"\r\n"):
            return None
        return self._masked(text)

    def _masked(self, text: bytes) -> bytes:
        for special, mark in self._marks.items():
            text = text.replace(special, mark)
        return text

    def _read(self, text: bytes, quote: str | None) -> pl.DataFrame | None:
        if len(self._names) == 1 and quote is None:  # polars drops a line that is one empty cell
            return pl.DataFrame({self._names[0]: text.decode().split("\n")[:-1]}, schema={self._names[0]: pl.String})
        try:
            return pl.read_csv(
                text,
                has_header=False,
                separator=self._between.decode(),
                quote_char=quote,
                schema=dict.fromkeys(self._names, pl.String()),
                empty_string_is_null=False,
                truncate_ragged_lines=False,
            )
        except PolarsError:
            return None
