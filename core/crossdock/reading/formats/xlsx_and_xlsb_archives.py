"""What the reader of sheets does not tell of xlsx and xlsb files: errors, number formats, total rows and merged cells.

An xlsx file is a zip archive of XML parts (ECMA-376, Office Open XML, part 1: ``workbook``, ``c``, ``f`` and ``v``;
18.8.31 for number formats, and 18.5.1.2 for tables, which have ``ref`` and ``totalsRowCount``). Parts of an xlsb file
are records ([MS-XLSB]: a type and a length of up to two and four bytes with seven bits each, and data).
"""

from __future__ import annotations

import operator
import re
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from io import BufferedReader
from numbers import Real
from posixpath import basename, dirname, join, normpath
from typing import Any, BinaryIO, Literal
from xml.parsers import expat

from msgspec import Struct

from crossdock.reading.formats.limited_process import CellError
from crossdock.reading.formats.lost_digits_of_doubles import KEPT_DIGITS, XML_NUMBER_PATTERN, loses_digits_as_double

ShownValue = Callable[[Any], Any]
"""Returns the value of a cell as its number format shows it."""


def convert_day_to_midnight_time(value: Any) -> Any:
    """Return a day as the time at which it begins: the library reads a time at midnight as a day."""
    is_day = isinstance(value, date) and not isinstance(value, datetime)
    return datetime.combine(value, time()) if is_day else value


class FormattedCells:
    def __init__(self, shown_values: Mapping[int, ShownValue]) -> None:
        self._shown_values = shown_values
        self._runs = dict[int, deque[tuple[int, int, ShownValue]]]()

    def add_cell(self, row: int, column: int, style: int) -> None:
        """Add a cell, counted from 1, if its style shows more than its value. Rows ascend."""
        if (shown_value := self._shown_values.get(style)) is None:
            return
        runs = self._runs.setdefault(column, deque())
        if runs and runs[-1][1] == row - 1 and runs[-1][2] is shown_value:
            runs[-1] = (runs[-1][0], row, shown_value)
        else:
            runs.append((row, row, shown_value))

    def replace_by_shown_values(self, row: int, cells: list[Any]) -> None:
        for column, runs in self._runs.items():
            while runs and runs[0][1] < row:
                runs.popleft()
            if runs and runs[0][0] <= row and column <= len(cells):
                cells[column - 1] = runs[0][2](cells[column - 1])


