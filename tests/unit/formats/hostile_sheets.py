"""Small sheet files that would grow: each declares or repeats far more than it holds.

As a program it reads the files named by its arguments, and says of each how that ended.
"""

from __future__ import annotations

import json
import resource
import struct
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from io import BytesIO
from pathlib import Path

from openpyxl import Workbook

from crossdock.errors import RefusedError
from crossdock.reading.formats.sheet_files import SheetFormat, read_sheet_rows

MEGABYTE = 1 << 20
_SHEET, _TEXTS = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"
_FIRST = '<row r="1"><c r="A1" t="inlineStr"><is><t>SKU</t></is></c></row>'
_LAYOUT = SheetFormat(kind="sheet", header=False, names=("SKU",), error_cells="empty")
"""Errors in cells are not looked for, so that the reader of sheets gets every file."""
Parts = dict[str, bytes]


@cache
def _workbook() -> Parts:
    workbook, file = Workbook(), BytesIO()
    sheet = workbook.worksheets[0]
    sheet.title = "Items"
    sheet.append(["SKU"])
    workbook.save(file)
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(parts: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return file.getvalue()


def xlsx(rows: str, *, before: str = "", after: str = "", texts: str = "", others: Parts | None = None) -> bytes:
    """An xlsx file with these rows, and what stands before and after them."""
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    sheet = f"<worksheet {main}>{before}<sheetData>{rows}</sheetData>{after}</worksheet>".encode()
    shared = f"<sst {main}>{texts}</sst>".encode()
    return packed({**_workbook(), _SHEET: sheet, _TEXTS: shared, **(others or {})})


def ods(rows: str, *, around: str = "{}") -> bytes:
    """An OpenDocument file with these rows; `around` may have styles and other sheets."""
    spaces = {
        short: f"urn:oasis:names:tc:opendocument:xmlns:{short}:1.0" for short in ("office", "table", "text", "style")
    }
    spaces["draw"] = "urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"
    spaces["calcext"] = "urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0"
    names = " ".join(f'xmlns:{short}="{space}"' for short, space in spaces.items())
    body = around.format(f'<table:table table:name="Items">{rows}</table:table>')
    content = (
        f"<office:document-content {names}><office:body><office:spreadsheet>{body}"
        "</office:spreadsheet></office:body></office:document-content>"
    )
    kind = b"application/vnd.oasis.opendocument.spreadsheet"
    return packed({"mimetype": kind, "META-INF/manifest.xml": b"<manifest/>", "content.xml": content.encode()})


def _ods_row(cell: str, *, row: str = "", attributes: str = "") -> str:
    value = f'<table:table-cell office:value-type="string" {attributes}><text:p>{cell}</text:p></table:table-cell>'
    return f"<table:table-row {row}>{value}</table:table-row>"


def _record(kind: int, data: bytes) -> bytes:
    return struct.pack("<HH", kind, len(data)) + data


def xls(cells: bytes, texts: bytes = b"") -> bytes:
    """An Excel 97 file: one stream of BIFF8 records in a compound file, each after a header of four bytes."""
    opening = struct.pack("<HHHHII", 0x0600, 5, 0, 0, 0, 0)
    name = b"Items"
    head = _record(0x0809, opening)
    sheet_at = len(head) + 4 + 8 + len(name) + len(texts) + 4
    bound = _record(0x0085, struct.pack("<IBBBB", sheet_at, 0, 0, len(name), 0) + name)
    start = struct.pack("<HHHHII", 0x0600, 0x10, 0, 0, 0, 0)
    stream = head + bound + texts + _record(0x000A, b"") + _record(0x0809, start) + cells + _record(0x000A, b"")
    return compound(stream.ljust(4096, b"\0"))


def compound(stream: bytes, *, tables: int = 0, loop: bool = False) -> bytes:
    """A compound file with the stream *Workbook*, whose sectors follow each other.

    Args:
        tables: How many further allocation tables it claims to have.
        loop: Whether its last sector leads back to its first.
    """
    sectors = -(-len(stream) // 512)
    chain = [*range(1, sectors), 0 if loop else 0xFFFFFFFE]
    fats = -(-(sectors + 1 + 16) // 127)
    table = chain + [0xFFFFFFFE] + [0xFFFFFFFD] * fats
    table += [0xFFFFFFFF] * (fats * 128 - len(table))
    places = [sectors + 1 + number for number in range(fats)]
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH6x", 0x3E, 3, 0xFFFE, 9, 6)
    header += struct.pack("<IIIIIIIII", 0, fats + tables, sectors, 0, 4096, 0xFFFFFFFE, 0, 0xFFFFFFFE, 0)
    header += struct.pack("<109I", *places[:109], *[0xFFFFFFFF] * (109 - len(places[:109])))

    def entry(name: str, kind: int, first: int, size: int, child: int) -> bytes:
        text = (name + "\0").encode("utf-16-le")
        fixed = text.ljust(64, b"\0") + struct.pack("<HBBIII", len(text), kind, 1, 0xFFFFFFFF, 0xFFFFFFFF, child)
        return fixed + bytes(36) + struct.pack("<IQ", first, size)

    folder = entry("Root Entry", 5, 0xFFFFFFFE, 0, 1) + entry("Workbook", 2, 0, len(stream), 0xFFFFFFFF)
    data = stream.ljust(sectors * 512, b"\0") + folder.ljust(512, b"\0")
    return header + data + struct.pack(f"<{len(table)}I", *table)


def xls_number(row: int, column: int, value: float = 17) -> bytes:
    return _record(0x0203, struct.pack("<HHHd", row, column, 0, value))


def _text_refs(count: int) -> bytes:
    return b"".join(_record(0x00FD, struct.pack("<HHHI", row % 65536, row // 65536, 0, 0)) for row in range(count))


def _long_text() -> bytes:
    first = _record(0x00FC, struct.pack("<IIHB", 1, 1, 65535, 0) + b"x" * 8000)
    rest, left = b"", 65535 - 8000
    while left:
        piece = min(left, 8000)
        rest += _record(0x003C, b"\0" + b"x" * piece)
        left -= piece
    return first + rest


def _brt(kind: int, data: bytes) -> bytes:
    """A record of an xlsb part; its kind and its length are variable-length numbers."""

    def number(value: int) -> bytes:
        out = b""
        while value > 127:
            out, value = out + bytes([value & 127 | 128]), value >> 7
        return out + bytes([value])

    head = bytes([kind & 127 | 128, kind >> 7]) if kind > 127 else bytes([kind])
    return head + number(len(data)) + data


def _wide(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")


def xlsb(
    cells: bytes,
    *,
    extent: tuple[int, int] = (0, 0),
    texts: bytes = b"",
    merged: tuple[int, int, int, int] | None = None,
) -> bytes:
    """An xlsb file: parts of binary records in a zip archive; *merged* are first and last rows, and columns."""
    merges = _brt(176, struct.pack("<IIII", *merged)) if merged else b""
    sheets = _brt(143, b"") + _brt(156, struct.pack("<II", 0, 1) + _wide("rId1") + _wide("Items")) + _brt(144, b"")
    dimension = _brt(148, struct.pack("<IIII", 0, extent[0], 0, extent[1]))
    sheet = _brt(129, b"") + dimension + _brt(145, b"") + cells + _brt(146, b"") + merges + _brt(130, b"")
    related = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
    relations = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        f'<Relationship Id="rId1" Type="{related}worksheet" Target="worksheets/sheet1.bin"/>'
        "</Relationships>"
    )
    parts = {
        "[Content_Types].xml": b"<Types/>",
        "xl/workbook.bin": _brt(131, b"") + sheets + _brt(132, b""),
        "xl/_rels/workbook.bin.rels": relations.encode(),
        "xl/worksheets/sheet1.bin": sheet,
    }
    if texts:
        parts["xl/sharedStrings.bin"] = texts
    return packed(parts)


def xlsb_row(row: int) -> bytes:
    return _brt(0, struct.pack("<I", row) + bytes(13))


def xlsb_number(column: int) -> bytes:
    return _brt(5, struct.pack("<IId", column, 0, 17.0))


def _many_entries(count: int) -> bytes:
    """An archive whose directory alone is large: each entry shares the bytes of the first."""
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("xl/a", b"")
        info = archive.infolist()[0]
        archive.filelist.extend([info] * count)
        archive.comment = b"x"  # so that the directory is written again
    return file.getvalue()


def _overlapping(count: int) -> bytes:
    """Entries that all share one packed megabyte of zeros, which unpacks to a thousand."""
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/a", bytes(8 * MEGABYTE))
        info = archive.infolist()[0]
        archive.filelist.extend([info] * count)
    return file.getvalue()


def _false_size(data: bytes, part: str) -> bytes:
    """*data* whose directory says that *part* has 4 GB."""
    place = data.rindex(part.encode()) - 46
    return data[: place + 24] + b"\xf0\xff\xff\xff" + data[place + 28 :]


_FAR = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
_REFERRED = '<c t="s"><v>0</v></c>'
_MERGED = '<mergeCell ref="A1:XFD1048576"/>'
_HUGE = "A" * 100 * MEGABYTE
_RUN = "<r><t>xxxxxxxxxx</t></r>"
_LONG = f"<si><t>{'x' * MEGABYTE}</t></si>"
HOSTILE: Mapping[str, Callable[[], bytes]] = {
    "xlsx: a cell at the far corner": lambda: xlsx(_FIRST + _FAR),
    "xlsx: a text at the far corner": lambda: xlsx(
        _FIRST + _FAR.replace("<v>1</v>", "<is><t>x</t></is>").replace('6">', '6" t="inlineStr">', 2)
    ),
    "xlsx: a cell beyond the last row": lambda: xlsx(
        _FIRST + '<row r="4294967295"><c r="A4294967295"><v>1</v></c></row>'
    ),
    "xlsx: a cell in a column of eight letters": lambda: xlsx(
        _FIRST + '<row r="2"><c r="ZZZZZZZZ2"><v>1</v></c></row>'
    ),
    "xlsx: a far cell and a declared extent": lambda: xlsx(_FIRST + _FAR, before='<dimension ref="A1:XFD1048576"/>'),
    "xlsx: far cells in every tenth row": lambda: xlsx(
        _FIRST + "".join(f'<row r="{n}"><c r="XFD{n}"><v>1</v></c></row>' for n in range(10, 100_000, 10))
    ),
    "xlsx: one long shared text in many rows": lambda: xlsx(f"<row>{_REFERRED}</row>" * 100_000, texts=_LONG),
    "xlsx: one long shared text in many columns": lambda: xlsx(f"<row>{_REFERRED * 16_000}</row>", texts=_LONG),
    "xlsx: a shared text of many runs": lambda: xlsx(
        f"<row>{_REFERRED}</row>" * 100_000, texts=f"<si>{_RUN * 100_000}</si>"
    ),
    "xlsx: rows of many cells": lambda: xlsx(f"<row>{'<c><v>1</v></c>' * 16_384}</row>" * 400),
    "xlsx: a text of 100 MB": lambda: xlsx(f'<row><c t="inlineStr"><is><t>{_HUGE}</t></is></c></row>'),
    "xlsx: an attribute of 100 MB": lambda: xlsx(_FIRST + f'<row r="2"><c r="{_HUGE}"/></row>'),
    "xlsx: a number of a million digits": lambda: xlsx(f"<row><c><v>{'9' * MEGABYTE}</v></c></row>"),
    "xlsx: elements in elements": lambda: xlsx(_FIRST + "<row>" * 3_000_000),
    "xlsx: many merged cells": lambda: xlsx(_FIRST, after=f"<mergeCells>{_MERGED * 2_000_000}</mergeCells>"),
    "xlsx: many shared texts": lambda: xlsx(_FIRST, texts="<si><t>x</t></si>" * 5_000_000),
    "xlsx: a part that is not read": lambda: xlsx(_FIRST, others={"xl/media/image1.png": bytes(600 * MEGABYTE)}),
    "xlsx: many sheets": lambda: xlsx(
        _FIRST,
        others={
            "xl/workbook.xml": _workbook()["xl/workbook.xml"].replace(
                b"<sheets>", b"<sheets>" + b'<sheet name="a" sheetId="9" state="hidden" r:id="rId1"/>' * 2_000_000
            )
        },
    ),
    "xlsx: many formats of numbers": lambda: xlsx(
        _FIRST,
        others={
            "xl/styles.xml": _workbook()["xl/styles.xml"].replace(
                b"<cellXfs", b"<cellXfs>" + b"<xf/>" * 9_000_000 + b"</cellXfs><cellXfs"
            )
        },
    ),
    "xlsx: a size that is false": lambda: _false_size(xlsx(_FIRST), _SHEET),
    "xlsx: packed with bzip2": lambda: packed({**_workbook(), "xl/a": bytes(600 * MEGABYTE)}, zipfile.ZIP_BZIP2),
    "xlsx: packed with LZMA": lambda: packed({**_workbook(), "xl/a": bytes(200 * MEGABYTE)}, zipfile.ZIP_LZMA),
    "zip: a directory of a million entries": lambda: _many_entries(1_000_000),
    "zip: entries that share their bytes": lambda: _overlapping(2_000),
    "ods: rows that are repeated": lambda: ods(
        _ods_row("x", row='table:number-rows-repeated="1048576"', attributes='table:number-columns-repeated="16384"')
    ),
    "ods: columns that are repeated": lambda: ods(
        _ods_row("x", attributes='table:number-columns-repeated="2000000000"')
    ),
    "ods: a long text that is repeated": lambda: ods(
        _ods_row("x" * MEGABYTE, row='table:number-rows-repeated="100000"')
    ),
    "ods: two billion blanks": lambda: ods(_ods_row('a<text:s text:c="2000000000"/>b')),
    "ods: a far cell": lambda: ods(
        _ods_row("a")
        + '<table:table-row table:number-rows-repeated="1048574"><table:table-cell/></table:table-row>'
        + '<table:table-row><table:table-cell table:number-columns-repeated="16383"/>'
        + '<table:table-cell office:value-type="string"><text:p>b</text:p></table:table-cell></table:table-row>'
    ),
    "ods: tables in tables": lambda: ods(_ods_row("a"), around='<table:table table:name="b">' * 2_000_000 + "{}"),
    "xls: a cell at the far corner": lambda: xls(xls_number(0, 0) + xls_number(65_535, 65_535)),
    "xls: a cell at the far corner of the format": lambda: xls(xls_number(0, 0) + xls_number(65_535, 16_383)),
    "xls: an extent without cells": lambda: xls(
        _record(0x0200, struct.pack("<IIHHH", 0, 0xFFFFFFFF, 0, 0xFFFF, 0))
        + xls_number(0, 0)
        + xls_number(65_535, 60_000)
    ),
    "xls: one long shared text in many rows": lambda: xls(_text_refs(65_000), _long_text()),
    "xls: more shared texts than there are": lambda: xls(
        xls_number(0, 0), _record(0x00FC, struct.pack("<II", 0xFFFFFFFF, 0xFFFFFFFF))
    ),
    "xls: allocation tables that are not there": lambda: compound(bytes(4096), tables=0x00FFFFFF),
    "xls: sectors in a circle": lambda: compound(bytes(4096), loop=True),
    "xlsb: a cell at the far corner": lambda: xlsb(
        xlsb_row(0) + xlsb_number(0) + xlsb_row(1_048_575) + xlsb_number(16_383)
    ),
    "xlsb: a cell beyond the last row": lambda: xlsb(
        xlsb_row(0) + xlsb_number(0) + xlsb_row(0xFFFFFFF0) + xlsb_number(0xFFFFFFF0)
    ),
    "xlsb: an extent without cells": lambda: xlsb(
        xlsb_row(0) + xlsb_number(0) + xlsb_row(900_000) + xlsb_number(9_000), extent=(0xFFFFFFFE, 0xFFFFFFFE)
    ),
    "xlsb: one long shared text in many rows": lambda: xlsb(
        b"".join(xlsb_row(row) + _brt(7, struct.pack("<III", 0, 0, 0)) for row in range(50_000)),
        texts=_brt(159, struct.pack("<II", 1, 1)) + _brt(19, b"\0" + _wide("x" * 32_000)) + _brt(160, b""),
    ),
    "xlsb: a text that is longer than its part": lambda: xlsb(
        xlsb_row(0) + _brt(6, struct.pack("<III", 0, 0, 0xFFFFFFF0) + b"x\0")
    ),
}
USUAL = [name for name in HOSTILE if name.endswith((": a cell at the far corner", "billion blanks", "s: a far cell"))]
"""Those with which the suite makes do."""
HARMLESS = {
    "xlsx: a size that is false",
    "xls: more shared texts than there are",
    "xlsb: a cell beyond the last row",
}
"""What they declare is not believed, so that they are read."""


def write(folder: Path, names: list[str]) -> Iterator[Path]:
    """One file for each of *names*, with a suffix that means nothing."""
    for number, name in enumerate(names):
        path = folder / f"{number}.sheet"
        path.write_bytes(HOSTILE[name]())
        yield path


def _ended(path: Path) -> str:
    try:
        rows = sum(frame.height for frame in read_sheet_rows(path, _LAYOUT, name="f"))
    except RefusedError as error:
        return f"refused {error.where}: {error.message}"
    return f"{rows} rows"


if __name__ == "__main__":
    for given, name in json.loads(sys.argv[1]):
        print(f"{name}: {Path(given).stat().st_size:,} bytes, {_ended(Path(given))}")
    print(f"readers: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10}")
