"""Fixed-width files are read strictly, with the line and position of each fault."""

from __future__ import annotations

import gzip
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.formats.layouts import FORMATS, GOOD, ORDERS, Content, fixed_width, lines, read

from crossdock.errors import RefusedError
from crossdock.reading.formats.file_formats import LeniencyCounts
from crossdock.reading.formats.fixed_width_files import read_fixed_width_rows
from crossdock.reading.formats.fixed_width_layout import FixedWidthFormat

ITEMS: dict[str, Any] = {
    "kind": "fixed_width",
    "columns": {
        "SKU": {"at": 1, "length": 4},
        "NAME": {"at": 5, "length": 6},
        "PRICE": {"at": 12, "length": 5, "decimals": 2, "sign": "overpunch"},
    },
}
ROWS = [("0017", "Lamp", "12.34", 1), ("0018", "S\u00e4ge", "-0.50", 2)]
WRITTEN = ("0017Lamp   0123D", "0018S\u00e4ge   0005}")


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "cp850", "utf-16-le"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("packed", [False, True])
def test_lines_are_read_in_every_encoding(encoding: str, end: str, packed: bool) -> None:
    """Positions count characters, whatever number of bytes they have."""
    data = lines(*WRITTEN, end=end).encode(encoding)
    assert read(gzip.compress(data) if packed else data, {**ITEMS, "encoding": encoding}).rows() == ROWS


@pytest.mark.parametrize("encoding", ["cp037", "cp500", "cp273"])
@pytest.mark.parametrize("line_end", ["nel", "none"])
def test_mainframe_files_are_read(encoding: str, line_end: str) -> None:
    """EBCDIC has zoned numbers by bytes, and ends records with NEL or not at all."""
    zoned = [b"\xf0\xf1\xf2\xf3\xc4", b"\xf0\xf0\xf0\xf5\xd0"]
    end = b"\x15" if line_end == "nel" else b""
    data = b"".join(text[:11].encode(encoding) + zone + end for text, zone in zip(WRITTEN, zoned, strict=True))
    assert read(data, {**ITEMS, "encoding": encoding, "line_end": line_end, "length": 16}).rows() == ROWS


def test_the_last_line_may_lack_its_end() -> None:
    """A file that was joined from lines is whole."""
    assert read(lines(*WRITTEN).rstrip("\n"), ITEMS).rows() == ROWS


def test_a_header_that_a_sender_adds_is_no_row() -> None:
    """In whatever notation it has the names of the columns, it would be a record with the key SKU."""
    columns = {"name": {"at": 7, "length": 6}, "sku": {"at": 1, "length": 6}}
    config = {"kind": "fixed_width", "columns": columns}
    with pytest.raises(RefusedError, match="^f:1: the first line is a header") as refused:
        read(b"SKU   Name  \n000017Bolt  \n", config)
    assert "skip_lines" in str(refused.value.hint)
    assert read(b"SKU   Name  \n000017Bolt  \n", {**config, "skip_lines": 1}).rows() == [("000017", "Bolt", 2)]


def test_short_lines_are_padded_if_that_is_declared() -> None:
    """Editors and some programs leave out the last blanks."""
    config = {"kind": "fixed_width", "columns": {"SKU": {"at": 1, "length": 4}, "NAME": {"at": 5, "length": 6}}}
    assert read("0017Lamp\n0018\n", {**config, "short_lines": "pad"}).rows() == [("0017", "Lamp", 1), ("0018", "", 2)]


