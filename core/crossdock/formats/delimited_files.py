"""Reads delimited text files strictly: each deviation from the declared layout is refused with its place."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Annotated, Literal, NoReturn, Self

import polars as pl
from pydantic import AfterValidator, Field, model_validator

from crossdock.config_file import ConfigModel
from crossdock.errors import RefusedError
from crossdock.formats.compression import Openable, Readable, open_stream
from crossdock.formats.polars_parser import LINE, MAX_CELLS, PolarsParser, RecordFormat
from crossdock.formats.prefetch import prefetched
from crossdock.formats.strict_parser import MAX_COLUMNS, StrictParser
from crossdock.formats.text_decoding import (
    NotText,
    Piece,
    as_text,
    parts,
    pieces,
    records_at,
    split_last_record,
)

_CHUNK_BYTES = 4 << 20  # larger pieces are no faster and take more memory
_PICKED_BYTES, _PICKED_CELLS = 1 << 20, 100_000  # most of one frame of picked records
_SMALLEST_PART_BYTES = 64 << 10
_STRICT_CELLS = 100_000  # cells that are Python objects at a time
_ENCODINGS = (
    *("utf-8", "utf-16", "utf-16-le", "utf-16-be", "ascii", "latin-1", "iso8859-2", "iso8859-15"),
    *("cp1250", "cp1252", "cp437", "cp850", "cp852"),
)
_DELIMITER = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f-\x9f\ufeff\ud800-\udfff]{1,8}|[\x01-\x08\x0b\x0c\x0e-\x19\x1b-\x1f]")
_TAB_NAMES = ("tab", r"\t")  # the second is what YAML reads without quotes
_COUNT = re.compile("[0-9]{1,18}")


def _delimiter(value: str) -> str:
    if value in _TAB_NAMES:
        return "\t"
    if not _DELIMITER.fullmatch(value):
        raise ValueError(
            "must be 1 to 8 characters without line breaks; a control character other than tab is allowed only alone"
        )
    return value


def _encoding(value: str) -> str:
    try:
        known = codecs.lookup(value).name in {codecs.lookup(name).name for name in _ENCODINGS}
    except LookupError:
        known = False
    if not known:
        raise ValueError(f"is not one of {', '.join(_ENCODINGS)}")
    return value


def _column_names(names: Sequence[str]) -> Sequence[str]:
    """Check the names of a header.

    Raises:
        ValueError: With the number of the column and never its name: where a header is missing, the names are data.
    """
    if len(names) > MAX_COLUMNS:
        raise ValueError(f"{len(names)} columns, more than the limit of {MAX_COLUMNS}")
    seen: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if not name.strip():
            raise ValueError(f"column {number} has no name")
        if name.startswith("_"):
            raise ValueError(f"the name of column {number} begins with _: such names are reserved")
        if name in seen:
            raise ValueError(f"columns {seen[name]} and {number} have the same name")
        seen[name] = number
    return names


class Trailer(ConfigModel):
    """The last line, which holds the number of rows."""

    prefix: Annotated[str, Field(min_length=1, pattern=r"^[^\r\n]*$")]
    """How the line begins, without quotes. It may hold delimiters: ``TRL|`` cannot be mistaken for a SKU TRL7."""
    count: Annotated[int, Field(ge=0)]
    """The field that holds the number of rows, counted from 0."""
    count_includes: Annotated[int, Field(ge=0)] = 0
    """How many other lines (header, trailer) that number includes."""


class DelimitedFormat(ConfigModel):
    """The layout of a delimited text file. All lines of a file end with LF, or all with CRLF."""

    kind: Literal["delimited"] = "delimited"
    delimiter: Annotated[str, AfterValidator(_delimiter)] = ","
    """Separates two fields: 1 to 8 characters, or ``tab``."""
    quote: Literal['"', "'"] | None = '"'
    """Encloses fields that hold delimiters or line ends; null where quotes are ordinary characters."""
    encoding: Annotated[str, AfterValidator(_encoding)] = "utf-8"
    """The character encoding, such as utf-8, cp1252 (Windows), cp850 (DOS), utf-16."""
    header: bool = True
    """Whether the first line names the columns."""
    names: Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_column_names)] | None = None
    """The columns. Required without a header; with one, the header must be exactly this."""
    trailer: Trailer | None = None
    """The last line, if it counts the rows."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if not self.header and self.names is None:
            raise ValueError("a file without a header needs names")
        if self.quote and (self.quote in self.delimiter or (self.trailer and self.quote in self.trailer.prefix)):
            raise ValueError("neither the delimiter nor the prefix of the trailer may contain the quote")
        return self


