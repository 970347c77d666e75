"""Records of a fixed-width file, checked against its layout and split by type."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

import polars as pl

from crossdock.errors import RefusedError
from crossdock.reading.formats.binary_records import (
    cell_places_of_table_rows,
    find_row_making_occurs_table,
    read_binary_records,
    read_hex_cells_at_lines,
)
from crossdock.reading.formats.file_formats import FormatReader, LeniencyCounts, is_header_ignoring_case_and_marks
from crossdock.reading.formats.fixed_width_columns import (
    TEXT,
    FixedColumn,
    cell_text_expression,
    invalid_cell_expression,
)
from crossdock.reading.formats.fixed_width_layout import FixedWidthFormat
from crossdock.reading.formats.parallel_map import map_in_parallel
from crossdock.reading.formats.polars_delimited_parser import MAX_FRAME_CELLS
from crossdock.reading.formats.raw_record_bytes import read_raw_records_at_lines
from crossdock.reading.formats.record_types import (
    RecordHierarchy,
    ancestors_and_self_with_prefixes,
    check_hierarchy_and_select_rows,
    declared_type_code,
    describe_field_places,
)
from crossdock.reading.formats.text_decoding import (
    EXTRA_BYTE_FILLER,
    ByteWidthPaddingTable,
    DecodingError,
    LineFilter,
    Piece,
    TextOrSkippedLineCount,
    decode_into_record_pieces,
    decode_up_to_invalid_byte,
    is_last_row_end_missing,
    skip_blank_lines,
    skip_preamble_lines,
    split_into_smaller_pieces,
)
from crossdock.reading.wrappers.stream_compression import open_and_unpack_if_gzip
from crossdock.reading.wrappers.wrapper import Openable, Readable
from crossdock.values.raw_rows_and_records import LINE

_CHUNK_BYTES = 4 << 20  # larger pieces are no faster and take more memory


def read_fixed_width_rows(
    path: Openable,
    layout: FixedWidthFormat,
    *,
    name: str,
    batch_rows: int = 100_000,
    leniencies: LeniencyCounts | None = None,
    _chunk: int = _CHUNK_BYTES,
) -> Iterator[pl.DataFrame]:
    """Read the chosen records, as `FormatReader.rows` describes. Without line ends, `_line` counts records."""
    if layout.has_binary_records:
        yield from read_binary_records(path, layout, name=name, batch_rows=batch_rows, leniencies=leniencies)
        return
    with open_and_unpack_if_gzip(path, name=name) as stream:
        counted = leniencies if leniencies is not None else LeniencyCounts()
        cut = decode_fixed_width_record_pieces(stream, layout, name=name, chunk=_chunk, leniencies=counted)
        first = next(cut, None)
        if first is None:
            raise RefusedError(
                "the file is empty", where=name, hint="Fetch it again, or ask the sender.", code="file_empty"
            )
        lines = FixedWidthLineSplitter(name, crlf=first.data.endswith(b"\r\n"))
        if layout.type_code_place is None and _is_header_line(first, layout):
            hint = "If all files have it now, declare skip_lines; else ask the sender for files without it."
            lines.raise_error("the first line is a header", first.line, hint=hint)
        file = _FixedWidthLineParser(layout, lines, counted)
        hierarchy = RecordHierarchy(
            name,
            layout.record_types_with_columns,
            layout.type_to_read,
            layout.groups,
            keeps_empty=layout.keeps_empty_groups,
        )

        def bodies() -> Iterator[Piece]:
            yield from file.small_pieces(first)
            for piece in cut:
                yield from file.small_pieces(piece)

        yield from check_hierarchy_and_select_rows(
            map_in_parallel(file.data_frames_by_record_type, bodies()), hierarchy, batch_rows
        )


def _is_header_line(first: Piece, layout: FixedWidthFormat) -> bool:
    """Return whether the first line has the names of the columns, in whatever notation, as no row has."""
    columns = layout.record_types_with_columns[layout.type_to_read].columns
    names = sorted(columns, key=lambda name: columns[name].at)
    return is_header_ignoring_case_and_marks([first.data.decode(errors="replace")], ["".join(names)])


class _FixedWidthLineParser:
    """Splits lines by type. It keeps nothing between two pieces, so that threads may share it."""

    def __init__(self, layout: FixedWidthFormat, lines: FixedWidthLineSplitter, leniencies: LeniencyCounts) -> None:
        self._layout, self._lines, self._leniencies = layout, lines, leniencies
        in_bytes = layout.count == "bytes"
        self._types, self._widths = layout.record_types_with_columns, ByteWidthPaddingTable(layout.encoding)
        self._columns = max(len(kind.columns) for kind in self._types.values())
        self._cells = {
            name: [
                cell_text_expression(column, layout.encoding, in_bytes=in_bytes).alias(each)
                for each, column in kind.columns.items()
            ]
            for name, kind in self._types.items()
        }
        self._odd = {
            name: [
                (each, column, odd)
                for each, column in kind.columns.items()
                if (odd := invalid_cell_expression(column, layout.encoding, in_bytes=in_bytes)) is not None
            ]
            for name, kind in self._types.items()
        }
        codes = {name: declared_type_code(name, kind) for name, kind in self._types.items()}
        self._codes = {code: name for name, code in codes.items() if code is not None}
        self._otherwise = next((name for name, code in codes.items() if code is None), None)

    def small_pieces(self, piece: Piece) -> Iterator[Piece]:
        cells = (piece.ends + 1) * (self._columns + 2)
        if cells <= MAX_FRAME_CELLS:
            yield piece
        else:
            yield from split_into_smaller_pieces(piece, None, max(len(piece.data) * MAX_FRAME_CELLS // cells, 1))

    def data_frames_by_record_type(self, piece: Piece) -> dict[str, pl.DataFrame]:
        lines, error = self._lines.split_lines(piece)
        found = {
            name: self._parse_cells_or_raise(name, part)
            for name, part in self._group_lines_by_type_or_raise(lines).items()
        }
        if error:
            raise error
        return found

    def _group_lines_by_type_or_raise(self, lines: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        position = self._layout.type_code_place
        if position is None:
            return {name: lines for name in self._types if lines.height}
        code = pl.col(TEXT).str.slice(position.at - 1, position.length).str.strip_chars_end(f" {EXTRA_BYTE_FILLER}")
        names = list(self._codes.values())
        if self._otherwise is None:
            unknown = lines.filter(~code.is_in(list(self._codes)))
            if unknown.height:
                hint = "Declare its type in record_types, or ask the sender what it is."
                self._lines.raise_error("a record of no declared type", unknown[LINE][0], position.at, hint=hint)
        told = lines.with_columns(
            code.replace_strict(list(self._codes), names, default=self._otherwise, return_dtype=pl.String).alias(
                "_type"
            )
        )
        parts = told.partition_by("_type", as_dict=True, include_key=False, maintain_order=True)
        return {str(name): part for (name,), part in parts.items()}

    def _parse_cells_or_raise(self, name: str, lines: pl.DataFrame) -> pl.DataFrame:
        lines = self._fit_line_lengths_or_raise(lines, self._layout.record_length(name))
        odd = self._odd[name]
        if odd:
            found = lines.select(pl.any_horizontal(is_odd for _, _, is_odd in odd).any()).item()
            if found:
                self._raise_invalid_cell_error(lines, odd)
        return (
            lines.lazy().select(*self._cells[name], LINE).collect()
        )  # lazily, so that parts which cells share are computed once

    def _fit_line_lengths_or_raise(self, lines: pl.DataFrame, length: int) -> pl.DataFrame:
        layout, sizes, beyond = self._layout, pl.col(TEXT).str.len_chars(), pl.col(TEXT).str.slice(length)
        if lines.select((sizes == length).all()).item():
            return lines
        is_short = sizes < length
        if layout.short_lines == "pad":
            is_short = pl.lit(value=False) if layout.count else is_short & self._right_byte_length_expression(length)
        is_long = sizes > length
        if layout.long_lines not in {None, "refuse"}:
            is_long &= (beyond.str.strip_chars(" ") != "") & (layout.long_lines != "drop")
        bad = lines.filter(is_short | is_long)
        blank = lines.filter(pl.col(TEXT).str.strip_chars(" ") == "")
        for row in pl.concat([bad, blank]).sort(LINE).head(1).iter_rows(named=True):
            size, line = len(row[TEXT]), row[LINE]
            if not row[TEXT].strip(" "):
                self._lines.raise_error("the line is blank", line, hint="Ask the sender not to write blank lines.")
            if (
                size < length
                and not layout.count
                and row[TEXT].isascii() is False
                and self._has_byte_length(row[TEXT], length)
            ):
                hint = f"It has {length:,} bytes in {layout.encoding}: if positions count bytes, declare count: bytes."
            elif size < length:
                hint = (
                    "It is truncated: fetch the file again, or ask the sender whether it leaves out blanks at the end"
                )
                hint += " of lines; only then declare short_lines: pad."
            else:
                hint = "Lines were joined, or length or the last column of the layout is wrong."
            characters = "1 character" if size == 1 else f"{size:,} characters"
            self._lines.raise_error(f"{characters} instead of {length:,}", line, min(size, length) + 1, hint=hint)
        short, long = lines.select(short=(sizes < length).sum(), long=(sizes > length).sum()).row(0)
        self._leniencies.add("short", short)
        self._leniencies.add("long", long)
        return lines.with_columns(pl.col(TEXT).str.pad_end(length).str.slice(0, length))

    def _right_byte_length_expression(self, length: int) -> pl.Expr:
        is_wide = pl.col(TEXT).str.contains(r"[^\x00-\x7F]")
        fills = pl.col(TEXT).map_elements(lambda text: self._has_byte_length(text, length), return_dtype=pl.Boolean)
        return is_wide & fills

    def _has_byte_length(self, text: str, length: int) -> bool:
        return len(text.translate(self._widths)) == length

    def _raise_invalid_cell_error(self, lines: pl.DataFrame, odd: list[tuple[str, FixedColumn, pl.Expr]]) -> None:
        row = lines.filter(pl.any_horizontal(is_odd for _, _, is_odd in odd)).head(1)
        for name, column, is_odd_here in odd:
            if row.select(is_odd_here).item():
                places = f"positions {column.at} to {column.last_position}"
                message = f"column {name!r}, {places}, is not {column.expected_content}"
                hint = (
                    "Was a line shifted, or has the layout changed? Correct columns in the format, or ask the sender."
                )
                self._lines.raise_error(message, row[LINE][0], column.at, hint=hint)


class FixedWidthReader(FormatReader[FixedWidthFormat]):
    layout = FixedWidthFormat

    def rows(
        self, path: Openable, layout: FixedWidthFormat, *, name: str, batch_rows: int, leniencies: LeniencyCounts | None
    ) -> Iterator[pl.DataFrame]:
        return read_fixed_width_rows(path, layout, name=name, batch_rows=batch_rows, leniencies=leniencies)

    def may_be_truncated(self, path: Openable, layout: FixedWidthFormat) -> bool:
        return not layout.marks_end and is_last_row_end_missing(path, layout.encoding, layout.row_end)

    def hex_cells_at_lines(
        self, path: Openable, layout: FixedWidthFormat, lines: Sequence[int], *, name: str
    ) -> Mapping[int, Mapping[str, str]]:
        if not layout.has_binary_records or layout.row_making_occurs_table_name is not None:
            return {}
        return read_hex_cells_at_lines(path, layout, lines, name=name)

    def record_bytes_at_lines(
        self, path: Openable, layout: FixedWidthFormat, lines: Sequence[int], *, name: str
    ) -> Mapping[int, bytes]:
        if layout.line_end != "line_feed" or layout.has_binary_records:
            return {}
        return read_raw_records_at_lines(path, lines, layout.encoding, None, name=name)

    def describe_cell_places(self, layout: FixedWidthFormat, names: Sequence[str], line: int) -> Mapping[str, str]:
        del names, line
        found = dict(describe_field_places(layout.type_to_read, layout.record_types_with_columns))
        for kind, of in ancestors_and_self_with_prefixes(layout.type_to_read, layout.record_types_with_columns):
            found |= {
                name: f"{of}{column.at}-{column.last_position}"
                for name, column in layout.record_types_with_columns[kind].columns.items()
            }
        return (
            found
            if layout.row_making_occurs_table_name is None
            else cell_places_of_table_rows(find_row_making_occurs_table(layout), found)
        )


_NEL = "\x85".encode()
_CONTROLS = bytes([*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F])
_ODD = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufeff]|\r(?!\n)")
_RECORDS = 1 << 15  # records that are Python objects at the same time
_LINE_BREAK = re.compile(b"[\r\n]")
_MAY_BE_ODD = re.compile(b"\xc2[\x80-\x9f]|\xef\xbb\xbf")
_BINARY = "Check that it is a text file in the declared encoding, without packed or binary numbers."
_TWO_SYSTEMS = "Were files of two systems joined? Ask the sender to send them separately."


def decode_fixed_width_record_pieces(
    stream: Readable, layout: FixedWidthFormat, *, name: str, chunk: int, leniencies: LeniencyCounts | None = None
) -> Iterator[Piece]:
    """Yield records as lines of UTF-8. If positions count bytes, `EXTRA_BYTE_FILLER` pads wide characters."""
    prepare = _make_line_converter_and_filter(layout, LeniencyCounts() if leniencies is None else leniencies)
    return decode_into_record_pieces(stream, layout.encoding, None, name=name, chunk=chunk, prepare=prepare)


class FixedWidthLineSplitter:
    def __init__(self, name: str, *, crlf: bool) -> None:
        self._name, self._crlf = name, crlf

    def split_lines(self, piece: Piece) -> tuple[pl.DataFrame, RefusedError | None]:
        """Return the lines of *piece* up to the first that is not text, with `LINE`, and the error of that one."""
        text, fault = decode_up_to_invalid_byte(piece, None)
        self._raise_if_control_character(piece, text)
        if self._crlf and text:
            self._raise_if_line_ends_mixed(piece, text)
            text = text.replace("\r\n", "\n")
        elif "\r" in text:
            self._raise_different_line_end_error(piece, text.count("\n", 0, text.index("\r")), "CRLF", "LF")
        lines = pl.Series(TEXT, [text.removesuffix("\n")], pl.String).str.split("\n").explode()
        frame = lines.head(len(lines) if text else 0).to_frame()
        numbers = pl.int_range(piece.line, piece.line + frame.height, dtype=pl.UInt64, eager=True)
        return frame.with_columns(numbers.alias(LINE)), fault.error(self._name) if fault else None

    def raise_error(self, message: str, line: int, column: int | None = None, *, hint: str) -> NoReturn:
        where = f"{self._name}:{line}" if column is None else f"{self._name}:{line}:{column}"
        raise RefusedError(message, where=where, hint=hint, code="file_damaged")

    def _raise_if_control_character(self, piece: Piece, text: str) -> None:
        data = piece.data
        is_plain = len(data.translate(None, _CONTROLS)) == len(data) and b"\r" not in data
        if is_plain and not ((b"\xc2" in data or b"\xef" in data) and _MAY_BE_ODD.search(data)):
            return
        if odd := _ODD.search(text):
            found, hint = f"control character U+{ord(odd.group()):04X}", _BINARY
            if odd.group() == "\r":
                found, hint = "a CR without LF", "Ask the sender to end lines with LF or CRLF."
            elif odd.group() == "\ufeff":
                found, hint = "a byte order mark inside the file", _TWO_SYSTEMS
            begin = text.rfind("\n", 0, odd.start()) + 1
            self.raise_error(found, piece.line + text.count("\n", 0, begin), odd.start() - begin + 1, hint=hint)

    def _raise_if_line_ends_mixed(self, piece: Piece, text: str) -> None:
        if text.count("\r\n") == text.count("\n"):
            return
        ends = [line.endswith("\r") for line in text.split("\n")]
        self._raise_different_line_end_error(piece, ends.index(False), "LF", "CRLF")

    def _raise_different_line_end_error(self, piece: Piece, line: int, found: str, before: str) -> NoReturn:
        self.raise_error(
            f"the line ends with {found}, the lines before it with {before}", piece.line + line, hint=_TWO_SYSTEMS
        )


def _make_line_converter_and_filter(layout: FixedWidthFormat, leniencies: LeniencyCounts) -> LineFilter:
    def prepare(blocks: Iterator[bytes]) -> Iterator[TextOrSkippedLineCount]:
        lines = _pad_to_byte_positions(blocks, layout.encoding) if layout.count == "bytes" else blocks
        if layout.line_end == "nel":
            lines = _replace_nel_by_line_feed(lines)
        elif layout.line_end == "none" and layout.length:
            lines = _split_lines_by_length(lines, layout.length)
        found: Iterator[TextOrSkippedLineCount] = (
            skip_preamble_lines(lines, layout.skip_lines) if layout.skip_lines else lines
        )
        if layout.blank_lines is None or layout.blank_lines == "refuse":
            return found
        return skip_blank_lines(found, layout.blank_lines, None, blanks=" ", leniencies=leniencies)

    return prepare


def _pad_to_byte_positions(blocks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Fill up characters so that their positions are those of bytes. Bytes that are not text are passed on."""
    decoder, widths = codecs.getincrementaldecoder("utf-8")("surrogateescape"), ByteWidthPaddingTable(encoding)
    for block in blocks:
        text = decoder.decode(block)
        if EXTRA_BYTE_FILLER in text:
            raise DecodingError("U+FDD0, which is not a character", _BINARY)
        yield text.translate(widths).encode(errors="surrogateescape")
    yield decoder.decode(b"", final=True).encode(errors="surrogateescape")