@pytest.mark.parametrize(
    ("data", "config", "expected"),
    [
        ("", {}, "f: the file is empty"),
        ("0017Lamp   0123D\n0018Saw    005}\n", {}, "f:2:16: 15 characters instead of 16"),
        ("0017Lamp   0123D0\n", {}, "f:1:17: 17 characters instead of 16"),
        ("0017Lamp   0123D\n\n0018Saw    0005}\n", {}, "f:2: the line is blank"),
        ("0017Lamp   0123D\n          \n", {"short_lines": "pad"}, "f:2: the line is blank"),
        ("0017Lamp   0123D\n0018Saw    00S5}\n", {}, "f:2:12: column 'PRICE', positions 12 to 16, is not digits with"),
        ("0017Lamp   0123D\n0018S\0w    0005}\n", {}, r"f:2:6: control character U\+0000"),
        ("0017Lamp   0123D\r\n0018Saw    0005}\n", {}, "f:2: the line ends with LF, the lines before it with CRLF"),
        ("0017Lamp   0123D\n0018Saw    0005}\r\n", {}, "f:2: the line ends with CRLF, the lines before it with LF"),
        ("0017Lamp   0123D\n0018S\rw    0005}\n", {}, "f:2:6: a CR without LF"),
        ("0017Lamp   0123D\n0018S\ufeffw    0005}\n", {}, "f:2:6: a byte order mark inside"),
        (b"0017Lamp   0123D\n0018S\xe4w    0005}\n", {}, "f:2:6: byte 0xE4 is not UTF-8"),
        ("0017Lamp   0123D\n", {"line_end": "none", "length": 16}, "f:2: a line break inside a record"),
        ("0017Lamp   0123D\n", {"line_end": "nel"}, "f:1: a line break inside a record"),
        ("0017Lamp   0123D0018Saw", {"line_end": "none", "length": 16}, "f:2:8: 7 characters instead of 16"),
    ],
)
def test_a_damaged_file_is_refused_with_the_place(data: str | bytes, config: dict[str, Any], expected: str) -> None:
    """File, line and position; no error quotes a cell."""
    with pytest.raises(RefusedError, match=f"^{expected}") as refused:
        read(data, {**ITEMS, **config})
    assert "Lamp" not in str(refused.value)
    assert refused.value.hint


def test_the_chosen_records_have_the_columns_of_their_parents() -> None:
    """A line has its order's columns before its own; other records are read by choosing their type."""
    rows = [
        ("A00001", "P00001", "12", "12.50", 3),
        ("A00001", "P00002", "1", "-1.00", 4),
        ("A00003", "P00001", "3", "0.01", 9),
    ]
    data = lines(*GOOD)
    assert read(data, ORDERS).rows() == rows
    assert read(data, {**ORDERS, "records": "order"})["ORDER"].to_list() == ["A00001", "A00002", "A00003"]


@pytest.mark.parametrize("chunk", [1, 17, 40, 1 << 20])
def test_groups_may_begin_in_one_piece_and_end_in_another(chunk: int) -> None:
    """Parents, counts and sums are carried over."""
    found = [
        row
        for frame in read_fixed_width_rows(
            Content(lines(*GOOD).encode()), fixed_width(**ORDERS), name="f", _chunk=chunk
        )
        for row in frame.rows()
    ]
    assert [row[0] for row in found] == ["A00001", "A00001", "A00003"]


_TEXTS = st.text(st.characters(codec="cp037", exclude_categories=["Cc"]), max_size=8)


@given(
    st.lists(st.tuples(_TEXTS, st.integers(-9999, 9999)), max_size=20),
    st.sampled_from(["cp037", "utf-8", "latin-1"]),
    st.sampled_from(["line_feed", "nel", "none"]),
    st.integers(1, 60),
)
def test_records_survive_being_written_and_read(
    rows: list[tuple[str, int]], encoding: str, line_end: str, chunk: int
) -> None:
    """Whatever the encoding, the ends and the pieces in which the file comes."""
    columns = {"T": {"at": 2, "length": 8}, "N": {"at": 11, "length": 6, "decimals": 2, "sign": "trailing"}}
    config = {"kind": "fixed_width", "encoding": encoding, "line_end": line_end, "length": 18, "columns": columns}
    end = {"line_feed": "\n", "nel": "\x85", "none": ""}[line_end]
    written = [f"x{text.ljust(8)} {abs(n):>5}{'-' if n < 0 else ' '}xx{end}" for text, n in rows]
    data = "".join(["x         00000 xx" + end, *written]).encode(encoding)
    found = [
        row
        for frame in read_fixed_width_rows(Content(data), fixed_width(**config), name="f", batch_rows=7, _chunk=chunk)
        for row in frame.rows()
    ]
    expected = [("", 0), *rows]
    assert [row[0] for row in found] == [text.rstrip(" ") for text, _ in expected]
    assert [round(float(row[1]) * 100) for row in found] == [number for _, number in expected]
    assert [row[2] for row in found] == list(range(1, len(expected) + 1))


