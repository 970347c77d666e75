"""Sheets of Excel and OpenDocument files, as rows of text."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Annotated, Any, BinaryIO, Literal, NoReturn, Self

import polars as pl
from pydantic import AfterValidator, Field, model_validator

from crossdock.errors import RefusedError
from crossdock.reading.formats.file_formats import (
    HEADER_HINT,
    FileLayout,
    FormatReader,
    LeniencyCounts,
    is_header_ignoring_case_and_marks,
    is_repeated_header_row,
    validate_column_names,
)
from crossdock.reading.formats.file_kind_and_encoding_mismatch import HEAD, raise_if_not_sheet_file
from crossdock.reading.formats.limited_process import cell_errors_as_file_refusals
from crossdock.reading.formats.lost_digits_of_doubles import exact_number_text_or_none
from crossdock.reading.formats.sheet_reader_process import (
    SheetCells,
    open_sheet_in_process,
    raise_if_sheet_library_missing,
)
from crossdock.reading.formats.xlsx_and_xlsb_archives import cell_name
from crossdock.reading.wrappers.wrapper import Openable
from crossdock.values.raw_rows_and_records import LINE

MAX_BYTES = 64 << 20
"""The limit for one file: a process of its own holds the whole sheet in memory (`sheet_reader_process`)."""
_BATCH_CHARACTERS = 4 << 20
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


OneSheet = Annotated[str, Field(min_length=1, max_length=255)] | Annotated[int, Field(ge=1, le=10_000)]
_ALL = "*"  # no sheet has this name


class SheetFormat(FileLayout):
    """A sheet of an xlsx, xlsm, xlsb, xls or ods file; needs ``pip install 'crossdock[sheets]'``."""

    kind: Literal["sheet"]
    sheet: OneSheet | Annotated[tuple[OneSheet, ...], Field(min_length=2)] = 1
    """The name of the sheet, or its number among the sheets that are not hidden, from 1.

    A list of sheets, or ``"*"`` for all that are not hidden and not empty, is read as one table: each has the same
    header, and the rows of the second are numbered on from those of the first.
    """
    skip_rows: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """How many rows precede the header, or the first row if there is no header."""
    header: bool = True
    """Whether the first row names the columns."""
    names: Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(validate_column_names)] | None = None
    """The columns. Required without a header; with one, the header must be exactly this."""
    error_cells: Literal["refuse", "empty"] = "refuse"
    """Whether errors such as #N/A and formulas that were never calculated are refused, or read as empty cells.

    They are only found in xlsx, xlsm and ods files; others need ``empty``.
    """

    leading_zeros: bool = True
    """Whether a whole number has the leading zeros that its cell shows: 17 in the number format ``00000`` is 00017.

    Number formats are only read in xlsx and xlsm files.
    """

    @model_validator(mode="after")
    def _raise_if_settings_conflict(self) -> Self:
        if not self.header and self.names is None:
            raise ValueError("a sheet without a header needs names")
        return self


def read_sheet_rows(
    path: Openable,
    layout: SheetFormat,
    *,
    name: str,
    batch_rows: int = 100_000,
    leniencies: LeniencyCounts | None = None,
) -> Iterator[pl.DataFrame]:
    """Read one or several sheets, as `FormatReader.rows` describes. Each is held in memory as a whole.

    A whole number has no point, and other numbers have their shortest text; times are ISO 8601, durations ``h:mm:ss``,
    and truth values TRUE and FALSE. A formula has the value that was stored last. ``_line`` is the number of the row in
    the sheet, after those of the sheets before.
    """
    raise_if_sheet_library_missing(name)
    with cell_errors_as_file_refusals(name), path.open("rb") as file:
        if file.seek(0, 2) > MAX_BYTES:
            message = f"a sheet file of more than {MAX_BYTES >> 20} MiB"
            raise RefusedError(message, where=name, hint="Ask for CSV files.", code="file_too_large")
        file.seek(0)
        raise_if_not_sheet_file(file.read(HEAD), name=name)
        counted = LeniencyCounts() if leniencies is None else leniencies
        yield from _read_chosen_sheets(file, layout, name, batch_rows, counted)


def _read_chosen_sheets(
    file: BinaryIO, layout: SheetFormat, name: str, batch_rows: int, leniencies: LeniencyCounts
) -> Iterator[pl.DataFrame]:
    is_all, before = layout.sheet == _ALL, 0
    names: Sequence[str] | None = layout.names
    wanted = deque[str | int](layout.sheet if isinstance(layout.sheet, tuple) else [1 if is_all else layout.sheet])
    while wanted:
        chosen, finds_errors = wanted.popleft(), layout.error_cells == "refuse"
        with open_sheet_in_process(file, chosen, finds_errors=finds_errors, shows_zeros=layout.leading_zeros) as cells:
            if is_all and chosen == 1:
                wanted.extend(range(2, cells.visible_sheet_count + 1))
                leniencies.add("hidden_sheet", cells.hidden_sheet_count)
            if "sheet" not in layout.model_fields_set:
                leniencies.add("sheet", cells.visible_sheet_count - 1)
            if is_all and cells.is_empty and (wanted or before):
                continue
            sheet = _SheetTable(cells, layout, names, name)
            names = sheet.names
            schema = {**dict.fromkeys(sheet.names, pl.String()), LINE: pl.UInt64()}
            for batch in _batch_rows(sheet.rows(before), batch_rows):
                yield pl.DataFrame(batch, schema=schema, orient="row")
            before += sheet.row
            leniencies.add("total_row", sheet.total_rows)


def _batch_rows(rows: Iterator[tuple[Any, ...]], most: int) -> Iterator[list[tuple[Any, ...]]]:
    batch, size = list[tuple[Any, ...]](), 0
    for number, row in enumerate(rows):
        if number and (len(batch) == most or size > _BATCH_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += sum(map(len, row[:-1]))
    yield batch


class _SheetTable:
    def __init__(self, sheet: SheetCells, layout: SheetFormat, names: Sequence[str] | None, name: str) -> None:
        self._place, self._sheet = f"{name}:{sheet.title}", sheet
        self._cells = sheet.rows
        self.row = self.total_rows = 0
        for _ in range(layout.skip_rows or 0):
            next(self._cells, None)
            self.row += 1
        first = self.row + 1
        self.names: Sequence[str] = self._validate_header(names) if layout.header else names or ()
        self._first = 0 if layout.header else first  # the row that may be an undeclared header
        self._raise_if_cells_merged(first)

    def rows(self, before: int) -> Iterator[tuple[str | int, ...]]:
        blank = 0
        for cells in self._cells:
            self.row += 1
            texts = self._row_texts(cells)
            if not any(texts):
                blank = blank or self.row
                continue
            if self.row in self._sheet.total_rows:
                self.total_rows += 1
                continue
            if blank:
                self._raise_error("a blank row among the rows", f"A{blank}", "Ask the sender not to leave rows blank.")
            if self.row == self._first and is_header_ignoring_case_and_marks(texts, self.names):
                self._raise_error(
                    "the first row is a header, and header: false is declared", f"A{self.row}", HEADER_HINT
                )
            if texts[0] in self.names and is_repeated_header_row(texts, self.names):
                hint = "Ask the sender for one table with one header, such as without the headers of printed pages."
                self._raise_error("the header again among the rows", cell_name(self.row, 1), hint)
            width = len(self.names)
            if extra := next((n for n, text in enumerate(texts[width:], width) if text), None):
                self._raise_error("a cell beside the columns", cell_name(self.row, extra + 1), "Name its column.")
            yield *(texts + [""] * (width - len(texts)))[:width], before + self.row

    def _validate_header(self, declared: Sequence[str] | None) -> Sequence[str]:
        self.row += 1
        names, place = self._row_texts(next(self._cells, [])), cell_name(self.row, 1)
        while names and not names[-1]:
            names.pop()
        hint = "Correct skip_rows, header and names in the format, or ask the sender."
        if not names:
            self._raise_error("the header is empty", place, hint)
        try:
            validate_column_names(names)
        except ValueError as error:
            self._raise_error(f"header: {error}", place, hint)
        if declared is not None and tuple(names) != tuple(declared):
            self._raise_error("the header is not the declared one, or not that of the sheet before", place, hint)
        return names

    def _raise_if_cells_merged(self, first: int) -> None:
        """Refuse merged cells: only the first has the value, and the meaning of the others is not known."""
        for (row, column), (last, _) in self._sheet.merged:
            if last + 1 >= first:
                self._raise_error(
                    "merged cells", cell_name(row + 1, column + 1), "Ask for a table without merged cells."
                )

    def _row_texts(self, cells: Sequence[Any]) -> list[str]:
        return [cell if cell == "" else self._cell_text(cell, number) for number, cell in enumerate(cells, 1)]

    def _cell_text(self, cell: Any, column: int) -> str:
        match cell:
            case str():
                if _CONTROL.search(cell):
                    self._raise_error("a control character", cell_name(self.row, column), "Correct the text.")
                return cell
            case bool():
                return "TRUE" if cell else "FALSE"
            case datetime() | date() | time():
                return cell.isoformat()
            case timedelta():
                return _duration_text(cell)
        if (text := exact_number_text_or_none(cell)) is None:
            hint = "Excel keeps 15 digits: ask for a cell that is text."
            self._raise_error("a number of more than 15 digits", cell_name(self.row, column), hint)
        return text

    def _raise_error(self, message: str, cell: str, hint: str) -> NoReturn:
        raise RefusedError(message, where=f"{self._place}!{cell}", hint=hint, code="file_damaged")


def _duration_text(value: timedelta) -> str:
    seconds = abs(value) // timedelta(seconds=1)
    sign = "-" if value < timedelta() else ""
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


class SheetReader(FormatReader[SheetFormat]):
    """Reads sheets. A cut file is found, because these formats have their directory at the end or state sizes."""

    layout = SheetFormat

    def rows(
        self, path: Openable, layout: SheetFormat, *, name: str, batch_rows: int, leniencies: LeniencyCounts | None
    ) -> Iterator[pl.DataFrame]:
        return read_sheet_rows(path, layout, name=name, batch_rows=batch_rows, leniencies=leniencies)

    def describe_cell_places(self, layout: SheetFormat, names: Sequence[str], line: int) -> Mapping[str, str]:
        del layout
        return {name: cell_name(line, number) for number, name in enumerate(names, 1)}