def read_rows(
    path: Openable, layout: DelimitedFormat, *, name: str, batch_rows: int = 100_000, _chunk: int = _CHUNK_BYTES
) -> Iterator[pl.DataFrame]:
    """Read a delimited text file, plain or gzip, in bounded memory.

    A fault may be found after many frames, a wrong count only at the end: nothing that was read may have an effect
    before the iterator has ended.

    Args:
        name: The file's name in errors.
        batch_rows: The most rows in one frame.

    Returns:
        Frames with the columns of the header as String, empty cells as ``""`` and never null, and ``_line: UInt64``,
        the line where the row begins, from 1. File order is kept. A file without rows gives one empty frame.

    Raises:
        RefusedError: While iterating, at the first deviation in the file, with file, line and often column.
    """
    with open_stream(path, name=name) as stream:
        file, rest = _opened(stream, layout, name, _chunk)
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
    """Read some rows of a file that `read_rows` has read to its end, in a fraction of the time.

    Args:
        lines: Where the rows begin, ascending; a row begins at each of them.

    Returns:
        Frames like those of `read_rows`.
    """
    with open_stream(path, name=name) as stream:
        file, _ = _opened(stream, layout, name, _chunk)
    with open_stream(path, name=name) as stream:
        found = records_at(stream, layout.encoding, layout.quote, iter(lines), name=name, chunk=_chunk)
        for frame in file.picked(found, lines):
            yield from frame.iter_slices(batch_rows)


def _opened(stream: Readable, layout: DelimitedFormat, name: str, chunk: int) -> tuple[_File, Iterator[Piece]]:
    """The file, with its first record read, and the pieces that hold its rows."""
    cut = pieces(stream, layout.encoding, layout.quote, name=name, chunk=chunk)
    first = next(cut, None)
    if first is None:
        hint = "It has not even a header: fetch it again, or ask the sender."
        raise RefusedError("the file is empty", where=name, hint=hint)
    return _File(layout, name, first), cut if layout.header else chain([first], cut)


