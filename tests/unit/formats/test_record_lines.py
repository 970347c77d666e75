"""Bytes become lines in every way that records can end, also where pieces are cut anywhere."""

from __future__ import annotations

from io import BytesIO

import pytest
from tests.unit.formats.layouts import fixed_width

from crossdock.errors import RefusedError
from crossdock.reading.formats.fixed_width_files import FixedWidthLineSplitter, decode_fixed_width_record_pieces

COLUMNS = {"A": {"at": 1, "length": 2}}


def texts(data: bytes, chunk: int, **config: object) -> list[tuple[str, int]]:
    form = fixed_width(kind="fixed_width", columns=COLUMNS, **config)
    reader = FixedWidthLineSplitter("f", crlf=b"\r" in data)
    found = []
    for piece in decode_fixed_width_record_pieces(BytesIO(data), form, name="f", chunk=chunk):
        frame, error = reader.split_lines(piece)
        found += frame.rows()
        if error:
            raise error
    return found


@pytest.mark.parametrize("chunk", [1, 2, 3, 100])
@pytest.mark.parametrize(
    ("data", "config"),
    [
        ("\u00e4b\n\u20acd\n".encode(), {}),
        ("\u00e4b\r\n\u20acd\r\n".encode(), {}),
        ("\u00e4b\u20acd".encode(), {"line_end": "none", "length": 2}),
        ("\u00e4b\x85\u20acd\x85".encode(), {"line_end": "nel"}),
        ("title\n\u00e4b\n\u20acd".encode(), {"skip_lines": 1}),
        ("\u00e4b\u20acd\x1a".encode(), {"line_end": "none", "length": 2}),
    ],
)
def test_records_are_cut_where_they_end(data: bytes, config: dict[str, object], chunk: int) -> None:
    """Whatever the pieces; the mark of DOS at the end is no record."""
    first = 2 if "skip_lines" in config else 1
    assert texts(data, chunk, **config) == [("\u00e4b", first), ("\u20acd", first + 1)]


@pytest.mark.parametrize("chunk", [1, 2, 100])
@pytest.mark.parametrize("line_end", ["none", "nel"])
def test_a_line_break_inside_a_record_is_refused(chunk: int, line_end: str) -> None:
    """With the number of the record; it may be that the layout is another."""
    data = b"ab\xc2\x85cd\xc2\x85e\n" if line_end == "nel" else b"abcde\n"
    with pytest.raises(RefusedError, match="^f:3: a line break inside a record"):
        texts(data, chunk, line_end=line_end, length=2)


def test_bytes_that_are_no_text_end_the_lines() -> None:
    """The lines before them are checked first."""
    piece = next(
        decode_fixed_width_record_pieces(
            BytesIO(b"ab\n"), fixed_width(kind="fixed_width", columns=COLUMNS), name="f", chunk=9
        )
    )
    assert FixedWidthLineSplitter("f", crlf=False).split_lines(piece)[1] is None
    with pytest.raises(RefusedError, match="^f:2:2: byte 0xFF is not UTF-8"):
        texts(b"ab\nc\xff\n", 100)
