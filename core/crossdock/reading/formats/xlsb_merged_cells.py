"""The merged cells of an xlsb file, which the reader of sheets does not report.

Its parts are records ([MS-XLSB]: a type and a length of up to two and four bytes with seven bits each, and data).
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from io import BufferedReader
from typing import Any, BinaryIO

from crossdock.reading.formats.xlsx_archive_and_cell_checks import opened_archive, part_of_relation

_WORKBOOK, _RELATIONS = "xl/workbook.bin", "xl/_rels/workbook.bin.rels"
_SHEET, _MERGED = 156, 176  # BrtBundleSh and BrtMergeCell
_MORE, _SIZE_BITS = 128, 28
_BUFFER = 1 << 16

Range = tuple[tuple[int, int], tuple[int, int]]


def read_merged_cells(file: BinaryIO, title: str) -> list[Range]:
    """Return the first and the last of merged cells, as row and column from 0. A file that is not xlsb has none."""
    if not zipfile.is_zipfile(file):
        return []
    with opened_archive(file) as archive:
        if _WORKBOOK not in archive.namelist():
            return []
        relations = [
            relation
            for relation, name in map(_sheet_relation_and_name, _records_of_type(archive, _WORKBOOK, _SHEET))
            if name == title
        ]
        part = part_of_relation(archive, _RELATIONS, relations)
        merged = dict[int, Range]()  # the first ones that end in each row
        for record in _records_of_type(archive, part, _MERGED):
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


def _records_of_type(archive: zipfile.ZipFile, part: str, wanted: int) -> Iterator[bytes]:
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
