"""Files whose columns are at fixed positions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from crossdock.errors import RecordError
from crossdock.reading.formats.fixed_width_columns import MAX_LENGTH, MAX_POSITION
from crossdock.reading.formats.fixed_width_layout import sort_columns_and_raise_if_overlapping
from crossdock.reading.formats.text_decoding import (
    is_encoding_without_shift_codes,
    validate_encoding_name,
)
from crossdock.values.config_base_types import make_pydantic_error_at_key
from crossdock.writing.files.cell_declarations import Cell, NamedValues, NumberDefaults, invalid_value_error
from crossdock.writing.files.content_interface import FileRecord, WrittenFileFacts
from crossdock.writing.files.row_declarations import FramedContent, RowPart
from crossdock.writing.files.text_encoder import TextEncoder, line_end_text


class WrittenColumn(Cell):
    """One column by its position, and its value."""

    at: Annotated[int, Field(ge=1, le=MAX_POSITION)]
    """The position of its first character, from 1."""
    length: Annotated[int, Field(ge=1, le=MAX_LENGTH)]
    """The number of its characters, with the sign and all padding."""
    padding: Literal["left", "right", "none"] | None = None
    """Where it is filled up; by default right of texts and left of numbers. With ``none``, it must be full."""
    fill: Annotated[str, Field(min_length=1, max_length=1, pattern="^[^\x00-\x1f]$")] = " "
    """The character that fills it up, such as ``0`` for numbers, whose sign then comes before it."""

    @model_validator(mode="after")
    def _raise_if_column_options_conflict(self) -> Self:
        if self.is_number and self.fill not in {" ", "0"}:
            raise make_pydantic_error_at_key(("fill",), "a number is filled up with spaces or zeros")
        if self.is_number and self.padding == "right" and self.fill == "0":
            raise make_pydantic_error_at_key(("padding",), "zeros after a number would change it")
        if self.sign == "leading_overpunch" and self.fill != "0":
            raise make_pydantic_error_at_key(("fill",), "is 0 where the first digit has the sign")
        return self

    @property
    def last_position(self) -> int:
        return self.at + self.length - 1

    @property
    def max_characters(self) -> int | None:
        return min(self.length, self.max_length or self.length)

    def padded_text(self, scope: NamedValues, notation: NumberDefaults, encoder: TextEncoder, *, in_bytes: bool) -> str:
        """Return exactly `length` characters, or bytes in the encoding."""
        text, place = self._unpadded_text_and_place(scope, notation)
        encoder.text_or_raise_if_unfit(text, place)
        room = self.length - (encoder.byte_width(text) if in_bytes else len(text))
        if room < 0:
            raise invalid_value_error(f"has {self.length - room:,} bytes, and its column {self.length:,}", place)
        if room and self.padding == "none":
            raise invalid_value_error(f"has {len(text):,} characters, and must have {self.length:,}", place)
        if not text and self.is_number:
            return " " * self.length
        is_right = (self.padding or ("left" if self.is_number else "right")) == "right"
        edge = text[-1:] if is_right else text[:1]
        if room and edge == self.fill != " " and not self.is_number:
            raise invalid_value_error(
                "has the fill character at its padded end, where nobody could tell them apart", place
            )
        filling = self.fill * self._number_of_fills_or_raise(
            room, place, encoder.byte_width(self.fill) if in_bytes else 1
        )
        return text + filling if is_right else filling + text

    @staticmethod
    def _number_of_fills_or_raise(room: int, place: str, fill_width: int) -> int:
        if room % fill_width:
            raise invalid_value_error(
                f"leaves {room:,} bytes of its column, and the fill character has {fill_width}", place
            )
        return room // fill_width

    def _unpadded_text_and_place(self, scope: NamedValues, notation: NumberDefaults) -> tuple[str, str]:
        if not self.is_number:
            return self.text(scope, notation)
        number, place = self.number_and_place(scope)
        if number is None:
            text = self.default or ""
        else:
            text = self.number_text(number, place, notation, self.length if self.fill == "0" else 0)
        if len(text) > (self.max_characters or 0):
            raise invalid_value_error(
                f"has {len(text):,} characters as a number, and at most {self.max_characters:,} are allowed", place
            )
        return text, place


class FixedWidthRow(RowPart):
    """A row of a fixed-width file, or a group of rows. Each type of record is a row with other columns."""

    OWN = ("columns",)

    columns: (
        Annotated[
            Mapping[str, WrittenColumn], Field(min_length=1), AfterValidator(sort_columns_and_raise_if_overlapping)
        ]
        | None
    ) = None
    """The columns by name; between them are spaces."""

    @property
    def last_position(self) -> int:
        """Where the last column of the longest row ends."""
        return max(
            [column.last_position for column in (self.columns or {}).values()]
            + [row.last_position for row in self.inner_rows]
        )

    def cells_and_parts(self) -> Iterator[Cell]:
        yield from (self.columns or {}).values()


class FixedWidthContent(FramedContent[FixedWidthRow]):
    """A text file whose columns are at fixed positions, counted in characters from 1."""

    kind: Literal["fixed_width"]
    length: Annotated[int, Field(ge=1, le=MAX_POSITION)] | None = None
    """The number of characters of each line, with spaces at its end; by default it ends with its last column."""
    line_end: Literal["lf", "crlf", "nel", "none"] = "lf"
    """What ends each line: LF, CRLF, NEL (U+0085) or nothing, which needs length."""
    encoding: Annotated[str, AfterValidator(validate_encoding_name)] = "utf-8"
    """The character encoding by one of Python's names, such as cp1252 (Windows), cp037 or cp273 (mainframe)."""
    count: Literal["characters", "bytes"] = "characters"
    """What positions and lengths count: ``characters``, or ``bytes`` in this encoding, as programs in Shift-JIS do."""

    @model_validator(mode="after")
    def _raise_if_options_conflict(self) -> Self:
        if self.length is None and self.line_end == "none":
            raise make_pydantic_error_at_key(("length",), "lines without ends need it")
        if self.count == "bytes" and not is_encoding_without_shift_codes(self.encoding):
            raise make_pydantic_error_at_key(
                ("count",), f"bytes cannot be counted in {self.encoding}, which switches between alphabets"
            )
        if self.count == "bytes" and self._encoder.byte_width(" ") > 1:
            raise make_pydantic_error_at_key(
                ("count",), f"bytes cannot be counted in {self.encoding}, whose spaces have several"
            )
        for key, rows in self._rows_by_key():
            self._raise_if_fill_cannot_be_encoded(key, rows)
            end = max((row.last_position for row in rows), default=0)
            if self.length is not None and end > self.length:
                raise make_pydantic_error_at_key((key,), f"end at position {end}, after the length of {self.length}")
        return self

    def _rows_by_key(self) -> Iterator[tuple[str, Sequence[FixedWidthRow]]]:
        for key in ("header", "rows", "update", "delete", "trailer"):
            yield key, getattr(self, key) or ()

    def _raise_if_fill_cannot_be_encoded(self, key: str, rows: Sequence[FixedWidthRow]) -> None:
        for cell in (cell for row in rows for cell in row.cells() if isinstance(cell, WrittenColumn)):
            try:
                self._encoder.text_or_raise_if_unfit(cell.fill, "fill")
            except RecordError as error:
                raise make_pydantic_error_at_key((key,), f"fill {error.message}") from None

    @property
    def _encoder(self) -> TextEncoder:
        return TextEncoder(self.encoding)

    def encode_file(self, records: Sequence[FileRecord], facts: WrittenFileFacts) -> bytes:
        header, rows, trailer = self.header_record_and_trailer_rows(records, facts)
        end = line_end_text(self.line_end)
        lines = [self._line_of_row(row, scope) + end for row, scope in [*header, *rows, *trailer]]
        return self._encoder.encode("".join(lines))

    def _line_of_row(self, row: FixedWidthRow, scope: NamedValues) -> str:
        notation, encoder = NumberDefaults(encoding=self.encoding, sign="none"), self._encoder
        in_bytes, line, position = self.count == "bytes", "", 1
        for column in (row.columns or {}).values():
            line += " " * (column.at - position)
            line += column.padded_text(scope, notation, encoder, in_bytes=in_bytes)
            position = column.last_position + 1
        return line + " " * ((self.length or position - 1) - position + 1)