WIDE: dict[str, Any] = {
    "kind": "fixed_width",
    "columns": {"SKU": {"at": 1, "length": 4}, "NAME": {"at": 5, "length": 10}, "ZONE": {"at": 15, "length": 3}},
}
WIDE_ROWS = [("0017", "\u30dc\u30eb\u30c8", "A01", 1), ("0018", "Nut", "B02", 2), ("0019", "\u30bd\u30fc\u30b9", "", 3)]


def in_bytes(encoding: str, rows: list[tuple[str, str, str, int]], end: bytes) -> bytes:
    """*rows* as a program writes them that fills up fields to a number of bytes."""
    cells = ((sku.encode(encoding), name.encode(encoding), zone.encode(encoding)) for sku, name, zone, _ in rows)
    return b"".join(sku + name.ljust(10) + zone.ljust(3) + end for sku, name, zone in cells)


@pytest.mark.parametrize("encoding", ["shift_jis", "cp932", "euc_jp", "gb18030", "utf-8"])
@pytest.mark.parametrize("line_end", ["line_feed", "none"])
def test_positions_count_bytes_where_that_is_declared(encoding: str, line_end: str) -> None:
    """Characters of several bytes take as many positions; one of them may even have the byte of a backslash."""
    rows = WIDE_ROWS
    layout = {**WIDE, "encoding": encoding, "count": "bytes", "line_end": line_end, "length": 17}
    data = in_bytes(encoding, rows, b"\r\n" if line_end == "line_feed" else b"")
    assert read(data, layout).rows() == rows
    whole = "\u30bd".encode(encoding)
    split = (
        b"0019" + b"x" * (11 - len(whole)) + whole + b"A1 "[: 17 - 4 - 11] + (b"\n" if line_end == "line_feed" else b"")
    )
    with pytest.raises(RefusedError, match="column 'NAME', positions 5 to 14, is not whole characters"):
        read(split, layout)


@pytest.mark.parametrize("encoding", ["shift_jis", "utf-8"])
@pytest.mark.parametrize("short_lines", ["refuse", "pad"])
def test_lines_that_are_short_in_characters_and_whole_in_bytes_are_never_padded(
    encoding: str, short_lines: str
) -> None:
    """Names would run into zones: the refusal says that positions may count bytes, and not to pad."""
    layout = {**WIDE, "encoding": encoding, "short_lines": short_lines}
    with pytest.raises(RefusedError, match="characters instead of 17") as refused:
        read(in_bytes(encoding, WIDE_ROWS, b"\n"), layout)
    assert "declare count: bytes" in str(refused.value.hint)
    assert "pad" not in str(refused.value.hint)


@pytest.mark.parametrize("encoding", ["iso2022_jp", "hz"])
def test_bytes_cannot_be_counted_where_alphabets_are_switched(encoding: str) -> None:
    """The same bytes are other characters after a switch."""
    with pytest.raises(ValueError, match="switches between alphabets"):
        FORMATS.validate_python({**WIDE, "encoding": encoding, "count": "bytes"})


def test_declared_leniencies_are_counted() -> None:
    """Short, long and blank lines are read as declared, and the file's counts say how many they are."""
    layout = FixedWidthFormat.model_validate(
        {**WIDE, "short_lines": "pad", "long_lines": "drop_empty", "blank_lines": "at_end"}
    )
    counted = LeniencyCounts()
    text = "0017Bolt      A01   \n0018Nut\n0019Washer    B02\n\n    \n\n"
    frame = pl.concat(read_fixed_width_rows(Content(text.encode()), layout, name="f", leniencies=counted))
    assert frame["SKU"].to_list() == ["0017", "0018", "0019"]
    assert str(counted) == "1 short line filled up, 1 long line cut to the declared columns, 3 blank lines left out"
    for cut in ("0017Bolt      A01  x\n", "0017Bolt      A01\n\n0018Nut       A01\n"):
        with pytest.raises(RefusedError, match="instead of 17|line is blank"):
            list(read_fixed_width_rows(Content(cut.encode()), layout, name="f"))
    skipping = {**WIDE, "long_lines": "drop", "blank_lines": "skip"}
    assert read("0017Bolt      A01  x\n\n0018Nut       A01\n \n", skipping).rows() == [
        ("0017", "Bolt", "A01", 1),
        ("0018", "Nut", "A01", 3),
    ]
