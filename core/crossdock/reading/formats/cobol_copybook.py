"""COBOL copybooks: parsed to data description entries, from which come the columns of records, and tables (OCCURS).

Facts: IBM, Enterprise COBOL for z/OS, Language Reference.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, NoReturn

from msgspec import Struct, field
from pydantic import Field, field_serializer

from crossdock.reading.formats.fixed_width_columns import MAX_LENGTH, MAX_POSITION, FixedColumn, FixedUsage
from crossdock.reading.formats.strict_delimited_parser import MAX_COLUMNS
from crossdock.values.config_base_types import ConfigModel, ConfigPath, make_pydantic_error_at_key
from crossdock.values.safe_local_files import read_regular_file_within_limit

SourceForm = Literal["fixed", "free"]
FILLER_NAME = "FILLER"
MAX_SOURCE_BYTES = 1 << 20
_MAX_DEPTH = 49  # levels of groups: 01 to 49
_MOST_ELEMENTS = 100_000
_MAX_DIGITS = 31  # with ARITH(EXTEND)
_MAX_BINARY_DIGITS = 18
_HALFWORD_DIGITS, _FULLWORD_DIGITS = 4, 9
_AREA, _INDICATOR, _END = 7, 6, 72
_TOKEN = re.compile(r"""(?:[XNGBZ]{1,2})?'(?:[^']|'')*'|(?:[XNGBZ]{1,2})?"(?:[^"]|"")*"|[^\s'"]+|['"]""", re.IGNORECASE)
_NAME = re.compile(r"[A-Z0-9][A-Z0-9_-]*", re.IGNORECASE)
_SYMBOL = re.compile(r"(CR|DB|[SXA9VPZB0/,.+*$-])(?:\(([0-9]{1,6})\))?")
_DIRECTIVE = re.compile(r"(?:EJECT|SKIP[123])\.?$|TITLE\s|>>|\$SET\s", re.IGNORECASE)
_IGNORED_LEVELS = {66, 88}

Usage = Literal["display", "packed", "binary", "native", "short_float", "long_float"]
_USAGES: dict[str, Usage] = {
    "DISPLAY": "display",
    **dict.fromkeys(("COMP", "COMPUTATIONAL", "COMP-4", "COMPUTATIONAL-4", "BINARY"), "binary"),
    **dict.fromkeys(("COMP-5", "COMPUTATIONAL-5"), "native"),
    **dict.fromkeys(("COMP-3", "COMPUTATIONAL-3", "PACKED-DECIMAL"), "packed"),
    **dict.fromkeys(("COMP-1", "COMPUTATIONAL-1"), "short_float"),
    **dict.fromkeys(("COMP-2", "COMPUTATIONAL-2"), "long_float"),
}
_FLOATS = {"short_float": 4, "long_float": 8}
_OTHER_USAGES = {
    *("DISPLAY-1", "NATIONAL", "UTF-8", "INDEX", "POINTER", "POINTER-32", "POINTER-64", "PROCEDURE-POINTER"),
    *("FUNCTION-POINTER", "OBJECT", "COMP-6", "COMPUTATIONAL-6", "COMP-X", "COMPUTATIONAL-X", "COMP-N", "COMP-9"),
    *("BINARY-CHAR", "BINARY-SHORT", "BINARY-LONG", "BINARY-DOUBLE", "FLOAT-SHORT", "FLOAT-LONG", "FLOAT-EXTENDED"),
}
_REFUSED = {
    "COPY": "put the text of the other copybook in its place",
    "REPLACE": "make the replacements in the text",
    "EXEC": "put the included text in its place",
    "GROUP-USAGE": "national groups are not read",
    "DYNAMIC": "items of dynamic length are not read",
}
_PICTURE, _VALUE = {"PIC", "PICTURE"}, {"VALUE", "VALUES"}
_CLAUSES = {
    *(*_PICTURE, *_VALUE, "USAGE", "REDEFINES", "OCCURS", "SIGN", "LEADING", "TRAILING", "SYNC", "SYNCHRONIZED"),
    *("JUST", "JUSTIFIED", "BLANK", "EXTERNAL", "GLOBAL", *_USAGES, *_OTHER_USAGES, *_REFUSED),
}


class CopybookError(Exception):
    """What is wrong with a copybook, and the line."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message, self.line = message, line


