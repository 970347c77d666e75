"""Reads a sheet of an OpenDocument file (OASIS Open Document Format 1.2, part 1, 9.1 and 19.385).

The library that reads the other formats rounds the numbers of this one, and loses errors, merged cells, some texts, and
one of two sheets with the same name.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, NoReturn

from crossdock.reading.formats.limited_process import CellError
from crossdock.reading.formats.lost_digits_of_doubles import XML_NUMBER_PATTERN, loses_digits_as_double, parse_double
from crossdock.reading.formats.xlsx_and_xlsb_archives import (
    cell_name,
    make_missing_sheet_error,
    max_unpacked_bytes,
    open_sheet_archive,
    parse_xml_part,
)

_KIND = b"application/vnd.oasis.opendocument.spreadsheet"
_CONTENT, _MANIFEST = "content.xml", "META-INF/manifest.xml"
_MAX_MANIFEST = 4 << 20
_NAMES = "urn:oasis:names:tc:opendocument:xmlns:{}:1.0 "
_OFFICE, _STYLE, _TABLE, _TEXT, _DRAWING = map(_NAMES.format, ("office", "style", "table", "text", "drawing"))
_ERROR_TYPE = "urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0 value-type"
_TYPE, _FORMULA, _NAME = f"{_OFFICE}value-type", f"{_TABLE}formula", f"{_TABLE}name"
_NUMBER, _DATE = f"{_OFFICE}value", f"{_OFFICE}date-value"
_COLUMNS, _ROWS = f"{_TABLE}number-columns-repeated", f"{_TABLE}number-rows-repeated"
_WIDTH, _HEIGHT = f"{_TABLE}number-columns-spanned", f"{_TABLE}number-rows-spanned"
_VALUE_TYPES = {"float", "percentage", "currency", "date", "time", "boolean"}
_MAX_ROW, _MAX_COLUMN = 1 << 20, 1 << 14
"""The size of a sheet in spreadsheet programs."""
_MAX_BLANK = 1 << 16
"""The most blank rows before one that is not: more than a config can skip."""
_MAX_DIGITS = 10  # of a number of repeats
_IN_MEMORY = 16 << 20
_DATE_TEXT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d+)", re.ASCII)
_DAY_TEXT = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_SHOWN_TIME = re.compile(r"\d:\d\d", re.ASCII)
_TIME_TEXT = re.compile(r"(-?)P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:[.,](\d+))?S)?)?(?<=[DHMS])", re.ASCII)
_ERRORS = {"#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!", "#BEZUG!", "#NV", "#WERT!", "#ZAHL!"}
_SHOWN_ERROR = re.compile(r"#[^\W\d_]|[^\W\d_]+:5\d\d")
"""An error in the language of a program, as #NV or Err:502, in place of the number 0."""
_DAY_S = 24 * 60 * 60
_ASK = "Correct the cell, or ask the sender."
_NO_PROGRAM = "No program writes such sheets: do not use it."


def is_ods_file(file: BinaryIO) -> bool:
    if not zipfile.is_zipfile(file):
        return False
    with open_sheet_archive(file) as archive:
        if "mimetype" not in archive.namelist():
            return False
        with archive.open("mimetype") as kind:
            return kind.read(len(_KIND)) == _KIND


def read_ods_sheet(file: BinaryIO, sheet: str | int, *, finds_errors: bool) -> Iterator[Any]:
    """Yield the facts of a sheet, and its rows as JSON, which wait in a temporary file until the facts are known."""
    with open_sheet_archive(file) as archive, SpooledTemporaryFile(max_size=_IN_MEMORY) as rows:
        names = archive.namelist()
        if _MANIFEST in names:
            with archive.open(_MANIFEST) as manifest:
                if b"encryption-data" in manifest.read(_MAX_MANIFEST):
                    raise CellError("is protected by a password", "", "Ask for a file without one.")
        if _CONTENT not in names:
            raise CellError("a part of the file is missing", "", "It is damaged: fetch it again.")
        content = _OdsSheetParser(
            sheet, rows.write, most=max_unpacked_bytes(file.seek(0, 2)), finds_errors=finds_errors
        )
        parse_xml_part(archive, _CONTENT, content.start_element, content.end_element, content.add_text)
        yield content.get_sheet_facts_or_raise()
        rows.seek(0)
        yield from (line.decode().rstrip("\n") for line in rows)


