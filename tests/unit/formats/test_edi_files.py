"""X12 and EDIFACT: rows of the right cells, refused sets and refused files, each with its place."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.formats.edi import X12, edifact, layout_of, read, released

from crossdock.errors import RefusedError
from crossdock.reading.formats import edi_files, edi_segments_and_sets
from crossdock.reading.formats.edi_layout import EdiFormat, read_ready_layouts
from crossdock.reading.formats.file_formats import (
    LeniencyCounts,
    get_reader_of_layout,
    may_be_truncated,
    read_rows,
    read_rows_at_lines,
)
from crossdock.values.raw_rows_and_records import LINE

ITEMS = {"kind": "x12", "set": "945", "loops": {"item": {"starts": "W12"}}, "rows": "item"}
SHIPPED = layout_of(**ITEMS, columns={"order": "W06.2", "sku": "W12.8", "shipped": {"at": "W12.3", "as": "number"}})
MESSAGE = {"kind": "edifact", "message": "DESADV"}


def shipment(order: str, *items: tuple[str, str]) -> list[list[str]]:
    lines = [["W12", "CC", quantity, quantity, "0", "EA", "", "VN", sku] for sku, quantity in items]
    return [["W06", "F", order, "20261101"], *lines]


def body(*segments: str) -> list[list[str]]:
    return [segment.split("*") for segment in segments]


ONE = X12().file([shipment("17", ("A", "1"))])
TWO = X12().file([shipment("17", ("A", "1"), ("B", "2.50")), shipment("18", ("C", "3"))])
EXPECTED = [
    {"order": "17", "sku": "A", "shipped": "1"},
    {"order": "17", "sku": "B", "shipped": "2.50"},
    {"order": "18", "sku": "C", "shipped": "3"},
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "a.edi"


# ---- separators


@pytest.mark.parametrize(
    "written",
    [
        *(X12(end=end) for end in ("~", "~\n", "~\r\n", "\n", "\r\n")),
        X12("|", "<", "\x1c"),
        X12("\x1d", "\x1f", "\x1e"),
    ],
)
@pytest.mark.parametrize("padded", [True, False])
def test_separators_are_those_of_isa(file: Path, written: X12, *, padded: bool) -> None:
    """Any of them, with line breaks after segments or without, and with ISA padded or not; each interchange its own."""
    first = written.file([shipment("17", ("A", "1"), ("B", "2.50"))], padded=padded)
    file.write_text(first + "\n\n" + X12().file([shipment("18", ("C", "3"))], number=8) + "\x1a", newline="")
    assert read(file, SHIPPED) == (EXPECTED, [])
    assert not may_be_truncated(file, SHIPPED)


@pytest.mark.parametrize("size", [1, 3, 1_000])
def test_any_pieces_of_a_file_give_the_same(file: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """The pieces in which a file is read leave no trace, nor do batches and gzip."""
    monkeypatch.setattr(edi_segments_and_sets, "_CHUNK_BYTES", size)
    file.write_bytes(gzip.compress(TWO.encode()))
    assert read(file, SHIPPED) == read(file, SHIPPED, batch_rows=1) == (EXPECTED, [])
    file.write_text(edifact(["BGM+351+" + released("1+'?:7")]))
    assert read(file, layout_of(**MESSAGE, columns={"no": "BGM.2"})) == ([{"no": "1+'?:7"}], [])


def test_a_record_has_the_place_of_its_first_segment(file: Path) -> None:
    """It is found again by it, and its cells are described for people."""
    file.write_text(TWO)
    (frame,) = read_rows(file, SHIPPED, name="a.edi")
    assert frame[LINE].to_list() == [5, 6, 10]
    (found,) = read_rows_at_lines(file, SHIPPED, [6], name="a.edi")
    assert found["sku"].to_list() == ["B"]
    assert get_reader_of_layout(SHIPPED).describe_cell_places(SHIPPED, ["sku"], 6) == {"sku": "W12.8"}
    assert SHIPPED.states_rows


def test_repeated_elements_are_several_values(file: Path) -> None:
    """Since 00402, ISA11 separates them, unless it is a letter; before, the character is part of the text."""
    joined = layout_of(kind="x12", set="945", columns={"no": {"at": "N9.2", "several": "join"}})
    for version, repetition, expected in (("00501", "^", "A B"), ("00401", "U", "A^B"), ("00501", "U", "A^B")):
        file.write_text(X12(version=version, repetition=repetition).file([body("N9*CN*A^B")]))
        assert read(file, joined) == ([{"no": expected}], [])


def test_repetition_is_part_of_a_version_of_edifact(file: Path) -> None:
    """Of syntax version 4, with the character of UNA or an asterisk; before it, an asterisk is text."""
    joined = layout_of(**MESSAGE, columns={"no": {"at": "FTX.4", "several": "join"}})
    for una, version, expected in (
        ("", "3", "A*B"), ("", "4", "A B"), ("UNA:+.?*'", "4", "A B"), ("UNA:+.?*'", "3", "A*B"),
        ("UNA:+.? '", "4", "A*B"),
    ):  # fmt: skip
        file.write_text(edifact(["FTX+AAA+++A*B"], una=una).replace("UNOC:3", f"UNOC:{version}"))
        assert read(file, joined) == ([{"no": expected}], [])


def test_edifact_declares_its_separators(file: Path) -> None:
    """UNA may be there or not; its release character and decimal mark are obeyed; the charset is that of UNB."""
    layout = layout_of(**MESSAGE, columns={
        "name": "NAD.4.1", "weight": {"at": "QTY.1.2", "when": {"1.1": "12"}, "as": "number"}, "to": "UNB.3",
    })  # fmt: skip
    message = [f"NAD+DP+++{released('Müller + Söhne: 5?')}", "QTY+12:1,50:KGM"]
    row = {"name": "Müller + Söhne: 5?", "weight": "1.50", "to": "4000002000004"}
    expected: tuple[list[dict[str, str]], list[str]] = ([row], [])
    for una, end in (("UNA:+.? '", "'\n"), ("UNA:+,? '", "'"), ("", "'\r\n")):
        file.write_bytes(edifact(message, una=una, end=end).encode("latin-1"))
        assert read(file, layout) == expected
    other = edifact(message, una="UNA|^.! ~").partition("\n")[0] + "\n"
    swapped = edifact(["NAD+DP+++Müller ?+ Söhne?: 5??", message[1]], una="").translate(str.maketrans("+:?'", "^|!~"))
    file.write_bytes((other + swapped).encode("latin-1"))
    assert read(file, layout) == ([{**row, "name": "Müller ^ Söhne| 5!"}], [])
    controls = edifact(message, end="'").translate(str.maketrans("+:?'", "\x1d\x1f\x1c\x1e"))
    file.write_bytes(controls.encode("latin-1"))
    row_with_controls = {**row, "name": "Müller \x1d Söhne\x1f 5\x1c"}
    assert read(file, layout) == ([row_with_controls], [])
    file.write_bytes(edifact(message).replace("UNOC", "UNOW").encode())
    assert read(file, layout) == expected


def test_utf_8_in_a_message_of_latin_1_is_refused(file: Path) -> None:
    """UNOC is Latin-1, in which each byte is a character; many senders write UTF-8 all the same."""
    layout = layout_of(**MESSAGE, columns={"name": "NAD.4.1"})
    message = ["NAD+DP+1++Müller", "LIN+1", "NAD+DP+2++Grün", "NAD+DP+3++Zoë"]
    file.write_text(edifact(message[:2]), encoding="latin-1")
    assert read(file, layout) == ([{"name": "Müller"}], [])
    file.write_text(edifact(message), encoding="utf-8")
    with pytest.raises(RefusedError, match="the file is in UTF-8, and iso8859-1 is declared, by UNB or in the config"):
        read(file, layout)


def test_interchanges_and_groups_follow_each_other(file: Path) -> None:
    """Each with its own control numbers; other sets are counted, and the headers give columns."""
    layout = layout_of(
        **ITEMS, columns={"from": "ISA.6", "file": "ISA.13", "group": "GS.6", "set": "ST.2", "sku": "W12.8"}
    )
    other = X12().file([shipment("18", ("C", "3"))], number=8).replace("ST*945", "ST*944")
    two = [[shipment("17", ("A", "1"))], [shipment("18", ("B", "1"))]]
    file.write_text(X12().file(*two) + other)
    counted = LeniencyCounts()
    rows = [row for frame in read_rows(file, layout, name="a", leniencies=counted) for row in frame.iter_rows()]
    assert [row[:5] for row in rows] == [
        ("WAREHOUSE", "000000007", "1", "0001", "A"), ("WAREHOUSE", "000000007", "2", "0001", "B"),
    ]  # fmt: skip
    assert str(counted) == "1 other EDI message not read"


# ---- refused sets

BOTH = X12().file([shipment("17", ("A", "1")), shipment("18", ("C", "3"))])


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("SE*4*0001", "SE*5*0001", "segment 6, line 6: SE states the number '5', the file has 4"),
        ("SE*4*0001", "SE**0001", "segment 6, line 6: SE states the number '', the file has 4"),
        ("SE*4*0001", "SE*4*0009", "segment 6, line 6: the control numbers of ST and SE differ"),
        ("SE*4*0001~\n", "", "segment 6, line 6: no SE precedes this ST"),
        ("W06*F*17", "W06*F*1\0007", "segment 4, line 4: has a line break or another control character in it"),
        ("W06*F*17", "W06*F*1\n7", "segment 4, line 4: has a line break or another control character in it"),
        ("W06*F*17", "~W06*F*17", "segment 4, line 4: is empty"),
        ("CC*1*1*", "CC*1*1x*", "segment 5, line 5: W12.3 is not a number"),
    ],
)
def test_a_refused_set_leaves_the_others(file: Path, old: str, new: str, says: str) -> None:
    """It gives no row but one that says which set was refused, where and why."""
    assert BOTH.count(old) == 1 or old == "CC*1*1*"
    file.write_text(BOTH.replace(old, new, 1), newline="")
    rows, (refused,) = read(file, SHIPPED)
    assert rows == EXPECTED[2:]
    assert refused.startswith("set 945 '0001', which begins at segment 3, line 3, is refused: ")
    assert says in refused


def test_a_set_before_the_end_of_its_group_is_refused(file: Path) -> None:
    """A last set without its trailer is refused as those before others are."""
    file.write_text(BOTH.replace("SE*4*0002~\n", ""))
    rows, (refused,) = read(file, SHIPPED)
    assert rows == EXPECTED[:1]
    assert "segment 10, line 10: no SE precedes this GE" in refused


def test_the_size_of_a_set_is_bounded(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A set with too many segments, or too much text, is not kept in memory; the next one is read."""
    file.write_text(TWO)
    for limit, number in (("MAX_SEGMENTS", 4), ("MAX_CHARACTERS", 45)):
        with monkeypatch.context() as patch:
            patch.setattr(edi_segments_and_sets, limit, number)
            rows, (refused,) = read(file, SHIPPED)
        assert rows == EXPECTED[2:]
        assert "the set has more than" in refused