class Picture(Struct, frozen=True):
    """What a picture says: `digits` and `decimals` of a number (negative: zeros that follow), or characters."""

    length: int
    digits: int = 0
    decimals: int | None = None
    signed: bool = False
    edited: bool = False


class CopybookItem(Struct):
    """A data description entry: a group with `children`, or an elementary item with a picture or a float's usage."""

    level: int
    name: str
    line: int
    picture: Picture | None = None
    usage: Usage | None = None
    redefines: str | None = None
    least: int | None = None
    most: int | None = None
    depending: str | None = None
    sign: Literal["leading", "trailing"] | None = None
    separate: bool | None = None
    synchronized: bool = False
    justified: bool = False
    children: list[CopybookItem] = field(default_factory=list)

    @property
    def element_size(self) -> int:
        """Bytes of one element, with all elements of the tables inside."""
        if self.children:
            return sum(max(each.total_size for each in one) for one in group_by_redefines(self.children))
        if self.usage in _FLOATS:
            return _FLOATS[self.usage]
        assert self.picture is not None
        match self.usage:
            case "packed":
                return self.picture.digits // 2 + 1
            case "binary" | "native":
                digits = self.picture.digits
                return 2 if digits <= _HALFWORD_DIGITS else 4 if digits <= _FULLWORD_DIGITS else 8
        return self.picture.length + bool(self.separate)

    @property
    def total_size(self) -> int:
        return self.element_size * (self.most or 1)

    def item_and_descendants(self) -> Iterator[CopybookItem]:
        yield self
        for child in self.children:
            yield from child.item_and_descendants()


def group_by_redefines(siblings: Sequence[CopybookItem]) -> list[list[CopybookItem]]:
    """Return *siblings* in their order, those that share bytes by REDEFINES together."""
    found: list[list[CopybookItem]] = []
    for item in siblings:
        if item.redefines is None:
            found.append([item])
        elif found and item.redefines.upper() in {each.name.upper() for each in found[-1]}:
            found[-1].append(item)
        else:
            raise CopybookError(f"{item.name} redefines {item.redefines}, which does not precede it", item.line)
    return found


def parse_copybook(text: str, source: SourceForm) -> list[CopybookItem]:
    """Return the items of the highest level.

    Raises:
        CopybookError: At the first entry that cannot be read, with its line.
    """
    items = [
        item
        for line, words in _split_into_entry_words(_read_source_lines(text, source))
        if (item := _EntryParser(line, words).parse_item())
    ]
    if not items:
        raise CopybookError("no data description: are its entries in columns 8 to 72, or is it of source: free?", 1)
    roots = _build_item_tree(items)
    for root in roots:
        _inherit_and_check_usage_and_sign(root, None, None, None)
    return roots


def _read_source_lines(text: str, source: SourceForm) -> Iterator[tuple[int, str]]:
    held: tuple[int, str] | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.expandtabs(8)
        if source == "free":
            yield number, _remove_comment(line)
            continue
        indicator, body = line[_INDICATOR : _INDICATOR + 1], line[_AREA:_END]
        if indicator in {"*", "/", "D", "d", "$"} or _DIRECTIVE.match(body.strip()):
            continue
        if indicator == "-":
            if held is None:
                raise CopybookError("a continuation of no line", number)
            held = (held[0], _join_continuation_line(held[1], body))
            continue
        if indicator not in {"", " "}:
            raise CopybookError(
                f"column 7 has {indicator!r}, which is not an indicator; in free form declare source: free", number
            )
        if held:
            yield held
        held = (number, _remove_comment(body))
    if held:
        yield held


def _remove_comment(line: str) -> str:
    if "*>" in line:
        found = next((token for token in _TOKEN.finditer(line) if token.group().startswith("*>")), None)
        line = line[: found.start()] if found else line
    return "" if _DIRECTIVE.match(line.strip()) else line


