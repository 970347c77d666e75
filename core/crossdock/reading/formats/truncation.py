"""Checks whether the last row of a file has its end."""

from __future__ import annotations

import codecs
import os

from crossdock.reading.wrappers.packed_streams import GZIP
from crossdock.reading.wrappers.wrapper import Openable

_LONGEST = 64  # bytes: a row end of 8 characters in any encoding, and an end mark
_DOS_END = "\x1a"


def lacks_last_row_end(path: Openable, encoding: str, row_end: str | None) -> bool:
    """Return whether the last row lacks *row_end*: None is LF or CRLF, empty is none. gzip has its own."""
    if row_end == "":
        return False
    ends = [row_end or "\n"]
    if ends[0].endswith("\n"):
        ends.append(f"{ends[0][:-1]}\r\n")
    with path.open("rb") as file:
        if GZIP.magic(file.read(2)):
            return False
        file.seek(max(0, file.seek(0, os.SEEK_END) - _LONGEST))
        tail = file.read()
    possible = [
        text.encode(form) for form in _encoding_forms(encoding) for end in ends for text in (end, end + _DOS_END)
    ]
    return not tail.endswith(tuple(possible))


def _encoding_forms(encoding: str) -> list[str]:
    name = codecs.lookup(encoding).name.removesuffix("-sig")
    return [f"{name}-le", f"{name}-be"] if name in {"utf-16", "utf-32"} else [name]
