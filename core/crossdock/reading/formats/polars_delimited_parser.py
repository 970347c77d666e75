"""Parses delimited text with polars where it can be proved that polars reads it right.

polars is lenient about quotes, so a frame from polars is used only if one of three checks proves it right. All else
goes to the strict parser, which also finds the fault and its place.

1. Counts, where quotes are few: each quote is where it may be, and numbers of rows, cells and bytes agree.
2. A round trip, where they are many: the frame, written again with the writer's rule for quotes, gives the same bytes.
3. Rewriting, for others: the places where text inside and outside of quotes meet show whether every quote is where it
   may be. Control characters replace delimiters and line ends inside of cells, so that polars sees one plain line a
   record. The number of delimiters must fit; as polars refuses a line with too many, no line has too few.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from io import BytesIO
from threading import Lock
from typing import Any, Literal

import polars as pl
from msgspec import Struct
from polars.exceptions import PolarsError

from crossdock.reading.formats.file_formats import is_repeated_header_row, names_that_identify_header
from crossdock.reading.formats.strict_delimited_parser import MAX_COLUMNS
from crossdock.reading.formats.text_decoding import Piece, count_byte, split_into_smaller_pieces
from crossdock.values.raw_rows_and_records import (
    LINE,
    cells_of_column,
    column_expression_by_exact_name,
    column_expressions_by_exact_names,
)

MAX_FRAME_CELLS = 1 << 19
"""The most cells of a frame. Each takes 16 bytes, even if it is empty, and several frames exist at once."""

_BYTE_ORDER_MARK = "\ufeff".encode()
_LATER_CONTROLS = re.compile(b"\xc2[\x80-\x9f]")  # U+0080 to U+009F
_WINDOW = 128 << 10  # bytes searched at once for each control character: they fit the processor's cache
_QUOTES_AT_ONCE = 50_000  # in text that is rewritten: each takes a hundred bytes of memory
_LARGE = 8 << 20  # bytes: a larger piece is a single record, for which the strict parser takes less memory
_FEW = 64  # bytes per quote, on average, from which counting is faster than a round trip
_PACKED = (b"\x1f\x8b", b"x\x01", b"x^", b"x\x9c", b"x\xda", b"\x28\xb5\x2f\xfd")  # gzip, zlib, zstd
_CONTROLS = [bytes([code]) for code in (*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F)]


class DelimitedRecordForm(Struct, frozen=True):
    """The form of records. No row is the header, or begins with `trailer_prefix_cells`, which end the file."""

    names: Sequence[str]
    delimiter: str
    quote: str | None
    crlf: bool
    trailer_prefix_cells: Sequence[str] | None
    marks: str = ""


class PolarsDelimitedParser:
    """Turns whole records of one file into frames. Threads may share it."""

    def __init__(self, form: DelimitedRecordForm) -> None:
        delimiter = form.delimiter.encode()
        free = [control for control in _CONTROLS[2:9] if control != delimiter]  # the first one begins data of zlib
        self._names = list(form.names)
        self._delimiter = delimiter
        self._between = delimiter if len(delimiter) == 1 else free[0]
        self._marks = dict(zip((delimiter, b"\n", b"\r"), free[1:], strict=False))
        self._quote = form.quote.encode() if form.quote else None
        self._crlf = form.crlf
        self._end = b"\r\n" if form.crlf else b"\n"
        self._round_trip = (
            CsvRoundTrip(self._names, form.delimiter, form.quote, self._end.decode())
            if form.quote and len(delimiter) == 1 and len(self._names) > 1
            else None
        )
        self._quoted = (
            _make_quoted_cell_pattern(self._round_trip.quote.encode(), delimiter, self._end)
            if self._round_trip
            else None
        )
        self._trailer_prefix_cells = (
            form.trailer_prefix_cells
            if form.trailer_prefix_cells is not None and len(form.trailer_prefix_cells) <= len(self._names)
            else None
        )
        allowed = {delimiter, *(mark.encode() for mark in form.marks)}
        self._controls = [control for control in _CONTROLS if control not in allowed]
        self._rewriting = Lock()  # rewriting takes much memory: one piece at a time
        # guesses that save time and decide nothing, so threads may overwrite each other's guesses
        self._always_quoted_columns: Sequence[str] | None = (
            None  # columns that are quoted in every row; None before the first piece
        )
        self._failures = 0  # failed round trips minus successful ones

    def parse(self, piece: Piece) -> pl.DataFrame | None:
        """Parse *piece*, or return None if nothing proves that the result is right."""
        data, ends = piece.data, piece.ends
        if (
            len(data) > _LARGE
            or ends * len(self._names) > MAX_FRAME_CELLS
            or self._has_invalid_characters(data)
            or self._has_line_over_column_limit(data)
        ):
            return None
        if not data.endswith(b"\n"):
            data, ends = data + self._end, ends + 1
        frame = self._parse_if_counts_agree(data, ends)
        if frame is None:
            frame = self._parse_if_round_trip_agrees(data, ends)
        if frame is None:
            frame = self._parse_after_rewriting(data, ends)
        if frame is None or self._has_misplaced_header_or_trailer(frame):
            return None
        lines = pl.int_range(piece.line, piece.line + frame.height, dtype=pl.UInt64, eager=True)
        inner_ends = ends - frame.height
        for name in self._names:
            if not inner_ends:
                break
            counts = cells_of_column(frame, name).str.count_matches("\n", literal=True).cast(pl.UInt64)
            lines += counts.cum_sum() - counts  # each line end inside of a cell moves the rows that follow
            inner_ends -= int(counts.sum())
        return frame.insert_column(frame.width, lines.alias(LINE))

    def _has_invalid_characters(self, data: bytes) -> bool:
        for start in range(0, len(data), _WINDOW):
            if any(data.find(control, start, start + _WINDOW) >= 0 for control in self._controls):
                return True
        later = b"\xc2" in data and _LATER_CONTROLS.search(data) is not None
        return later or (b"\xef" in data and _BYTE_ORDER_MARK in data)

    def _has_line_over_column_limit(self, data: bytes) -> bool:
        """Return whether a line has more delimiters than a row may have: polars takes 400 bytes of memory for each."""
        start, longest = 0, MAX_COLUMNS * len(self._delimiter)
        while len(data) - start > longest:
            end = data.rfind(b"\n", start, start + longest) + 1
            if not end:
                end = data.find(b"\n", start + longest) + 1 or len(data)
                if data.count(self._delimiter, start, end) >= MAX_COLUMNS:
                    return True
            start = end
        return False

    def _has_misplaced_header_or_trailer(self, frame: pl.DataFrame) -> bool:
        if self._has_repeated_header(frame):
            return True
        if self._trailer_prefix_cells is None:
            return False
        *whole, begin = self._trailer_prefix_cells
        last = cells_of_column(_filter_rows_by_first_cells(frame, whole), self._names[len(whole)])
        return bool(last.str.starts_with(begin).any())

    def _has_repeated_header(self, frame: pl.DataFrame) -> bool:
        for name in names_that_identify_header(self._names):
            found = cells_of_column(frame, name).is_in(self._names)
            if not found.any():
                return False
            frame = frame.filter(found)
        return any(is_repeated_header_row(row, self._names) for row in frame.iter_rows())

    def _parse_if_counts_agree(self, data: bytes, ends: int) -> pl.DataFrame | None:
        """Parse text with few quotes, or return None if one of them is out of place.

        For such text polars refuses rows with too many cells and gives nulls for missing ones: each row is one record.
        """
        quote, quoted = self._quote, self._quoted
        if quote is None or quoted is None or data.count(quote, 0, _WINDOW) * _FEW > min(len(data), _WINDOW):
            return None
        quotes = count_byte(data, quote)
        if quotes * _FEW > len(data):  # behind a beginning that has few: each cell in quotes takes memory
            return None
        found = quoted.findall(data) if quotes else []
        inside = b"".join(found)
        rows = ends - inside.count(b"\n")
        returns = count_byte(data, b"\r")
        pairs = data.count(b"\r\n") if returns else 0
        if quote in found or returns != pairs or pairs - inside.count(b"\r\n") != (rows if self._crlf else 0):
            return None
        frame = self._read_csv(data, quote.decode(), nulls=False)
        if frame is None or frame.height != rows or any(column.null_count() for column in frame):
            return None
        cells = sum(frame.select(pl.all().str.len_bytes().sum()).row(0))
        marks = len(found) + inside.count(quote) // 2  # one of each doubled quote is part of the cell
        between = rows * (len(self._names) - 1 + len(self._end))
        return frame if cells + marks + between == len(data) else None

    def _parse_if_round_trip_agrees(self, data: bytes, ends: int) -> pl.DataFrame | None:
        round_trip = self._round_trip
        if round_trip is None or self._failures > 0 or round_trip.quote.encode() not in data:
            return None
        frame = self._read_csv(data, round_trip.quote, nulls=True)
        if frame is None:
            self._failures += 1
            return None
        if self._always_quoted_columns is None:
            self._always_quoted_columns = round_trip.find_needlessly_quoted_columns(data, frame)
        same = round_trip.is_written_back_as_same_bytes(data, frame, self._always_quoted_columns)
        self._failures += -1 if same else 1
        if not same or self._has_lone_return(data, ends, frame.height):
            return None
        empty = [name for name in self._names if frame[name].null_count()]  # empty cells without quotes
        return frame.with_columns(column.fill_null("") for column in column_expressions_by_exact_names(empty))

    def _has_lone_return(self, data: bytes, ends: int, rows: int) -> bool:
        returns = count_byte(data, b"\r")
        if self._crlf and returns == ends == rows:
            return False  # all of them end rows
        return returns > 0 and returns != data.count(b"\r\n")

    def _parse_after_rewriting(self, data: bytes, ends: int) -> pl.DataFrame | None:
        quotes = data.count(self._quote) if self._quote else 0
        if quotes <= _QUOTES_AT_ONCE or not self._quote:
            return self._parse_part_after_rewriting(data, ends)
        frames = list[pl.DataFrame]()
        for part in split_into_smaller_pieces(
            Piece(1, data, ends), self._quote.decode(), len(data) * _QUOTES_AT_ONCE // quotes
        ):
            frame = self._parse_part_after_rewriting(part.data, part.ends)
            if frame is None:
                return None
            frames.append(frame)
        return pl.concat(frames)

    def _parse_part_after_rewriting(self, data: bytes, ends: int) -> pl.DataFrame | None:
        with self._rewriting:
            found = self._rewrite_one_line_per_record(data)
        if found is None:
            return None
        flat, counts = found
        rows = ends - counts[b"\n"]
        if flat.count(self._between) != rows * (len(self._names) - 1):
            return None
        frame = self._read_csv(flat, None, nulls=False)
        if frame is None or frame.height != rows:
            return None
        texts = {mark.decode(): special.decode() for special, mark in self._marks.items() if counts[special]}
        return frame.with_columns(pl.all().str.replace_many(texts)) if texts else frame

    def _rewrite_one_line_per_record(self, data: bytes) -> tuple[bytes, Mapping[bytes, int]] | None:
        """Write each record as one line: cells unquoted and special bytes marked. Also count each special byte."""
        quote = self._quote
        if quote is None or quote not in data:
            plain = self._normalize_ends_and_delimiters(data)
            return None if plain is None else (plain, dict.fromkeys(self._marks, 0))
        texts = data.split(quote)
        outside = self._normalize_ends_and_delimiters(quote.join(texts[::2]))
        if outside is None:
            return None
        texts[::2] = outside.split(quote)
        inside = quote.join(texts[1::2])
        if len(texts) % 2 == 0 or inside.count(b"\r") != inside.count(b"\r\n"):  # an open quote, or a lone CR
            return None
        first, *middle, last = texts[::2]
        ends = (self._between, b"\n")
        if (first and not first.endswith(ends)) or not last.startswith(ends):
            return None
        if not all(part.startswith(ends) and part.endswith(ends) for part in middle if part):
            return None
        texts[::2] = [first, *(part or quote for part in middle), last]  # nothing between two quotes is a doubled quote
        counts = {}
        for special, mark in self._marks.items():
            counts[special] = inside.count(special)
            inside = inside.replace(special, mark)
        texts[1::2] = inside.split(quote)
        return b"".join(texts), counts

    def _normalize_ends_and_delimiters(self, text: bytes) -> bytes | None:
        if self._crlf:
            returns = count_byte(text, b"\r")
            if returns != count_byte(text, b"\n") or returns != text.count(b"\r\n"):
                return None
            text = text.replace(b"\r\n", b"\n")
        elif b"\r" in text:
            return None
        if len(self._names) == 1 and (b"\n\n" in text or text.startswith(b"\n")):
            return None  # a blank line; with more columns, it lacks delimiters
        return text if self._between == self._delimiter else text.replace(self._delimiter, self._between)

    def _read_csv(self, text: bytes, quote: str | None, *, nulls: bool) -> pl.DataFrame | None:
        """Parse *text* with polars. A missing cell is null; an empty cell without quotes is null if *nulls*."""
        if text.startswith(_PACKED):  # polars would unpack it
            return None
        try:
            if len(self._names) == 1 and quote is None:  # polars drops a line that is one empty cell
                cells = text.decode().split("\n")[:-1]
                return pl.DataFrame({self._names[0]: cells}, schema={self._names[0]: pl.String})
            return pl.read_csv(
                text,
                has_header=False,
                separator=self._between.decode(),
                quote_char=quote,
                schema=dict.fromkeys(self._names, pl.String()),
                empty_string_is_null=nulls,
                truncate_ragged_lines=False,
            )
        except (PolarsError, UnicodeDecodeError):
            return None


def _make_quoted_cell_pattern(quote: bytes, delimiter: bytes, end: bytes) -> re.Pattern[bytes]:
    """Match cells in quotes, and each misplaced quote. It does not backtrack, because quotes in a cell are doubled."""
    mark, before, after = re.escape(quote), re.escape(delimiter), re.escape(end)
    inside = b"[^%b]*+(?:%b%b[^%b]*+)*+" % (mark, mark, mark, mark)
    return re.compile(b"%b(?:(?<![^%b\\n]%b)%b%b(?=%b|%b))?" % (mark, before, mark, inside, mark, before, after))


def _filter_rows_by_first_cells(frame: pl.DataFrame, cells: Sequence[str]) -> pl.DataFrame:
    for name, cell in zip(frame.columns, cells, strict=False):
        found = frame[name] == cell
        frame = frame.filter(found) if found.any() else frame.clear()
    return frame


_BATCH_ROWS = 16_384
_SAMPLE_ROWS = 200  # rows that show which columns are quoted


class _ByteComparingStream(BytesIO):
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


class CsvRoundTrip(Struct, frozen=True):
    names: Sequence[str]
    delimiter: str
    quote: str
    end: str

    def is_written_back_as_same_bytes(self, data: bytes, frame: pl.DataFrame, always: Sequence[str]) -> bool:
        """Return whether *frame* is written as *data* if cells of *always* have quotes; a null is an unquoted cell."""
        style: Literal["always", "necessary", "never"] = "always" if len(always) == len(self.names) else "necessary"
        if 0 < len(always) < len(self.names):
            style = "never"
            frame = frame.with_columns(
                self._column_expression_adding_quotes(name, each=name in always) for name in self.names
            )
        comparing = _ByteComparingStream(data)
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

    def _column_expression_adding_quotes(self, name: str, *, each: bool) -> pl.Expr:
        column, quote = column_expression_by_exact_name(name), pl.lit(self.quote)
        quoted = pl.concat_str(quote, column.str.replace_all(self.quote, self.quote * 2, literal=True), quote)
        if each:
            return quoted.alias(name)
        special = column.str.contains_any([self.quote, self.delimiter, "\n", "\r"])
        return pl.when(special | (column == "")).then(quoted).otherwise(column).alias(name)

    def find_needlessly_quoted_columns(self, data: bytes, frame: pl.DataFrame) -> list[str]:
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