def _join_continuation_line(before: str, line: str) -> str:
    rest = line.lstrip()
    opened = next((mark for mark in "'\"" if before.count(mark) % 2), None)
    if opened is None:
        return before.rstrip() + rest
    return before.ljust(_END - _AREA) + rest.removeprefix(opened)


def _split_into_entry_words(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, list[tuple[int, str]]]]:
    """Yield the words of each entry. A period or comma before a space separates; others are part of a picture."""
    words: list[tuple[int, str]] = []
    for number, line in lines:
        for token in _TOKEN.findall(line):
            if token in {"'", '"'}:
                raise CopybookError("a literal without its end", number)
            word = token if token[-1] in "'\"" else token.rstrip(",;") if token != "," else ""  # noqa: S105  no secret
            ends = word.endswith(".") and word[-1] not in "'\""
            if word := word.removesuffix(".") if ends else word:
                words.append((number, word))
            if ends and words:
                yield words[0][0], words
                words = []
    if words:
        raise CopybookError("the last entry has no period", words[0][0])


class _EntryParser:
    """Reads the clauses of one entry."""

    def __init__(self, line: int, words: list[tuple[int, str]]) -> None:
        self._line, self._words, self._at = line, words, 0

    def parse_item(self) -> CopybookItem | None:
        first = self._next_word()
        if first.upper() in _REFUSED:
            self._raise_error(f"{first.upper()} is not executed: {_REFUSED[first.upper()]}")
        if not re.fullmatch("[0-9]{1,2}", first):
            self._raise_error(
                f"{first!r} where a level number is expected, which is in columns 8 to 72 in the fixed form"
            )
        level = int(first)
        if level in _IGNORED_LEVELS:
            return None
        if not (1 <= level <= _MAX_DEPTH or level == 77):
            self._raise_error(f"there is no level {level}")
        name = FILLER_NAME
        if self._peek_word() and self._peek_word() not in _CLAUSES:
            name = self._next_word_as_name()
        item = CopybookItem(1 if level == 77 else level, name, self._line)
        while self._at < len(self._words):
            self._read_clause(item)
        self._raise_if_usage_conflicts_with_picture(item)
        return item

    def _read_clause(self, item: CopybookItem) -> None:  # noqa: C901, PLR0912  one branch for each clause
        match word := self._next_word().upper():
            case "PIC" | "PICTURE":
                self._skip_optional_word("IS")
                item.picture = parse_picture(self._next_word(), self._line)
            case "USAGE":
                self._skip_optional_word("IS")
                self._set_usage_or_raise(item, self._next_word().upper())
            case "REDEFINES":
                item.redefines = self._next_word_as_name()
            case "OCCURS":
                self._read_occurs_clause(item)
            case "SIGN":
                self._skip_optional_word("IS")
                self._read_sign_clause(item, self._next_word().upper())
            case "LEADING" | "TRAILING":
                self._read_sign_clause(item, word)
            case "SYNC" | "SYNCHRONIZED":
                self._skip_optional_word("LEFT", "RIGHT")
                item.synchronized = True
            case "JUST" | "JUSTIFIED":
                self._skip_optional_word("RIGHT")
                item.justified = True
            case "BLANK":
                self._skip_optional_word("WHEN")
                self._skip_optional_word("ZERO", "ZEROS", "ZEROES")
            case "VALUE" | "VALUES":
                self._skip_to_next_clause()
            case "EXTERNAL" | "GLOBAL" | "IS":
                pass
            case _ if word in _REFUSED:
                self._raise_error(f"{word} is not executed: {_REFUSED[word]}")
            case _:
                self._set_usage_or_raise(item, word)

    def _set_usage_or_raise(self, item: CopybookItem, word: str) -> None:
        if word in _OTHER_USAGES:
            self._raise_error(f"USAGE {word} is not read: ask for DISPLAY, COMP, COMP-5 or COMP-3, or make it FILLER")
        if word not in _USAGES:
            self._raise_error(f"{word!r} is not a clause that is known here")
        item.usage = _USAGES[word]

    def _read_occurs_clause(self, item: CopybookItem) -> None:
        item.least = item.most = self._next_number()
        if self._skip_optional_word("TO"):
            item.most = self._next_number()
        self._skip_optional_word("TIMES")
        if self._skip_optional_word("DEPENDING"):
            self._skip_optional_word("ON")
            item.depending = self._next_word_as_name()
            while self._skip_optional_word("OF", "IN"):
                self._next_word_as_name()
            item.least = item.least if item.least != item.most else 0
        while self._skip_optional_word("ASCENDING", "DESCENDING", "INDEXED"):
            self._skip_to_next_clause("ASCENDING", "DESCENDING", "INDEXED")
        if not 0 < item.most <= _MOST_ELEMENTS or item.least > item.most:
            self._raise_error(f"OCCURS {item.least} TO {item.most} is impossible; the limit is {_MOST_ELEMENTS:,}")
        if item.least != item.most and item.depending is None:
            self._raise_error("OCCURS with TO needs DEPENDING ON")

    def _read_sign_clause(self, item: CopybookItem, word: str) -> None:
        if word not in {"LEADING", "TRAILING"}:
            self._raise_error("SIGN is LEADING or TRAILING")
        item.sign = "leading" if word == "LEADING" else "trailing"
        item.separate = self._skip_optional_word("SEPARATE")
        self._skip_optional_word("CHARACTER")

    def _raise_if_usage_conflicts_with_picture(self, item: CopybookItem) -> None:
        if item.picture and item.usage in _FLOATS:
            self._raise_error("a float has no picture")
        if item.picture and item.usage in {"packed", "binary", "native"} and item.picture.decimals is None:
            self._raise_error(f"{item.name} is not a number by its picture, but by its usage")

    def _skip_to_next_clause(self, *ends: str) -> None:
        while self._at < len(self._words) and self._peek_word() not in _CLAUSES and self._peek_word() not in ends:
            self._at += 1

    def _skip_optional_word(self, *words: str) -> bool:
        if self._peek_word() in words:
            self._at += 1
            return True
        return False

    def _peek_word(self) -> str:
        return self._words[self._at][1].upper() if self._at < len(self._words) else ""

    def _next_word(self) -> str:
        if self._at >= len(self._words):
            self._raise_error("the entry ends in the middle of a clause")
        line, word = self._words[self._at]
        self._line = line
        self._at += 1
        return word

    def _next_word_as_name(self) -> str:
        word = self._next_word()
        if not _NAME.fullmatch(word):
            self._raise_error(f"{word!r} where a name is expected")
        return word

    def _next_number(self) -> int:
        word = self._next_word()
        if not re.fullmatch("[0-9]{1,6}", word):
            self._raise_error(f"{word!r} where a number is expected")
        return int(word)

    def _raise_error(self, message: str) -> NoReturn:
        raise CopybookError(message, self._line)