# ---- refused files


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        ("", "a.edi", "the file is empty"),
        (" \n", "a.edi: segment 1, line 2", "does not begin with ISA"),
        ("SKU;NAME\n", "a.edi: segment 1", "does not begin with ISA"),
        ("<html><body>log in</body></html>", "a.edi", "HTML"),
        ("ISA*00*", "a.edi: segment 1", "no 16 elements"),
        (ONE.replace("*P*>~", "*P*A~"), "a.edi: segment 1", "separators of the interchange"),
        (ONE.replace("*P*>~", "*P**~"), "a.edi: segment 1", "separators of the interchange"),
        (ONE[:-1].rstrip("~"), "a.edi: segment 8, line 8", "ends inside of this segment"),
        (ONE[: ONE.index("W12")], "a.edi: segment 5, line 5", "ends without IEA"),
        (ONE.partition("IEA")[0], "a.edi: segment 8, line 8", "ends without IEA"),
        (ONE.replace("IEA*1*", "IEA*2*"), "a.edi: segment 8, line 8", "IEA states the number '2', the file has 1"),
        (ONE.replace("IEA*1*000000007", "IEA*1*8"), "a.edi: segment 8, line 8", "numbers of ISA and IEA differ"),
        (ONE.replace("GE*1*1", "GE*2*1"), "a.edi: segment 7, line 7", "GE states the number '2', the file has 1"),
        (ONE.replace("GE*1*1", "GE*1*3"), "a.edi: segment 7, line 7", "numbers of GS and GE differ"),
        (ONE.replace("GE*1*1~\n", ""), "a.edi: segment 7, line 7", "no GE precedes this IEA"),
        (ONE.replace("ST*945*0001~\n", ""), "a.edi: segment 3, line 3", "a segment outside of ST to SE"),
        (ONE.replace("GS*SW*", "ST*SW*"), "a.edi: segment 2, line 2", "no GS precedes this ST"),
        (ONE.replace("*P*>", "*T*>"), "a.edi: segment 1", "says that it is a test"),
        (ONE + "rest", "a.edi: segment 9, line 9", "text that is no ISA follows"),
        (ONE + ONE[:50], "a.edi: segment 9, line 9", "no 16 elements"),
        (ONE.replace("GE*1*1", "GE*1*\0001"), "a.edi: segment 7, line 7", "control character"),
        (ONE.replace("~", "~" * 2), "a.edi: segment 2", "is empty"),
        (ONE.replace("W06*F*17", "W06*F*1\udcff7"), "a.edi", "byte 175 is not utf-8"),
    ],
)
def test_a_wrong_envelope_refuses_the_file(file: Path, text: str, where: str, says: str) -> None:
    """Sets may be missing then. The error has the place and says what to do."""
    file.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(RefusedError, match=re.escape(says)) as refused:
        read(file, SHIPPED)
    assert refused.value.where == where
    assert refused.value.hint


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("UNB+UNOX:3+A+B+261101:0800+77'", "character set that is not known"),
        ("UNB:UNOC:3'", "does not begin with UNB"),
        (edifact(["BGM+351+1"]).replace("UNZ+1", "UNZ+2"), "UNZ states the number '2', the file has 1"),
        (edifact(["BGM+351+1"]).replace("UNZ+1+77", "UNZ+1+78"), "the control numbers of UNB and UNZ differ"),
        (edifact(["BGM+351+1"], unb="++++++1"), "says that it is a test"),
        (edifact(["BGM+351+Ü"]).replace("UNOC", "UNOA"), "is not ascii"),
        (edifact(["BGM+351+1"]).replace("UNZ+1+77'", "UNZ+1+77?'"), "ends inside of this segment"),
    ],
)
def test_a_wrong_envelope_refuses_an_edifact_file(file: Path, text: str, says: str) -> None:
    """As one of X12."""
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(RefusedError, match=re.escape(says)):
        read(file, layout_of(**MESSAGE, columns={"no": "BGM.2"}))


