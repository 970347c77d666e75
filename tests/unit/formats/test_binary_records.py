"""Mainframe files: bytes by hand, every kind of number written and read, framing, and damage with its place."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.examples import examples
from tests.unit.formats.layouts import Content, read

from crossdock.errors import RefusedError
from crossdock.reading.formats.file_formats import LeniencyCounts, may_be_truncated, read_rows
from crossdock.reading.formats.fixed_width_layout import FixedWidthFormat

ITEM = """\
       01  ITEM-RECORD.
           05  SKU            PIC X(6).
           05  ON-HAND        PIC S9(5)     COMP-3.
           05  PRICE          PIC S9(3)V99.
           05  BIN-NO         PIC S9(4)     COMP.
           05  FILLER         PIC X.
           05  LOTS           PIC 9.
           05  LOT            OCCURS 0 TO 3 TIMES DEPENDING ON LOTS.
               10  CODE       PIC X(2).
               10  QTY        PIC 9(3)      COMP-3.
           05  STATE          PIC X(2).
"""
FIRST = bytes.fromhex("C1F0F0F1C460 00123D F0F1F2F3D4 FFFE 40 F2 D3F1 010C D3F2 200F D6D2")
"""A001D-, -123, -12.34, -2, two lots L1 of 10 and L2 of 200, OK."""
SECOND = bytes.fromhex("E9966B404040 99999C F0F0F0F0C0 270F 40 F0 D5D6")
"""Zo, and three spaces, 99999, 0.00, 9999, no lots, NO."""
ROWS = [
    ("A001D-", "-123", "-12.34", "-2", "2", "L1", "10", "L2", "200", "", "", "OK", 1),
    ("Zo,", "99999", "0.00", "9999", "0", "", "", "", "", "", "", "NO", 2),
]


def rdw(data: bytes) -> bytes:
    return (len(data) + 4).to_bytes(2, "big") + b"\0\0" + data


def bdw(*records: bytes) -> bytes:
    data = b"".join(map(rdw, records))
    return (len(data) + 4).to_bytes(2, "big") + b"\0\0" + data


def extended_bdw(*records: bytes) -> bytes:
    data = b"".join(map(rdw, records))
    return (len(data) + 4 | 1 << 31).to_bytes(4, "big") + data


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ITEM.cpy").write_text(ITEM)
    return tmp_path


def config(
    folder: Path, text: str | None = None, *, copybook: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """A format with the copybook *text* in free form, by default `ITEM`."""
    described: dict[str, Any] = {"file": folder / "ITEM.cpy", **(copybook or {})}
    if text is not None:
        described = {**described, "file": folder / "OTHER.cpy", "source": "free"}
        described["file"].write_text(text)
    return {"kind": "fixed_width", "encoding": "cp037", "line_end": "rdw", "copybook": described, **more}


@pytest.mark.parametrize(
    ("line_end", "data"),
    [
        ("rdw", rdw(FIRST) + rdw(SECOND)),
        ("bdw", bdw(FIRST, SECOND)),
        ("bdw", bdw(FIRST) + bdw(SECOND)),
        ("bdw", extended_bdw(FIRST) + extended_bdw(SECOND)),
        ("none", FIRST + SECOND),
    ],
)
def test_a_dump_is_read_as_the_public_rules_say(folder: Path, line_end: str, data: bytes) -> None:
    """EBCDIC, packed, zoned and binary numbers, and descriptor words, those of blocks in both forms."""
    assert read(data, config(folder, line_end=line_end)).rows() == ROWS
    assert read(gzip.compress(data), config(folder, line_end=line_end)).rows() == ROWS


def test_elements_of_a_table_are_rows(folder: Path) -> None:
    """With the other columns of their record and their number; records without elements are counted."""
    counted, layout = LeniencyCounts(), FixedWidthFormat.model_validate(config(folder, copybook={"rows": "LOT"}))
    data = rdw(SECOND) + rdw(FIRST) + rdw(SECOND) + rdw(FIRST)
    rows = pl.concat(read_rows(Content(data), layout, name="f", batch_rows=3, leniencies=counted))
    assert rows.select("SKU", "STATE", "LOT(n)", "CODE", "QTY", "_line").rows() == [
        ("A001D-", "OK", "1", "L1", "10", 1), ("A001D-", "OK", "2", "L2", "200", 2),
        ("A001D-", "OK", "1", "L1", "10", 3), ("A001D-", "OK", "2", "L2", "200", 4),
    ]  # fmt: skip
    assert str(counted) == "2 empty tables gave no row"


def test_a_file_of_records_without_elements_has_the_columns(folder: Path) -> None:
    """So that the mapping is checked against them."""
    found = read(rdw(SECOND), config(folder, copybook={"rows": "LOT"}))
    assert found.height == 0
    assert {"SKU", "LOT(n)", "CODE", "QTY", "STATE"} <= set(found.columns)


def test_a_table_may_have_room_for_the_most(folder: Path) -> None:
    """What is in elements that are not counted is not read, whatever it is."""
    full = FIRST[:26] + b"\xff\xff\xff\xff" + FIRST[26:]
    found = read(full, config(folder, line_end="none", copybook={"tables": "full"}))
    assert found.rows() == ROWS[:1]


KINDS = """
01 R.
  05 KIND PIC X.
  05 BODY PIC X(8).
  05 COMPANY REDEFINES BODY. 10 NAME PIC X(4). 10 SHARES PIC S9(7) COMP-3.
  05 PERSON REDEFINES BODY. 10 FAMILY PIC X(4). 10 BORN PIC 9(4) COMP. 10 FILLER PIC X(2).
