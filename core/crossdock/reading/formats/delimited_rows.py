"""The rows of one delimited file, checked against its layout, and the bytes that end them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, NoReturn

import polars as pl

from crossdock.reading.formats.column_name_checks import check_column_names, names_to_match
from crossdock.reading.formats.leniencies import FittingCells, Leniencies
from crossdock.reading.formats.parallel_map import prefetched
from crossdock.reading.formats.polars_parser import MAX_CELLS, PolarsParser, RecordFormat
from crossdock.reading.formats.strict_parser import StrictParser
from crossdock.reading.formats.text_decoding import Piece, as_text, split_last_record, split_piece
from crossdock.values.records import LINE, internal_column

if TYPE_CHECKING:
    from crossdock.reading.formats.delimited_format import DelimitedFormat, Trailer


from crossdock.reading.formats.text_decoding import DecodingError

_PICKED_BYTES, _PICKED_CELLS = 1 << 20, 100_000  # limits for one frame of picked records
_SMALLEST_PART_BYTES = 64 << 10
STRICT_BYTES = 2 << 10
"""The strict parser reads a piece of this size sooner than polars can be called."""
_STRICT_CELLS = 100_000  # cells that are Python objects at the same time
_OTHER_LINES = 2  # header and trailer
_BESIDE = internal_column("beside")
_COUNT = re.compile("[0-9]{1,18}")
_FREE = "".join(map(chr, range(0x0E, 0x1A)))  # the parser with polars uses others


class DelimitedRows:
    def __init__(
        self, layout: DelimitedFormat, name: str, first: Piece, row_ends: RowEnds | None, leniencies: Leniencies
    ) -> None:
        self._row_ends, marks = row_ends, row_ends.marks if row_ends else ""
        self._strict_parser = StrictParser(name, layout.delimiter, layout.quote, marks)
        self._trailer = layout.trailer
        self._trailer_cells = layout.trailer.prefix.split(layout.delimiter) if layout.trailer else None
        self._leniencies, self._fitting = leniencies, FittingCells(layout.short_lines, layout.long_lines, leniencies)
        self._layout, self._crlf = layout, first.data.endswith(b"\r\n")
        line, cells = next(self._strict_parser.records(self._decoded_text(first), first.line))
        cells = [row_ends.restored(cell) for cell in cells] if row_ends else cells
        self._names = self._checked_header(cells, layout.names, line) if layout.header else layout.names or ()
        self.schema = {**dict.fromkeys(self._names, pl.String()), LINE: pl.UInt64()}
        self._tail: Piece | None = None
        self.rows = 0

    @cached_property
    def _polars_parser(self) -> PolarsParser:
        return PolarsParser(self._record_format(self._names))

    @cached_property
    def _wider_parser(self) -> PolarsParser | None:
        return PolarsParser(self._record_format([*self._names, _BESIDE])) if self._fitting.may_be_cut else None

    def _record_format(self, names: Sequence[str]) -> RecordFormat:
        marks = self._row_ends.marks if self._row_ends else ""
        layout = self._layout
        return RecordFormat(names, layout.delimiter, layout.quote, self._crlf, self._trailer_cells, marks)

    def frames(self, rest: Iterator[Piece]) -> Iterator[pl.DataFrame]:
        for frame in prefetched(self._frame, self._pieces_without_trailer(rest)):
            self.rows += frame.height
            yield frame
        if self._trailer and self._tail:
            self._check_trailer(self._trailer, self._tail)
        elif self._trailer:
            self._refuse_missing_trailer(1)

    def _pieces_without_trailer(self, rest: Iterator[Piece]) -> Iterator[Piece]:
        for piece in rest:
            body: Piece | None = piece
            if self._trailer and piece.last:
                body, self._tail = split_last_record(piece, self._strict_parser.quote)
            if body:
                yield from self._split_by_cells(body)

    def _split_by_cells(self, body: Piece) -> Iterator[Piece]:
        cells, size = body.ends * len(self._names), len(body.data)
        if cells <= MAX_CELLS or size <= _SMALLEST_PART_BYTES:
            yield body
            return
        for part in split_piece(body, self._strict_parser.quote, max(size * MAX_CELLS // cells, _SMALLEST_PART_BYTES)):
            yield from self._split_by_cells(part) if len(part.data) < size else (part,)

    def frames_of_records(self, records: Iterator[bytes], lines: Sequence[int]) -> Iterator[pl.DataFrame]:
        first = 0
        for batch in self._record_batches(records):
            data = b"".join(batch)
            frame = self._frame(Piece(lines[first], data, data.count(b"\n")))
            yield frame.with_columns(pl.Series(LINE, lines[first : first + len(batch)], pl.UInt64))
            first += len(batch)

    def _record_batches(self, records: Iterator[bytes]) -> Iterator[list[bytes]]:
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

    def _frame(self, piece: Piece) -> pl.DataFrame:
        frame = self._parse_piece(piece)
        return self._row_ends.restored_frame(frame) if self._row_ends else frame

    def _parse_piece(self, piece: Piece) -> pl.DataFrame:
        frame = self._parse_with_polars(piece) if len(piece.data) > STRICT_BYTES else None
        if frame is not None:
            return frame
        text, fault = as_text(piece, self._strict_parser.quote)
        rows, frames = self._strict_rows(text, piece.line), list[pl.DataFrame]()
        while batch := list(islice(rows, _STRICT_CELLS // len(self.schema) + 1)):
            frames.append(pl.DataFrame(batch, schema=self.schema, orient="row"))
        if fault:
            raise fault.error(self._strict_parser.name)
        return pl.concat(frames) if frames else pl.DataFrame(schema=self.schema)

    def _parse_with_polars(self, piece: Piece) -> pl.DataFrame | None:
        frame = self._polars_parser.parse(piece)
        if frame is None and self._wider_parser:
            frame = self._without_empty_extra_column(self._wider_parser.parse(piece))
        return frame

    def _without_empty_extra_column(self, frame: pl.DataFrame | None) -> pl.DataFrame | None:
        if frame is None or not (frame[_BESIDE] == "").all():
            return None
        self._leniencies.add("long", frame.height)
        return frame.drop(_BESIDE)

    def _decoded_text(self, record: Piece) -> str:
        text, fault = as_text(record, self._strict_parser.quote)
        if fault:
            raise fault.error(self._strict_parser.name)
        return text

    def _strict_rows(self, text: str, line: int) -> Iterator[tuple[str | int, ...]]:
        width, begin = len(self._names), list(names_to_match(self._names))
        for start, cells in self._strict_parser.records(text, line, crlf=self._crlf):
            if self._is_trailer(cells):
                hint = "Were files joined? If it is a row, declare a longer prefix that includes the delimiter."
                self._strict_parser.refuse("a trailer that is not the last line", start, hint=hint)
            cells = self._fitting.fitted(cells, width)  # noqa: PLW2901  as declared
            if cells[: len(begin)] == begin and len(cells) == width:
                hint = "Were files joined? Ask the sender to send them separately."
                self._strict_parser.refuse("a header line among the rows", start, hint=hint)
            if len(cells) != width:
                few = "the line is truncated, or a trailer that is not declared"
                many = "a delimiter inside a field lacks quotes"
                hint = f"Either the declared delimiter is wrong, or {few if len(cells) < width else many}."
                self._strict_parser.refuse(f"{_field_count_text(len(cells))} instead of {width}", start, hint=hint)
            yield *cells, start

    def _checked_header(self, cells: list[str], names: Sequence[str] | None, line: int) -> Sequence[str]:
        if self._is_trailer(cells):
            hint = "The file begins with its trailer. Fetch it again; if it never has a header, declare header: false."
            self._strict_parser.refuse("the header is missing", line, hint=hint)
        while self._fitting.may_be_cut and len(cells) > 1 and not cells[-1]:
            cells = cells[:-1]
        try:
            check_column_names(cells)
        except ValueError as error:
            hint = (
                f"Ask the sender to correct the header. To give columns other names, declare skip_lines: {line},"
                " header: false and names; without skip_lines only if this line is a row."
            )
            if len(cells) > 1 and not cells[-1]:
                hint = f"If a delimiter ends each line, declare long_lines: drop_empty. {hint}"
            self._strict_parser.refuse(f"header: {error}", line, hint=hint)
        if names is not None and tuple(cells) != tuple(names):
            missing = ", ".join(name for name in names if name not in cells) or "nothing"
            hint = "If the sender changed the layout, change names; their order counts."
            self._strict_parser.refuse(f"the header is not the declared one; missing: {missing}", line, hint=hint)
        return cells

    def _is_trailer(self, cells: Sequence[str]) -> bool:
        if self._trailer_cells is None or len(cells) < len(self._trailer_cells):
            return False
        *whole, begin = self._trailer_cells
        return list(cells[: len(whole)]) == whole and cells[len(whole)].startswith(begin)

    def _check_trailer(self, trailer: Trailer, tail: Piece) -> None:
        line = tail.line
        _, cells = next(self._strict_parser.records(self._decoded_text(tail), line, crlf=self._crlf))
        if not self._is_trailer(cells):
            self._refuse_missing_trailer(line)
        if trailer.count is None:
            return
        number = cells[trailer.count].strip(" ") if trailer.count < len(cells) else ""
        if not _COUNT.fullmatch(number):
            hint = "Set trailer.count to the field with the number of rows, counted from 0."
            self._strict_parser.refuse(f"field {trailer.count} of the trailer is not a count", line, hint=hint)
        counted = self.rows + trailer.count_includes
        if int(number) != counted:
            hint = "The file is not whole: fetch it again."
            if 0 < int(number) - counted <= _OTHER_LINES:  # a file that lacks rows looks the same
                hint += " Only if the sender says that it counts header or trailer too, declare count_includes."
            self._strict_parser.refuse(f"the trailer counts {int(number)}, the file has {counted}", line, hint=hint)

    def _refuse_missing_trailer(self, line: int) -> NoReturn:
        hint = "The file is truncated or still being written: fetch it again."
        self._strict_parser.refuse("the last line is not the trailer", line, hint=hint)


def _field_count_text(count: int) -> str:
    return "1 field" if count == 1 else f"{count} fields"


class RowEnds:
    """The row ends of one file. LF stands for CRLF as well, if all rows have it. `marks` replace LF and CR in rows."""

    def __init__(self, end: str, delimiter: str) -> None:
        free = [mark for mark in _FREE if mark not in end and mark not in delimiter]
        self.marks = "".join(free[:2])
        self._reserved = free[:3]
        either = end.endswith("\n") and not end.endswith("\r\n")
        self._ends = [end, f"{end[:-1]}\r\n"] if either else [end]  # the ends that the file may have

    def with_line_feeds(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """Replace row ends by LF, and other LF and CR by marks. DecodingError follows the text before the fault."""
        lf, cr, row = [mark.encode() for mark in self._reserved]
        declared = [end.encode() for end in self._ends]
        ends, held = declared, b""
        for block in blocks:
            data = held + block
            if len(ends) > 1 and (first := _first_row_end(data, ends)):
                ends, self._ends = [first], [first.decode()]
            text, fault = self._text_before_fault(data, [end for end in declared if end not in ends])
            text = text.replace(ends[0], row) if len(ends) == 1 else text
            kept = 0 if fault else _length_of_begun_end(text[text.rfind(row) + 1 :], declared)
            held = text[len(text) - kept :]
            yield text[: len(text) - kept].replace(b"\n", lf).replace(b"\r", cr).replace(row, b"\n")
            if fault:
                raise fault
        if held:
            raise DecodingError("the file ends within a row end", "The file is truncated: fetch it again.")

    def restored(self, text: str) -> str:
        for mark, original in self._originals_of_marks.items():
            text = text.replace(mark, original)
        return text

    def restored_frame(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(pl.col(pl.String).str.replace_many(self._originals_of_marks))

    @property
    def _originals_of_marks(self) -> dict[str, str]:
        lf, cr = list(self.marks)
        return {"\n": self._ends[0], lf: "\n", cr: "\r"}  # in quotes, a row end is text

    def _text_before_fault(self, data: bytes, others: list[bytes]) -> tuple[bytes, DecodingError | None]:
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


def _first_row_end(data: bytes, ends: list[bytes]) -> bytes | None:
    places = {data.find(end): end for end in ends}
    places.pop(-1, None)
    return places[min(places)] if places else None


def _length_of_begun_end(tail: bytes, ends: list[bytes]) -> int:
    """Return how many of the last bytes of *tail* may begin a row end."""
    longest = max(map(len, ends)) - 1
    sizes = range(min(longest, len(tail)), 0, -1)
    return next((size for size in sizes if any(end.startswith(tail[-size:]) for end in ends)), 0)