def parse_picture(text: str, line: int) -> Picture:
    """Return what the picture *text* says; *line* is for its error."""
    symbols: list[tuple[str, int]] = []
    end, upper = 0, text.upper()
    for found in _SYMBOL.finditer(upper):
        if found.start() != end:
            break
        symbols.append((found[1], int(found[2] or 1)))
        end = found.end()
    if end != len(upper) or not symbols:
        raise CopybookError(f"the picture {text} is not read: national, DBCS, bit and external float are not", line)
    kinds = {symbol for symbol, _ in symbols}
    if kinds <= set("S9VPZ") and kinds & set("9Z"):
        return _parse_numeric_picture(text, symbols, line)
    if "S" in kinds or kinds & set("VP"):
        raise CopybookError(f"the picture {text} has S, V or P beside editing symbols", line)
    length = sum(count * len(symbol) for symbol, count in symbols)
    return Picture(length, edited=not kinds & set("XA"))


def _parse_numeric_picture(text: str, symbols: list[tuple[str, int]], line: int) -> Picture:
    plain = "".join(symbol * count for symbol, count in symbols)
    form = re.fullmatch("(S?)(P*)([9Z]*)(P*)(V?)(P*)([9Z]*)", plain)
    if form is None:
        raise CopybookError(f"the picture {text} is not a number: S comes first, V once", line)
    signed, before, whole, after, point, behind, fraction = form.groups()
    digits = len(whole) + len(fraction)
    if digits > _MAX_DIGITS:
        raise CopybookError(f"the picture {text} has {digits} digits, more than {_MAX_DIGITS}", line)
    if before:
        decimals = len(before) + digits
    elif after:
        decimals = -len(after)
    else:
        decimals = len(behind) + len(fraction) if point else 0
    if (before or behind) and after:
        raise CopybookError(f"the picture {text} has P on both sides", line)
    if abs(decimals) > _MAX_DIGITS:
        raise CopybookError(f"the picture {text} moves the point by {abs(decimals)}, more than {_MAX_DIGITS}", line)
    return Picture(digits, digits, decimals, bool(signed))


