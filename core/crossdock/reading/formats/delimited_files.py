"""Strict reading of delimited text files: each deviation from the declared layout is refused with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, NoReturn

import polars as pl

from crossdock.errors import RefusedError
from crossdock.reading.formats.delimited_layout import DelimitedFormat, DelimitedRecordType
from crossdock.reading.formats.file_formats import (
    HEADER_HINT,
    FormatReader,
    LeniencyCounts,
    RowWidthPolicy,
    is_header_ignoring_case_and_marks,
    is_repeated_header_row,
    validate_column_names,
)
from crossdock.reading.formats.file_kind_and_encoding_mismatch import raise_if_edi_interchange
from crossdock.reading.formats.parallel_map import map_in_parallel
from crossdock.reading.formats.polars_delimited_parser import (
    MAX_FRAME_CELLS,
    DelimitedRecordForm,
    PolarsDelimitedParser,
)
from crossdock.reading.formats.raw_record_bytes import read_raw_records_at_lines
from crossdock.reading.formats.record_types import (
    RecordHierarchy,
    check_hierarchy_and_select_rows,
    declared_type_code,
    describe_field_places,
)
from crossdock.reading.formats.strict_delimited_parser import StrictDelimitedParser
from crossdock.reading.formats.text_decoding import (
    CommentRecognizer,
    DecodingError,
    LineFilter,
    Piece,
    TextOrSkippedLineCount,
    decode_into_record_pieces,
    decode_up_to_invalid_byte,
    is_last_row_end_missing,
    read_decoded_records_at_lines,
    skip_blank_lines,
    skip_comment_lines,
    skip_preamble_lines,
    split_into_smaller_pieces,
    split_off_last_record,
)
from crossdock.reading.wrappers.stream_compression import open_and_unpack_if_gzip
from crossdock.reading.wrappers.wrapper import Openable, Readable
from crossdock.values.raw_rows_and_records import LINE, internal_column_name

if TYPE_CHECKING:
    from crossdock.reading.formats.delimited_layout import Trailer

_PICKED_BYTES, _PICKED_CELLS = 1 << 20, 100_000  # limits for one frame of picked records
_SMALLEST_PART_BYTES = 64 << 10
STRICT_BYTES = 2 << 10
"""The strict parser reads a piece of this size sooner than polars can be called."""
_STRICT_CELLS = 100_000  # cells that are Python objects at the same time
_OTHER_LINES = 2  # header and trailer
_BESIDE = internal_column_name("beside")
_COUNT = re.compile("[0-9]{1,18}")
_FREE = "".join(map(chr, range(0x0E, 0x1A)))  # the parser with polars uses others


class SingleTypeDelimitedParser:
    def __init__(
        self,
        layout: DelimitedFormat,
        name: str,
        first: Piece,
        row_ends: DeclaredRowEnds | None,
        leniencies: LeniencyCounts,
    ) -> None:
        self._row_ends, marks = row_ends, row_ends.marks if row_ends else ""
        self._strict_parser = StrictDelimitedParser(name, layout.delimiter, layout.quote, marks)
        self._trailer = layout.trailer
        self._trailer_cells = layout.trailer.prefix.split(layout.delimiter) if layout.trailer else None
        self._leniencies, self._fitting = leniencies, RowWidthPolicy(layout.short_lines, layout.long_lines, leniencies)
        self._layout, self._crlf = layout, first.data.endswith(b"\r\n")
        line, cells = next(self._strict_parser.records(self._decode_record_or_raise(first), first.line))
        cells = [row_ends.restore_line_breaks(cell) for cell in cells] if row_ends else cells
        self._names = self._validate_header(cells, layout.names, line) if layout.header else layout.names or ()
        if not layout.header and is_header_ignoring_case_and_marks(cells, self._names):
            self._strict_parser.raise_error(
                "the first line is a header, and header: false is declared", line, hint=HEADER_HINT
            )
        self.schema = {**dict.fromkeys(self._names, pl.String()), LINE: pl.UInt64()}
        self._tail: Piece | None = None
        self.rows = 0

    @cached_property
    def _polars_parser(self) -> PolarsDelimitedParser:
        return PolarsDelimitedParser(self._record_format_for_polars(self._names))

    @cached_property
    def _parser_with_extra_column(self) -> PolarsDelimitedParser | None:
        return (
            PolarsDelimitedParser(self._record_format_for_polars([*self._names, _BESIDE]))
            if self._fitting.cuts_long_lines
            else None
        )

    def _record_format_for_polars(self, names: Sequence[str]) -> DelimitedRecordForm:
        marks = self._row_ends.marks if self._row_ends else ""
        layout = self._layout
        return DelimitedRecordForm(names, layout.delimiter, layout.quote, self._crlf, self._trailer_cells, marks)

    def parse_pieces_and_verify_trailer(self, rest: Iterator[Piece]) -> Iterator[pl.DataFrame]:
        for frame in map_in_parallel(
            self._parse_and_restore_line_breaks, self._split_off_trailer_and_large_pieces(rest)
        ):
            self.rows += frame.height
            yield frame
        if self._trailer and self._tail:
            self._raise_if_trailer_wrong(self._trailer, self._tail)
        elif self._trailer:
            self._raise_missing_trailer_error(1)

    def _split_off_trailer_and_large_pieces(self, rest: Iterator[Piece]) -> Iterator[Piece]:
        for piece in rest:
            body: Piece | None = piece
            if self._trailer and piece.last:
                body, self._tail = split_off_last_record(piece, self._strict_parser.quote)
            if body:
                yield from self._split_piece_exceeding_cell_limit(body)

    def _split_piece_exceeding_cell_limit(self, body: Piece) -> Iterator[Piece]:
        cells, size = body.ends * len(self._names), len(body.data)
        if cells <= MAX_FRAME_CELLS or size <= _SMALLEST_PART_BYTES:
            yield body
            return
        for part in split_into_smaller_pieces(
            body, self._strict_parser.quote, max(size * MAX_FRAME_CELLS // cells, _SMALLEST_PART_BYTES)
        ):
            yield from self._split_piece_exceeding_cell_limit(part) if len(part.data) < size else (part,)

    def parse_records_at_lines(self, records: Iterator[bytes], lines: Sequence[int]) -> Iterator[pl.DataFrame]:
        first = 0
        for batch in self._batch_raw_records(records):
            data = b"".join(batch)
            frame = self._parse_and_restore_line_breaks(Piece(lines[first], data, data.count(b"\n")))
            yield frame.with_columns(pl.Series(LINE, lines[first : first + len(batch)], pl.UInt64))
            first += len(batch)

    def _batch_raw_records(self, records: Iterator[bytes]) -> Iterator[list[bytes]]:
        batch, size, cells = list[bytes](), 0, 0
        for record in records:
            batch.append(record)
            size += len(record)
            cells += record.count(b"\n") * len(self._names)
            if size >= _PICKED_BYTES or cells >= _PICKED_CELLS:
                yield batch
                batch, size, cells = [], 0, 0
        if batch:
            yield batch

    def _parse_and_restore_line_breaks(self, piece: Piece) -> pl.DataFrame:
        frame = self._parse_piece_with_polars_or_strictly(piece)
        return self._row_ends.restore_line_breaks_in_frame(frame) if self._row_ends else frame

    def _parse_piece_with_polars_or_strictly(self, piece: Piece) -> pl.DataFrame:
        frame = self._parse_with_polars(piece) if len(piece.data) > STRICT_BYTES else None
        if frame is not None:
            return frame
        text, fault = decode_up_to_invalid_byte(piece, self._strict_parser.quote)
        rows, frames = self._parse_rows_strictly(text, piece.line), list[pl.DataFrame]()
        while batch := list(islice(rows, _STRICT_CELLS // len(self.schema) + 1)):
            frames.append(pl.DataFrame(batch, schema=self.schema, orient="row"))
        if fault:
            raise fault.error(self._strict_parser.name)
        return pl.concat(frames) if frames else pl.DataFrame(schema=self.schema)

    def _parse_with_polars(self, piece: Piece) -> pl.DataFrame | None:
        frame = self._polars_parser.parse(piece)
        if frame is None and self._parser_with_extra_column:
            frame = self._drop_extra_column_if_empty(self._parser_with_extra_column.parse(piece))
        return frame

    def _drop_extra_column_if_empty(self, frame: pl.DataFrame | None) -> pl.DataFrame | None:
        if frame is None or not (frame[_BESIDE] == "").all():
            return None
        self._leniencies.add("long", frame.height)
        return frame.drop(_BESIDE)

    def _decode_record_or_raise(self, record: Piece) -> str:
        text, fault = decode_up_to_invalid_byte(record, self._strict_parser.quote)
        if fault:
            raise fault.error(self._strict_parser.name)
        return text

    def _parse_rows_strictly(self, text: str, line: int) -> Iterator[tuple[str | int, ...]]:
        width = len(self._names)
        for start, cells in self._strict_parser.records(text, line, crlf=self._crlf):
            if self._is_trailer_row(cells):
                self._raise_early_trailer_error(text.split("\n")[start - line + 1 :], start)
            cells = self._fitting.pad_or_cut_cells(cells, width)  # noqa: PLW2901  as declared
            if len(cells) == width and is_repeated_header_row(cells, self._names):
                hint = "Were files joined? Ask the sender to send them separately."
                self._strict_parser.raise_error("a header line among the rows", start, hint=hint)
            if len(cells) != width:
                few = "the line is truncated, or a trailer that is not declared"
                many = "a delimiter inside a field lacks quotes"
                hint = f"Either the declared delimiter is wrong, or {few if len(cells) < width else many}."
                hint = f"{_advice_if_extra_cells_are_empty(cells, width)}{hint}"
                self._strict_parser.raise_error(f"{_field_count_text(len(cells))} instead of {width}", start, hint=hint)
            yield *cells, start

    def _validate_header(self, cells: list[str], names: Sequence[str] | None, line: int) -> Sequence[str]:
        if self._is_trailer_row(cells):
            hint = "The file begins with its trailer. Fetch it again; if it never has a header, declare header: false."
            self._strict_parser.raise_error("the header is missing", line, hint=hint)
        while self._fitting.cuts_long_lines and len(cells) > 1 and not cells[-1]:
            cells = cells[:-1]
        try:
            validate_column_names(cells)
        except ValueError as error:
            hint = (
                f"Ask the sender to correct the header. To give columns other names, declare skip_lines: {line},"
                " header: false and names; without skip_lines only if this line is a row."
            )
            hint = f"{_advice_if_extra_cells_are_empty(cells, max(len(cells) - 1, 1))}{hint}"
            self._strict_parser.raise_error(f"header: {error}", line, hint=hint)
        if names is not None and tuple(cells) != tuple(names):
            missing = ", ".join(name for name in names if name not in cells) or "nothing"
            hint = "If the sender changed the layout, change names; their order counts."
            self._strict_parser.raise_error(f"the header is not the declared one; missing: {missing}", line, hint=hint)
        return cells

    def _is_trailer_row(self, cells: Sequence[str]) -> bool:
        if self._trailer_cells is None or len(cells) < len(self._trailer_cells):
            return False
        *whole, begin = self._trailer_cells
        return list(cells[: len(whole)]) == whole and cells[len(whole)].startswith(begin)

    def _raise_if_trailer_wrong(self, trailer: Trailer, tail: Piece) -> None:
        line = tail.line
        _, cells = next(self._strict_parser.records(self._decode_record_or_raise(tail), line, crlf=self._crlf))
        if not self._is_trailer_row(cells):
            self._raise_missing_trailer_error(line)
        if trailer.count is None:
            return
        number = cells[trailer.count].strip(" ") if trailer.count < len(cells) else ""
        if not _COUNT.fullmatch(number):
            hint = "Set trailer.count to the field with the number of rows, counted from 0."
            self._strict_parser.raise_error(f"field {trailer.count} of the trailer is not a count", line, hint=hint)
        counted = self.rows + trailer.count_includes
        if int(number) != counted:
            hint = "The file is not whole: fetch it again."
            if 0 < int(number) - counted <= _OTHER_LINES:  # a file that lacks rows looks the same
                hint += " Only if the sender says that it counts header or trailer too, declare count_includes."
            self._strict_parser.raise_error(
                f"the trailer counts {int(number)}, the file has {counted}", line, hint=hint
            )

    def _raise_early_trailer_error(self, lines_behind: Sequence[str], line: int) -> NoReturn:
        hint = "Were files joined? If it is a row, declare a longer prefix that includes the delimiter."
        tail = self._tail.data.decode(errors="replace") if self._tail else ""
        if not "".join([*lines_behind, tail]).strip():
            hint = "If only blank lines follow it, declare blank_lines: at_end."
        self._strict_parser.raise_error("a trailer that is not the last line", line, hint=hint)

    def _raise_missing_trailer_error(self, line: int) -> NoReturn:
        hint = "The file is truncated or still being written: fetch it again."
        self._strict_parser.raise_error("the last line is not the trailer", line, hint=hint)


def _advice_if_extra_cells_are_empty(cells: Sequence[str], width: int) -> str:
    """Return what helps if *cells* are too many, and those after *width* ones are empty."""
    is_empty = len(cells) > width and not any(cells[width:])
    return "If a delimiter ends each line, declare long_lines: drop_empty. " if is_empty else ""


def _field_count_text(count: int) -> str:
    return "1 field" if count == 1 else f"{count} fields"


class DeclaredRowEnds:
    """The row ends of one file. LF stands for CRLF as well, if all rows have it. `marks` replace LF and CR in rows."""

    def __init__(self, end: str, delimiter: str) -> None:
        free = [mark for mark in _FREE if mark not in end and mark not in delimiter]
        self.marks = "".join(free[:2])
        self._reserved = free[:3]
        either = end.endswith("\n") and not end.endswith("\r\n")
        self._ends = [end, f"{end[:-1]}\r\n"] if either else [end]  # the ends that the file may have

    def replace_row_ends_by_line_feeds(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """Replace row ends by LF, and other LF and CR by marks. DecodingError follows the text before the fault."""
        lf, cr, row = [mark.encode() for mark in self._reserved]
        declared = [end.encode() for end in self._ends]
        ends, held = declared, b""
        for block in blocks:
            data = held + block
            if len(ends) > 1 and (first := _find_first_row_end(data, ends)):
                ends, self._ends = [first], [first.decode()]
            text, fault = self._text_before_first_fault(data, [end for end in declared if end not in ends])
            text = text.replace(ends[0], row) if len(ends) == 1 else text
            kept = 0 if fault else _length_of_partial_row_end(text[text.rfind(row) + 1 :], declared)
            held = text[len(text) - kept :]
            yield text[: len(text) - kept].replace(b"\n", lf).replace(b"\r", cr).replace(row, b"\n")
            if fault:
                raise fault
        if held:
            raise DecodingError("the file ends within a row end", "The file is truncated: fetch it again.")

    def restore_line_breaks(self, text: str) -> str:
        for mark, original in self._originals_of_marks.items():
            text = text.replace(mark, original)
        return text

    def restore_line_breaks_in_frame(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(pl.col(pl.String).str.replace_many(self._originals_of_marks))

    @property
    def _originals_of_marks(self) -> dict[str, str]:
        lf, cr = list(self.marks)
        return {"\n": self._ends[0], lf: "\n", cr: "\r"}  # in quotes, a row end is text

    def _text_before_first_fault(self, data: bytes, others: list[bytes]) -> tuple[bytes, DecodingError | None]:
        places = {data.find(fault): fault for fault in [*others, *(mark.encode() for mark in self._reserved)]}
        places.pop(-1, None)
        if not places:
            return data, None
        at = min(places)
        if places[at] in others:
            hint = "Were files of two systems joined? Ask the sender to send them separately."
            return data[:at], DecodingError("row ends with LF and with CRLF in one file", hint)
        hint = "Check that it is a text file in the declared encoding."
        return data[:at], DecodingError(f"control character U+{ord(places[at]):04X}", hint)


def _find_first_row_end(data: bytes, ends: list[bytes]) -> bytes | None:
    places = {data.find(end): end for end in ends}
    places.pop(-1, None)
    return places[min(places)] if places else None


def _length_of_partial_row_end(tail: bytes, ends: list[bytes]) -> int:
    """Return how many of the last bytes of *tail* may begin a row end."""
    longest = max(map(len, ends)) - 1
    sizes = range(min(longest, len(tail)), 0, -1)
    return next((size for size in sizes if any(end.startswith(tail[-size:]) for end in ends)), 0)


_CHUNK_BYTES = 4 << 20  # larger pieces are no faster and take more memory


def read_delimited_rows(
    path: Openable,
    layout: DelimitedFormat,
    *,
    name: str,
    batch_rows: int = 100_000,
    leniencies: LeniencyCounts | None = None,
    _chunk: int = _CHUNK_BYTES,
) -> Iterator[pl.DataFrame]:
    counted = LeniencyCounts() if leniencies is None else leniencies
    with open_and_unpack_if_gzip(path, name=name) as stream:
        if layout.record_types and layout.records:
            parts = _parse_frames_by_record_type(stream, layout, name, _chunk, counted)
            hierarchy = RecordHierarchy(
                name, layout.record_types, layout.records, layout.groups, keeps_empty=layout.keeps_empty_groups
            )
            yield from check_hierarchy_and_select_rows(parts, hierarchy, batch_rows)
            return
        file, rest = _prepare_parser_and_pieces(stream, layout, name, _chunk, counted)
        for frame in file.parse_pieces_and_verify_trailer(rest):
            yield from frame.iter_slices(batch_rows)
        if not file.rows:
            yield pl.DataFrame(schema=file.schema)


def read_delimited_rows_at_lines(
    path: Openable,
    layout: DelimitedFormat,
    lines: Sequence[int],
    *,
    name: str,
    batch_rows: int = 100_000,
    _chunk: int = _CHUNK_BYTES,
) -> Iterator[pl.DataFrame]:
    """Read the rows that begin at *lines* (ascending) of a file that was read to its end, much faster."""
    counted = LeniencyCounts()
    with open_and_unpack_if_gzip(path, name=name) as stream:
        file, _ = _prepare_parser_and_pieces(stream, layout, name, _chunk, counted)
    with open_and_unpack_if_gzip(path, name=name) as stream:
        prepare, wanted = _make_line_filter(layout, _row_ends_if_declared(layout), counted), iter(lines)
        found = read_decoded_records_at_lines(
            stream, layout.encoding, layout.quote, wanted, name=name, chunk=_chunk, prepare=prepare
        )
        for frame in file.parse_records_at_lines(found, lines):
            yield from frame.iter_slices(batch_rows)


def _prepare_parser_and_pieces(
    stream: Readable, layout: DelimitedFormat, name: str, chunk: int, counted: LeniencyCounts
) -> tuple[SingleTypeDelimitedParser, Iterator[Piece]]:
    row_ends = _row_ends_if_declared(layout)
    first, cut = _read_first_record_and_other_pieces(stream, layout, name, chunk, row_ends, counted)
    return SingleTypeDelimitedParser(layout, name, first, row_ends, counted), cut if layout.header else chain(
        [first], cut
    )


def _parse_frames_by_record_type(
    stream: Readable, layout: DelimitedFormat, name: str, chunk: int, counted: LeniencyCounts
) -> Iterator[Mapping[str, pl.DataFrame]]:
    row_ends = _row_ends_if_declared(layout)
    first, cut = _read_first_record_and_other_pieces(stream, layout, name, chunk, row_ends, counted)
    fitting = RowWidthPolicy(layout.short_lines, layout.long_lines, counted)
    records = MultiTypeDelimitedParser(layout, name, fitting, crlf=first.data.endswith(b"\r\n"), row_ends=row_ends)
    return map_in_parallel(records.data_frames_by_record_type, records.small_pieces(chain([first], cut)))


def _read_first_record_and_other_pieces(
    stream: Readable,
    layout: DelimitedFormat,
    name: str,
    chunk: int,
    row_ends: DeclaredRowEnds | None,
    counted: LeniencyCounts,
) -> tuple[Piece, Iterator[Piece]]:
    prepare = _make_line_filter(layout, row_ends, counted)
    cut = decode_into_record_pieces(stream, layout.encoding, layout.quote, name=name, chunk=chunk, prepare=prepare)
    first = next(cut, None)
    if first is None:
        hint = "It has not even a header: fetch it again, or ask the sender."
        raise RefusedError("the file is empty", where=name, hint=hint, code="file_empty")
    if layout.record_types is None:
        raise_if_edi_interchange(first.data, name=name)
    return first, cut


def _row_ends_if_declared(layout: DelimitedFormat) -> DeclaredRowEnds | None:
    return DeclaredRowEnds(layout.row_end, layout.delimiter) if layout.row_end else None


def _make_line_filter(layout: DelimitedFormat, row_ends: DeclaredRowEnds | None, counted: LeniencyCounts) -> LineFilter:
    def prepare(blocks: Iterator[bytes]) -> Iterator[TextOrSkippedLineCount]:
        text = row_ends.replace_row_ends_by_line_feeds(blocks) if row_ends else blocks
        found: Iterator[TextOrSkippedLineCount] = (
            skip_preamble_lines(text, layout.skip_lines) if layout.skip_lines else text
        )
        if layout.comment:
            found = skip_comment_lines(found, _make_comment_recognizer(layout, layout.comment, counted), layout.quote)
        if layout.blank_lines is None or layout.blank_lines == "refuse":
            return found
        blanks = "" if " " in layout.delimiter else " "
        return skip_blank_lines(found, layout.blank_lines, layout.quote, blanks=blanks, leniencies=counted)

    return prepare


def _make_comment_recognizer(layout: DelimitedFormat, prefix: str, counted: LeniencyCounts) -> CommentRecognizer:
    types = (layout.record_types or {}).values()
    declared = [len(each) for each in (layout.names, *(each.names for each in types)) if each]
    return CommentRecognizer(prefix, layout.delimiter, counted, declared)


class DelimitedReader(FormatReader[DelimitedFormat]):
    layout = DelimitedFormat

    def rows(
        self, path: Openable, layout: DelimitedFormat, *, name: str, batch_rows: int, leniencies: LeniencyCounts | None
    ) -> Iterator[pl.DataFrame]:
        return read_delimited_rows(path, layout, name=name, batch_rows=batch_rows, leniencies=leniencies)

    def rows_at_lines(
        self, path: Openable, layout: DelimitedFormat, lines: Sequence[int], *, name: str
    ) -> Iterator[pl.DataFrame]:
        if layout.record_types is not None:
            return super().rows_at_lines(path, layout, lines, name=name)
        return read_delimited_rows_at_lines(path, layout, lines, name=name)

    def may_be_truncated(self, path: Openable, layout: DelimitedFormat) -> bool:
        return not layout.marks_end and is_last_row_end_missing(path, layout.encoding, layout.row_end)

    def record_bytes_at_lines(
        self, path: Openable, layout: DelimitedFormat, lines: Sequence[int], *, name: str
    ) -> Mapping[int, bytes]:
        if layout.row_end is not None:
            return {}
        return read_raw_records_at_lines(path, lines, layout.encoding, layout.quote, name=name)

    def describe_cell_places(self, layout: DelimitedFormat, names: Sequence[str], line: int) -> Mapping[str, str]:
        del line
        if layout.record_types is None:
            return {name: f"field {number}" for number, name in enumerate(names)}
        return dict(describe_field_places(layout.records or "", layout.record_types))


_MOST_BYTES = 1 << 20  # of a part: its cells may be Python objects


class MultiTypeDelimitedParser:
    """Splits records by type. It keeps nothing between two pieces, so that threads may share it."""

    def __init__(
        self,
        layout: DelimitedFormat,
        name: str,
        fitting: RowWidthPolicy,
        *,
        crlf: bool,
        row_ends: DeclaredRowEnds | None,
    ) -> None:
        marks = row_ends.marks if row_ends else ""
        self._layout, self._row_ends, self._fitting = layout, row_ends, fitting
        self._types: Mapping[str, DelimitedRecordType] = layout.record_types or {}
        self._crlf, self._field = crlf, layout.type_field
        self._strict = StrictDelimitedParser(name, layout.delimiter, layout.quote, marks)
        self._parsers = {
            each: PolarsDelimitedParser(
                DelimitedRecordForm(kind.names, layout.delimiter, layout.quote, crlf, None, marks)
            )
            for each, kind in self._types.items()
        }
        codes = {each: declared_type_code(each, kind) for each, kind in self._types.items()}
        self._codes = {code: each for each, code in codes.items() if code is not None}
        self._otherwise = next((each for each, code in codes.items() if code is None), None)

    def small_pieces(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        return chain.from_iterable(
            split_into_smaller_pieces(piece, self._layout.quote, _MOST_BYTES) for piece in pieces
        )

    def data_frames_by_record_type(self, piece: Piece) -> Mapping[str, pl.DataFrame]:
        found = self._split_by_type_with_polars(piece) or self._split_by_type_strictly(piece)
        if self._row_ends is None:
            return found
        return {name: self._row_ends.restore_line_breaks_in_frame(frame) for name, frame in found.items()}

    def _split_by_type_with_polars(self, piece: Piece) -> dict[str, pl.DataFrame] | None:
        quote = self._layout.quote
        if (quote and quote.encode() in piece.data) or not piece.data.endswith(b"\n"):
            return None
        text, fault = decode_up_to_invalid_byte(piece, None)
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

    def _split_by_type_strictly(self, piece: Piece) -> dict[str, pl.DataFrame]:
        text, fault = decode_up_to_invalid_byte(piece, self._layout.quote)
        rows: dict[str, list[tuple[str | int, ...]]] = {}
        for line, cells in self._strict.records(text, piece.line, crlf=self._crlf):
            name = self._type_of_record_or_raise(cells, line)
            names = self._types[name].names
            fitted = self._fitting.pad_or_cut_cells(cells, len(names))
            if len(fitted) != len(names):
                hint = "The line is truncated, a delimiter inside a field lacks quotes, or the names are not right."
                hint = f"{_advice_if_extra_cells_are_empty(fitted, len(names))}{hint}"
                self._raise_error(f"{len(cells)} fields instead of {len(names)} in a record of {name}", line, hint)
            rows.setdefault(name, []).append((*fitted, line))
        if fault:
            raise fault.error(self._strict.name)
        return {
            name: pl.DataFrame(
                found, schema={**dict.fromkeys(self._types[name].names, pl.String()), LINE: pl.UInt64()}, orient="row"
            )
            for name, found in rows.items()
        }

    def _type_of_record_or_raise(self, cells: list[str], line: int) -> str:
        name = self._codes.get(cells[self._field]) if self._field < len(cells) else None
        name = name or self._otherwise
        if name is None:
            hint = "Declare its type in record_types, or ask the sender what it is."
            self._raise_error(f"a record of no declared type in field {self._field}", line, hint)
        return name

    def _raise_error(self, message: str, line: int, hint: str) -> NoReturn:
        self._strict.raise_error(message, line, hint=hint)
