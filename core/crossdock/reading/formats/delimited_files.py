"""Reads delimited text files strictly: each deviation from the declared layout is refused with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Annotated, Literal, Self

import polars as pl
from pydantic import AfterValidator, Field, model_validator

from crossdock.errors import RefusedError
from crossdock.reading.formats.column_names import check_column_names
from crossdock.reading.formats.compression import Openable, Readable, open_stream
from crossdock.reading.formats.delimited_records import DelimitedRecords
from crossdock.reading.formats.delimited_rows import DelimitedRows
from crossdock.reading.formats.left_out_lines import without_blank_lines, without_comments, without_preamble
from crossdock.reading.formats.leniencies import BlankLines, FittingCells, Leniencies, LongLines, ShortLines
from crossdock.reading.formats.other_kinds import refuse_message
from crossdock.reading.formats.prefetch import prefetched
from crossdock.reading.formats.record_sequence import RecordSequence, chosen_rows
from crossdock.reading.formats.record_types import RecordType, check_types, counts_rows, has_trailer
from crossdock.reading.formats.row_ends import RowEnds
from crossdock.reading.formats.text_decoding import Block, Piece, Prepare, pieces, records_at
from crossdock.reading.formats.text_encodings import known_encoding
from crossdock.values.config_file import ConfigModel, misplaced

_CHUNK_BYTES = 4 << 20  # larger pieces are no faster and take more memory
_DELIMITER = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f-\x9f\ufeff\ud800-\udfff]{1,8}|[\x01-\x08\x0b\x0c\x0e-\x19\x1b-\x1f]")
_TAB_NAMES = ("tab", r"\t")  # the second is what YAML reads without quotes
_ROW_END = re.compile(r"[^\x00\ufeff\ud800-\udfff]{1,8}")


def _delimiter(value: str) -> str:
    if value in _TAB_NAMES:
        return "\t"
    if not _DELIMITER.fullmatch(value):
        raise ValueError(
            "must be 1 to 8 characters without line breaks; a control character other than tab is allowed only alone"
        )
    return value


def _row_end(value: str) -> str:
    if "\\" in value:
        raise ValueError('holds a backslash; in double quotes, as in "&|\\n", YAML makes a line break of it')
    if not _ROW_END.fullmatch(value) or value == "\n":
        raise ValueError("must be 1 to 8 characters; lines that end with LF or CRLF need no row_end")
    return value


class Trailer(ConfigModel):
    """The last line, which shows that the file is whole."""

    prefix: Annotated[str, Field(min_length=1, pattern=r"^[^\r\n]*$")]
    """How the line begins, without quotes. It may hold delimiters: ``TRL|`` cannot be mistaken for a SKU TRL7."""
    count: Annotated[int, Field(ge=0)] | None = None
    """The field that holds the number of rows, counted from 0; none in a line without a number."""
    count_includes: Annotated[int, Field(ge=0)] = 0
    """How many other lines (header, trailer) that number includes."""


class DelimitedRecordType(RecordType):
    """One type of record in a delimited file."""

    names: Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(check_column_names)]
    """Its columns, with that of the code."""

    @property
    def own_columns(self) -> tuple[str, ...]:
        return self.names


class DelimitedFormat(ConfigModel):
    """The layout of a delimited text file. All lines of a file end with LF, or all with CRLF."""

    kind: Literal["delimited"] = "delimited"
    delimiter: Annotated[str, AfterValidator(_delimiter)] = ","
    """Separates two fields: 1 to 8 characters, or ``tab``."""
    quote: Literal['"', "'"] | None = '"'
    """Encloses fields that hold delimiters or line ends; null where quotes are ordinary characters."""
    row_end: Annotated[str, AfterValidator(_row_end)] | None = None
    """What ends each row, such as ``"&|\\n"``; LF and CR inside of rows are then text. Places count rows, not lines."""
    encoding: Annotated[str, AfterValidator(known_encoding)] = "utf-8"
    """The character encoding by one of Python's names, such as utf-8, cp1252 (Windows), cp850 (DOS), utf-16."""
    skip_lines: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """How many lines precede the header, or the first row if there is no header."""
    comment: Annotated[str, Field(min_length=1, max_length=8, pattern=r"^[^\r\n]*$")] | None = None
    """How lines begin that are left out wherever they are, such as ``"#"``."""
    header: bool = True
    """Whether the first line names the columns."""
    names: Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(check_column_names)] | None = None
    """The columns. Required without a header; with one, the header must be exactly this."""
    short_lines: ShortLines | None = None
    """Whether rows with too few fields are refused, or read as if empty ones followed (``pad``)."""
    long_lines: LongLines | None = None
    """Whether rows with too many fields are refused, or cut, if only empty ones follow (``drop_empty``) or ``drop``."""
    blank_lines: BlankLines | None = None
    """Whether blank lines are refused, or left out: those at the end of the file, or all (``skip``)."""
    trailer: Trailer | None = None
    """The last line, if it is not a row."""
    record_type: Annotated[int, Field(ge=0)] | None = None
    """The field with the code of the type of each record, counted from 0; by default the first one."""
    record_types: Annotated[Mapping[str, DelimitedRecordType], Field(min_length=1)] | None = None
    """The types of records in a file that has several, and no header line."""
    records: str | None = None
    """The type whose records are read."""

    @property
    def type_field(self) -> int:
        return self.record_type or 0

    @property
    def states_rows(self) -> bool:
        """Whether the file states how many rows it has."""
        if self.record_types and self.records:
            return counts_rows(self.record_types, self.records)
        return self.trailer is not None and self.trailer.count is not None

    @property
    def marks_end(self) -> bool:
        """Whether a file that is cut at the end of a line is found."""
        return self.trailer is not None or has_trailer(self.record_types or {})

    @model_validator(mode="after")
    def _types_fit(self) -> Self:
        if self.record_types is None:
            if self.record_type is not None or self.records is not None:
                raise ValueError("record_type and records belong to record_types")
            return self
        if self.names or self.trailer or (self.header and "header" in self.model_fields_set):
            raise ValueError("record_types take the place of header, names and trailer")
        check_types(self.record_types, self.records)
        for name, kind in self.record_types.items():
            if self.type_field >= len(kind.names):
                raise misplaced(("record_types", name, "names"), f"lack field {self.type_field}, that of the code")
        return self

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if not self.header and self.names is None and self.record_types is None:
            raise ValueError("a file without a header needs names")
        if self.quote and (self.quote in self.delimiter or (self.trailer and self.quote in self.trailer.prefix)):
            raise ValueError("neither the delimiter nor the prefix of the trailer may contain the quote")
        if self.quote and (
            (self.row_end and self.quote in self.row_end) or (self.comment or "").startswith(self.quote)
        ):
            raise ValueError("row_end must not contain the quote, and comment must not begin with it")
        if self.row_end and self.row_end in self.delimiter:
            raise ValueError("row_end must not be a part of the delimiter")
        return self


