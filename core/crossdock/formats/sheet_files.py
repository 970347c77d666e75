"""Sheets of Excel and OpenDocument files, as rows of text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal, NoReturn, Self

import polars as pl
from pydantic import AfterValidator, Field, model_validator

from crossdock.config_file import ConfigModel
from crossdock.errors import ConfigError, RefusedError
from crossdock.formats.column_names import check_column_names
from crossdock.formats.compression import Openable
from crossdock.formats.polars_parser import LINE
from crossdock.formats.xlsx_check import CellError, cell_name, check_cells, check_parts

if TYPE_CHECKING:
    from python_calamine import CalamineSheet, CalamineWorkbook

MAX_BYTES = 64 << 20
"""Of a file: a sheet is held in memory as a whole."""
_EXACT = 10**15  # Excel keeps 15 digits of a number
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_INSTALL = "pip install 'crossdock[sheets]'"


class SheetFormat(ConfigModel):
    """A sheet of an xlsx, xlsm, xlsb, xls or ods file."""

    kind: Literal["sheet"]
    sheet: Annotated[str, Field(min_length=1, max_length=255)] | Annotated[int, Field(ge=1, le=10_000)] = 1
    """The name of the sheet, or its number among the sheets that are not hidden, from 1."""
    skip_rows: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """How many rows precede the header, or the first row if there is no header."""
    header: bool = True
    """Whether the first row names the columns."""
    names: Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(check_column_names)] | None = None
    """The columns. Required without a header; with one, the header must be exactly this."""
    error_cells: Literal["refuse", "empty"] = "refuse"
    """Whether errors such as #N/A and formulas that were never calculated are refused, or read as empty cells.

    They are only found in xlsx and xlsm files; others need ``empty``.
    """

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if not self.header and self.names is None:
            raise ValueError("a sheet without a header needs names")
        return self

    @property
    def states_rows(self) -> bool:
        """Whether the file states how many rows it has."""
        return False

    @property
    def marks_end(self) -> bool:
        """Whether a file that is cut is found: these formats have their directory at the end, or state sizes."""
        return True


def read_sheet(path: Openable, layout: SheetFormat, *, name: str, batch_rows: int = 100_000) -> Iterator[pl.DataFrame]:
    """Read a sheet; it is held in memory as a whole, and its file has at most `MAX_BYTES`.

    A whole number has no point, others have their shortest text; times are ISO 8601, durations ``h:mm:ss``, and truth
    values TRUE and FALSE. Of a formula, the value that was stored last is read.

    Args:
        name: The file's name in errors.
        batch_rows: The most rows in one frame.

    Returns:
        Frames with the columns of the header as String, empty cells as ``""`` and never null, and ``_line: UInt64``,
        the number of the row in the sheet, from 1. At least one frame.

    Raises:
        RefusedError: While iterating, if the file or a cell cannot be read as declared, with file, sheet and cell.
        ConfigError: If the library that reads sheets is not installed.
    """
    with path.open("rb") as file:
        sheet = _Sheet(_opened(file, layout, name), layout, name)
    rows = sheet.rows()
    schema = {**dict.fromkeys(sheet.names, pl.String()), LINE: pl.UInt64()}
    batch = list(islice(rows, batch_rows))
    yield pl.DataFrame(batch, schema=schema, orient="row")
    while batch := list(islice(rows, batch_rows)):
        yield pl.DataFrame(batch, schema=schema, orient="row")


def _opened(file: BinaryIO, layout: SheetFormat, name: str) -> CalamineSheet:
    try:
        from python_calamine import CalamineError, CalamineWorkbook, PasswordError  # noqa: PLC0415  an optional extra
    except ImportError as error:
        raise ConfigError("sheets need python-calamine", where=name, hint=_INSTALL) from error
    if file.seek(0, 2) > MAX_BYTES:
        raise RefusedError(f"a sheet file of more than {MAX_BYTES >> 20} MiB", where=name, hint="Ask for CSV files.")
    title = ""
    try:
        check_parts(file)
        file.seek(0)
        workbook = CalamineWorkbook.from_filelike(file)
        title = _title(workbook, layout, name)
        if layout.error_cells == "refuse" and not check_cells(file, title):
            hint = "Ask for xlsx; or declare error_cells: empty, if errors in formulas may be read as empty cells."
            raise RefusedError("errors in cells can only be found in xlsx files", where=name, hint=hint)
        return workbook.get_sheet_by_name(title)
    except CellError as error:
        where = f"{name}:{title}!{error.cell}" if error.cell else name
        raise RefusedError(error.message, where=where, hint=error.hint) from error
    except PasswordError as error:
        raise RefusedError("is protected by a password", where=name, hint="Ask for a file without one.") from error
    except (CalamineError, OSError) as error:
        hint = "It is damaged, still being written, or no xlsx, xlsb, xls or ods file: fetch it again."
        raise RefusedError("cannot be read as a sheet file", where=name, hint=hint) from error


def _title(workbook: CalamineWorkbook, layout: SheetFormat, name: str) -> str:
    """The name of the declared sheet."""
    from python_calamine import SheetTypeEnum, SheetVisibleEnum  # noqa: PLC0415  an optional extra

    if isinstance(layout.sheet, str):
        if layout.sheet in workbook.sheet_names:
            return layout.sheet
        raise RefusedError(f"there is no sheet {layout.sheet!r}", where=name, hint="Correct sheet, or ask the sender.")
    visible = [
        sheet.name
        for sheet in workbook.sheets_metadata
        if sheet.visible == SheetVisibleEnum.Visible and sheet.typ == SheetTypeEnum.WorkSheet
    ]
    if layout.sheet > len(visible):
        hint = "Correct sheet, or ask the sender; hidden sheets are only read by their names."
        raise RefusedError(
            f"has {len(visible)} visible sheets, but sheet {layout.sheet} is declared", where=name, hint=hint
        )
    return visible[layout.sheet - 1]


class _Sheet:
    """The cells of one sheet."""

    def __init__(self, sheet: CalamineSheet, layout: SheetFormat, name: str) -> None:
        self._place, self._sheet = f"{name}:{sheet.name}", sheet
        self._cells = iter(sheet.to_python(skip_empty_area=False))
        self._row = 0
        for _ in range(layout.skip_rows or 0):
            next(self._cells, None)
            self._row += 1
        first = self._row + 1
        self.names: Sequence[str] = self._header(layout) if layout.header else layout.names or ()
        self._check_merged(first)

    def rows(self) -> Iterator[tuple[str | int, ...]]:
        """The rows as texts and the number of each; empty ones at the end are left out."""
        blank = 0
        for cells in self._cells:
            self._row += 1
            texts = self._texts(cells)
            if not any(texts):
                blank = blank or self._row
                continue
            if blank:
                self._refuse("a blank row among the rows", f"A{blank}", "Ask the sender not to leave rows blank.")
            width = len(self.names)
            if extra := next((n for n, text in enumerate(texts[width:], width) if text), None):
                self._refuse("a cell beside the columns", cell_name(self._row, extra + 1), "Name its column.")
            yield *(texts + [""] * (width - len(texts)))[:width], self._row

    def _header(self, layout: SheetFormat) -> Sequence[str]:
        self._row += 1
        names = self._texts(next(self._cells, []))
        while names and not names[-1]:
            names.pop()
        hint = "Correct skip_rows, header and names in the format, or ask the sender."
        if not names:
            self._refuse("the header is empty", cell_name(self._row, 1), hint)
        try:
            check_column_names(names)
        except ValueError as error:
            self._refuse(f"header: {error}", cell_name(self._row, 1), hint)
        if layout.names is not None and tuple(names) != layout.names:
            self._refuse("the header is not the declared one", cell_name(self._row, 1), hint)
        return names

    def _check_merged(self, first: int) -> None:
        """Only the first of merged cells has the value, and what the others mean is not known."""
        for (row, column), (last, _) in self._sheet.merged_cell_ranges or ():
            if last + 1 >= first:
                self._refuse("merged cells", cell_name(row + 1, column + 1), "Ask for a table without merged cells.")

    def _texts(self, cells: Sequence[Any]) -> list[str]:
        return [cell if cell == "" else self._text(cell, number) for number, cell in enumerate(cells, 1)]

    def _text(self, cell: Any, column: int) -> str:
        match cell:
            case str():
                if _CONTROL.search(cell):
                    self._refuse("a control character", cell_name(self._row, column), "Correct the text.")
                return cell
            case bool():
                return "TRUE" if cell else "FALSE"
            case datetime() | date() | time():
                return cell.isoformat()
            case timedelta():
                return _duration(cell)
        number = Decimal(repr(cell))
        if number == number.to_integral_value():
            if abs(number) >= _EXACT:
                hint = "Excel keeps 15 digits: ask for a cell that is text."
                self._refuse("a number of more than 15 digits", cell_name(self._row, column), hint)
            return str(int(number))
        return format(number, "f")

    def _refuse(self, message: str, cell: str, hint: str) -> NoReturn:
        raise RefusedError(message, where=f"{self._place}!{cell}", hint=hint)


def _duration(value: timedelta) -> str:
    seconds = abs(value) // timedelta(seconds=1)
    sign = "-" if value < timedelta() else ""
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