def _build_item_tree(items: list[CopybookItem]) -> list[CopybookItem]:
    roots: list[CopybookItem] = []
    path: list[CopybookItem] = []
    for item in items:
        while path and path[-1].level >= item.level:
            path.pop()
        if path and path[-1].picture is not None:
            raise CopybookError(f"{path[-1].name} has a picture, so it has no items below it", item.line)
        (path[-1].children if path else roots).append(item)
        path.append(item)
    return roots


def _inherit_and_check_usage_and_sign(
    item: CopybookItem, usage: Usage | None, sign: Literal["leading", "trailing"] | None, separate: bool | None
) -> None:
    """Pass USAGE and SIGN of groups on to the items in them, and check elementary items."""
    item.usage = item.usage or usage
    if item.sign is None:
        item.sign, item.separate = sign, separate
    for child in item.children:
        _inherit_and_check_usage_and_sign(child, item.usage, item.sign, item.separate)
    if item.children:
        group_by_redefines(item.children)
        return
    if item.picture is None and item.usage not in _FLOATS:
        raise CopybookError(f"{item.name} has neither a picture nor items below it", item.line)
    if item.picture is None or item.usage in _FLOATS:
        return
    is_number = item.picture.decimals is not None
    item.usage = (item.usage if is_number else None) or "display"
    if not (is_number and item.picture.signed and item.usage == "display"):
        item.sign = item.separate = None
    if item.usage in {"binary", "native"} and item.picture.digits > _MAX_BINARY_DIGITS:
        raise CopybookError(f"{item.name} is binary with more than {_MAX_BINARY_DIGITS} digits", item.line)
    if item.synchronized and item.usage in {"binary", "native"}:
        raise CopybookError(
            f"{item.name} is SYNCHRONIZED: the compiler may insert bytes before it; declare them as FILLER, and leave"
            " out SYNCHRONIZED",
            item.line,
        )


ItemNames = tuple[Annotated[str, Field(min_length=1)], ...]


class Copybook(ConfigModel):
    """A COBOL copybook that describes the records of a file."""

    file: ConfigPath
    """The file with its source text, relative to the config."""
    source: SourceForm = "fixed"
    """The source form: ``fixed``, with text in columns 8 to 72, or ``free``."""
    items: ItemNames = ()
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
            return read_regular_file_within_limit(self.file, MAX_SOURCE_BYTES)
        except OSError as error:
            raise make_pydantic_error_at_key(
                ("copybook", "file"), f"{self.file} cannot be read: {error.strerror}"
            ) from None

    @field_serializer("file")
    def _serialize_file_as_digest(self, file: Path) -> str:
        """A new text is a new layout, and the same one in another folder is not."""
        return f"{file.name} {hashlib.sha256(self._copybook_file_bytes).hexdigest()}"

    def read_and_parse_items(self) -> list[CopybookItem]:
        """Read the source text. Raises PydanticCustomError for a file that cannot be read, or an entry in it."""
        try:
            return parse_copybook(self._copybook_file_bytes.decode(errors="replace"), self.source)
        except CopybookError as error:
            self.raise_error(error)

    def raise_error(self, error: CopybookError) -> NoReturn:
        raise make_pydantic_error_at_key(("copybook", "file"), f"{Path(self.file).name}:{error.line}: {error.message}")


