"""How a delimited file is laid out: separators, quotes, header, trailer and types of records."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from crossdock.reading.formats.file_formats import BlankLines, FileLayout, LongLines, ShortLines, validate_column_names
from crossdock.reading.formats.record_types import (
    RecordType,
    has_stated_record_count,
    has_trailer_type,
    raise_if_record_types_invalid,
)
from crossdock.reading.formats.text_decoding import validate_encoding_name
from crossdock.values.config_base_types import ConfigModel, make_pydantic_error_at_key

_DELIMITER = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f-\x9f\ufeff\ud800-\udfff]{1,8}|[\x01-\x08\x0b\x0c\x0e-\x19\x1b-\x1f]")
_TAB_NAMES = ("tab", r"\t")  # the second is what YAML reads without quotes
_ROW_END = re.compile(r"[^\x00\ufeff\ud800-\udfff]{1,8}")


def _validate_delimiter(value: str) -> str:
    if value in _TAB_NAMES:
        return "\t"
    if not _DELIMITER.fullmatch(value):
        raise ValueError(
            "must be 1 to 8 characters without line breaks; a control character other than tab is allowed only alone"
        )
    return value


def _validate_row_end(value: str) -> str:
    if "\\" in value:
        raise ValueError('holds a backslash; in double quotes, as in "&|\\n", YAML makes a line break of it')
    if not _ROW_END.fullmatch(value) or value == "\n":
        raise ValueError("must be 1 to 8 characters; lines that end with LF or CRLF need no row_end")
    return value


Delimiter = Annotated[str, AfterValidator(_validate_delimiter)]


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

    names: Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(validate_column_names)]
    """Its columns, with that of the code."""

    @property
    def own_columns(self) -> tuple[str, ...]:
        return self.names


class DelimitedFormat(FileLayout):
    """The layout of a delimited text file. All lines of a file end with LF, or all with CRLF."""

    kind: Literal["delimited"] = "delimited"
    delimiter: Delimiter = ","
    r"""Separates two fields: 1 to 8 characters; ``tab`` or ``\t`` for a tab."""
    quote: Literal['"', "'"] | None = '"'
    """Encloses fields that hold delimiters or line ends; null where quotes are ordinary characters."""
    row_end: Annotated[str, AfterValidator(_validate_row_end)] | None = None
    """What ends each row, such as ``"&|\\n"``; LF and CR inside of rows are then text. Places count rows, not lines."""
    encoding: Annotated[str, AfterValidator(validate_encoding_name)] = "utf-8"
    """The character encoding by one of Python's names, such as utf-8, cp1252 (Windows), cp850 (DOS), utf-16, cp037
    (mainframe)."""
    skip_lines: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """How many lines precede the header, or the first row if there is no header."""
    comment: Annotated[str, Field(min_length=1, max_length=8, pattern=r"^[^\r\n]*$")] | None = None
    """How lines begin that are left out wherever they are, such as ``"#"``."""
    header: bool = True
    """Whether the first line names the columns."""
    names: Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(validate_column_names)] | None = None
    """The columns. Required without a header; with one, the header must be exactly this."""
    short_lines: ShortLines | None = None
    """Whether rows with too few fields are refused, or read as if empty ones followed (``pad``)."""
    long_lines: LongLines | None = None
    """Whether rows with too many fields are refused, or cut: ``drop_empty`` if only empty fields follow, as after a
    delimiter at the end of lines; ``drop`` in any case."""
    blank_lines: BlankLines | None = None
    """Whether blank lines are refused, or left out: ``at_end`` those at the end of the file, ``skip`` all."""
    trailer: Trailer | None = None
    """The last line, if it is not a row."""
    record_type: Annotated[int, Field(ge=0)] | None = None
    """The field with the code of the type of each record, counted from 0; by default the first one."""
    record_types: Annotated[Mapping[str, DelimitedRecordType], Field(min_length=1)] | None = None
    """The types of records by name, in a file that has several and no header line; takes the place of ``header``,
    ``names`` and ``trailer``."""
    records: str | None = None
    """With ``record_types``: the type whose records are read."""

    @property
    def type_field(self) -> int:
        return self.record_type or 0

    @property
    def states_rows(self) -> bool:
        if self.record_types and self.records:
            return has_stated_record_count(self.record_types, self.records)
        return self.trailer is not None and self.trailer.count is not None

    @property
    def marks_end(self) -> bool:
        return self.trailer is not None or has_trailer_type(self.record_types or {})

    @model_validator(mode="after")
    def _raise_if_record_types_conflict(self) -> Self:
        if self.record_types is None:
            if self.record_type is not None or self.records is not None:
                raise ValueError("record_type and records belong to record_types")
            return self
        if self.names or self.trailer or (self.header and "header" in self.model_fields_set):
            raise ValueError("record_types take the place of header, names and trailer")
        raise_if_record_types_invalid(self.record_types, self.records)
        for name, kind in self.record_types.items():
            if self.type_field >= len(kind.names):
                raise make_pydantic_error_at_key(
                    ("record_types", name, "names"), f"lack field {self.type_field}, that of the code"
                )
        return self

    @model_validator(mode="after")
    def _raise_if_settings_conflict(self) -> Self:
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