def _replace_nel_by_line_feed(blocks: Iterator[bytes]) -> Iterator[bytes]:
    held = b""
    for block in blocks:
        data = held + block
        held = _NEL[:1] if data.endswith(_NEL[:1]) else b""
        data = data[: len(data) - len(held)]
        fault = _LINE_BREAK.search(data)
        yield data[: fault.start() if fault else None].replace(_NEL, b"\n")
        if fault:
            raise _make_line_break_error()
    yield held


def _split_lines_by_length(blocks: Iterator[bytes], length: int) -> Iterator[bytes]:
    decoder, held = codecs.getincrementaldecoder("utf-8")("surrogateescape"), ""
    for block in blocks:
        text = held + decoder.decode(block)
        fault = _LINE_BREAK.search(block)
        end = re.search("[\r\n]|$", text).start() if fault else len(text)  # type: ignore[union-attr]  # it matches
        end -= end % length
        for first in range(0, end, length * _RECORDS):
            starts = range(first, min(first + length * _RECORDS, end), length)
            lines = "".join([f"{text[start : start + length]}\n" for start in starts])
            yield lines.encode(errors="surrogateescape")
        if fault:
            raise _make_line_break_error()
        held = text[end:]
    yield (held + decoder.decode(b"", final=True)).encode(errors="surrogateescape")


def _make_line_break_error() -> DecodingError:
    return DecodingError(
        "a line break inside a record", "If records end with line breaks, declare line_end: line_feed."
    )