"""


@pytest.mark.parametrize("line_end", ["rdw", "none"])
def test_the_value_of_a_column_decides_what_redefines(folder: Path, line_end: str) -> None:
    """Each type of record has items of its own; with descriptor words, shorter ones may be shorter."""
    types = {"company": {"code": "C", "items": ["COMPANY"]}, "person": {"code": "P", "items": ["PERSON"]}}
    form = config(folder, KINDS, line_end=line_end, record_type={"column": "KIND"}, record_types=types)
    company, person = bytes.fromhex("C3 C1C2C3C4 0000012D"), bytes.fromhex("D7 E9E9E9E9 07B4 4040")
    data = rdw(company) + rdw(person) if line_end == "rdw" else company + person
    assert read(data, {**form, "records": "company"}).rows() == [("C", "ABCD", "-12", 1)]
    assert read(data, {**form, "records": "person"}).rows() == [("P", "ZZZZ", "1972", 2)]
    with pytest.raises(RefusedError, match="f:3:1: a record of no declared type"):
        read(
            data + (rdw(b"\xe7" + company[1:]) if line_end == "rdw" else b"\xe7" + company[1:]),
            {**form, "records": "person"},
        )


SIGNS = """01 R. 05 A PIC S9(3). 05 B PIC S9(3) SIGN LEADING.
  05 C PIC S9(3) SIGN TRAILING SEPARATE. 05 D PIC S9(3) LEADING SEPARATE."""


@pytest.mark.parametrize(
    ("encoding", "data", "row"),
    [
        ("cp037", "F1F2D3 D1F2F3 F1F2F360 60F1F2F3", ("-123", "-123", "-123", "-123")),
        ("cp500", "F1F2C3 C1F2F3 F1F2F34E 4EF1F2F3", ("123", "123", "123", "123")),
        ("cp1140", "F1F2F3 F1F2F3 F0F0F060 60F0F0F0", ("123", "123", "0", "0")),
        ("cp273", "F0F0D0 D0F0F0 F1F2F34E 4EF1F2F3", ("0", "0", "123", "123")),
        ("cp1252", "31327D 4A3233 3132332D 2D313233", ("-120", "-123", "-123", "-123")),
        ("latin-1", "313273 713233 3132332B 2B313233", ("-123", "-123", "123", "123")),
        ("ascii", "313243 413233 3132332B 2B313233", ("123", "123", "123", "123")),
    ],
)
def test_zoned_numbers_have_every_form_of_sign(folder: Path, encoding: str, data: str, row: tuple[str, ...]) -> None:
    """Overpunched in EBCDIC by the byte, in translated files by the character, and by GnuCOBOL as p to y."""
    assert read(bytes.fromhex(data), config(folder, SIGNS, encoding=encoding, line_end="none")).rows() == [(*row, 1)]


@pytest.mark.parametrize(
    ("half_byte", "cell"), [("A", "7"), ("B", "-7"), ("C", "7"), ("D", "-7"), ("E", "7"), ("F", "7")]
)
def test_every_sign_of_a_packed_number_is_read(folder: Path, half_byte: str, cell: str) -> None:
    """A, C, E and F are plus, B and D minus."""
    data = bytes.fromhex(f"007{half_byte}")
    assert read(data, config(folder, "01 R. 05 A PIC S9(3) COMP-3.", line_end="none")).rows() == [(cell, 1)]


@pytest.mark.parametrize(
    ("picture", "data", "cell"),
    [
        ("S9(4) COMP", "8001", None),
        ("S9(4) COMP", "D8F1", "-9999"),
        ("9(4) COMP", "FFFF", None),
        ("S9(9) COMP", "FFFFFFFF", "-1"),
        ("S9(18) COMP", "FFFFFFFFFFFFFF9C", "-100"),
        ("9(18) BINARY", "0DE0B6B3A763FFFF", "999999999999999999"),
        ("9(18) BINARY", "0DE0B6B3A7640000", None),
        ("S9(4)V99 COMP-4", "00003039", "123.45"),
        ("S9(4) COMP-5", "0180", "-32767"),
        ("9(18) COMP-5", "FFFFFFFFFFFFFFFF", "18446744073709551615"),
        ("S9(18) COMP-5", "0000000000000080", "-9223372036854775808"),
        ("9(4) COMP-3", "12345F", None),
        ("9(4) COMP-3", "02345F", "2345"),
        ("9(4) COMP-3", "02345D", None),
        ("S9(3)PP COMP-3", "123D", "-12300"),
        ("SVPP9(3) COMP-3", "123D", "-0.00123"),
        ("S9(31) COMP-3", "1234567890123456789012345678901D", "-1234567890123456789012345678901"),
        ("9(3)PP", "F0F0F0", "0"),
        ("ZZ9V99", "404040F0F5", "0.05"),
        ("-ZZ9.99", "40604040F14BF5", "-  1.5"),
    ],
)
def test_numbers_are_exact(folder: Path, picture: str, data: str, cell: str | None) -> None:
    """All sizes and scales; more digits than the picture has are refused, but in COMP-5."""
    form = config(folder, f"01 R. 05 A PIC {picture}.", line_end="none", copybook={"native_byte_order": "little"})
    if cell is not None:
        assert read(bytes.fromhex(data), form).rows() == [(cell, 1)]
    else:
        with pytest.raises(RefusedError, match=f"f:1:1: column 'A', .* number.*: X'{data}', at byte 0 of the file"):
            read(bytes.fromhex(data), form)


def test_binary_numbers_may_have_all_digits_that_fit(folder: Path) -> None:
    """As programs write them that are compiled with TRUNC(BIN)."""
    form = config(folder, "01 R. 05 A PIC 9(4) COMP.", line_end="none", copybook={"binary_digits": "all"})
    assert read(b"\xff\xff", form).rows() == [("65535", 1)]


def test_floats_may_be_read_as_their_bytes(folder: Path) -> None:
    """They are text, and no number."""
    form = config(folder, "01 R. 05 A COMP-1. 05 B COMP-2.", line_end="none", copybook={"floats": "hex"})
    assert read(bytes(range(12)), form).rows() == [("00010203", "0405060708090a0b", 1)]


def test_columns_by_hand_have_the_same_kinds() -> None:
    """No copybook is needed."""
    columns = {
        "SKU": {"at": 1, "length": 3},
        "PRICE": {"at": 4, "length": 3, "usage": "packed", "decimals": 2, "sign": "included"},
        "N": {"at": 7, "length": 2, "usage": "binary_little_endian", "decimals": 0, "digits": 3},
    }
    form = {"kind": "fixed_width", "encoding": "cp037", "line_end": "none", "length": 8, "columns": columns}
    assert read(bytes.fromhex("C1C2C3 12345D E703"), form).rows() == [("ABC", "-123.45", "999", 1)]
    with pytest.raises(RefusedError, match="'N', positions 7 to 8, is not a binary number of at most 3 digits"):
        read(bytes.fromhex("C1C2C3 12345D E803"), form)


FIXED = "01 R. 05 A PIC X(2). 05 N PIC S9(3) COMP-3."


@pytest.mark.parametrize(
    ("line_end", "encoding", "end"),
    [
        ("line_feed", "cp1252", b"\n"),
        ("line_feed", "cp1252", b"\r\n"),
        ("nel", "cp037", b"\x15"),
        ("line_feed", "cp037", b"\x25"),
    ],
)
def test_binary_numbers_may_look_like_line_ends(folder: Path, line_end: str, encoding: str, end: bytes) -> None:
    """Records are as long as the copybook says, and each must have its end; a cut last one is noticed."""
    record = "AB".encode(encoding) + bytes.fromhex("015C")
    form = config(folder, FIXED, encoding=encoding, line_end=line_end)
    assert read(record + end + record + end, form)["N"].to_list() == ["15", "15"]
    assert read(record, form).height == 1
    layout = FixedWidthFormat.model_validate(form)
    assert [may_be_truncated(Content(data), layout) for data in (record + end, record)] == [False, True]
    with pytest.raises(RefusedError, match="f:1: no line end after the 4 bytes"):
        read(record + b"X" + end, form)


def test_text_by_a_copybook_may_have_lines_of_several_lengths(folder: Path) -> None:
    """Without binary numbers, a record is what is before a line end; blanks may be missing, if so declared."""
    form = config(folder, "01 R. 05 A PIC X(2). 05 B PIC X(3). 05 C PIC X(3).", encoding="cp1252", line_end="line_feed")
    with pytest.raises(RefusedError, match="f:2:5: 4 bytes instead of 8, at byte 10"):
        read("AABBBCCC\r\nAABB\r\n", form)
    counted, layout = (
        LeniencyCounts(),
        FixedWidthFormat.model_validate({**form, "short_lines": "pad", "long_lines": "drop_empty"}),
    )
    rows = pl.concat(read_rows(Content(b"AABBBCCC \nAABB\n"), layout, name="f", leniencies=counted))
    assert rows.rows() == [("AA", "BBB", "CCC", 1), ("AA", "BB", "", 2)]
    assert str(counted) == "1 short line filled up, 1 long line cut to the declared columns"
    with pytest.raises(RefusedError, match="the line ends in another way"):
        read("AABBBCCC\r\nAABBBCCC\n", form)


def test_long_records_are_cut_only_if_so_declared(folder: Path) -> None:
    """`refuse` is what no declaration is, even for spaces; `drop_empty` cuts them alone."""
    space, letter = rdw(bytes.fromhex("C1C2 015C 40")), rdw(bytes.fromhex("C1C2 015C C1"))
    for data, how in ((space, "refuse"), (letter, "refuse"), (letter, "drop_empty")):
        with pytest.raises(RefusedError, match="f:1:5: 5 bytes instead of 4"):
            read(data, config(folder, FIXED, long_lines=how))
    assert read(space, config(folder, FIXED, long_lines="drop_empty")).height == 1
    assert read(letter, config(folder, FIXED, long_lines="drop")).height == 1


def test_records_of_several_lengths_follow_each_other_if_their_tables_are_counted(folder: Path) -> None:
    """A header without a table takes up its own bytes, and details those of their elements."""
    text = """01 HEAD. 05 KIND PIC X. 05 DAY-NO PIC 9(5).
      01 DETAIL. 05 KIND PIC X. 05 N PIC 9. 05 T OCCURS 0 TO 9 DEPENDING ON N. 10 Q PIC 9(3)."""
    types = {"head": {"code": "H", "items": ["HEAD"]}, "detail": {"code": "D", "parent": "head", "items": ["DETAIL"]}}
    form = config(folder, text, line_end="none", record_type={"length": 1}, record_types=types, records="detail")
    with pytest.raises(ValidationError, match="two columns 'KIND'"):
        read(b"", form)
    form = config(
        folder,
        text.replace("05 KIND", "05 FILLER"),
        line_end="none",
        record_type={"length": 1},
        record_types=types,
        records="detail",
        copybook={"rows": "T"},
    )
    data = "H26001D2001002D0D1003".encode("cp037")
    rows = read(data, form).select("DAY-NO", "T(n)", "Q", "_line").rows()
    assert rows == [("26001", "1", "1", 1), ("26001", "2", "2", 2), ("26001", "1", "3", 3)]
    with pytest.raises(RefusedError, match="f:5: the file ends after 3 of the 6 bytes of a record, at byte 21"):
        read(data + data[:3], form)


def test_codes_that_the_encoding_lacks_are_an_error_of_the_config(folder: Path) -> None:
    """No record could have them."""
    types = {"detail": {"code": "\u20ac"}}
    with pytest.raises(ValidationError, match="its code has characters that cp037 has not"):
        read(b"", config(folder, FIXED, record_type={"column": "A"}, record_types=types, records="detail"))


def test_a_number_that_is_cut_by_the_end_of_its_record_is_refused(folder: Path) -> None:
    """`short_lines: pad` leaves out whole numbers, and no part of one."""
    form = config(folder, FIXED, short_lines="pad")
    assert read(rdw(b"\xc1\xc2"), form).rows() == [("AB", "", 1)]
    with pytest.raises(RefusedError, match="f:1:3: column 'N'"):
        read(rdw(b"\xc1\xc2\x01"), form)


def test_cells_that_a_program_left_unset_may_be_empty(folder: Path) -> None:
    """LOW-VALUES, HIGH-VALUES and, in packed numbers, spaces; they are counted, and refused by default."""
    data = rdw(b"\0\0" + b"\x40\x40") + rdw(b"\xff\xff" + b"\0\0") + rdw(bytes.fromhex("C1C2 015C"))
    counted, layout = LeniencyCounts(), FixedWidthFormat.model_validate(config(folder, FIXED, unset_cells="empty"))
    rows = pl.concat(read_rows(Content(data), layout, name="f", leniencies=counted))
    assert rows.rows() == [("", "", 1), ("", "", 2), ("AB", "15", 3)]
    assert str(counted) == "4 unset cells read as empty"
    with pytest.raises(RefusedError, match="(?s)is not text: its byte 1 is X'00'.*unset_cells: empty"):
        read(rdw(b"\0\0\x01\x5c"), config(folder, FIXED))


def _damages() -> Iterator[tuple[str, bytes, str]]:
    good = rdw(FIRST)
    yield "rdw", b"", "^f: the file is empty"
    yield (
        "rdw",
        good + rdw(FIRST.replace(b"\x12\x3d", b"\x1b\x3d")),
        (r"^f:2:7: column 'ON-HAND', positions 7 to 9, is not a packed number.*: X'001B3D', at byte 42 of the file"),
    )
    yield "rdw", good + rdw(FIRST.replace(b"\x12\x3d", b"\x12\x39")), "f:2:7: column 'ON-HAND', .*: X'001239'"
    yield (
        "rdw",
        good + rdw(FIRST.replace(b"\xf3\xd4", b"\xf3\x5b")),
        "f:2:10: column 'PRICE', .*: X'F0F1F2F35B', at byte 45",
    )
    yield "rdw", good + rdw(FIRST.replace(b"\xf0\xf1\xf2\xf3", b"\xf0\xc1\xf2\xf3")), "f:2:10: column 'PRICE', .*digits"
    yield (
        "rdw",
        good + rdw(FIRST.replace(b"\x40\xf2", b"\x40\xf9")),
        "f:2:18: column 'LOTS' counts 9 elements of LOT, of 0 to 3",
    )
    yield "rdw", good + rdw(FIRST.replace(b"\x40\xf2", b"\x40\xc2")), "f:2:18: column 'LOTS', .*: X'C2', at byte 53"
    yield (
        "rdw",
        good + rdw(FIRST[:-2] + b"\x05\xd2"),
        "f:2:27: column 'STATE', positions 27 to 28, is not text: its byte 1 is X'05', at byte 62",
    )
    yield "rdw", good + rdw(FIRST[:-1]), "f:2:28: 27 bytes instead of 28, at byte 36"
    yield "rdw", good + rdw(FIRST + b"\x40"), "f:2:29: 29 bytes instead of 28, at byte 36"
    yield (
        "rdw",
        good + good[:-1],
        "f:2: the record descriptor word X'00200000' states 28 bytes, beyond the end .* 27 follow",
    )
    yield "rdw", good + b"\0\x20", "f:2: the file ends in the middle of a record descriptor word, at byte 32"
    yield "rdw", FIRST, "f:1: X'C1F0F0F1' is not a record descriptor word, at byte 0"
    yield "rdw", b"\0\x20\x01\0" + FIRST, "f:1: .* is that of a segment of a spanned record"
    yield "rdw", b"\0\x03\0\0", "is not a record descriptor word"
    yield "bdw", bdw(FIRST)[:-1], "beyond the end of the file"
    yield "bdw", b"\0\x24\0\0" + rdw(FIRST + b"\x40"), "f:1: .* states a record beyond the end of its block"
    yield "bdw", rdw(FIRST), "not a record descriptor word|not a block descriptor word"
    yield "bdw", b"\0\x04\0\0", "X'00040000' is not a block descriptor word"
    yield "bdw", b"\0\x24\0", "the file ends in the middle of a block descriptor word"
    yield "none", FIRST + FIRST[:20], "f:2: the file ends after 20 of the 28 bytes of a record, at byte 28"
    yield "none", FIRST + FIRST[:5], "f:2: the file ends after 5 of the 32 bytes of a record, at byte 28"


@pytest.mark.parametrize(("line_end", "data", "says"), list(_damages()))
def test_a_damaged_file_is_refused_with_its_place(folder: Path, line_end: str, data: bytes, says: str) -> None:
    """The file, the record, the position and the byte, the column, and the bytes of a number."""
    with pytest.raises(RefusedError, match=says):
        read(data, config(folder, line_end=line_end))


def test_a_length_that_does_not_divide_the_file_is_refused(folder: Path) -> None:
    """A file that ends in the middle of a record is cut, or the copybook is not the file's."""
    with pytest.raises(RefusedError, match="f:3: the file ends after 1 of the 4 bytes of a record, at byte 8"):
        read(bytes.fromhex("C1C2 015C C1C2 015C C1"), config(folder, FIXED, line_end="none"))


