"""Strict reading of delimited text files: each deviation from the declared layout is refused with its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NoReturn

import polars as pl

from crossdock.errors import RefusedError
from crossdock.reading.formats.delimited_format import DelimitedFormat, DelimitedRecordType
from crossdock.reading.formats.delimited_rows import DelimitedRows, RowEnds
from crossdock.reading.formats.format_reader import FormatReader
from crossdock.reading.formats.leniencies import FittingCells, Leniencies
from crossdock.reading.formats.misdeclared_files import refuse_edi_message
from crossdock.reading.formats.parallel_map import prefetched
from crossdock.reading.formats.polars_parser import PolarsParser, RecordFormat
from crossdock.reading.formats.preamble_and_comments import without_blank_lines, without_comments, without_preamble
from crossdock.reading.formats.raw_records import raw_lines
from crossdock.reading.formats.record_hierarchy import RecordHierarchy, chosen_rows
from crossdock.reading.formats.record_types import field_places, type_code_of
from crossdock.reading.formats.strict_parser import StrictParser
from crossdock.reading.formats.text_decoding import (
    Block,
    Piece,
    Prepare,
    as_text,
    decoded_pieces,
    lacks_last_row_end,
    records_at,
    split_piece,
)
from crossdock.reading.wrappers.packed_streams import open_stream
from crossdock.reading.wrappers.wrapper import Openable, Readable
from crossdock.values.records import LINE

_CHUNK_BYTES = 4 << 20  # larger pieces are no faster and take more memory


def read_rows(
    path: Openable,
    layout: DelimitedFormat,
    *,
    name: str,
    batch_rows: int = 100_000,
    leniencies: Leniencies | None = None,
    _chunk: int = _CHUNK_BYTES,
) -> Iterator[pl.DataFrame]:
    counted = Leniencies() if leniencies is None else leniencies
    with open_stream(path, name=name) as stream:
        if layout.record_types and layout.records:
            parts = _frames_by_type(stream, layout, name, _chunk, counted)
            yield from chosen_rows(parts, RecordHierarchy(name, layout.record_types, layout.records), batch_rows)
            return
        file, rest = _open_rows(stream, layout, name, _chunk, counted)
        for frame in file.frames(rest):
            yield from frame.iter_slices(batch_rows)
        if not file.rows:
            yield pl.DataFrame(schema=file.schema)


def read_lines(
    path: Openable,
    layout: DelimitedFormat,
    lines: Sequence[int],
    *,
    name: str,
    batch_rows: int = 100_000,
    _chunk: int = _CHUNK_BYTES,
) -> Iterator[pl.DataFrame]:
    """Read the rows that begin at *lines* (ascending) of a file that `read_rows` has read to its end, much faster."""
    counted = Leniencies()
    with open_stream(path, name=name) as stream:
        file, _ = _open_rows(stream, layout, name, _chunk, counted)
    with open_stream(path, name=name) as stream:
        prepare, wanted = _line_filters(layout, _row_ends(layout), counted), iter(lines)
        found = records_at(stream, layout.encoding, layout.quote, wanted, name=name, chunk=_chunk, prepare=prepare)
        for frame in file.frames_of_records(found, lines):
            yield from frame.iter_slices(batch_rows)


def _open_rows(
    stream: Readable, layout: DelimitedFormat, name: str, chunk: int, counted: Leniencies
) -> tuple[DelimitedRows, Iterator[Piece]]:
    row_ends = _row_ends(layout)
    first, cut = _first_and_other_pieces(stream, layout, name, chunk, row_ends, counted)
    return DelimitedRows(layout, name, first, row_ends, counted), cut if layout.header else chain([first], cut)


def _frames_by_type(
    stream: Readable, layout: DelimitedFormat, name: str, chunk: int, counted: Leniencies
) -> Iterator[Mapping[str, pl.DataFrame]]:
    row_ends = _row_ends(layout)
    first, cut = _first_and_other_pieces(stream, layout, name, chunk, row_ends, counted)
    fitting = FittingCells(layout.short_lines, layout.long_lines, counted)
    records = DelimitedRecords(layout, name, fitting, crlf=first.data.endswith(b"\r\n"), row_ends=row_ends)
    return prefetched(records.frames, records.small_pieces(chain([first], cut)))


def _first_and_other_pieces(
    stream: Readable, layout: DelimitedFormat, name: str, chunk: int, row_ends: RowEnds | None, counted: Leniencies
) -> tuple[Piece, Iterator[Piece]]:
    prepare = _line_filters(layout, row_ends, counted)
    cut = decoded_pieces(stream, layout.encoding, layout.quote, name=name, chunk=chunk, prepare=prepare)
    first = next(cut, None)
    if first is None:
        hint = "It has not even a header: fetch it again, or ask the sender."
        raise RefusedError("the file is empty", where=name, hint=hint, code="file_empty")
    if layout.record_types is None:
        refuse_edi_message(first.data, name=name)
    return first, cut


def _row_ends(layout: DelimitedFormat) -> RowEnds | None:
    return RowEnds(layout.row_end, layout.delimiter) if layout.row_end else None


def _line_filters(layout: DelimitedFormat, row_ends: RowEnds | None, counted: Leniencies) -> Prepare:
    def prepare(blocks: Iterator[bytes]) -> Iterator[Block]:
        text = row_ends.with_line_feeds(blocks) if row_ends else blocks
        found: Iterator[Block] = without_preamble(text, layout.skip_lines) if layout.skip_lines else text
        found = without_comments(found, layout.comment, layout.quote) if layout.comment else found
        if layout.blank_lines is None or layout.blank_lines == "refuse":
            return found
        blanks = "" if " " in layout.delimiter else " "
        return without_blank_lines(found, layout.blank_lines, layout.quote, blanks=blanks, leniencies=counted)

    return prepare


class DelimitedReader(FormatReader[DelimitedFormat]):
    layout = DelimitedFormat

    def rows(
        self, path: Openable, layout: DelimitedFormat, *, name: str, batch_rows: int, leniencies: Leniencies | None
    ) -> Iterator[pl.DataFrame]:
        return read_rows(path, layout, name=name, batch_rows=batch_rows, leniencies=leniencies)

    def rows_at(
        self, path: Openable, layout: DelimitedFormat, lines: Sequence[int], *, name: str
    ) -> Iterator[pl.DataFrame]:
        if layout.record_types is not None:
            return super().rows_at(path, layout, lines, name=name)
        return read_lines(path, layout, lines, name=name)

    def looks_cut(self, path: Openable, layout: DelimitedFormat) -> bool:
        return not layout.marks_end and lacks_last_row_end(path, layout.encoding, layout.row_end)

    def raw_at(
        self, path: Openable, layout: DelimitedFormat, lines: Sequence[int], *, name: str
    ) -> Mapping[int, bytes]:
        if layout.row_end is not None:
            return {}
        return raw_lines(path, lines, layout.encoding, layout.quote, name=name)

    def places(self, layout: DelimitedFormat, names: Sequence[str], line: int) -> Mapping[str, str]:
        del line
        if layout.record_types is None:
            return {name: f"field {number}" for number, name in enumerate(names)}
        return dict(field_places(layout.records or "", layout.record_types))


_MOST_BYTES = 1 << 20  # of a part: its cells may be Python objects


class DelimitedRecords:
    """Splits records by type. It keeps nothing between two pieces, so that threads may share it."""

    def __init__(
        self, layout: DelimitedFormat, name: str, fitting: FittingCells, *, crlf: bool, row_ends: RowEnds | None
    ) -> None:
        marks = row_ends.marks if row_ends else ""
        self._layout, self._row_ends, self._fitting = layout, row_ends, fitting
        self._types: Mapping[str, DelimitedRecordType] = layout.record_types or {}
        self._crlf, self._field = crlf, layout.type_field
        self._strict = StrictParser(name, layout.delimiter, layout.quote, marks)
        self._parsers = {
            each: PolarsParser(RecordFormat(kind.names, layout.delimiter, layout.quote, crlf, None, marks))
            for each, kind in self._types.items()
        }
        codes = {each: type_code_of(each, kind) for each, kind in self._types.items()}
        self._codes = {code: each for each, code in codes.items() if code is not None}
        self._otherwise = next((each for each, code in codes.items() if code is None), None)

    def small_pieces(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        return chain.from_iterable(split_piece(piece, self._layout.quote, _MOST_BYTES) for piece in pieces)

    def frames(self, piece: Piece) -> Mapping[str, pl.DataFrame]:
        found = self._split_in_columns(piece) or self._split_line_by_line(piece)
        if self._row_ends is None:
            return found
        return {name: self._row_ends.restored_frame(frame) for name, frame in found.items()}

    def _split_in_columns(self, piece: Piece) -> dict[str, pl.DataFrame] | None:
        quote = self._layout.quote
        if (quote and quote.encode() in piece.data) or not piece.data.endswith(b"\n"):
            return None
        text, fault = as_text(piece, None)
        if fault:
            return None
        lines = pl.DataFrame({"text": text.removesuffix("\n").split("\n")}, schema={"text": pl.String})
        code = pl.col("text").str.strip_chars_end("\r").str.split(self._layout.delimiter)
        lines = lines.with_columns(
            code.list.get(self._field, null_on_oob=True)
            .replace_strict(
                list(self._codes), list(self._codes.values()), default=self._otherwise, return_dtype=pl.String
            )
            .alias("type"),
            pl.int_range(piece.line, piece.line + lines.height, dtype=pl.UInt64).alias(LINE),
        )
        if lines["type"].null_count():
            return None
        found = dict[str, pl.DataFrame]()
        for (name,), part in lines.partition_by("type", as_dict=True, maintain_order=True).items():
            data = "".join(f"{line}\n" for line in part["text"]).encode()
            frame = self._parsers[str(name)].parse(Piece(1, data, part.height))
            if frame is None:
                return None
            found[str(name)] = frame.with_columns(part[LINE])
        return found

    def _split_line_by_line(self, piece: Piece) -> dict[str, pl.DataFrame]:
        text, fault = as_text(piece, self._layout.quote)
        rows: dict[str, list[tuple[str | int, ...]]] = {}
        for line, cells in self._strict.records(text, piece.line, crlf=self._crlf):
            name = self._record_type(cells, line)
            names = self._types[name].names
            fitted = self._fitting.fitted(cells, len(names))
            if len(fitted) != len(names):
                hint = "The line is truncated, a delimiter inside a field lacks quotes, or the names are not right."
                self._refuse(f"{len(cells)} fields instead of {len(names)} in a record of {name}", line, hint)
            rows.setdefault(name, []).append((*fitted, line))
        if fault:
            raise fault.error(self._strict.name)
        return {
            name: pl.DataFrame(
                found, schema={**dict.fromkeys(self._types[name].names, pl.String()), LINE: pl.UInt64()}, orient="row"
            )
            for name, found in rows.items()
        }

    def _record_type(self, cells: list[str], line: int) -> str:
        name = self._codes.get(cells[self._field]) if self._field < len(cells) else None
        name = name or self._otherwise
        if name is None:
            hint = "Declare its type in record_types, or ask the sender what it is."
            self._refuse(f"a record of no declared type in field {self._field}", line, hint)
        return name

    def _refuse(self, message: str, line: int, hint: str) -> NoReturn:
        self._strict.refuse(message, line, hint=hint)
