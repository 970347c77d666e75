"""A process with its own limits that reads one sheet, because the reader of sheets allocates what a file declares.

It answers the sheet, and then each of its rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Any, BinaryIO

from msgspec import Struct

from crossdock.errors import ConfigError
from crossdock.reading.formats.limited_process import (
    CellError,
    ProcessLimits,
    ReaderTask,
    answer_request_within_limits,
    encode_answer_line,
    run_reader_process,
)
from crossdock.reading.formats.ods_sheet import is_ods_file, read_ods_sheet
from crossdock.reading.formats.xlsx_and_xlsb_archives import (
    check_and_find_formatted_cells,
    find_total_rows,
    make_missing_sheet_error,
    raise_if_archive_damaged_or_too_large,
    read_merged_cells_of_xlsb,
)

if TYPE_CHECKING:
    from python_calamine import CalamineSheet, CalamineWorkbook

    from crossdock.reading.formats.xlsx_and_xlsb_archives import FormattedCells

Range = tuple[tuple[int, int], tuple[int, int]]

_BASE_BYTES, _BYTES_PER_BYTE, _MOST_BYTES = 128 << 20, 64, 2 << 30
"""The memory that a file may take. Tables take 17 bytes for each byte of an xlsx file, 53 if all cells are alike."""
_BASE_S, _BYTES_PER_S = 30, 1 << 17
"""The processor time that a file may take. A sheet needs about two seconds for each megabyte."""
_DAMAGED = "It is damaged, still being written, or no xlsx, xlsb, xls or ods file: fetch it again."
_TOO_MUCH = (
    "It holds cells far from its table, or texts or cells many times over: delete all rows and columns beside the "
    "table, save the file, and send it again; or ask for CSV."
)
_TASK = ReaderTask("sheet_reader_process", "the reader of sheets", _DAMAGED, _TOO_MUCH)
_TIMES = {"d": date.fromisoformat, "s": datetime.fromisoformat, "t": time.fromisoformat}


class SheetCells(Struct, frozen=True):
    """One sheet, with its cells from A1 on. `merged` has the first and the last of merged cells, counted from 0;
    `total_rows` those below the tables of Excel, counted from 1.
    """

    title: str
    visible_sheet_count: int
    hidden_sheet_count: int
    is_empty: bool
    merged: Sequence[Range]
    total_rows: Sequence[int]
    rows: Iterator[list[Any]]


def raise_if_sheet_library_missing(name: str) -> None:
    """Raise ConfigError at the file *name* if no library for sheets is installed."""
    if find_spec("python_calamine") is None:
        raise ConfigError(
            "sheets need python-calamine", where=name, hint="pip install 'crossdock[sheets]'", code="library_missing"
        )


@contextmanager
def open_sheet_in_process(
    file: BinaryIO, sheet: str | int, *, finds_errors: bool, shows_zeros: bool
) -> Iterator[SheetCells]:
    """Read a sheet, given by its name or its number among the visible ones, in a process that ends with the context.

    With *finds_errors*, cells with errors are refused, and so are files in which they cannot be found. Iterating may
    raise CellError, too.
    """
    size = file.seek(0, 2)
    memory = min(_BASE_BYTES + _BYTES_PER_BYTE * size, _MOST_BYTES)
    seconds = _BASE_S + size // _BYTES_PER_S
    request = {"sheet": sheet, "errors": finds_errors, "zeros": shows_zeros}
    with run_reader_process(_TASK, file, request, ProcessLimits(memory, seconds)) as found:
        answers = iter(found)
        first = next(answers)
        merged = [((row, column), (last, end)) for (row, column), (last, end) in first["merged"]]
        rows = (list(map(_decode_cell, row)) for row in answers)
        totals = first.get("totals", ())
        yield SheetCells(first["title"], first["visible"], first["hidden"], first["empty"], merged, totals, rows)


def _decode_cell(cell: Any) -> Any:
    if not isinstance(cell, list):
        return cell
    kind, *values = cell
    return timedelta(*values) if kind == "e" else _TIMES[kind](values[0])


def _encode_cell(cell: Any) -> list[Any]:
    match cell:
        case datetime():
            return ["s", cell.isoformat()]
        case date():
            return ["d", cell.isoformat()]
        case time():
            return ["t", cell.isoformat()]
    return ["e", cell.days, cell.seconds, cell.microseconds]


def main() -> None:
    answer_request_within_limits(_answer_request)


def _answer_request(file: BinaryIO, request: Any) -> Iterator[bytes]:
    data = BytesIO(file.read())
    for answer in _read_sheet_of_workbook(
        data, request["sheet"], finds_errors=request["errors"], shows_zeros=request["zeros"]
    ):
        text = answer if isinstance(answer, str) else json.dumps(answer, default=_encode_cell)
        yield encode_answer_line(text, too_much=_TOO_MUCH)


def _read_sheet_of_workbook(
    file: BinaryIO, sheet: str | int, *, finds_errors: bool, shows_zeros: bool
) -> Iterator[Any]:
    raise_if_archive_damaged_or_too_large(file)
    if is_ods_file(file):
        yield from read_ods_sheet(file, sheet, finds_errors=finds_errors)
    else:
        yield from _read_sheet_with_calamine(file, sheet, finds_errors=finds_errors, shows_zeros=shows_zeros)


def _read_sheet_with_calamine(
    file: BinaryIO, sheet: str | int, *, finds_errors: bool, shows_zeros: bool
) -> Iterator[Any]:
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError  # noqa: PLC0415  an optional extra

    try:
        file.seek(0)
        workbook = CalamineWorkbook.from_filelike(file)
        visible, hidden = _visible_and_hidden_sheet_names(workbook)
        title = _find_sheet_title_or_raise(workbook, visible, sheet)
        formatted = _check_and_find_formatted_cells(file, title, finds_errors=finds_errors, shows_zeros=shows_zeros)
        found = workbook.get_sheet_by_name(title)
        merged = found.merged_cell_ranges or read_merged_cells_of_xlsb(file, title)
        totals = find_total_rows(file, title)
    except PasswordError as error:
        raise CellError("is protected by a password", "", "Ask for a file without one.") from error
    except (CalamineError, OSError) as error:
        raise CellError("cannot be read as a sheet file", "", _DAMAGED) from error
    counts = {"visible": len(visible), "hidden": len(hidden), "empty": not found.height}
    yield {"title": title, "merged": merged, "totals": totals, **counts}
    yield from _rows_as_shown(found, formatted)


def _check_and_find_formatted_cells(
    file: BinaryIO, title: str, *, finds_errors: bool, shows_zeros: bool
) -> FormattedCells | None:
    try:
        formatted = check_and_find_formatted_cells(file, title, finds_errors=finds_errors, shows_zeros=shows_zeros)
    except CellError as error:
        raise CellError(error.message, f"{title}!{error.cell}" if error.cell else "", error.hint) from error
    if formatted is None and finds_errors:
        hint = "Ask for xlsx; or declare error_cells: empty, if errors in formulas may be read as empty cells."
        raise CellError("errors in cells can only be found in xlsx and ods files", "", hint)
    return formatted


def _rows_as_shown(sheet: CalamineSheet, formatted: FormattedCells | None) -> Iterator[list[Any]]:
    _, column = sheet.start or (0, 0)
    before = [""] * column  # blank first rows come with the others, blank first columns do not
    for row, cells in enumerate(sheet.iter_rows(), 1):
        found = before + cells
        if formatted:
            formatted.replace_by_shown_values(row, found)
        yield found


def _visible_and_hidden_sheet_names(workbook: CalamineWorkbook) -> tuple[list[str], list[str]]:
    """Return the names of the sheets that are shown, and of those that are hidden; charts and macros are neither."""
    from python_calamine import SheetTypeEnum, SheetVisibleEnum  # noqa: PLC0415  an optional extra

    visible, hidden = list[str](), list[str]()
    for each in workbook.sheets_metadata:
        if each.typ == SheetTypeEnum.WorkSheet:
            (visible if each.visible == SheetVisibleEnum.Visible else hidden).append(each.name)
    return visible, hidden


def _find_sheet_title_or_raise(workbook: CalamineWorkbook, visible: Sequence[str], sheet: str | int) -> str:
    if isinstance(sheet, str):
        title = sheet if sheet in workbook.sheet_names else None
    else:
        title = visible[sheet - 1] if sheet <= len(visible) else None
    if title is None:
        raise make_missing_sheet_error(sheet, len(visible))
    if workbook.sheet_names.count(title) > 1:
        raise CellError(f"there are two sheets {title!r}", "", "Rename one of them, or ask the sender.")
    return title
