"""The formats of files: what all layouts and readers have in common, and the list of formats.

Each format is one module and one entry here, and is imported when a config declares it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, Self, TypeVar, Union

import polars as pl
from msgspec import Struct
from pydantic import Discriminator, GetPydanticSchema, PrivateAttr, Tag, TypeAdapter, ValidationInfo
from pydantic_core import core_schema

from crossdock.reading.formats.strict_delimited_parser import MAX_COLUMNS
from crossdock.reading.wrappers.wrapper import Openable
from crossdock.values.config_base_types import ConfigModel
from crossdock.values.raw_rows_and_records import LINE, RESERVED, is_reserved_column, letters_of_column_name

HEADER_HINT = "If files have a header now, declare header: true, and names as the header has them, or none."
_TELLING = 2  # this many matching names show a header; with more names, the last one may differ


def names_that_identify_header(names: Sequence[str]) -> Sequence[str]:
    return names[:-1] if len(names) > _TELLING else names


def is_repeated_header_row(cells: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether a row is the header, or has all its names in another order, as that of a file that was joined."""
    begin = names_that_identify_header(names)
    return list(cells[: len(begin)]) == list(begin) or sorted(cells) == sorted(names)


def is_header_ignoring_case_and_marks(cells: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether the first row of a file without a header is one: the names but for case, blanks and marks."""
    letters = [*map(letters_of_column_name, names)]
    return all(letters) and [*map(letters_of_column_name, cells)] == letters


def validate_column_names(names: Sequence[str]) -> Sequence[str]:
    """Raise ValueError if names of a header are empty, repeated or reserved. It quotes no name, which may be data."""
    if len(names) > MAX_COLUMNS:
        raise ValueError(f"{len(names)} columns, more than the limit of {MAX_COLUMNS}")
    seen: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if not name.strip():
            raise ValueError(f"column {number} has no name")
        if is_reserved_column(name):
            raise ValueError(f"the name of column {number} is reserved, as {', '.join(RESERVED)} are")
        if name in seen:
            raise ValueError(f"columns {seen[name]} and {number} have the same name")
        seen[name] = number
    return names


ShortLines = Literal["refuse", "pad"]
LongLines = Literal["refuse", "drop_empty", "drop"]
BlankLines = Literal["refuse", "at_end", "skip"]
Leniency = Literal[
    "short",
    "long",
    "blank",
    "comment",
    "commented_row",
    "sheet",
    "hidden_sheet",
    "total_row",
    "unset",
    "without_elements",
    "set",
    "absent",
    "elsewhere",
]
_SENTENCES: dict[Leniency, str] = {
    "short": "{} filled up",
    "long": "{} cut to the declared columns",
    "blank": "{} left out",
    "comment": "{} left out",
    "commented_row": "{} with as many delimiters as a row left out",
    "sheet": "{} not read",
    "hidden_sheet": "{} not read",
    "total_row": "{} of tables left out",
    "unset": "{} read as empty",
    "without_elements": "{} gave no row",
    "set": "{} not read",
    "absent": "{} found in no record",
    "elsewhere": "{} with the name of a record not read",
}
_LINES: dict[Leniency, str] = {
    "short": "short line",
    "long": "long line",
    "blank": "blank line",
    "comment": "comment line",
    "commented_row": "comment line",
    "sheet": "other sheet",
    "hidden_sheet": "hidden sheet",
    "total_row": "total row",
    "unset": "unset cell",
    "without_elements": "empty table",
    "set": "other EDI message",
    "absent": "column",
    "elsewhere": "element",
}


class LeniencyCounts:
    """Counts for one file. Threads may share it."""

    def __init__(self) -> None:
        self._counts, self._lock = Counter[Leniency](), Lock()

    def add(self, what: Leniency, count: int) -> None:
        if count:
            with self._lock:
                self._counts[what] += count

    @property
    def elsewhere(self) -> str:
        """What has the name of a record, and may be one that was not read; empty if there is nothing of the kind."""
        return self._counts_as_text(["elsewhere"])

    def __bool__(self) -> bool:
        return bool(self._counts)

    def __str__(self) -> str:
        return self._counts_as_text(_SENTENCES)

    def _counts_as_text(self, of: Iterable[Leniency]) -> str:
        counted = ((what, self._counts[what]) for what in of if self._counts[what])
        return ", ".join(
            _SENTENCES[what].format(f"{number:,} {_LINES[what]}{'s' * (number != 1)}") for what, number in counted
        )


class RowWidthPolicy(Struct, frozen=True):
    short_lines: ShortLines | None
    long_lines: LongLines | None
    leniencies: LeniencyCounts

    def pad_or_cut_cells(self, cells: list[str], width: int) -> list[str]:
        if len(cells) < width and self.short_lines == "pad":
            self.leniencies.add("short", 1)
            return cells + [""] * (width - len(cells))
        if len(cells) > width and (self.long_lines == "drop" or (self.cuts_long_lines and not any(cells[width:]))):
            self.leniencies.add("long", 1)
            return cells[:width]
        return cells

    @property
    def cuts_long_lines(self) -> bool:
        return self.long_lines not in {None, "refuse"}


class FileLayout(ConfigModel):
    """How the bytes of a file become rows. A subclass has a `kind`."""

    _groups: Collection[tuple[str, ...]] = PrivateAttr(())
    _keeps_empty_groups: bool = PrivateAttr(default=False)

    @property
    def groups(self) -> Collection[tuple[str, ...]]:
        """The keys of records made of several rows, which have their `record_number_column` if the format knows it."""
        return self._groups

    @property
    def keeps_empty_groups(self) -> bool:
        """Whether such a record without a row is one row all the same: no stream reads single rows."""
        return self._keeps_empty_groups

    def with_groups(self, groups: Collection[tuple[str, ...]], *, keeps_empty: bool = False) -> Self:
        copied = self.model_copy()
        copied._groups, copied._keeps_empty_groups = groups, keeps_empty  # noqa: SLF001  of the same class
        return copied

    @property
    def states_rows(self) -> bool:
        """Whether a file states how many rows it has, so that it is noticed if some are missing."""
        return False

    @property
    def reads_names(self) -> bool:
        """Whether the name of a file is a part of what it says, so that files of the same bytes differ."""
        return False

    @property
    def has_paths(self) -> bool:
        """Whether rows are JSON objects, whose members are named by dotted paths."""
        return False


L = TypeVar("L", bound=FileLayout)


class FormatReader(ABC, Generic[L]):
    """Reads files of one kind. `FORMATS` lists the readers."""

    layout: type[L]

    @abstractmethod
    def rows(
        self, path: Openable, layout: L, *, name: str, batch_rows: int, leniencies: LeniencyCounts | None
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows of a file in their order, in at least one frame and in bounded memory.

        Nothing may act on a row before the iterator has ended: a wrong count, for example, is found at the end.

        Args:
            name: The file's name in errors.
            batch_rows: The most rows in one frame.
            leniencies: Counts what is read only because *layout* declares it.

        Returns:
            Frames of text columns, with empty cells as ``""`` and never null, and ``_line: UInt64``, the place of each
            row, ascending from 1.

        Raises:
            RefusedError: While iterating, at the first deviation from *layout*, with file and line.
        """

    def rows_at_lines(self, path: Openable, layout: L, lines: Sequence[int], *, name: str) -> Iterator[pl.DataFrame]:
        """Yield the rows that begin at *lines* (ascending) of a file that `rows` has read to its end."""
        wanted = pl.Series(lines, dtype=pl.UInt64)
        if not len(wanted):
            return
        for frame in self.rows(path, layout, name=name, batch_rows=100_000, leniencies=None):
            if (found := frame.filter(pl.col(LINE).is_in(wanted.implode()))).height:
                yield found
            if frame.height and frame[LINE][-1] >= wanted[-1]:
                return

    def may_be_truncated(self, path: Openable, layout: L) -> bool:  # noqa: ARG002  for subclasses
        """Return whether a file may have been cut unnoticed: its format marks no end, and the last row has none."""
        return False

    def hex_cells_at_lines(
        self,
        path: Openable,  # noqa: ARG002  for subclasses
        layout: L,  # noqa: ARG002
        lines: Sequence[int],  # noqa: ARG002
        *,
        name: str,  # noqa: ARG002
    ) -> Mapping[int, Mapping[str, str]]:
        """Return the bytes of cells in hexadecimal, by line and column, for binary rows at *lines* that were read."""
        return {}

    def record_bytes_at_lines(
        self,
        path: Openable,  # noqa: ARG002  for subclasses
        layout: L,  # noqa: ARG002
        lines: Sequence[int],  # noqa: ARG002
        *,
        name: str,  # noqa: ARG002
    ) -> Mapping[int, bytes]:
        """Return the bytes of records at *lines* (ascending) as they are in the file; none of formats without lines."""
        return {}

    @abstractmethod
    def describe_cell_places(self, layout: L, names: Sequence[str], line: int) -> Mapping[str, str]:
        """Describe for people where the cells *names* of the record on *line* are."""


DEFAULT_KIND = "delimited"
FORMATS: Mapping[str, tuple[str, str]] = {  # kind -> module and reader
    "delimited": ("delimited_files", "DelimitedReader"),
    "fixed_width": ("fixed_width_files", "FixedWidthReader"),
    "sheet": ("sheet_files", "SheetReader"),
    "json_lines": ("json_files", "JsonLinesReader"),
    "json": ("json_files", "JsonReader"),
    "xml": ("xml_files", "XmlReader"),
    "x12": ("edi_files", "X12Reader"),
    "edifact": ("edi_files", "EdifactReader"),
    "whole_file": ("whole_file_as_one_record", "WholeFileReader"),
    "parquet": ("parquet_and_arrow_files", "ParquetReader"),
    "arrow": ("parquet_and_arrow_files", "ArrowReader"),
}


@cache
def _load_reader_of_kind(kind: str) -> FormatReader[Any]:
    module, name = FORMATS[kind]
    reader: FormatReader[Any] = getattr(import_module(f"crossdock.reading.formats.{module}"), name)()
    return reader


def _kind_of_layout(value: Any) -> Any:
    return value.get("kind", DEFAULT_KIND) if isinstance(value, Mapping) else getattr(value, "kind", DEFAULT_KIND)


def _validate_layout(kind: str, value: Any, info: ValidationInfo) -> FileLayout:
    layout: FileLayout = _load_reader_of_kind(kind).layout.model_validate(value, context=info.context)
    return layout


def _pydantic_core_schema(_source: Any, _handler: Any) -> core_schema.CoreSchema:
    choices: dict[Any, Mapping[str, Any]] = {
        kind: core_schema.with_info_plain_validator_function(partial(_validate_layout, kind)) for kind in FORMATS
    }
    return core_schema.tagged_union_schema(choices, _kind_of_layout)


def _json_schema_of_all_layouts(_schema: Any, handler: Any) -> Any:
    layouts = tuple(Annotated[_load_reader_of_kind(kind).layout, Tag(kind)] for kind in FORMATS)
    every: Any = Annotated[Union[layouts], Discriminator(_kind_of_layout)]  # noqa: UP007  it is made
    return handler(TypeAdapter(every).core_schema)


if TYPE_CHECKING:
    FileFormat = FileLayout
    """The layout of a file; without ``kind``, of a delimited one."""
else:
    FileFormat = Annotated[FileLayout, GetPydanticSchema(_pydantic_core_schema, _json_schema_of_all_layouts)]


def get_reader_of_layout(layout: FileFormat) -> FormatReader[Any]:
    return _load_reader_of_kind(_kind_of_layout(layout))


def read_rows(
    path: Openable,
    layout: FileFormat,
    *,
    name: str,
    batch_rows: int = 100_000,
    leniencies: LeniencyCounts | None = None,
) -> Iterator[pl.DataFrame]:
    """Yield the rows of a file, as `FormatReader.rows` describes."""
    return get_reader_of_layout(layout).rows(path, layout, name=name, batch_rows=batch_rows, leniencies=leniencies)


def read_rows_at_lines(
    path: Openable, layout: FileFormat, lines: Sequence[int], *, name: str
) -> Iterator[pl.DataFrame]:
    return get_reader_of_layout(layout).rows_at_lines(path, layout, lines, name=name)


def may_be_truncated(path: Openable, layout: FileFormat) -> bool:
    return get_reader_of_layout(layout).may_be_truncated(path, layout)
