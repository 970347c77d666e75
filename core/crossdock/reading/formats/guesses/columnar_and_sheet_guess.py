"""Guesses the layout of tables: Parquet, Arrow, and sheets of Excel and OpenDocument files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crossdock.reading.formats.guesses.format_guess_and_file_sample import (
    FormatGuess,
    GuessedSetting,
    count_of_total_text,
)
from crossdock.reading.formats.limited_process import cell_errors_as_file_refusals
from crossdock.reading.formats.parquet_and_arrow_files import ArrowReader, ParquetReader
from crossdock.reading.formats.parquet_and_arrow_reader_process import FLOAT, NESTED
from crossdock.reading.formats.sheet_reader_process import open_sheet_in_process, raise_if_sheet_library_missing

_COLUMNAR = (ParquetReader(), ArrowReader())
_ARCHIVE = b"PK\x03\x04"
_OLD_SHEET = bytes.fromhex("d0cf11e0a1b11ae1")
_WORKBOOK = re.compile(rb"(?s)\xd0\xcf\x11\xe0|PK\x03\x04.{26}(?:\[Content_Types\]|_rels/|xl/|docProps/|mimetypeapp)")
_MOST_ROWS = 200


def is_columnar_or_sheet(head: bytes) -> bool:
    """Return whether a file is one of Parquet, Arrow or sheets by its first bytes."""
    return head.startswith(tuple(reader.begin for reader in _COLUMNAR)) or bool(_WORKBOOK.match(head))


def may_be_sheet(data: bytes) -> bool:
    """Return whether it may be a sheet: an archive that is not known to be another one."""
    return data.startswith(_ARCHIVE) or bool(_WORKBOOK.match(data))


def guess_columnar_or_sheet(path: Path, head: bytes) -> FormatGuess:
    """Return the guess for a Parquet, an Arrow or a sheet file that begins with *head*. Raises RefusedError."""
    for reader in _COLUMNAR:
        if head.startswith(reader.begin):
            return _guess_columnar(path, reader)
    return _guess_sheet(path, head)


def _guess_columnar(path: Path, reader: ParquetReader | ArrowReader) -> FormatGuess:
    types, faults, rows = reader.read_types_faults_and_row_count(path, name=path.name)
    nested = [name for name, (_, message, _) in faults.items() if message == NESTED]
    floats = [name for name, (_, message, _) in faults.items() if message == FLOAT]
    left_out = [name for name in faults if name not in nested]
    states = "its footer states" if reader.kind == "parquet" else "its record batches have"
    settings = [GuessedSetting("kind", reader.kind, f"{states} {rows:,} rows")]
    if left_out:
        kept = [name for name in types if name not in left_out]
        notes = [f"{name} is not read: {faults[name][1]}" for name in left_out]
        if floats:
            notes.append(f"floats: [{', '.join(floats)}]   # and in columns, if they hold no amounts; ask for decimals")
        settings.append(GuessedSetting("columns", kept, "those that are read exactly", notes=notes))
    if nested:
        basis = f"{count_of_total_text(len(nested), len(types), 'column')} have lists or objects"
        settings.append(GuessedSetting("objects", True, basis))
    return FormatGuess(settings)


def _guess_sheet(path: Path, head: bytes) -> FormatGuess:
    raise_if_sheet_library_missing(path.name)
    with (
        cell_errors_as_file_refusals(path.name),
        path.open("rb") as file,
        open_sheet_in_process(file, 1, finds_errors=False, shows_zeros=True) as cells,
    ):
        rows = [row for row, _ in zip(cells.rows, range(_MOST_ROWS), strict=False)]
        sheets, title = cells.visible_sheet_count, cells.title
    settings = [GuessedSetting("kind", "sheet", "it begins as a workbook of Excel or OpenDocument")]
    notes = [f'unsure: there are {sheets} sheets; sheet: "*" reads all as one table'] if sheets > 1 else []
    settings.append(GuessedSetting("sheet", title if sheets > 1 else 1, f"the first of {sheets}", notes=notes))
    settings += _header_row_settings(rows)
    if head.startswith(_OLD_SHEET):
        settings.append(
            GuessedSetting("error_cells", "empty", "errors in cells can only be found in xlsx and ods files")
        )
    return FormatGuess(settings)


def _header_row_settings(rows: Sequence[Sequence[Any]]) -> list[GuessedSetting]:
    widths = [len([cell for cell in row if cell != ""]) for row in rows]
    if not any(widths):
        return []
    width = Counter(each for each in widths if each).most_common(1)[0][0]
    first = next(number for number, each in enumerate(widths) if each >= width)
    settings = []
    if first:
        settings.append(GuessedSetting("skip_rows", first, f"{first} rows before it have fewer than {width} cells"))
    header = [cell for cell in rows[first] if cell != ""]
    if not all(isinstance(cell, str) for cell in header):
        names = [f"F{number}" for number in range(1, len(rows[first]) + 1)]
        settings += [
            GuessedSetting("header", False, "its first row has numbers or dates"),
            GuessedSetting("names", names),
        ]
    return settings