def test_text_is_never_shown(folder: Path) -> None:
    """It may be personal."""
    with pytest.raises(RefusedError) as raised:
        read(rdw("SMITH".encode("cp037") + b"\x01" + FIRST[6:]), config(folder))
    assert "SMITH".encode("cp037").hex().upper() not in str(raised.value)
    assert "SMITH" not in str(raised.value)


def _packed(number: int, digits: int) -> bytes:
    text = f"{abs(number):0{digits // 2 * 2 + 1}d}"
    return bytes.fromhex(text + ("D" if number < 0 else "C"))


def _zoned(number: int, digits: int) -> bytes:
    data = bytearray(f"{abs(number):0{digits}d}".encode("cp037"))
    data[-1] = (0xD0 if number < 0 else 0xC0) | data[-1] & 0x0F
    return bytes(data)


_TEXTS = st.text(st.characters(codec="cp037", exclude_categories=["Cc"]), max_size=5)
_NUMBERS = st.integers(-99_999, 99_999)


@settings(max_examples=examples(300))
@given(
    st.lists(
        st.tuples(_TEXTS, _NUMBERS, _NUMBERS, _NUMBERS, st.lists(st.integers(0, 999), max_size=4)),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from(["rdw", "bdw", "none"]),
)
def test_records_survive_being_written_and_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, int, int, int, list[int]]], line_end: str
) -> None:
    """Whatever the numbers, the tables and the framing are."""
    text = """01 R. 05 T PIC X(5). 05 P PIC S9(5)V99 COMP-3. 05 Z PIC S9(5)V9. 05 B PIC S9(5) COMP.
      05 N PIC 9(2) COMP-3.
      05 E OCCURS 0 TO 4 DEPENDING ON N. 10 Q PIC 9(3). 05 LAST-ONE PIC X."""
    form = config(tmp_path_factory.mktemp("copybook"), text, line_end=line_end)
    written = [
        t.ljust(5).encode("cp037") + _packed(p, 7) + _zoned(z, 6) + b.to_bytes(4, "big", signed=True)
        + _packed(len(e), 2) + b"".join(f"{q:03d}".encode("cp037") for q in e) + b"\xe7"
        for t, p, z, b, e in rows
    ]  # fmt: skip
    data = {"rdw": b"".join(map(rdw, written)), "bdw": bdw(*written), "none": b"".join(written)}[line_end]
    found = read(data, form, batch_rows=5)
    assert found["T"].to_list() == [t.rstrip(" ") for t, *_ in rows]
    assert [int(cell.replace(".", "")) for cell in found["P"]] == [p for _, p, *_ in rows]
    assert [int(cell.replace(".", "")) for cell in found["Z"]] == [z for _, _, z, *_ in rows]
    assert found["B"].to_list() == [str(b) for *_, b, _ in rows]
    tables = [[cell for cell in row if cell] for row in found.select(f"Q({n})" for n in range(1, 5)).rows()]
    assert tables == [[str(q) for q in e] for *_, e in rows]
    assert set(found["LAST-ONE"]) == {"X"}
    assert found["_line"].to_list() == list(range(1, len(rows) + 1))


@settings(max_examples=examples(300), deadline=None)
@given(st.binary(max_size=80), st.sampled_from(["rdw", "bdw", "none", "nel"]), st.booleans())
def test_any_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, line_end: str, is_damaged_dump: bool
) -> None:
    """Nothing else is raised, and each refusal names the file."""
    folder = tmp_path_factory.mktemp("copybook")
    (folder / "ITEM.cpy").write_text(ITEM)
    form = config(folder, FIXED if line_end == "nel" else None, line_end=line_end)
    content = rdw(FIRST) + data + rdw(SECOND) if is_damaged_dump else data
    try:
        read(content, form)
    except RefusedError as error:
        where = error.where
    else:
        where = "f:1"
    assert (where or "").startswith("f")
