"""The columns that a copybook describes, with the tables (OCCURS) between them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, NoReturn

from msgspec import Struct
from pydantic import Field, field_serializer

from crossdock.reading.formats.cobol_copybook import (
    FILLER_NAME,
    MAX_SOURCE_BYTES,
    CopybookError,
    Item,
    SourceForm,
    grouped_by_redefines,
    parse_copybook,
)
from crossdock.reading.formats.fixed_columns import MAX_LENGTH, MAX_POSITION, FixedColumn, FixedUsage
from crossdock.reading.formats.strict_parser import MAX_COLUMNS
from crossdock.values.config_base_types import ConfigModel, ConfigPath, finding_about_key
from crossdock.values.safe_local_files import read_regular

Items = tuple[Annotated[str, Field(min_length=1)], ...]


class Copybook(ConfigModel):
    """A COBOL copybook that describes the records of a file."""

    file: ConfigPath
    """The file with its source text, relative to the config."""
    source: SourceForm = "fixed"
    """The source form: ``fixed``, with text in columns 8 to 72, or ``free``."""
    items: Items = ()
    """Of the items that share bytes (REDEFINES, and several of level 01): those that are read."""
    rows: str | None = None
    """The table (``OCCURS``) whose elements are rows, with the column ``TABLE(n)`` for their number; without it,
    elements are columns such as ``QTY(1)``."""
    tables: Literal["counted", "full"] = "counted"
    """What a table with ``DEPENDING ON`` takes up: its ``counted`` elements, or room for the most (``full``)."""
    binary_digits: Literal["picture", "all"] = "picture"
    """What COMP and BINARY hold: the digits of the picture, or ``all`` that fit, as with TRUNC(BIN)."""
    native_byte_order: Literal["big", "little"] | None = None
    """The byte order of COMP-5; required where there is one."""
    floats: Literal["hex"] | None = None
    """How COMP-1 and COMP-2 are read: as text, their bytes in ``hex``; refused by default."""

    @cached_property
    def _copybook_file_bytes(self) -> bytes:
        try:
            return read_regular(self.file, MAX_SOURCE_BYTES)
        except OSError as error:
            raise finding_about_key(("copybook", "file"), f"{self.file} cannot be read: {error.strerror}") from None

    @field_serializer("file")
    def _digest(self, file: Path) -> str:
        """A new text is a new layout, and the same one in another folder is not."""
        return f"{file.name} {hashlib.sha256(self._copybook_file_bytes).hexdigest()}"

    def parse_items(self) -> list[Item]:
        """Read the source text. Raises PydanticCustomError for a file that cannot be read, or an entry in it."""
        try:
            return parse_copybook(self._copybook_file_bytes.decode(errors="replace"), self.source)
        except CopybookError as error:
            self.raise_error(error)

    def raise_error(self, error: CopybookError) -> NoReturn:
        raise finding_about_key(("copybook", "file"), f"{Path(self.file).name}:{error.line}: {error.message}")


class Table(Struct, frozen=True, eq=False):
    """A table that is in no other one. `at` is its first position, where all tables before it are full."""

    name: str
    at: int
    size: int
    least: int
    most: int
    counter: tuple[str, FixedColumn] | None
    elements: tuple[Mapping[str, str], ...]
    """The names of the columns of each element, by their names in rows."""


class RecordLayout(Struct, frozen=True):
    """The columns of one type of record and its tables in their order.

    `length` is its bytes where all tables are full, and `least` those without the ends of other items that share bytes.
    """

    columns: Mapping[str, FixedColumn]
    tables: tuple[Table, ...]
    least: int
    length: int


class _Cell(Struct, frozen=True):
    path: tuple[str, ...]
    item: Item
    subscripts: tuple[int, ...]
    column: FixedColumn
    table: int | None


def build_record_layout(copybook: Copybook, roots: Sequence[Item], items: Collection[str]) -> RecordLayout:
    """Place the items. Raises PydanticCustomError if *items* leaves a choice open, or the copybook cannot be read."""
    try:
        return _LayoutBuilder(copybook, items).build_layout(roots)
    except CopybookError as error:
        copybook.raise_error(error)


class _LayoutBuilder:
    def __init__(self, copybook: Copybook, items: Collection[str]) -> None:
        self._copybook, self._wanted = copybook, {each.upper() for each in items}
        self._used: set[str] = set()
        self._cells: list[_Cell] = []
        self._tables: list[tuple[Item, int, int]] = []  # with the position and the number of cells before it
        self._end = 0  # of the items that are read

    def build_layout(self, roots: Sequence[Item]) -> RecordLayout:
        if (most := max(root.total_size for root in roots)) > MAX_POSITION:
            raise CopybookError(f"a record of {most:,} bytes, more than {MAX_POSITION:,}", roots[0].line)
        if len({root.level for root in roots}) > 1 or roots[0].level != 1:
            length = self._place_siblings_and_return_length(roots, 1, (), (), None)
        else:
            chosen = self._choose_redefined_item(list(roots))
            if chosen.most is not None:
                raise CopybookError("a record of level 01 has no OCCURS", chosen.line)
            self._place_item(chosen, 1, (), (), None)
            length = chosen.element_size
        if left := self._wanted - self._used:
            raise CopybookError(f"no items that share bytes are named {', '.join(sorted(left))}", 1)
        names = self._unique_column_names()
        columns = {name: cell.column for name, cell in zip(names, self._cells, strict=True)}
        if len(columns) < len(names):
            twice = next(name for name, number in Counter(names).items() if number > 1)
            raise CopybookError(f"two columns are named {twice}", 1)
        tables = tuple(self._make_table(number, names, columns) for number in range(len(self._tables)))
        return RecordLayout(columns, tables, self._end, length)

    def _place_siblings_and_return_length(
        self, items: Sequence[Item], at: int, path: tuple[str, ...], subscripts: tuple[int, ...], table: int | None
    ) -> int:
        start = at
        for sharing in grouped_by_redefines(items):
            self._place_item(self._choose_redefined_item(sharing), at, path, subscripts, table)
            at += max(each.total_size for each in sharing)
        return at - start

    def _choose_redefined_item(self, sharing: list[Item]) -> Item:
        if len(sharing) == 1:
            return sharing[0]
        named = [each for each in sharing if self._wanted & _item_and_descendant_names(each)]
        self._used |= self._wanted & {name for each in sharing for name in _item_and_descendant_names(each)}
        found = named or [each for each in sharing if _item_and_descendant_names(each) != {FILLER_NAME}]
        if len(found) == 1:
            return found[0]
        names = ", ".join(each.name for each in sharing)
        what = "several of them are named in items" if named else "name the one that is read in items"
        raise CopybookError(f"{names} share bytes: {what}", sharing[-1].line)

    def _place_item(
        self, item: Item, at: int, path: tuple[str, ...], subscripts: tuple[int, ...], table: int | None
    ) -> None:
        if item.depending is not None and subscripts:
            raise CopybookError(f"{item.name} depends on a count and is inside of a table", item.line)
        if item.most is not None and not subscripts:
            table = len(self._tables)
            self._tables.append((item, at, len(self._cells)))
        size = item.element_size
        for number in range(1, (item.most or 1) + 1):
            inner = (*subscripts, number) if item.most is not None else subscripts
            begin = at + (number - 1) * size
            if item.children:
                self._place_siblings_and_return_length(item.children, begin, (*path, item.name), inner, table)
                continue
            self._end = max(self._end, begin + size - 1)
            if item.name.upper() != FILLER_NAME:
                self._cells.append(_Cell((*path, item.name), item, inner, self._fixed_column(item, begin), table))
                if len(self._cells) > MAX_COLUMNS:
                    raise CopybookError(f"more than {MAX_COLUMNS:,} columns", item.line)

    def _fixed_column(self, item: Item, at: int) -> FixedColumn:
        if item.element_size > MAX_LENGTH:
            raise CopybookError(f"{item.name} has {item.element_size:,} bytes, more than {MAX_LENGTH:,}", item.line)
        if item.picture is None:
            if self._copybook.floats is None:
                raise CopybookError(
                    f"{item.name} is a float (COMP-1, COMP-2), which is not exact: ask the sender for a decimal;"
                    " floats: hex reads its bytes",
                    item.line,
                )
            return FixedColumn(at=at, length=item.element_size, usage="hex")
        if item.picture.decimals is None:
            left = "left" if item.justified else "right"
            return FixedColumn(at=at, length=item.element_size, padding="both" if item.picture.edited else left)
        digits, decimals, usage = item.picture.digits, item.picture.decimals, self._usage_of_column(item)
        if usage is not None:
            free = item.usage == "native" or (item.usage == "binary" and self._copybook.binary_digits == "all")
            sign: Literal["included"] | None = "included" if item.picture.signed else None
            most = None if free else digits
            return FixedColumn(at=at, length=item.element_size, usage=usage, digits=most, decimals=decimals, sign=sign)
        if not item.picture.signed:
            return FixedColumn(at=at, length=item.element_size, decimals=decimals)
        if item.separate:
            return FixedColumn(at=at, length=item.element_size, decimals=decimals, sign=item.sign)
        punched: Literal["overpunch", "leading_overpunch"]
        punched = "leading_overpunch" if item.sign == "leading" else "overpunch"
        return FixedColumn(at=at, length=item.element_size, decimals=decimals, sign=punched)

    def _usage_of_column(self, item: Item) -> FixedUsage | None:
        match item.usage:
            case "packed":
                return "packed"
            case "binary":
                return "binary"
            case "native":
                if self._copybook.native_byte_order is None:
                    raise CopybookError(f"{item.name} is COMP-5: declare native_byte_order, big or little", item.line)
                return "binary" if self._copybook.native_byte_order == "big" else "binary_little_endian"
        return None

    def _unique_column_names(self) -> list[str]:
        """Return the name of each cell, with those of its groups as far as it is not unique without them."""
        places: dict[tuple[str, ...], int] = {cell.path: 0 for cell in self._cells}
        owners: dict[tuple[str, ...], int] = {}
        for cell in self._cells:
            owners.setdefault(cell.path, id(cell.item))
            if owners[cell.path] != id(cell.item):
                raise CopybookError(f"{cell.item.name} is twice in one group", cell.item.line)
        deepest = max(map(len, places), default=0)
        for depth in range(1, deepest):
            counts = Counter(_qualified_name(path, places[path]).upper() for path in places)
            for path in places:
                if counts[_qualified_name(path, places[path]).upper()] > 1:
                    places[path] = depth
        return [
            _with_subscripts(_qualified_name(cell.path, places[cell.path]), cell.subscripts) for cell in self._cells
        ]

    def _make_table(self, number: int, names: Sequence[str], columns: Mapping[str, FixedColumn]) -> Table:
        item, at, before = self._tables[number]
        counter: tuple[str, FixedColumn] | None = None
        if item.depending is not None:
            for name, cell in zip(names[:before], self._cells[:before], strict=True):
                if cell.item.name.upper() == item.depending.upper() and not cell.subscripts:
                    counter = (name, columns[name])
            if counter is None:
                raise CopybookError(f"{item.name} depends on {item.depending}, which is not before it", item.line)
            if counter[1].decimals != 0:
                raise CopybookError(f"{item.depending} is not a whole number", item.line)
        elements: list[dict[str, str]] = [{} for _ in range(item.most or 1)]
        for name, cell in zip(names, self._cells, strict=True):
            if cell.table == number:
                base = name.partition("(")[0]
                elements[cell.subscripts[0] - 1][_with_subscripts(base, cell.subscripts[1:])] = name
        return Table(item.name, at, item.element_size, item.least or 0, item.most or 1, counter, tuple(elements))


def _item_and_descendant_names(item: Item) -> set[str]:
    return {each.name.upper() for each in item.with_descendants()}


def _qualified_name(path: tuple[str, ...], groups: int) -> str:
    named = [each for each in path[-groups - 1 : -1] if each.upper() != FILLER_NAME] if groups else []
    return ".".join([*named, path[-1]])


def _with_subscripts(name: str, subscripts: tuple[int, ...]) -> str:
    return f"{name}({','.join(map(str, subscripts))})" if subscripts else name