class _File:
    """One file being read: its columns, and the number of rows so far."""

    def __init__(self, layout: DelimitedFormat, name: str, first: Piece) -> None:
        self._strict_parser = StrictParser(name, layout.delimiter, layout.quote)
        self._trailer = layout.trailer
        self._trailer_cells = layout.trailer.prefix.split(layout.delimiter) if layout.trailer else None
        self._crlf = first.data.endswith(b"\r\n")
        _, cells = next(self._strict_parser.records(self._text(first), first.line))
        self._names = self._header(cells, layout.names) if layout.header else layout.names or ()
        self._polars_parser = PolarsParser(
            RecordFormat(self._names, layout.delimiter, layout.quote, self._crlf, self._trailer_cells)
        )
        self.schema = {**dict.fromkeys(self._names, pl.String()), LINE: pl.UInt64()}
        self._tail: Piece | None = None
        self.rows = 0

    def frames(self, rest: Iterator[Piece]) -> Iterator[pl.DataFrame]:
        """All rows; then the trailer is checked."""
        for frame in prefetched(self._frame, self._bodies(rest)):
            self.rows += frame.height
            yield frame
        if self._trailer and self._tail:
            self._check_trailer(self._trailer, self._tail)
        elif self._trailer:
            self._refuse_missing_trailer(1)

    def _bodies(self, rest: Iterator[Piece]) -> Iterator[Piece]:
        """The pieces that hold rows; the record that must be a trailer is set aside."""
        for piece in rest:
            body: Piece | None = piece
            if self._trailer and piece.last:
                body, self._tail = split_last_record(piece, self._strict_parser.quote)
            if body:
                yield from self._slim(body)

    def _slim(self, body: Piece) -> Iterator[Piece]:
        """*body* in pieces whose frames have at most `MAX_CELLS`, missing cells of short lines included."""
        cells, size = body.ends * len(self._names), len(body.data)
        if cells <= MAX_CELLS or size <= _SMALLEST_PART_BYTES:
            yield body
            return
        for part in parts(body, self._strict_parser.quote, max(size * MAX_CELLS // cells, _SMALLEST_PART_BYTES)):
            yield from self._slim(part) if len(part.data) < size else (part,)

    def picked(self, records: Iterator[bytes], lines: Sequence[int]) -> Iterator[pl.DataFrame]:
        """The rows of *records*, which begin at *lines*."""
        first = 0
        for batch in self._batches(records):
            data = b"".join(batch)
            frame = self._frame(Piece(lines[first], data, data.count(b"\n")))
            yield frame.with_columns(pl.Series(LINE, lines[first : first + len(batch)], pl.UInt64))
            first += len(batch)

    def _batches(self, records: Iterator[bytes]) -> Iterator[list[bytes]]:
        """*records*, as many at a time as give a frame of moderate size."""
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
        frame = self._polars_parser.frame(piece)
        if frame is not None:
            return frame
        text, fault = as_text(piece, self._strict_parser.quote)
        rows, frames = self._strict_rows(text, piece.line), [pl.DataFrame(schema=self.schema)]
        while batch := list(islice(rows, _STRICT_CELLS // len(self.schema) + 1)):
            frames.append(pl.DataFrame(batch, schema=self.schema, orient="row"))
        if fault:
            self._refuse_bytes(fault)
        return pl.concat(frames)

    def _text(self, record: Piece) -> str:
        text, fault = as_text(record, self._strict_parser.quote)
        if fault:
            self._refuse_bytes(fault)
        return text

    def _refuse_bytes(self, fault: NotText) -> NoReturn:
        hint = "If the file comes from Windows, declare encoding: cp1252"
        self._strict_parser.refuse(f"byte {fault.byte:02X} is not utf-8", fault.line, fault.column, hint=hint)

    def _strict_rows(self, text: str, line: int) -> Iterator[tuple[str | int, ...]]:
        """The rows of *text* as the strict parser reads them."""
        width = len(self._names)
        for start, cells in self._strict_parser.records(text, line, crlf=self._crlf):
            if self._is_trailer(cells):
                hint = "Were files joined? If it is a row, declare a longer prefix that includes the delimiter."
                self._strict_parser.refuse("a trailer that is not the last line", start, hint=hint)
            if cells == list(self._names):
                hint = "Were files joined? Ask the sender to send them separately."
                self._strict_parser.refuse("a header line among the rows", start, hint=hint)
            if len(cells) != width:
                few = "the line is truncated, or a trailer that is not declared"
                many = "a delimiter inside a field lacks quotes"
                hint = f"Either the declared delimiter is wrong, or {few if len(cells) < width else many}."
                self._strict_parser.refuse(f"{_fields(len(cells))} instead of {width}", start, hint=hint)
            yield *cells, start

    def _header(self, cells: list[str], names: Sequence[str] | None) -> Sequence[str]:
        if self._is_trailer(cells):
            hint = "The file begins with its trailer. Fetch it again; if it never has a header, declare header: false."
            self._strict_parser.refuse("the header is missing", 1, hint=hint)
        try:
            _column_names(cells)
        except ValueError as error:
            hint = "If the file has no header, declare header: false and names; else ask the sender to correct it."
            self._strict_parser.refuse(f"header: {error}", 1, hint=hint)
        if names is not None and tuple(cells) != tuple(names):
            missing = ", ".join(name for name in names if name not in cells) or "nothing"
            hint = "If the sender changed the layout, change names; their order counts."
            self._strict_parser.refuse(f"the header is not the declared one; missing: {missing}", 1, hint=hint)
        return cells

    def _is_trailer(self, cells: Sequence[str]) -> bool:
        if self._trailer_cells is None or len(cells) < len(self._trailer_cells):
            return False
        *whole, begin = self._trailer_cells
        return list(cells[: len(whole)]) == whole and cells[len(whole)].startswith(begin)

    def _check_trailer(self, trailer: Trailer, tail: Piece) -> None:
        line = tail.line
        _, cells = next(self._strict_parser.records(self._text(tail), line, crlf=self._crlf))
        if not self._is_trailer(cells):
            self._refuse_missing_trailer(line)
        number = cells[trailer.count].strip(" ") if trailer.count < len(cells) else ""
        if not _COUNT.fullmatch(number):
            hint = "Set trailer.count to the field with the number of rows, counted from 0."
            self._strict_parser.refuse(f"field {trailer.count} of the trailer is not a count", line, hint=hint)
        counted = self.rows + trailer.count_includes
        if int(number) != counted:
            hint = "The file is truncated, or the count includes header or trailer: then declare count_includes."
            self._strict_parser.refuse(f"the trailer counts {int(number)}, the file has {counted}", line, hint=hint)

    def _refuse_missing_trailer(self, line: int) -> NoReturn:
        hint = "The file is truncated or still being written: fetch it again."
        self._strict_parser.refuse("the last line is not the trailer", line, hint=hint)


def _fields(count: int) -> str:
    return "1 field" if count == 1 else f"{count} fields"