class _OdsSheetParser:
    """Handles the elements of the part with the sheets. `_row` and `_column` count those before the current cell."""

    def __init__(self, sheet: str | int, write: Callable[[bytes], object], *, most: int, finds_errors: bool) -> None:
        self._sheet, self._write, self._most, self._finds_errors = sheet, write, most, finds_errors
        self._style, self._hidden, self._visible, self._invisible = "", set[str](), 0, 0
        self._title: str | None = None
        self._merged = dict[int, Any]()  # the first merged cells that end in each row
        self._aside = 0  # how many elements are open of something that is not read
        self._is_table = self._is_cell = False
        self._row = self._blank = self._repeated = 0
        self._row_repeats = self._column = self._paragraphs = self._in_paragraph = 0
        self._cells, self._texts = list[Any](), list[str]()
        self._attributes: Mapping[str, str] = {}
        self._starts: dict[str, Callable[[Mapping[str, str]], object]] = {
            f"{_STYLE}style": self._start_table_style,
            f"{_STYLE}table-properties": self._start_table_properties,
            f"{_TABLE}table": self._start_table,
            f"{_TABLE}shapes": self._ignore_element,
            f"{_TABLE}table-row": self._start_row,
            f"{_TABLE}table-cell": self._start_cell,
            f"{_TABLE}covered-table-cell": self._start_covered_cell,
            f"{_OFFICE}annotation": self._ignore_element,
            f"{_TEXT}p": self._start_paragraph,
            f"{_TEXT}h": self._start_paragraph,
            f"{_TEXT}s": self._start_spaces,
            f"{_TEXT}tab": lambda _: self._texts.append("\t"),
            f"{_TEXT}line-break": lambda _: self._texts.append("\n"),
        }
        self._values: dict[str, Callable[[str], Any]] = {
            _NUMBER: self._parse_number,
            _DATE: _date_cut_to_microseconds,
            f"{_OFFICE}time-value": _time_text,
            f"{_OFFICE}boolean-value": self._parse_boolean,
            f"{_OFFICE}string-value": str,
        }
        self._ends: dict[str, Callable[[], object]] = {
            f"{_TABLE}table": self._end_table,
            f"{_TABLE}table-row": self._end_row,
            f"{_TABLE}table-cell": self._end_cell,
            f"{_TABLE}covered-table-cell": self._end_cell,
            f"{_TEXT}p": self._end_paragraph,
            f"{_TEXT}h": self._end_paragraph,
        }

    def start_element(self, name: str, attributes: dict[str, str]) -> None:
        if self._aside:
            self._aside += 1
        elif handle := self._starts.get(name):
            handle(attributes)
        elif self._is_cell and name.startswith(_DRAWING):
            self._aside = 1

    def end_element(self, name: str) -> None:
        if self._aside:
            self._aside -= 1
        elif handle := self._ends.get(name):
            handle()

    def add_text(self, text: str) -> None:
        if self._is_cell and not self._aside and (self._in_paragraph or not text.isspace()):
            self._texts.append(text)

    def get_sheet_facts_or_raise(self) -> dict[str, Any]:
        if self._title is None:
            raise make_missing_sheet_error(self._sheet, self._visible)
        is_empty = self._row == self._blank
        merged = list(self._merged.values())
        counts = {"visible": self._visible, "hidden": self._invisible}
        return {"title": self._title, "merged": merged, **counts, "empty": is_empty}

    def _ignore_element(self, _: Mapping[str, str]) -> None:
        self._aside = 1

    def _start_table_style(self, attributes: Mapping[str, str]) -> None:
        self._style = attributes.get(f"{_STYLE}name", "") if attributes.get(f"{_STYLE}family") == "table" else ""

    def _start_table_properties(self, attributes: Mapping[str, str]) -> None:
        if self._style and attributes.get(f"{_TABLE}display") == "false":
            self._hidden.add(self._style)

    def _start_table(self, attributes: Mapping[str, str]) -> None:
        if self._is_table:
            self._raise_error("a table in a table", _ASK)
        title = attributes.get(_NAME)
        is_visible = title is not None and attributes.get(f"{_TABLE}style-name") not in self._hidden
        self._visible += is_visible
        self._invisible += title is not None and not is_visible
        if title is None or not (title == self._sheet or (is_visible and self._visible == self._sheet)):
            self._aside = 1
        elif self._title is not None:
            raise CellError(f"there are two sheets {title!r}", "", "Declare their numbers, or ask the sender.")
        else:
            self._title, self._is_table = title, True

    def _end_table(self) -> None:
        self._is_table = False

    def _start_row(self, attributes: Mapping[str, str]) -> None:
        self._cells, self._column = [], 0
        self._row_repeats = self._parse_positive_count(attributes.get(_ROWS, "1"))

    def _end_row(self) -> None:
        if self._cells:
            self._write_row()
        else:
            self._blank += self._row_repeats
        self._row += self._row_repeats

    def _write_row(self) -> None:
        if self._blank > _MAX_BLANK or self._row + self._row_repeats > _MAX_ROW:
            self._raise_far_cell_error(self._row + 1, len(self._cells))
        line = json.dumps(self._cells).encode() + b"\n"
        self._raise_if_too_many_repeated_characters(len(line) * (self._row_repeats - 1))
        self._write(b"[]\n" * self._blank)
        self._blank = 0
        for _ in range(self._row_repeats):
            self._write(line)

    def _start_covered_cell(self, attributes: Mapping[str, str]) -> None:
        place = self._row, self._column
        self._merged.setdefault(self._row, (place, place))
        self._start_cell(attributes)

    def _start_cell(self, attributes: Mapping[str, str]) -> None:
        self._is_cell, self._attributes = True, attributes
        self._texts, self._paragraphs = [], 0
        if _WIDTH in attributes or _HEIGHT in attributes:
            last = self._row + self._parse_positive_count(attributes.get(_HEIGHT, "1")) - 1
            end = self._column + self._parse_positive_count(attributes.get(_WIDTH, "1")) - 1
            if (last, end) != (self._row, self._column):
                self._merged.setdefault(last, ((self._row, self._column), (last, end)))

    def _end_cell(self) -> None:
        value, repeats = self._cell_value(), self._parse_positive_count(self._attributes.get(_COLUMNS, "1"))
        self._is_cell = False
        first, self._column = self._column, self._column + repeats
        if value == "":
            return
        if self._column > _MAX_COLUMN:
            self._raise_far_cell_error(self._row + 1, self._column)
        if repeats > 1 and isinstance(value, str):
            self._raise_if_too_many_repeated_characters(len(value) * (repeats - 1))
        self._cells += [""] * (first - len(self._cells)) + [value] * repeats

    def _start_paragraph(self, _: Mapping[str, str]) -> None:
        if self._paragraphs:
            self._texts.append("\n")
        self._paragraphs += 1
        self._in_paragraph += 1

    def _end_paragraph(self) -> None:
        self._in_paragraph -= 1

    def _start_spaces(self, attributes: Mapping[str, str]) -> None:
        count = self._parse_positive_count(attributes.get(f"{_TEXT}c", "1"))
        self._raise_if_too_many_repeated_characters(count - 1)
        self._texts.append(" " * count)

    def _cell_value(self) -> Any:
        attributes, shown = self._attributes, "".join(self._texts)
        if self._is_error_cell(shown):
            if self._finds_errors:
                hint = "Correct the formula, and export the sheet again."
                self._raise_error("the cell holds an error such as #N/A", hint)
            return ""
        for name, text in attributes.items():
            if name == _DATE and _DAY_TEXT.fullmatch(text) and _SHOWN_TIME.search(shown):
                return f"{text}T00:00:00"  # programs leave out the time of midnight
            if read := self._values.get(name):
                return read(text)
        kind = attributes.get(_TYPE)
        if shown and kind in _VALUE_TYPES:
            self._raise_error("a text without its value", _ASK)
        if not shown and kind != "string" and _FORMULA in attributes and self._finds_errors:
            hint = "Open and save the file in a spreadsheet program, which calculates it."
            self._raise_error("the formula was never calculated", hint)
        return shown

    def _is_error_cell(self, shown: str) -> bool:
        attributes = self._attributes
        if attributes.get(_ERROR_TYPE) == "error":
            return True
        if _FORMULA not in attributes:
            return False
        return shown in _ERRORS or (attributes.get(_NUMBER) in {"0", "NaN"} and bool(_SHOWN_ERROR.match(shown)))

    def _parse_number(self, text: str) -> Any:
        if not XML_NUMBER_PATTERN.fullmatch(text):
            self._raise_error("no number", _ASK)
        if loses_digits_as_double(text):
            self._raise_error(
                "a number of more than 15 digits", "Programs keep 15 digits: ask for a cell that is text."
            )
        return parse_double(text)

    def _parse_boolean(self, text: str) -> bool:
        if text.lower() not in {"true", "false"}:
            self._raise_error("neither true nor false", _ASK)
        return text.lower() == "true"

    def _parse_positive_count(self, text: str) -> int:
        if text == "1":
            return 1
        if not (text.isdecimal() and len(text) <= _MAX_DIGITS and int(text)):
            self._raise_error("a number of repeats or merged cells that is not positive", _NO_PROGRAM)
        return int(text)

    def _raise_if_too_many_repeated_characters(self, characters: int) -> None:
        self._repeated += characters
        if self._repeated > self._most:
            message = "texts or rows are repeated too often for a file of its size"
            self._raise_error(
                message, "Delete all rows and columns beside the table, save the file, and send it again."
            )

    def _raise_far_cell_error(self, row: int, column: int) -> NoReturn:
        hint = "Delete all rows below the table and all columns beside it, save the file, and send it again."
        raise CellError("a cell far from the others", f"{self._title}!{cell_name(row, column)}", hint)

    def _raise_error(self, message: str, hint: str) -> NoReturn:
        raise CellError(message, f"{self._title}!{cell_name(self._row + 1, self._column + 1)}", hint)


def _date_cut_to_microseconds(text: str) -> str:
    found = _DATE_TEXT.fullmatch(text)
    return found[1] + _fraction_of_second_text(found[2]) if found else text


def _time_text(text: str) -> str:
    if not (found := _TIME_TEXT.fullmatch(text)):
        return text
    days, hours, minutes, whole = (int(number or 0) for number in found.groups()[1:5])
    seconds = ((days * 24 + hours) * 60 + minutes) * 60 + whole
    hour, rest = divmod(seconds, 3600)
    if seconds < _DAY_S and not found[1]:
        return f"{hour:02}:{rest // 60:02}:{rest % 60:02}{_fraction_of_second_text(found[6])}"
    return f"{found[1]}{hour}:{rest // 60:02}:{rest % 60:02}"


def _fraction_of_second_text(digits: str | None) -> str:
    kept = (digits or "")[:6]
    return f".{kept:0<6}" if kept.strip("0") else ""