def read_rows(
    path: Openable,
    layout: DelimitedFormat,
    *,
    name: str,
    batch_rows: int = 100_000,
    leniencies: Leniencies | None = None,
    _chunk: int = _CHUNK_BYTES,
) -> Iterator[pl.DataFrame]:
    """Read a delimited text file, plain or gzip, in bounded memory.

    A fault may be found after many frames, a wrong count only at the end: nothing that was read may have an effect
    before the iterator has ended.

    Args:
        name: The file's name in errors.
        batch_rows: The most rows in one frame.
        leniencies: Counts what is read only because the layout declares it.

    Returns:
        Frames with the columns of the header as String, empty cells as ``""`` and never null, and ``_line: UInt64``,
        the line where the row begins, from 1. File order is kept. A file without rows gives one empty frame.

    Raises:
        RefusedError: While iterating, at the first deviation in the file, with file, line and often column.
    """
    counted = Leniencies() if leniencies is None else leniencies
    with open_stream(path, name=name) as stream:
        if layout.record_types and layout.records:
            parts = _records(stream, layout, name, _chunk, counted)
            yield from chosen_rows(parts, RecordSequence(name, layout.record_types, layout.records), batch_rows)
            return
        file, rest = _opened(stream, layout, name, _chunk, counted)
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
    counted = Leniencies()
    with open_stream(path, name=name) as stream:
        file, _ = _opened(stream, layout, name, _chunk, counted)
    with open_stream(path, name=name) as stream:
        prepare, wanted = _preparation(layout, _row_ends(layout), counted), iter(lines)
        found = records_at(stream, layout.encoding, layout.quote, wanted, name=name, chunk=_chunk, prepare=prepare)
        for frame in file.picked(found, lines):
            yield from frame.iter_slices(batch_rows)


def _opened(
    stream: Readable, layout: DelimitedFormat, name: str, chunk: int, counted: Leniencies
) -> tuple[DelimitedRows, Iterator[Piece]]:
    """The file, with its first record read, and the pieces that hold its rows."""
    row_ends = _row_ends(layout)
    first, cut = _pieces(stream, layout, name, chunk, row_ends, counted)
    return DelimitedRows(layout, name, first, row_ends, counted), cut if layout.header else chain([first], cut)


def _records(
    stream: Readable, layout: DelimitedFormat, name: str, chunk: int, counted: Leniencies
) -> Iterator[Mapping[str, pl.DataFrame]]:
    """The records of a file with several types, by type, many at a time."""
    row_ends = _row_ends(layout)
    first, cut = _pieces(stream, layout, name, chunk, row_ends, counted)
    fitting = FittingCells(layout.short_lines, layout.long_lines, counted)
    records = DelimitedRecords(layout, name, fitting, crlf=first.data.endswith(b"\r\n"), row_ends=row_ends)
    return prefetched(records.frames, records.slim(chain([first], cut)))


def _pieces(
    stream: Readable, layout: DelimitedFormat, name: str, chunk: int, row_ends: RowEnds | None, counted: Leniencies
) -> tuple[Piece, Iterator[Piece]]:
    """The first record, and the others."""
    prepare = _preparation(layout, row_ends, counted)
    cut = pieces(stream, layout.encoding, layout.quote, name=name, chunk=chunk, prepare=prepare)
    first = next(cut, None)
    if first is None:
        hint = "It has not even a header: fetch it again, or ask the sender."
        raise RefusedError("the file is empty", where=name, hint=hint)
    if layout.record_types is None:
        refuse_message(first.data, name=name)
    return first, cut


def _row_ends(layout: DelimitedFormat) -> RowEnds | None:
    return RowEnds(layout.row_end, layout.delimiter) if layout.row_end else None


def _preparation(layout: DelimitedFormat, row_ends: RowEnds | None, counted: Leniencies) -> Prepare:
    """What is done to the text before it is cut into records."""

    def prepare(blocks: Iterator[bytes]) -> Iterator[Block]:
        text = row_ends.lines(blocks) if row_ends else blocks
        found: Iterator[Block] = without_preamble(text, layout.skip_lines) if layout.skip_lines else text
        found = without_comments(found, layout.comment, layout.quote) if layout.comment else found
        if layout.blank_lines is None or layout.blank_lines == "refuse":
            return found
        blanks = "" if " " in layout.delimiter else " "
        return without_blank_lines(found, layout.blank_lines, layout.quote, blanks=blanks, leniencies=counted)

    return prepare
