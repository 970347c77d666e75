"""The layout of fixed-width files: columns by position, in records of one or several types."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from crossdock.reading.formats.column_names import check_column_names
from crossdock.reading.formats.fixed_columns import MAX_POSITION, FixedColumn
from crossdock.reading.formats.format_reader import FileLayout
from crossdock.reading.formats.leniencies import BlankLines, LongLines, ShortLines
from crossdock.reading.formats.record_types import RecordType, all_columns, check_types, counts_rows, has_trailer
from crossdock.reading.formats.text_encodings import is_plain_width, known_encoding
from crossdock.values.config_models import ConfigModel, misplaced


def _columns(columns: Mapping[str, FixedColumn]) -> Mapping[str, FixedColumn]:
    check_column_names(list(columns))
    placed = sorted(columns.items(), key=lambda item: item[1].at)
    for (name, column), (other, following) in pairwise(placed):
        if following.at <= column.end:
            raise ValueError(
                f"{name} ends at position {column.end}, and {other} begins at {following.at}: they overlap"
            )
    return dict(placed)


Columns = Annotated[Mapping[str, FixedColumn], Field(min_length=1), AfterValidator(_columns)]
Length = Annotated[int, Field(ge=1, le=MAX_POSITION)]
ROWS = "rows"


class FixedRecordType(RecordType):
    """One type of record in a fixed-width file."""

    columns: Columns
    """Its columns by name; characters between them are not read."""
    length: Length | None = None
    """The number of characters of its records; by default that of the file, or where its last column ends."""

    @property
    def own_columns(self) -> tuple[str, ...]:
        return tuple(self.columns)

    @property
    def end(self) -> int:
        return max(column.end for column in self.columns.values())


class TypePosition(ConfigModel):
    """Where the code of a record type is, in characters."""

    at: Annotated[int, Field(ge=1, le=MAX_POSITION)] = 1
    """The position of its first character, from 1."""
    length: Annotated[int, Field(ge=1, le=64)]
    """The number of its characters; shorter codes are followed by spaces."""


class FixedWidthFormat(FileLayout):
    """The layout of a file whose columns are at fixed positions, counted in characters from 1."""

    kind: Literal["fixed_width"]
    encoding: Annotated[str, AfterValidator(known_encoding)] = "utf-8"
    """The character encoding by one of Python's names, such as utf-8, cp1252 (Windows), cp037 or cp273 (mainframe)."""
    line_end: Literal["line_feed", "nel", "none"] = "line_feed"
    """What ends each record: LF or CRLF, the same in the whole file; NEL (U+0085), or nothing, as on mainframes."""
    count: Literal["characters", "bytes"] | None = None
    """What positions and lengths count: ``characters``, or ``bytes`` in this encoding, as programs in Shift-JIS do."""
    length: Length | None = None
    """The number of characters of each record; by default where its last column ends. Required without line ends."""
    short_lines: ShortLines = "refuse"
    """Whether lines that are too short are refused, or read as if spaces followed."""
    long_lines: LongLines | None = None
    """Whether lines that are too long are refused, or cut, if only spaces follow (``drop_empty``) or ``drop``."""
    blank_lines: BlankLines | None = None
    """Whether blank lines are refused, or left out: those at the end of the file, or all (``skip``)."""
    skip_lines: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """How many lines precede the first record."""
    columns: Columns | None = None
    """The columns by name, where all records are of one type; characters between them are not read."""
    record_type: TypePosition | None = None
    """Where the code of the type of each record is."""
    record_types: Annotated[Mapping[str, FixedRecordType], Field(min_length=1)] | None = None
    """The types of records in the file."""
    records: str | None = None
    """The type whose records are read."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.columns is None) == (self.record_types is None):
            raise ValueError("give either columns or record_types")
        if self.line_end == "none" and self.length is None:
            raise ValueError("records without line ends need length")
        if self.line_end == "none" and (self.skip_lines or self.short_lines == "pad" or self._cuts):
            raise ValueError("records without line ends are never short, long or blank, and no lines precede them")
        if self.count == "bytes" and not is_plain_width(self.encoding):
            raise misplaced(("count",), f"bytes cannot be counted in {self.encoding}, which switches between alphabets")
        if self.record_types is None:
            if self.record_type or self.records:
                raise ValueError("record_type and records belong to record_types")
        else:
            self._check_types(self.record_types)
        for name, kind in self.types.items():
            if kind.end > self.length_of(name):
                place = ("columns",) if self.columns else ("record_types", name, "columns")
                raise misplaced(place, f"end at position {kind.end}, after the length of {self.length_of(name)}")
            if self.line_end == "none" and kind.length not in {None, self.length}:
                raise misplaced(("record_types", name, "length"), "records without line ends have one length")
        return self

    @property
    def _cuts(self) -> bool:
        return bool({self.long_lines, self.blank_lines} - {None, "refuse"})

    @property
    def types(self) -> Mapping[str, FixedRecordType]:
        if self.record_types is not None:
            return self.record_types
        assert self.columns is not None
        return {ROWS: FixedRecordType(otherwise=True, columns=self.columns)}

    @property
    def chosen(self) -> str:
        return self.records or ROWS

    @property
    def names(self) -> list[str]:
        return all_columns(self.chosen, self.types)

    @property
    def states_rows(self) -> bool:
        return counts_rows(self.types, self.chosen)

    @property
    def marks_end(self) -> bool:
        return has_trailer(self.types)

    @property
    def row_end(self) -> str | None:
        return {"line_feed": None, "nel": "\x85", "none": ""}[self.line_end]

    def length_of(self, name: str) -> int:
        kind = self.types[name]
        return kind.length or self.length or kind.end

    def _check_types(self, types: Mapping[str, FixedRecordType]) -> None:
        check_types(types, self.records)
        if self.record_type is None and any(not kind.otherwise for kind in types.values()):
            raise ValueError("record_types need record_type: where their codes are")
        for name, kind in types.items():
            if self.record_type and len(kind.code or name) > self.record_type.length and not kind.otherwise:
                raise misplaced(("record_types", name), f"its code is longer than {self.record_type.length} characters")
            for column in (*kind.counts, *kind.sums):
                if kind.columns[column].decimals is None:
                    raise misplaced(("record_types", name, "columns", column), "states a number: declare decimals")
            for column, of in kind.sums.items():
                summed, _, what = of.partition(".")
                if types[summed].columns[what].decimals is None:
                    raise misplaced(("record_types", name, "sums", column), f"{of} is not a number: declare decimals")
