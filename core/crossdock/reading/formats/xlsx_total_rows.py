"""The total rows of the tables in a sheet of an xlsx file: Excel adds them up below the rows, of which they are none.

A table is a part of its own (ECMA-376, part 1, 18.5.1.2: ``ref`` and ``totalsRowCount``).
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from posixpath import basename, dirname, join, normpath
from typing import BinaryIO

from crossdock.reading.formats.xlsx_archive_and_cell_checks import (
    WORKBOOK,
    local_name,
    opened_archive,
    parse_xml_part,
    part_of_sheet,
)

_LAST_ROW = re.compile(r"(?:[A-Z]+[0-9]+:)?[A-Z]+([0-9]{1,7})")


def find_total_rows(file: BinaryIO, title: str) -> list[int]:
    """Return the numbers of the rows, from 1, of the sheet *title*; none in a file that is not xlsx."""
    if not zipfile.is_zipfile(file):
        return []
    with opened_archive(file) as archive:
        if WORKBOOK not in archive.namelist():
            return []
        tables = list(_tables_of_sheet(archive, part_of_sheet(archive, title)))
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
