"""The layout of fixed-width files: columns by position, in records of one or several types."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Literal, Protocol, Self, TypeVar

from msgspec import Struct
from pydantic import AfterValidator, Field, model_validator

from crossdock.reading.formats.cobol_copybook import (
    Copybook,
    CopybookRecordLayout,
    ItemNames,
    OccursTable,
    build_record_layout,
)
from crossdock.reading.formats.file_formats import BlankLines, FileLayout, LongLines, ShortLines, validate_column_names
from crossdock.reading.formats.fixed_width_columns import MAX_POSITION, FixedColumn
from crossdock.reading.formats.record_types import (
    RecordType,
    columns_of_type_and_ancestors,
    has_stated_record_count,
    has_trailer_type,
    raise_if_record_types_invalid,
)
from crossdock.reading.formats.text_decoding import (
    is_encoding_without_shift_codes,
    is_single_byte_encoding,
    validate_encoding_name,
)
from crossdock.values.config_base_types import ConfigModel, make_pydantic_error_at_key


class _Placed(Protocol):
    @property
    def at(self) -> int: ...
    @property
    def last_position(self) -> int: ...


P = TypeVar("P", bound=_Placed)


def sort_columns_and_raise_if_overlapping(columns: Mapping[str, P]) -> Mapping[str, P]:
    """Return *columns* by their positions. Raises ValueError if two overlap, or names cannot be those of columns."""
    validate_column_names(list(columns))
    placed = sorted(columns.items(), key=lambda item: item[1].at)
    for (name, column), (other, following) in pairwise(placed):
        if following.at <= column.last_position:
            raise ValueError(
                f"{name} ends at position {column.last_position}, and {other} begins at {following.at}: they overlap"
            )
    return dict(placed)


Columns = Annotated[
    Mapping[str, FixedColumn], Field(min_length=1), AfterValidator(sort_columns_and_raise_if_overlapping)
]
Length = Annotated[int, Field(ge=1, le=MAX_POSITION)]
ROWS = "rows"


class FixedRecordType(RecordType):
    """One type of record in a fixed-width file."""

    columns: Columns = Field({}, min_length=1)
    """Its columns by name; characters between them are not read. Required without a copybook."""
    items: ItemNames | None = None
    """With a copybook: of the items that share bytes, those that records of this type have."""
    length: Length | None = None
    """The number of characters of its records; by default that of the file, or where its last column ends."""

    @property
    def own_columns(self) -> tuple[str, ...]:
        return tuple(self.columns)

    @property
    def last_position(self) -> int:
        return max((column.last_position for column in self.columns.values()), default=0)


class TypePosition(ConfigModel):
    """Where the code of a record type is, in characters."""

    at: Annotated[int, Field(ge=1, le=MAX_POSITION)] = 1
    """The position of its first character, from 1."""
    length: Annotated[int, Field(ge=1, le=64)] | None = None
    """The number of its characters; shorter codes are followed by spaces. Required without `column`."""
    column: str | None = None
    """With a copybook, in place of ``at`` and ``length``: the column of text that has the code, in records of every
    type."""

    @model_validator(mode="after")
    def _raise_unless_length_or_column(self) -> Self:
        if (self.length is None) == (self.column is None):
            raise ValueError("give either the length of the code, or the column of a copybook that has it")
        if self.column is not None and "at" in self.model_fields_set:
            raise ValueError("the column says where the code is: leave out at")
        return self


class TypeCodePlace(Struct, frozen=True):
    """Where the code of a type is: the first position, and the number of characters."""

    at: int
    length: int


class FixedWidthFormat(FileLayout):
    """The layout of a file whose columns are at fixed positions, counted in characters from 1; in bytes where there is
    a copybook, a ``usage``, ``rdw`` or ``bdw``.
    """

    kind: Literal["fixed_width"]
    encoding: Annotated[str, AfterValidator(validate_encoding_name)] = "utf-8"
    """The character encoding by one of Python's names, such as utf-8, cp1252 (Windows), cp037 or cp273 (mainframe)."""
    line_end: Literal["line_feed", "nel", "none", "rdw", "bdw"] = "line_feed"
    """What ends each record: LF or CRLF (``line_feed``), the same in the whole file; NEL, U+0085 (``nel``); or nothing
    (``none``), as on mainframes. With ``rdw``, a record descriptor word before each states its length (RECFM=V); with
    ``bdw``, so does one of each block (RECFM=VB)."""
    count: Literal["characters", "bytes"] | None = None
    """What positions and lengths count: ``characters``, or ``bytes`` in this encoding, as programs in Shift-JIS do."""
    length: Length | None = None
    """The number of characters of each record; by default where its last column ends. Required without line ends."""
    short_lines: ShortLines = "refuse"
    """Whether lines that are too short are refused, or read as if spaces followed."""
    long_lines: LongLines | None = None
    """Whether lines that are too long are refused, or cut, if only spaces follow (``drop_empty``) or ``drop``."""
    unset_cells: Literal["refuse", "empty"] | None = None
    """Whether cells of nothing but X'00' or X'FF', and packed numbers of spaces, are refused, or are empty."""
    blank_lines: BlankLines | None = None
    """Whether blank lines are refused, or left out: those at the end of the file, or all (``skip``)."""
    skip_lines: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """How many lines precede the first record."""
    copybook: Copybook | None = None
    """The COBOL copybook that has the columns; takes the place of ``columns``."""
    columns: Columns | None = None
    """The columns by name, where all records are of one type; characters between them are not read."""
    record_type: TypePosition | None = None
    """Where the code of the type of each record is."""
    record_types: Annotated[Mapping[str, FixedRecordType], Field(min_length=1)] | None = None
    """The types of records by name, in place of ``columns``."""
    records: str | None = None
    """With ``record_types``: the type whose records are read."""

    @model_validator(mode="after")
    def _raise_if_settings_conflict(self) -> Self:
        self._raise_if_exclusive_settings_given()
        if self.line_end == "none" and self.length is None and self.copybook is None:
            raise ValueError("records without line ends need length")
        if self.line_end == "none" and (
            self.skip_lines or self.short_lines == "pad" or self._drops_excess_or_blank_lines
        ):
            raise ValueError("records without line ends are never short, long or blank, and no lines precede them")
        if self.count == "bytes" and not is_encoding_without_shift_codes(self.encoding):
            raise make_pydantic_error_at_key(
                ("count",), f"bytes cannot be counted in {self.encoding}, which switches between alphabets"
            )
        if self.record_types is not None:
            self._raise_if_record_types_conflict(self.record_types_with_columns)
        if self.has_binary_records:
            self._raise_if_binary_settings_conflict()
        for name, kind in self.record_types_with_columns.items():
            if kind.last_position > self.record_length(name):
                place = ("columns",) if self.columns else ("record_types", name, "columns")
                raise make_pydantic_error_at_key(
                    place, f"end at position {kind.last_position}, after the length of {self.record_length(name)}"
                )
            if self.line_end == "none" and self.copybook is None and kind.length not in {None, self.length}:
                raise make_pydantic_error_at_key(
                    ("record_types", name, "length"), "records without line ends have one length"
                )
        return self

    @property
    def _drops_excess_or_blank_lines(self) -> bool:
        return bool({self.long_lines, self.blank_lines} - {None, "refuse"})

    @cached_property
    def record_types_with_columns(self) -> Mapping[str, FixedRecordType]:
        if self.copybook is None:
            columns: Columns = self.columns or {}
            return self.record_types or {ROWS: FixedRecordType(otherwise=True, columns=columns)}
        declared = self.record_types or {ROWS: FixedRecordType(otherwise=True)}
        longest = max(layout.length for layout in self.copybook_layouts.values())
        is_of_one_length = self.line_end == "none" and not self._tables_of_varying_size
        return {
            name: kind.model_copy(
                update={
                    "columns": self.copybook_layouts[name].columns,
                    "length": self.length or (longest if is_of_one_length else self.copybook_layouts[name].length),
                }
            )
            for name, kind in declared.items()
        }

    @cached_property
    def copybook_layouts(self) -> Mapping[str, CopybookRecordLayout]:
        """The records of each type as the copybook describes them; empty without one."""
        if self.copybook is None:
            return {}
        roots = self.copybook.read_and_parse_items()
        kinds, shared = self.record_types or {ROWS: FixedRecordType(otherwise=True)}, self.copybook.items
        return {
            name: build_record_layout(self.copybook, roots, (*shared, *(kind.items or ())))
            for name, kind in kinds.items()
        }

    @cached_property
    def has_binary_records(self) -> bool:
        """Whether records are bytes, and not lines of text."""
        return self.copybook is not None or self.line_end in {"rdw", "bdw"} or self.has_packed_or_binary_columns

    @cached_property
    def type_code_place(self) -> TypeCodePlace | None:
        if self.record_type is None:
            return None
        if self.record_type.length is not None:
            return TypeCodePlace(self.record_type.at, self.record_type.length)
        places = {kind.columns.get(self.record_type.column or "") for kind in self.record_types_with_columns.values()}
        found = [column for column in places if column is not None and column.usage is None]
        if len(found) != 1 or len(places) > 1:
            message = f"records of all types have {self.record_type.column} at one place, as a text"
            raise make_pydantic_error_at_key(("record_type", "column"), message)
        return TypeCodePlace(found[0].at, found[0].length)

    @property
    def type_to_read(self) -> str:
        return self.records or ROWS

    @property
    def names(self) -> list[str]:
        return columns_of_type_and_ancestors(self.type_to_read, self.record_types_with_columns)

    @property
    def states_rows(self) -> bool:
        return has_stated_record_count(self.record_types_with_columns, self.type_to_read)

    @property
    def marks_end(self) -> bool:
        return has_trailer_type(self.record_types_with_columns)

    @property
    def row_end(self) -> str | None:
        return {"line_feed": None, "nel": "\x85"}.get(self.line_end, "")

    def record_length(self, name: str) -> int:
        kind = self.record_types_with_columns[name]
        return kind.length or self.length or kind.last_position

    def least_record_length(self, name: str) -> int:
        """Return the fewest bytes of a record: without the ends of items of a copybook that others of it may have."""
        layout, length = self.copybook_layouts.get(name), self.record_length(name)
        return layout.least if layout and length == layout.length and self.line_end != "none" else length

    def _raise_if_exclusive_settings_given(self) -> None:
        if self.copybook is not None and self.columns is not None:
            raise ValueError("the copybook has the columns: give either copybook or columns")
        if self.copybook is None and (self.columns is None) == (self.record_types is None):
            raise ValueError("give either columns or record_types")
        if self.record_types is None and (self.record_type or self.records):
            raise ValueError("record_type and records belong to record_types")
        for name, kind in (self.record_types or {}).items():
            if self.copybook is None and (kind.items or not kind.columns):
                raise make_pydantic_error_at_key(
                    ("record_types", name), "declare its columns; items are those of a copybook"
                )
            if self.copybook is not None and (kind.columns or kind.length):
                raise make_pydantic_error_at_key(("record_types", name), "the copybook has its columns and its length")

    def _raise_if_binary_settings_conflict(self) -> None:
        if not is_single_byte_encoding(self.encoding):
            message = "records are bytes: declare an encoding of one byte for each character, such as cp037 or cp1252"
            raise make_pydantic_error_at_key(("encoding",), message)
        if self.count == "characters":
            raise make_pydantic_error_at_key(("count",), "positions in binary records count bytes")
        if self.skip_lines or self.blank_lines:
            raise ValueError("skip_lines and blank_lines are for lines of text, and not for binary records")
        self._raise_if_type_code_not_encodable()
        place, tables = self.type_code_place, self._tables_of_varying_size
        if tables and place and place.at + place.length > min(table.at for table in tables):
            raise make_pydantic_error_at_key(
                ("record_type",), f"the code is after the table {tables[0].name}, so its place varies"
            )
        if tables and self.length:
            message = f"the length varies with the table {tables[0].name}; where it does not, declare tables: full"
            raise make_pydantic_error_at_key(("length",), message)
        lengths = {self.record_length(name) for name in self.record_types_with_columns}
        if self.line_end in {"line_feed", "nel"} and self.has_packed_or_binary_columns and (len(lengths) > 1 or tables):
            raise ValueError("binary numbers may look like line ends, so these records need one length")
        named = (
            [table.name for table in self.copybook_layouts[self.type_to_read].tables] if self.copybook_layouts else []
        )
        if self.row_making_occurs_table_name is not None and self.row_making_occurs_table_name not in named:
            told = f"those outside of other tables are {', '.join(named)}" if named else "the record has none"
            raise make_pydantic_error_at_key(
                ("copybook", "rows"), f"there is no table {self.row_making_occurs_table_name}; {told}"
            )

    def _raise_if_type_code_not_encodable(self) -> None:
        for name, kind in self.record_types_with_columns.items():
            try:
                (kind.code or name).encode(self.encoding)
            except UnicodeEncodeError:
                if not kind.otherwise:
                    message = f"its code has characters that {self.encoding} has not"
                    raise make_pydantic_error_at_key(("record_types", name), message) from None

    @property
    def _tables_of_varying_size(self) -> list[OccursTable]:
        every = (table for layout in self.copybook_layouts.values() for table in layout.tables)
        return [table for table in every if self.tables_omit_unused_elements and table.counter]

    @property
    def tables_omit_unused_elements(self) -> bool:
        """Whether tables that depend on a count take up only the counted elements."""
        return self.copybook is not None and self.copybook.tables == "counted"

    @property
    def row_making_occurs_table_name(self) -> str | None:
        return self.copybook.rows if self.copybook else None

    @cached_property
    def has_packed_or_binary_columns(self) -> bool:
        return any(column.usage for kind in self.record_types_with_columns.values() for column in kind.columns.values())

    def _raise_if_record_types_conflict(self, types: Mapping[str, FixedRecordType]) -> None:
        raise_if_record_types_invalid(types, self.records)
        if self.record_type is None and any(not kind.otherwise for kind in types.values()):
            raise ValueError("record_types need record_type: where their codes are")
        for name, kind in types.items():
            if self.type_code_place and len(kind.code or name) > self.type_code_place.length and not kind.otherwise:
                raise make_pydantic_error_at_key(
                    ("record_types", name), f"its code is longer than {self.type_code_place.length} characters"
                )
            for column in (*kind.counts, *kind.sums):
                if kind.columns[column].decimals is None:
                    raise make_pydantic_error_at_key(
                        ("record_types", name, "columns", column), "states a number: declare decimals"
                    )
            for column, of in kind.sums.items():
                summed, _, what = of.partition(".")
                if types[summed].columns[what].decimals is None:
                    raise make_pydantic_error_at_key(
                        ("record_types", name, "sums", column), f"{of} is not a number: declare decimals"
                    )