def test_tests_are_read_if_declared(file: Path) -> None:
    """A test interchange of either kind is read with test: true."""
    file.write_text(X12().file([shipment("17", ("A", "1"))], test="T"))
    assert read(file, layout_of(**ITEMS, test=True, columns={"test": "ISA.15"})) == ([{"test": "T"}], [])
    file.write_text(edifact(["BGM+351+1"], unb="++++++1"))
    assert read(file, layout_of(**MESSAGE, test=True, columns={"test": "UNB.11"})) == ([{"test": "1"}], [])


def test_a_segment_without_end_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminator that is never found does not read the file into memory."""
    monkeypatch.setattr(edi_segments_and_sets, "MAX_SEGMENT", 1_000)
    monkeypatch.setattr(edi_segments_and_sets, "_CHUNK_BYTES", 500)
    file.write_text(ONE.replace("SKU", "x") + X12().isa(8) + "GS*" + "x" * 5_000)
    with pytest.raises(RefusedError, match=r"segment 10, line 10: a segment of more than 1,000 characters"):
        read(file, SHIPPED)


# ---- loops and columns


def test_hierarchical_levels_are_nested_by_their_parents(file: Path) -> None:
    """HL02 decides: an item after a pack of the same order may be beside it."""
    segments = body(
        "BSN*00*SHP-9*20261101*0800", "HL*1**S", "TD5*B*2*UPSN", "REF*CN*PRO-1", "HL*2*1*O", "PRF*PO-3", "HL*3*2*P",
        "MAN*GM*00340123450000000017", "HL*4*3*I", "LIN**SK*A*UP*0017", "SN1**2*EA", "HL*5*2*I", "LIN**UP*0018*SK*B",
        "SN1**3*EA", "HL*6*1*O", "PRF*PO-4", "HL*7*6*I", "LIN**SK*C", "SN1**1*EA", "CTT*7",
    )  # fmt: skip
    text = X12().file([segments]).replace("ST*945", "ST*856")
    file.write_text(text)
    layout = layout_of(kind="x12", layout="x12/856")
    rows, refused = read(file, layout)
    names = ("shipment", "order", "sscc", "sku", "upc", "shipped", "carrier", "tracking", "ship_date")
    assert not refused
    assert [tuple(row.get(name, "") for name in names) for row in rows] == [
        ("SHP-9", "PO-3", "00340123450000000017", "A", "0017", "2", "UPSN", "PRO-1", "2026-11-01"),
        ("SHP-9", "PO-3", "", "B", "0018", "3", "UPSN", "PRO-1", "2026-11-01"),
        ("SHP-9", "PO-4", "", "C", "", "1", "UPSN", "PRO-1", "2026-11-01"),
    ]
    for old, new, says in (
        ("HL*5*2*I", "HL*5*9*I", "names a level around it that is not open"),
        ("HL*7*6*I", "HL*7**I", "begins the loop item outside of order or pack or shipment or tare"),
        ("HL*3*2*P", "HL*3*2*K", "names a level around it that is not open"),
    ):
        file.write_text(text.replace(old, new))
        rows, (reason,) = read(file, layout)
        assert not rows
        assert says in reason


def test_levels_are_not_nested_without_end(file: Path) -> None:
    """A set of thousands of levels in each other is refused."""
    levels = [f"CPS+{number}+{number - 1 or ''}" for number in range(1, 5_000)]
    file.write_text(edifact(["BGM+351+1", *levels]))
    rows, (refused,) = read(file, layout_of(kind="edifact", layout="edifact/DESADV"))
    assert not rows
    assert f"is nested in more than {edi_files._MAX_DEPTH} loops" in refused


def test_joined_values_are_bounded(file: Path) -> None:
    """Each row repeats them."""
    joined = layout_of(**ITEMS, columns={"no": {"at": "N9.2", "several": "join"}})
    numbers = [["N9", "CN", f"{number:030}"] for number in range(1_100)]
    file.write_text(X12().file([[*numbers[:1_000], ["W12"]], [*numbers, ["W12"]]]))
    rows, (refused,) = read(file, joined)
    assert [len(row["no"]) for row in rows] == [30_999]
    assert "the values of column 'no' have more than 32,000 characters" in refused


def test_packages_beside_each_other_share_nothing(file: Path) -> None:
    """An item has the SSCC of the package that it is in, or none; several in one segment are all read."""
    file.write_text(
        edifact([
            "BGM+351+1", "CPS+1", "CPS+2+1", "GIN+BJ+340123450000000017+340123450000000024", "LIN+1++4000001000012:EN",
            "CPS+3+1", "LIN+2++4000001000029:SRV",
        ])
    )  # fmt: skip
    rows, refused = read(file, layout_of(kind="edifact", layout="edifact/DESADV"))
    assert not refused
    assert [(row.get("sscc"), row["gtin"], row["level"]) for row in rows] == [
        ("340123450000000017 340123450000000024", "4000001000012", "2"), (None, "4000001000029", "3"),
    ]  # fmt: skip


def test_a_segment_belongs_to_the_loop_that_lists_it(file: Path) -> None:
    """Another one ends the loop; one that begins a loop outside of its parent refuses the set."""
    layout = layout_of(
        kind="x12", set="945", rows="item", loops={
            "ship_to": {"starts": "N1", "when": {"1": "ST"}, "segments": ["N3", "N4"]},
            "line": {"starts": "LX", "segments": ["N9"]},
            "item": {"starts": "W12", "in": "line", "segments": ["N9"]},
        },
        columns={
            "city": {"at": "N4.1", "loop": "ship_to"}, "lot": {"at": "N9.2", "loop": "item"},
            "box": {"at": "N9.2", "loop": "line"}, "order": {"at": "N9.2", "loop": "set"}, "weight": "W03.2",
        },
    )  # fmt: skip
    segments = [
        "N1*ST*A",
        "N4*Berlin",
        "N1*BT*B",
        "N4*Bonn",
        "N9*PO*1",
        "LX*1",
        "N9*2I*2",
        "W12*CC",
        "N9*LT*3",
        "W12*CC",
        "LX*2",
        "W12*CC",
        "W03*1*9",
    ]
    file.write_text(X12().file([body(*segments)]))
    common = {"city": "Berlin", "order": "1", "weight": "9"}
    expected = [{**common, "box": "2", "lot": "3"}, {**common, "box": "2"}, common]
    assert read(file, layout) == (expected, [])
    file.write_text(X12().file([body("LX*1", "W12*CC", "G62*11", "W12*CC")]))
    rows, (refused,) = read(file, layout)
    assert not rows
    assert "segment 7, line 7: begins the loop item outside of line" in refused


def test_a_set_without_the_loop_of_rows_makes_one_row(file: Path) -> None:
    """An acknowledgment of a whole group is no less than one of its sets."""
    segments = body("AK1*SW*7", "AK2*945*0001", "AK5*A", "AK2*945*0002", "AK3*W06*2", "AK5*R*5", "AK9*P*2*2*1")
    layout = layout_of(kind="x12", layout="x12/997")
    file.write_text(X12().file([segments, body("AK1*SW*8", "AK9*A*2*2*2")]).replace("ST*945", "ST*997"))
    rows, refused = read(file, layout)
    names = ("group", "group_status", "set_control", "status", "error")
    assert not refused
    assert [tuple(row.get(name, "") for name in names) for row in rows] == [
        ("7", "P", "0001", "A", ""), ("7", "P", "0002", "R", "5"), ("8", "A", "", "", ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("column", "segment", "expected"),
    [
        ({"at": "W66.8", "as": "number", "decimals": 2}, "W66********1234", "12.34"),
        ({"at": "W66.8", "as": "number", "decimals": 2}, "W66********-5", "-0.05"),
        ({"at": "W66.8", "as": "number", "decimals": 0}, "W66********0017", "17"),
        ({"at": "W66.8", "as": "number"}, "W66********.5", "0.5"),
        ({"at": "W66.8", "as": "number"}, "W66********+10.", "10"),
        ({"at": "W66.8", "as": "number", "decimals": 2}, "W66********12.34", None),
        ({"at": "W66.8", "as": "number"}, "W66********1E3", None),
        ({"at": "G62.2", "as": "date"}, "G62*11*20261101", "2026-11-01"),
        ({"at": "G62.2", "as": "date"}, "G62*11*261101", "2026-11-01"),
        ({"at": "G62.2", "as": "date"}, "G62*11*20261301", None),
        ({"at": "G62.2", "as": "date"}, "G62*11*2026110", None),
        ({"at": "LIN.2", "qualifier": "VN"}, "LIN*1*UP*1*VN*2", "2"),
        ({"at": "LIN.2", "qualifier": ["SK", "UP"]}, "LIN*1*UP*1*VN*2", "1"),
        ({"at": "N9.2", "when": {"1": ["CN", "2I"]}}, "N9*2I* 1 ", " 1"),
        ({"at": "REF.3.2"}, "REF***A>B>C", "B"),
        ({"at": "REF.3"}, "REF***A>B>C", "A>B>C"),
        ({"at": "REF.2", "to": 4, "several": "last"}, "REF**A*B", "B"),
        ({"at": "REF.2", "to": 4}, "REF**A*B", None),
        ({"at": "REF.2", "to": 4}, "REF**A*A", "A"),
        ({"at": "REF.2", "to": 4, "several": "first"}, "REF**A*B", "A"),
    ],
)  # fmt: skip
def test_cells_are_converted_exactly(file: Path, column: dict[str, object], segment: str, expected: str | None) -> None:
    """Or the set is refused."""
    file.write_text(X12().file([body(segment)]))
    rows, refused = read(file, layout_of(kind="x12", set="945", columns={"it": column}))
    assert [row["it"] for row in rows] == ([] if expected is None else [expected])
    assert len(refused) == (expected is None)


@pytest.mark.parametrize(
    ("segment", "expected"),
    [
        ("DTM+137:20261101:102", "2026-11-01"), ("DTM+137:261101:101", "2026-11-01"),
        ("DTM+137:202611010830:203", "2026-11-01T08:30:00"), ("DTM+137:20261101083005:204", "2026-11-01T08:30:05"),
        ("DTM+137:20261101:203", None), ("DTM+137:20261101", None), ("DTM+137:202644:616", None),
    ],
)  # fmt: skip
def test_dates_of_edifact_have_a_form(file: Path, segment: str, expected: str | None) -> None:
    """The code after a date says which (2379); a date of another form is refused."""
    file.write_text(edifact([segment]))
    rows, refused = read(file, layout_of(**MESSAGE, columns={"it": {"at": "DTM.1.2", "as": "date"}}))
    assert [row["it"] for row in rows] == ([] if expected is None else [expected])
    assert len(refused) == (expected is None)


# ---- layouts


@pytest.mark.parametrize("name", read_ready_layouts())
def test_ready_layouts_are_complete(name: str) -> None:
    """Each has the columns of the envelope, and a column that is added or replaced leaves the others."""
    kind = name.partition("/")[0]
    ready = layout_of(kind=kind, layout=name)
    changed = layout_of(kind=kind, layout=name, columns={"control": "XYZ.1", "more": "XYZ.2"})
    assert isinstance(ready, EdiFormat)
    assert isinstance(changed, EdiFormat)
    assert {"sender", "interchange", "control"} <= set(ready.columns)
    assert set(changed.columns) == {*ready.columns, "more"}
    assert changed.columns["control"].at == "XYZ.1"


@pytest.mark.parametrize("message", ["ORDERS", "DESADV", "RECADV", "INVRPT"])
def test_a_message_that_cancels_another_one_can_be_told(file: Path, message: str) -> None:
    """Data element 1225: without it, the cancellation of an order would be read as the order again."""
    file.write_text(edifact(["BGM+220+17+9"], ["BGM+220+17+1"], kind=message))
    rows, _ = read(file, layout_of(kind="edifact", layout=f"edifact/{message}"))
    assert [(row["number"], row["function"]) for row in rows] == [("17", "9"), ("17", "1")]


@pytest.mark.parametrize(
    ("basis", "price"), [("", "12.50"), (":::1:PCE", "12.50"), (":::100:PCE", None), (":::1000", None)]
)
def test_a_price_of_several_units_is_not_that_of_one(file: Path, basis: str, price: str | None) -> None:
    """Data element 5284 of EDIFACT: a price of 100 pieces would be a hundred times that of one."""
    file.write_text(edifact(["BGM+220+1", "LIN+1", f"PRI+AAA:12.50{basis}"], kind="ORDERS"))
    (row,), _ = read(file, layout_of(kind="edifact", layout="edifact/ORDERS"))
    assert (row.get("price"), row["basis_price"]) == (price, "12.50")


@pytest.mark.parametrize(("code", "price"), [("", "12.50"), ("*PE", "12.50"), ("*HP", None), ("*", "12.50")])
@pytest.mark.parametrize(("number", "tag"), [("850", "PO1"), ("810", "IT1")])
def test_the_basis_of_a_price_is_heeded(file: Path, number: str, tag: str, code: str, price: str | None) -> None:
    """Data element 639 of X12, which is often left out: HP is the price of a hundred."""
    file.write_text(X12().file([body(f"{tag}*1*3*EA*12.50{code}")]).replace("ST*945", f"ST*{number}"))
    (row,), _ = read(file, layout_of(kind="x12", layout=f"x12/{number}"))
    assert (row.get("price"), row["basis_price"]) == (price, "12.50")


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"kind": "x12", "layout": "x12/999999"}, "is not a ready layout: there are x12/810"),
        ({"kind": "edifact", "layout": "x12/945"}, "is not a ready layout: there are edifact/CONTRL"),
        ({"kind": "x12", "set": "945"}, "needs a ready layout"),
        ({"kind": "x12", "columns": {"a": "W12.1"}}, "needs a ready layout"),
        ({**ITEMS, "rows": "line", "columns": {"a": "W12.1"}}, "names no loop: there are set, item"),
        ({**ITEMS, "columns": {"a": {"at": "W12.1", "loop": "no"}}}, "names no loop"),
        ({**ITEMS, "columns": {"a": "W12"}}, "String should match pattern"),
        ({**ITEMS, "columns": {"_line": "W12.1"}}, "reserved"),
        ({**ITEMS, "columns": {"a": {"at": "W12.1", "decimals": 2}}}, "is for numbers"),
        ({**ITEMS, "columns": {"a": {"at": "W12.3", "to": 2}}}, "is an element after that of at"),
        (
            {**ITEMS, "loops": {"set": {"starts": "W12"}}, "rows": "set", "columns": {"a": "W12.1"}},
            "name of the whole set",
        ),
    ],
)
def test_wrong_layouts_are_refused(keys: dict[str, object], says: str) -> None:
    """With what to write instead."""
    with pytest.raises(ValueError, match=re.escape(says)):
        layout_of(**keys)


# ---- properties

TEXTS = st.text(st.sampled_from("aZ09 ü?+:'.-*~>"), min_size=1, max_size=8).map(str.strip).filter(bool)
ORDERS = st.lists(st.tuples(TEXTS, st.lists(TEXTS, min_size=1, max_size=4)), min_size=1, max_size=4)


@settings(max_examples=examples(500), deadline=None)
@given(orders=ORDERS, size=st.sampled_from([1, 7, 1 << 18]))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, orders: list[tuple[str, list[str]]], size: int
) -> None:
    """Any texts, in either syntax, from any pieces; X12 has no release character, so its texts have no separators."""
    file = tmp_path_factory.mktemp("edi") / "a.edi"
    expected = [{"order": order, "sku": sku} for order, skus in orders for sku in skus]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edi_segments_and_sets, "_CHUNK_BYTES", size)
        x12 = X12("\x1d", "\x1f", "\x1e").file(
            [shipment(order, *((sku, "1") for sku in skus)) for order, skus in orders]
        )
        file.write_text(x12)
        assert read(file, layout_of(**ITEMS, columns={"order": "W06.2", "sku": "W12.8"})) == (expected, [])
        messages = [
            [f"BGM+351+{released(order)}", *(f"LIN+1++{released(sku)}:EN" for sku in skus)] for order, skus in orders
        ]
        file.write_bytes(edifact(*messages).encode("latin-1"))
        layout = layout_of(
            **MESSAGE, loops={"item": {"starts": "LIN"}}, rows="item", columns={"order": "BGM.2", "sku": "LIN.3"}
        )
        assert read(file, layout) == (expected, [])


@settings(max_examples=examples(1_000), deadline=None)
@given(st.data())
def test_damage_is_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """A file that was cut is refused; so is one that lacks a segment, or only the set that lacks it."""
    file = tmp_path_factory.mktemp("edi") / "a.edi"
    if data.draw(st.booleans()):
        file.write_text(TWO[: data.draw(st.integers(0, len(TWO.rstrip()) - 1))])
        with pytest.raises(RefusedError):
            read(file, SHIPPED)
        return
    lines = TWO.splitlines(keepends=True)
    lacking = data.draw(st.integers(0, len(lines) - 1))
    file.write_text("".join(lines[:lacking] + lines[lacking + 1 :]))
    try:
        rows, refused = read(file, SHIPPED)
    except RefusedError:
        pass
    else:
        assert refused
        assert len(rows) < len(EXPECTED)


@settings(max_examples=examples(1_000), deadline=None)
@given(at=st.integers(0, len(TWO) - 1), new=st.sampled_from(["", "*", "~", ">", "\n", "\0", "A", "9", "é", "SE*"]))
def test_any_change_ends_in_rows_or_refusals(tmp_path_factory: pytest.TempPathFactory, at: int, new: str) -> None:
    """Nothing but a `RefusedError` comes out, and rows are never more than there were segments for them."""
    file = tmp_path_factory.mktemp("edi") / "a.edi"
    file.write_text(TWO[:at] + new + TWO[at + 1 :])
    try:
        rows, refused = read(file, SHIPPED)
    except RefusedError:
        pass
    else:
        assert len(rows) + 2 * len(refused) <= len(EXPECTED) + 2