_TOKEN = re.compile(
    r"""
      (?P<digit>0) | (?P<optional>[#?]) | (?P<end>;)
    | \\(?P<escaped>.) | "(?P<quoted>[^"]*)" | (?P<plain>[- ()+:!^&'~{}<>=])
    | \[(?P<test>[<>]=?|<>|=)(?P<limit>-?\d+(?:\.\d+)?)\]
    | (?P<silent>\[\$[^]]*\] | \[(?:black|blue|cyan|green|magenta|red|white|yellow|color\ ?\d+)\]
        | [_*]. | ,(?=[0#?]) | \.(?![#?]*0)[#?]*)
    | (?P<other>.)
    """,
    re.DOTALL | re.VERBOSE | re.IGNORECASE,
)
"""A part of a number format. Silent are languages, colours, widths, what fills a cell, separators of thousands, and the
point behind a whole number."""
_TESTS: Mapping[str, Callable[[Decimal, Decimal], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "<>": operator.ne,
}
_LEAST_DIGITS = 2
_EXACT = 10**KEPT_DIGITS

Shape = tuple[str, ...]
"""The output of a number format; each empty text is a digit."""


class NumberFormatSection(Struct, frozen=True):
    """A number format for numbers that pass `test`. `shape` is None if it shows more than digits with leading zeros."""

    test: tuple[str, Decimal] | None
    shape: Shape | None

    def holds_for(self, number: Decimal) -> bool:
        return self.test is not None and _TESTS[self.test[0]](number, self.test[1])


Sections = tuple[NumberFormatSection, ...]
"""A number format without its section for texts: for positive and negative numbers and zero, or with tests."""


def parse_leading_zeros_format(code: str) -> Sections | None:
    sections, test, parts, others, is_open = list[NumberFormatSection](), None, list[str](), "", False
    for token in _TOKEN.finditer(f"{code};"):
        match token.lastgroup:
            case "end":
                is_shape = not others and parts.count("") >= _LEAST_DIGITS
                if "@" not in others:
                    sections.append(NumberFormatSection(test, tuple(parts) if is_shape else None))
                test, parts, others, is_open = None, [], "", False
            case "limit":
                test = token["test"], Decimal(token["limit"])
            case "digit":
                parts.append("")
            case "optional" if "" in parts:  # behind a 0, the others are shown, too
                parts.append("")
            case "optional":
                is_open = True
            case "other":
                others += token[0]
            case "escaped" | "quoted" | "plain" as kind if text := token[kind]:
                others += text if is_open and "" not in parts else ""  # it would stand among digits that are more
                parts.append(text)
    return tuple(sections) if any(section.shape for section in sections) else None


def _shape_of_matching_section(number: Decimal, sections: Sequence[NumberFormatSection]) -> Shape | None:
    tests = sum(section.test is not None for section in sections[:2])
    if not tests:
        return sections[2 if not number and sections[2:] else 0].shape
    if sections[0].test is None:
        return None
    place = next((place for place in range(tests) if sections[place].holds_for(number)), tests)
    return sections[place].shape if place < len(sections) else None


def add_leading_zeros_of_format(value: Any, sections: Sequence[NumberFormatSection]) -> Any:
    if isinstance(value, bool) or not isinstance(value, Real):
        return value
    number = Decimal(repr(value))
    if not 0 <= number < _EXACT or number != number.to_integral_value():
        return value
    shape = _shape_of_matching_section(number, sections)
    if shape is None:
        return value
    text = str(int(number)).zfill(shape.count(""))
    digits = iter([text[: len(text) - shape.count("") + 1], *text[len(text) - shape.count("") + 1 :]])
    return "".join(part or next(digits) for part in shape)


MAX_UNPACKED = 512 << 20
"""The limit for all parts of an archive together, in bytes."""
_MAX_EXPANSION, _FREE_BYTES = 200, 10_000_000
"""Sheets shrink 5 to 50 times, bombs about 1,000 times; parts that share packed bytes even more."""
_MAX_DIRECTORY = 4 << 20
"""The limit for the list of all parts, in bytes. An entry takes about a hundred; workbooks have hundreds of parts."""
_END, _END_BYTES = b"PK\5\6", 22
_CELLS_APART, _FREE_CELLS = 32, 2_000_000
"""The limit for the rectangle around all cells, as a multiple of their number: the sheet reader stores all of it."""
_BLOCK = 1 << 20
WORKBOOK, _RELATIONS, _STYLES = "xl/workbook.xml", "xl/_rels/workbook.xml.rels", "xl/styles.xml"
_BUILT_IN_DATES = {*range(14, 23), *range(27, 37), 45, 47, *range(50, 59)}
"""Numbers of formats of dates that a file need not define (ECMA-376, part 1, 18.8.30)."""
_BUILT_IN_TIMES = {*range(18, 23), 32, 33, 45, 47}
"""Those of them that show a time."""
_BUILT_IN_DURATION = 46
_NO_CODE = re.compile(r'"[^"]*"|[\\_*].|\[[^]]*\]', re.DOTALL)
"""What says nothing of the kind of a number format."""
_DURATION = re.compile(r"\[(h+|m+|s+)\]", re.IGNORECASE)
_SHARED_TEXT = re.compile("[0-9]+")
_MAX_DAYS = timedelta.max.days
_AGAIN = "It is damaged or still being written: fetch it again."
_NO_PROGRAM = "No program that writes sheets does so: do not use it."

_Kind = Literal["date", "time", "duration"]
Start = Callable[[str, dict[str, str]], None]
Text = Callable[[str], None]


def make_missing_sheet_error(sheet: str | int, visible_count: int) -> CellError:
    if isinstance(sheet, str):
        return CellError(f"there is no sheet {sheet!r}", "", "Correct sheet, or ask the sender.")
    hint = "Correct sheet, or ask the sender; hidden sheets are only read by their names."
    return CellError(f"has {visible_count} visible sheets, but sheet {sheet} is declared", "", hint)


def max_unpacked_bytes(packed: int) -> int:
    return min(MAX_UNPACKED, max(_FREE_BYTES, _MAX_EXPANSION * packed))


def raise_if_archive_damaged_or_too_large(file: BinaryIO) -> None:
    """Unpack all parts of a zip archive, within limits, to verify their checksums. Other files are skipped."""
    file.seek(0)
    if file.read(2) != b"PK":
        return
    total, packed = 0, file.seek(0, 2)
    _raise_if_part_list_too_long(file, packed)
    with open_sheet_archive(file) as archive:
        names = archive.namelist()
        if len({name.lower() for name in names}) != len(names):
            raise CellError("has two parts with the same name, of which only one would be read", "", _AGAIN)
        for part in archive.infolist():
            for block in _blocks_of_part(archive, part.filename):
                total += len(block)
                if total > max_unpacked_bytes(packed):
                    message = f"unpacks to more than {total >> 20} MiB, too much for a file of {packed:,} bytes"
                    raise CellError(message, "", "If the file is genuine, ask for it in parts or as CSV.")


def _raise_if_part_list_too_long(file: BinaryIO, size: int) -> None:
    """Check the length of the list of parts, which its readers hold in memory (APPNOTE.TXT, 4.3.16)."""
    file.seek(max(0, size - _END_BYTES - 0xFFFF))
    _, found, end = file.read().rpartition(_END)
    if found and int.from_bytes(end[8:12], "little") > _MAX_DIRECTORY:
        raise CellError("is a zip archive of too many parts", "", "No program writes such sheets: do not use it.")


def check_and_find_formatted_cells(
    file: BinaryIO, title: str, *, finds_errors: bool, shows_zeros: bool = True
) -> FormattedCells | None:
    """Check the sheet *title*, and find cells that show more than their values; None for a file that is not xlsx."""
    if not zipfile.is_zipfile(file):
        return None
    with open_sheet_archive(file) as archive:
        if WORKBOOK not in archive.namelist():
            return None
        shown_values, kinds = _read_styles(archive, shows_zeros=shows_zeros)
        cells = _CellChecker(FormattedCells(shown_values), kinds, finds_errors=finds_errors)
        parse_xml_part(
            archive,
            find_part_of_sheet(archive, title),
            cells.start_element,
            cells.end_element,
            cells.add_text,
            cells.raise_if_comment_or_cdata_in_value,
        )
        cells.raise_if_cells_far_apart()
        return cells.formatted


def _read_styles(archive: zipfile.ZipFile, *, shows_zeros: bool) -> tuple[dict[int, ShownValue], dict[int, _Kind]]:
    if _STYLES not in archive.namelist():
        return {}, {}
    shown_values, styles, above = dict[str, ShownValue](), list[str](), list[str]()
    kinds: dict[str, _Kind] = {str(code): "date" for code in _BUILT_IN_DATES}
    kinds |= {str(code): "time" for code in _BUILT_IN_TIMES}
    kinds[str(_BUILT_IN_DURATION)] = "duration"

    def start(name: str, attributes: dict[str, str]) -> None:
        if local_name(name) == "numFmt":
            number, code = attributes.get("numFmtId", ""), attributes.get("formatCode", "")
            if shows_zeros and (sections := parse_leading_zeros_format(code)):
                shown_values[number] = partial(add_leading_zeros_of_format, sections=sections)
            if kind := _kind_of_number_format(code):
                kinds[number] = kind
        if local_name(name) == "xf" and above[-1:] == ["cellXfs"]:
            styles.append(attributes.get("numFmtId", ""))
        above.append(local_name(name))

    parse_xml_part(archive, _STYLES, start, lambda _: above.pop())
    shown_values |= {number: convert_day_to_midnight_time for number, kind in kinds.items() if kind == "time"}
    return (
        {style: shown_values[number] for style, number in enumerate(styles) if number in shown_values},
        {style: kinds[number] for style, number in enumerate(styles) if number in kinds},
    )


def _kind_of_number_format(code: str) -> _Kind | None:
    if _DURATION.search(re.sub(r'"[^"]*"|\\.', "", code, flags=re.DOTALL)):
        return "duration"
    letters = set(_NO_CODE.sub("", code).lower())
    if letters & set("hs"):
        return "time"
    return "date" if letters & set("dmy") else None


def cell_name(row: int, column: int) -> str:
    letters = ""
    while column:
        column, letter = divmod(column - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return f"{letters}{row}"


@contextmanager
def open_sheet_archive(file: BinaryIO) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive; damage that is found within the context is a `CellError`."""
    try:
        with zipfile.ZipFile(file) as archive:
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise CellError("a part of the file is damaged", "", _AGAIN) from error
    except expat.ExpatError as error:
        raise CellError("a part of the file is not XML", "", _AGAIN) from error


def _blocks_of_part(archive: zipfile.ZipFile, part: str) -> Iterator[bytes]:
    with archive.open(part) as stream:
        while block := stream.read(_BLOCK):
            yield block


def parse_xml_part(
    archive: zipfile.ZipFile,
    part: str,
    start: Start,
    end: Callable[[str], object] | None = None,
    text: Text | None = None,
    other: Callable[..., object] | None = None,
) -> None:
    """Parse an XML part; *other* is called at CDATA sections, comments and processing instructions."""

    def no_dtd(*_: object) -> None:
        raise CellError("holds a document type declaration", "", _NO_PROGRAM)

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartDoctypeDeclHandler = no_dtd
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.StartCdataSectionHandler = parser.CommentHandler = parser.ProcessingInstructionHandler = other
    for block in _blocks_of_part(archive, part):
        parser.Parse(block, False)
    parser.Parse(b"", True)


def local_name(name: str) -> str:
    return name.rpartition(" ")[2]


def find_part_of_sheet(archive: zipfile.ZipFile, title: str) -> str:
    relations = list[str]()

    def sheet(name: str, attributes: dict[str, str]) -> None:
        if local_name(name) == "sheet" and attributes.get("name") == title:
            relations.extend(value for key, value in attributes.items() if key != "id" and local_name(key) == "id")

    parse_xml_part(archive, WORKBOOK, sheet)
    return find_part_of_relation_or_raise(archive, _RELATIONS, relations)


def find_part_of_relation_or_raise(archive: zipfile.ZipFile, listed: str, relations: Sequence[str]) -> str:
    targets = dict[str, str]()

    def relation(name: str, attributes: dict[str, str]) -> None:
        if local_name(name) == "Relationship":
            targets[attributes.get("Id", "")] = attributes.get("Target", "")

    if listed in archive.namelist():
        parse_xml_part(archive, listed, relation)
    target = targets.get(relations[0]) if relations else None
    part = normpath(join("xl", target)).lstrip("/") if target else ""
    if part not in archive.namelist():
        raise CellError("a part of the file is missing", "", _AGAIN)
    return part


def _parse_cell_name(cell: str) -> tuple[int, int]:
    letters = cell.rstrip("0123456789")
    column = 0
    for letter in letters[:4]:
        column = column * 26 + ord(letter) - 64
    return int(cell[len(letters) :][:9] or 0), column


class _CellChecker:
    """Checks one cell after the other. Cells and rows without a name follow the one before."""

    def __init__(self, formatted: FormattedCells, kinds: Mapping[int, _Kind], *, finds_errors: bool) -> None:
        self.formatted, self._kinds, self._finds_errors = formatted, kinds, finds_errors
        self._row = self._column = self._style = 0
        self._has_formula = self._has_value = self._in_value = False
        self._cell = self._type = self._value = ""  # the value of a number, or of the number of a shared text
        self._count = 0
        self._last_row = self._last_column = (0, "")  # the number, and the cell there

    def raise_if_cells_far_apart(self) -> None:
        (rows, lowest), (columns, rightmost) = self._last_row, self._last_column
        if rows * columns > max(_FREE_CELLS, _CELLS_APART * self._count):
            cell = lowest if rows > columns else rightmost
            hint = "Delete all rows below the table and all columns beside it, save the file, and send it again."
            raise CellError("a cell far from the others", cell, hint)

    def start_element(self, name: str, attributes: dict[str, str]) -> None:
        match local_name(name):
            case "row":
                before, self._column = self._row, 0
                self._row = int(attributes.get("r", before + 1))
                if self._row <= before:
                    raise CellError("rows are not in their order, or one is there twice", f"row {self._row}", _AGAIN)
            case "c":
                self._cell = attributes.get("r") or cell_name(self._row, self._column + 1)
                before, (row, self._column) = self._column, _parse_cell_name(self._cell)
                if row != self._row or self._column <= before:
                    raise CellError("cells are not in their order, or one is there twice", self._cell, _AGAIN)
                self._has_formula, self._has_value = False, attributes.get("t") == "str"  # a text may be empty
                self._type, self._value = attributes.get("t", "n"), ""
                self._style = int(attributes.get("s", 0))
                if attributes.get("t") == "e" and self._finds_errors:
                    hint = "Correct the formula, and export the sheet again."
                    raise CellError("the cell holds an error such as #N/A", self._cell, hint)
            case "f":
                self._has_formula = True
            case "is":  # a text in its place
                self._has_value = True
            case "v":
                self._in_value = True

    def _count_and_locate_cell(self, cell: str) -> None:
        self._count += 1
        row, column = self._row, self._column
        self._last_row = max(self._last_row, (row, cell))
        self._last_column = max(self._last_column, (column, cell))
        self.formatted.add_cell(row, column, self._style)

    def add_text(self, text: str) -> None:
        if self._in_value:
            self._has_value = True
            if self._type in {"n", "s"}:
                self._value += text

    def raise_if_comment_or_cdata_in_value(self, *_: object) -> None:
        if self._in_value:  # its reader passes over them, and over what follows a comment
            raise CellError("the value has a comment or a CDATA section", self._cell, _NO_PROGRAM)

    def end_element(self, name: str) -> None:
        self._in_value = False
        if local_name(name) != "c":
            return
        if self._has_value:
            self._count_and_locate_cell(self._cell)
            if self._type == "n":
                self._raise_if_number_unreadable()
            elif self._type == "s" and not _SHARED_TEXT.fullmatch(self._value):  # its reader takes the first text
                hint = "Ask the sender to correct the program that writes the file."
                raise CellError("the number of a shared text is not a whole number", self._cell, hint)
        elif self._has_formula and self._finds_errors:
            hint = "Open and save the file in a spreadsheet program, which calculates it."
            raise CellError("the formula was never calculated", self._cell, hint)

    def _raise_if_number_unreadable(self) -> None:
        if loses_digits_as_double(self._value):
            hint = "Excel keeps 15 digits: ask for a cell that is text."
            raise CellError("a number of more than 15 digits", self._cell, hint)
        kind = self._kinds.get(self._style)
        if kind is None or not XML_NUMBER_PATTERN.fullmatch(self._value):
            return
        days = Decimal(self._value)
        if kind != "duration" and days < 0:  # its reader leaves out the sign
            raise CellError("a date or time before the first one", self._cell, "Correct the cell, or ask the sender.")
        if kind == "duration" and abs(days) >= _MAX_DAYS:  # its reader fails
            raise CellError(f"a duration of {_MAX_DAYS:,} days or more", self._cell, "Ask for a number without format.")


_LAST_ROW = re.compile(r"(?:[A-Z]+[0-9]+:)?[A-Z]+([0-9]{1,7})")


def find_total_rows(file: BinaryIO, title: str) -> list[int]:
    """Return the numbers of the rows, from 1, of the sheet *title*; none in a file that is not xlsx."""
    if not zipfile.is_zipfile(file):
        return []
    with open_sheet_archive(file) as archive:
        if WORKBOOK not in archive.namelist():
            return []
        tables = list(_tables_of_sheet(archive, find_part_of_sheet(archive, title)))
        return sorted({row for table in tables for row in _total_rows_of_table(archive, table)})


def _tables_of_sheet(archive: zipfile.ZipFile, sheet: str) -> Iterator[str]:
    targets = list[str]()

    def relation(name: str, attributes: dict[str, str]) -> None:
        if local_name(name) == "Relationship" and attributes.get("Type", "").endswith("/table"):
            targets.append(attributes.get("Target", ""))

    folder, names = dirname(sheet), set(archive.namelist())
    if (listed := f"{folder}/_rels/{basename(sheet)}.rels") in names:
        parse_xml_part(archive, listed, relation)
    parts = (normpath(join(folder, target)).lstrip("/") for target in targets)
    return (part for part in parts if part in names)


def _total_rows_of_table(archive: zipfile.ZipFile, part: str) -> range:
    found = range(0)

    def table(name: str, attributes: dict[str, str]) -> None:
        nonlocal found
        count, last = attributes.get("totalsRowCount", "0"), _LAST_ROW.fullmatch(attributes.get("ref", ""))
        if local_name(name) == "table" and last is not None and count.isdecimal():
            found = range(int(last[1]) - int(count) + 1, int(last[1]) + 1)

    parse_xml_part(archive, part, table)
    return found


_XLSB_WORKBOOK, _XLSB_RELATIONS = "xl/workbook.bin", "xl/_rels/workbook.bin.rels"
_SHEET, _MERGED = 156, 176  # BrtBundleSh and BrtMergeCell
_MORE, _SIZE_BITS = 128, 28
_BUFFER = 1 << 16

Range = tuple[tuple[int, int], tuple[int, int]]


def read_merged_cells_of_xlsb(file: BinaryIO, title: str) -> list[Range]:
    """Return the first and the last of merged cells, as row and column from 0. A file that is not xlsb has none."""
    if not zipfile.is_zipfile(file):
        return []
    with open_sheet_archive(file) as archive:
        if _XLSB_WORKBOOK not in archive.namelist():
            return []
        relations = [
            relation
            for relation, name in map(
                _sheet_relation_and_name, _read_xlsb_records_of_type(archive, _XLSB_WORKBOOK, _SHEET)
            )
            if name == title
        ]
        part = find_part_of_relation_or_raise(archive, _XLSB_RELATIONS, relations)
        merged = dict[int, Range]()  # the first ones that end in each row
        for record in _read_xlsb_records_of_type(archive, part, _MERGED):
            first, last, column, end = (_uint32_at(record, place) for place in (0, 4, 8, 12))
            merged.setdefault(last, ((first, column), (last, end)))
        return list(merged.values())


def _uint32_at(record: bytes, place: int) -> int:
    return int.from_bytes(record[place : place + 4], "little")


def _sheet_relation_and_name(record: bytes) -> tuple[str, str]:
    """Return the relation and the name of a sheet, each of which follows its length."""
    name = 12 + 2 * _uint32_at(record, 8)
    end = name + 4 + 2 * _uint32_at(record, name)
    return record[12:name].decode("utf-16-le", "replace"), record[name + 4 : end].decode("utf-16-le", "replace")


def _read_xlsb_records_of_type(archive: zipfile.ZipFile, part: str, wanted: int) -> Iterator[bytes]:
    packed: Any = archive.open(part)  # it can be read into a buffer, of which its type says nothing
    with BufferedReader(packed, _BUFFER) as stream:
        while head := stream.read(1):
            kind = head[0] if head[0] < _MORE else head[0] - _MORE | _next_byte(stream) << 7
            size, shift, byte = 0, 0, _MORE
            while byte >= _MORE and shift < _SIZE_BITS:
                byte = _next_byte(stream)
                size |= byte % _MORE << shift
                shift += 7
            if kind == wanted:
                yield stream.read(size)
            else:
                _skip_bytes(stream, size)


def _next_byte(stream: BinaryIO) -> int:
    if not (byte := stream.read(1)):
        raise ValueError("a record is cut")
    return byte[0]


def _skip_bytes(stream: BinaryIO, size: int) -> None:
    while size:
        passed = len(stream.read(min(size, _BUFFER)))
        if not passed:
            raise ValueError("a record is cut")
        size -= passed
