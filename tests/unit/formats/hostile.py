"""Small files that would grow: gzip of a few kilobytes that tries to take the memory in some way of its own.

As a program it reads the files named by its arguments, and says of each how that ended.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.unit.formats.layouts import FORMATS

from crossdock.errors import RefusedError
from crossdock.reading.formats.file_formats import FileFormat, read_rows, read_rows_at_lines
from crossdock.reading.formats.strict_delimited_parser import MAX_COLUMNS
from crossdock.reading.wrappers.wrapper import FREE_LINES

SIZE = 9_900_000  # just below what gzip may unpack to at any ratio
_WIDE = ",".join(f"C{number}" for number in range(MAX_COLUMNS)).encode() + b"\n"
_RECORDS = 200_000  # take as much memory as more of them would, and less time
_XML = {"kind": "xml", "record": "/L/R", "rows": "X", "columns": {"A": "@a", "B": "X"}}
_NO_HEADER = {"header": False, "names": ("A", "B")}


@dataclass(frozen=True)
class Hostile:
    """A file of about *size* bytes before it is packed, and how it is declared."""

    data: Callable[[int], bytes]
    layout: dict[str, Any] = field(default_factory=dict)


def _lines(line: bytes, size: int) -> bytes:
    """So many lines as gzip may unpack to, so that they come to be read."""
    return line * min(size // len(line), FREE_LINES - 100)


def _numbered(row: bytes, size: int) -> bytes:
    return b"".join(b"%d%b" % (number, row) for number in range(size // (len(row) + 4)))


HOSTILE = {
    "delimiters in a row": Hostile(lambda size: b"A,B\n" + b"," * size + b"\n"),
    "delimiters in long rows": Hostile(lambda size: b"A,B\n" + (b"," * (size // 3 - 1) + b"\n") * 3),
    "delimiters in the only row": Hostile(lambda size: b"," * size, _NO_HEADER),
    "delimiters in the header": Hostile(lambda size: b"," * size + b"\n1,2\n"),
    "cells in a row": Hostile(lambda size: b"A,B\n" + b"ab," * (size // 3) + b"\n"),
    "quoted cells in a row": Hostile(lambda size: b"A,B\n" + b'"ab",' * (size // 5) + b"\n"),
    "quoted cells in the header": Hostile(lambda size: b'"",' * (size // 3) + b"\n1,2\n"),
    "long delimiters in a row": Hostile(lambda size: b"A+|B\n" + b"+|" * (size // 2) + b"\n", {"delimiter": "+|"}),
    "fields in a trailer": Hostile(
        lambda size: b"A,B\n1,2\n" + b"TRL," * (size // 4), {"trailer": {"prefix": "TRL", "count": 1}}
    ),
    "short rows under a wide header": Hostile(lambda size: _WIDE + _lines(b"x\n", size - len(_WIDE))),
    "short quoted rows under a wide header": Hostile(lambda size: _WIDE + _lines(b'"x"\n', size - len(_WIDE))),
    "empty cells in a wide table": Hostile(
        lambda size: _WIDE + (b"," * (MAX_COLUMNS - 1) + b"\n") * ((size - len(_WIDE)) // MAX_COLUMNS)
    ),
    "quoted cells in a wide table": Hostile(
        lambda size: _WIDE + (b'"",' * (MAX_COLUMNS - 1) + b"x\n") * ((size - len(_WIDE)) // (3 * MAX_COLUMNS))
    ),
    "new rows in a wide table": Hostile(
        lambda size: _WIDE + _numbered(b",v" + b",ab" * (MAX_COLUMNS - 2) + b"\n", size - len(_WIDE))
    ),
    "lines in a cell": Hostile(lambda size: b'A,B\n"' + _lines(b"\n", size) + b'",1\n'),
    "lines in a cell under a wide header": Hostile(lambda size: _WIDE + b'"' + _lines(b"\n", size) + b'"\n'),
    "lines in a quote inside a cell": Hostile(lambda size: _WIDE + b'a"' + _lines(b"\n", size) + b'"\n'),
    "quotes in a cell": Hostile(lambda size: b"A,B\n" + b'"' * (size & ~1) + b",1\n"),
    "a quote that is never closed": Hostile(lambda size: b'A,B\n"' + b'ab,""\n' * (size // 6)),
    "rows of tiny quoted cells": Hostile(lambda size: b"A,B\n" + _lines(b'"ab",cd\nab,"cdefgh"\n', size // 2) * 2),
    "quotes behind a plain beginning": Hostile(
        lambda size: b"A,B\n" + b"abcdefghijklmnopq,cd\n" * 6300 + b'"a","b"\n' * ((size - 140_000) // 8)
    ),
    "tiny rows": Hostile(lambda size: b"A\n" + _lines(b"1\n", size)),
    "lines": Hostile(lambda size: b"A\n" + b"1\n" * (size // 2)),
    "rows of empty cells": Hostile(lambda size: b"A,B\n" + _lines(b",\n", size)),
    "rows without a key": Hostile(lambda size: b"A,B\n" + _lines(b",ab\n", size)),
    "a fault behind tiny rows": Hostile(lambda size: b"A\n" + _lines(b"1\n", size) + b"\x00\n"),
    "wide characters": Hostile(
        lambda size: b"A,B\n" + _lines(b"\xc4\xc4\xc4\xc4,\xc4\xc4\xc4\n", size), {"encoding": "cp437"}
    ),
    "a wide character in a long cell": Hostile(lambda size: "A,B\n1,🚚".encode() + b"x" * size + b'"\n'),
    "long cells": Hostile(lambda size: b"A,B\n" + _numbered(b"," + b"x" * 500_000 + b"\n", size)),
    "long names": Hostile(
        lambda size: ",".join(f"C{n}{'x' * (size // 2 // MAX_COLUMNS)}" for n in range(MAX_COLUMNS)).encode() + b"\n"
    ),
    "elements as small records": Hostile(lambda size: b"<L>" + b"<R/>" * min(size // 4, _RECORDS) + b"</L>", _XML),
    "elements as rows of a record": Hostile(lambda size: b"<L><R>" + b"<X/>" * (size // 4) + b"</R></L>", _XML),
    "elements as rows beside a long value": Hostile(
        lambda size: b"<L>" + (b"<R a='" + b"x" * 9_000 + b"'>" + b"<X/>" * 10_000 + b"</R>") * (size // 1_000_000),
        _XML,
    ),
    "elements that are not declared": Hostile(
        lambda size: b"<L>" + b"<x>" * 50 + b"<y/>" * min(size // 4, 2 * _RECORDS), _XML
    ),
    "elements of other names": Hostile(lambda size: b"<L>" + b"".join(b"<n%d/>" % n for n in range(size // 10)), _XML),
    "elements with a long attribute": Hostile(lambda size: b"<L><R a='" + b"x" * size, _XML),
    "elements with many attributes": Hostile(
        lambda size: b"<L><R " + b" ".join(b"a%d=''" % n for n in range(size // 11)) + b"/></L>", _XML
    ),
    "elements of one text": Hostile(lambda size: b"<L><R><X>" + b"x<!---->" * (size // 8), _XML),
    "elements inside of each other": Hostile(lambda size: b"<a>" * (size // 3), {**_XML, "record": "/a/a"}),
    "members as small records": Hostile(lambda size: b"[" + b"{}," * min(size // 3, _RECORDS), {"kind": "json"}),
    "members of a record": Hostile(lambda size: b'[{"a":[' + b"{}," * (size // 20), {"kind": "json"}),
    "members beside the records": Hostile(
        lambda size: b'{"a":[' + b"[]," * (size // 20), {"kind": "json", "records": "b"}
    ),
    "members inside of each other": Hostile(lambda size: b"[" + b'{"a":' * (size // 5), {"kind": "json"}),
    "members of one text": Hostile(lambda size: b'[{"a":"' + b"x" * size, {"kind": "json"}),
}
USUAL = [
    name
    for name in HOSTILE
    if name.startswith(("delimiters", "cells", "quoted cells in the", "short", "lines", "elements", "members"))
]
"""Those with which the suite makes do."""


def write(folder: Path, names: list[str], size: int) -> Iterator[Path]:
    """One gzip file for each of *names*."""
    for number, name in enumerate(names):
        path = folder / f"{number}.gz"
        path.write_bytes(gzip.compress(HOSTILE[name].data(size), 6, mtime=0))
        yield path


def _ended(path: Path, layout: FileFormat) -> str:
    lines: list[int] = []
    try:
        for frame in read_rows(path, layout, name="f"):
            lines += frame["_line"].head(1000 - len(lines)).to_list()
        rows = sum(frame.height for frame in read_rows_at_lines(path, layout, lines, name="f"))
    except RefusedError:
        return "refused"
    assert rows == len(lines)
    return "read"


if __name__ == "__main__":
    for given, name in json.loads(sys.argv[1]):
        print(name, _ended(Path(given), FORMATS.validate_python(HOSTILE[name].layout)), sep=": ")
