"""Delimited text files, such as CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from crossdock.reading.formats.delimited_layout import Delimiter
from crossdock.reading.formats.file_formats import validate_column_names
from crossdock.reading.formats.text_decoding import validate_encoding_name
from crossdock.values.config_base_types import make_pydantic_error_at_key
from crossdock.writing.files.cell_declarations import Cell, NamedValues, NumberDefaults, invalid_value_error
from crossdock.writing.files.content_interface import OPERATIONS, FileRecord, WrittenFileFacts
from crossdock.writing.files.row_declarations import FramedContent, RowPart
from crossdock.writing.files.text_encoder import TextEncoder, line_end_text


class DelimitedRow(RowPart):
    """A row of a delimited file, or a group of rows."""

    OWN = ("columns",)

    columns: Annotated[Mapping[str, Cell], Field(min_length=1)] | None = None
    """The columns by name, in their order."""

    def cells_and_parts(self) -> Iterator[Cell]:
        yield from (self.columns or {}).values()

    def column_names_of_each_row(self) -> Iterator[tuple[str, ...]]:
        if self.columns is not None:
            yield tuple(self.columns)
        for row in self.inner_rows:
            yield from row.column_names_of_each_row()


class DelimitedContent(FramedContent[DelimitedRow]):
    """A text file with a delimiter between its fields."""

    kind: Literal["delimited"]
    delimiter: Delimiter = ","
    """Separates two fields: 1 to 8 characters, or ``tab``."""
    quote: Literal['"', "'"] = '"'
    """Encloses fields; inside of one it is doubled."""
    quoting: Literal["minimal", "all", "none"] = "minimal"
    """Which fields are quoted: those that need it, all, or none. With ``none``, a field that holds the delimiter or a
    line break refuses the record, and quotes are ordinary characters."""
    column_names: bool = True
    """Whether a row with the names of the columns precedes those of the records, which then have the same columns."""
    line_end: Literal["lf", "crlf"] = "lf"
    """What ends each line, with the last one: LF or CRLF."""
    encoding: Annotated[str, AfterValidator(validate_encoding_name)] = "utf-8"
    """The character encoding by one of Python's names, such as utf-8, cp1252 (Windows), cp850 (DOS), utf-16."""
    bom: bool = False
    """Whether the file begins with a byte order mark, as some programs expect of UTF-8."""
    decimal_mark: Literal[".", ","] = "."
    """The decimal mark of numbers that declare none of their own."""

    @model_validator(mode="after")
    def _raise_if_options_conflict(self) -> Self:
        if self.quote in self.delimiter:
            raise make_pydantic_error_at_key(("delimiter",), "must not contain the quote")
        if self.column_names:
            rows = [row for operation in OPERATIONS for row in self.declared_rows_for_operation(operation)]
            names = [found for row in rows for found in row.column_names_of_each_row()]
            if any(each != names[0] for each in names):
                raise make_pydantic_error_at_key(
                    ("column_names",), "is for rows with the same columns: declare column_names: false"
                )
            try:
                validate_column_names(names[0])
            except ValueError as error:
                raise make_pydantic_error_at_key(("rows",), str(error)) from None
        return self

    def encode_file(self, records: Sequence[FileRecord], facts: WrittenFileFacts) -> bytes:
        header, rows, trailer = self.header_record_and_trailer_rows(records, facts)
        lines = [self._line_of_row(row, scope) for row, scope in header]
        if self.column_names:
            names = rows[0][0].columns if rows else next(self.rows[0].column_names_of_each_row())
            lines.append(self._joined_fields((name, f"the column name {name!r}") for name in names or ()))
        lines += [self._line_of_row(row, scope) for row, scope in [*rows, *trailer]]
        end = line_end_text(self.line_end)
        return self._encoder.encode("".join(line + end for line in lines))

    @property
    def _encoder(self) -> TextEncoder:
        return TextEncoder(self.encoding, self.bom)

    def _line_of_row(self, row: DelimitedRow, scope: NamedValues) -> str:
        notation = NumberDefaults(self.decimal_mark, self.encoding)
        return self._joined_fields(cell.text(scope, notation) for cell in (row.columns or {}).values())

    def _joined_fields(self, cells: Iterator[tuple[str, str]]) -> str:
        fields = [self._quoted_field_or_raise(text, place) for text, place in cells]
        if fields == [""]:
            if self.quoting == "none":
                raise invalid_value_error("is the only field of its line and empty, so the line would be blank", "")
            return self.quote * 2
        return self.delimiter.join(fields)

    def _quoted_field_or_raise(self, text: str, place: str) -> str:
        if self.quoting == "none":
            if any(each in text for each in self.delimiter):
                raise invalid_value_error("holds the delimiter, and fields are not quoted", place)
            return self._encoder.text_or_raise_if_unfit(text, place)
        self._encoder.text_or_raise_if_unfit(text, place, line_breaks=True)
        marks = {*self.delimiter, self.quote, "\n", "\r", "\t"}
        if self.quoting == "all" or not marks.isdisjoint(text) or text != text.strip():
            return f"{self.quote}{text.replace(self.quote, self.quote * 2)}{self.quote}"
        return text