class OccursTable(Struct, frozen=True, eq=False):
    """A table that is in no other one. `at` is its first position, where all tables before it are full."""

    name: str
    at: int
    size: int
    least: int
    most: int
    counter: tuple[str, FixedColumn] | None
    elements: tuple[Mapping[str, str], ...]
    """The names of the columns of each element, by their names in rows."""


class CopybookRecordLayout(Struct, frozen=True):
    """The columns of one type of record and its tables in their order.

    `length` is its bytes where all tables are full, and `least` those without the ends of other items that share bytes.
    """

    columns: Mapping[str, FixedColumn]
    tables: tuple[OccursTable, ...]
    least: int
    length: int


class _PlacedItem(Struct, frozen=True):
    path: tuple[str, ...]
    item: CopybookItem
    subscripts: tuple[int, ...]
    column: FixedColumn
    table: int | None


def build_record_layout(
    copybook: Copybook, roots: Sequence[CopybookItem], items: Collection[str]
) -> CopybookRecordLayout:
    """Place the items. Raises PydanticCustomError if *items* leaves a choice open, or the copybook cannot be read."""
    try:
        return _RecordLayoutBuilder(copybook, items).build_layout(roots)
    except CopybookError as error:
        copybook.raise_error(error)


class _RecordLayoutBuilder:
    def __init__(self, copybook: Copybook, items: Collection[str]) -> None:
        self._copybook, self._wanted = copybook, {each.upper() for each in items}
        self._used: set[str] = set()
        self._cells: list[_PlacedItem] = []
        self._tables: list[tuple[CopybookItem, int, int]] = []  # with the position and the number of cells before it
        self._end = 0  # of the items that are read

    def build_layout(self, roots: Sequence[CopybookItem]) -> CopybookRecordLayout:
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
        return CopybookRecordLayout(columns, tables, self._end, length)

    def _place_siblings_and_return_length(
        self,
        items: Sequence[CopybookItem],
        at: int,
        path: tuple[str, ...],
        subscripts: tuple[int, ...],
        table: int | None,
    ) -> int:
        start = at
        for sharing in group_by_redefines(items):
            self._place_item(self._choose_redefined_item(sharing), at, path, subscripts, table)
            at += max(each.total_size for each in sharing)
        return at - start

    def _choose_redefined_item(self, sharing: list[CopybookItem]) -> CopybookItem:
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
        self, item: CopybookItem, at: int, path: tuple[str, ...], subscripts: tuple[int, ...], table: int | None
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
                self._cells.append(
                    _PlacedItem((*path, item.name), item, inner, self._make_fixed_column(item, begin), table)
                )
                if len(self._cells) > MAX_COLUMNS:
                    raise CopybookError(f"more than {MAX_COLUMNS:,} columns", item.line)

    def _make_fixed_column(self, item: CopybookItem, at: int) -> FixedColumn:
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

    def _usage_of_column(self, item: CopybookItem) -> FixedUsage | None:
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
            _name_with_subscripts(_qualified_name(cell.path, places[cell.path]), cell.subscripts)
            for cell in self._cells
        ]

    def _make_table(self, number: int, names: Sequence[str], columns: Mapping[str, FixedColumn]) -> OccursTable:
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
                elements[cell.subscripts[0] - 1][_name_with_subscripts(base, cell.subscripts[1:])] = name
        return OccursTable(item.name, at, item.element_size, item.least or 0, item.most or 1, counter, tuple(elements))


def _item_and_descendant_names(item: CopybookItem) -> set[str]:
    return {each.name.upper() for each in item.item_and_descendants()}


def _qualified_name(path: tuple[str, ...], groups: int) -> str:
    named = [each for each in path[-groups - 1 : -1] if each.upper() != FILLER_NAME] if groups else []
    return ".".join([*named, path[-1]])


def _name_with_subscripts(name: str, subscripts: tuple[int, ...]) -> str:
    return f"{name}({','.join(map(str, subscripts))})" if subscripts else name
