"""Records of several types: order, parents, first and last ones, in fixed-width and in delimited files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.formats.layouts import GOOD, ORDERS, lines, read

from crossdock.errors import RefusedError

DELIMITED: dict[str, Any] = {
    "delimiter": "|",
    "record_types": {
        "HDR": {"once": "first", "names": ["TYPE", "SENT"]},
        "ORD": {"names": ["TYPE", "ORDER"]},
        "LIN": {"parent": "ORD", "names": ["LINE_TYPE", "SKU", "QTY"]},
        "LOT": {"parent": "LIN", "names": ["LOT_TYPE", "LOT"]},
        "TRL": {
            "once": "last",
            "names": ["TYPE", "RECORDS", "TOTAL"],
            "counts": {"RECORDS": ["ORD", "LIN", "LOT"]},
            "sums": {"TOTAL": "LIN.QTY"},
        },
    },
    "records": "LOT",
}
NESTED = (
    "HDR|20261101",
    "ORD|1",
    "LIN|P1|2.5",
    "LOT|L1",
    "LOT|L2",
    "LIN|P2|1",
    "ORD|2",
    "LIN|P1|-1",
    "LOT|L3",
    "TRL|8|2.5",
)

Change = Callable[[list[str]], object]


def test_records_have_the_columns_of_all_their_ancestors() -> None:
    """A lot has the columns of its line and of its order."""
    columns = ["ORDER", "SKU", "QTY", "LOT"]
    assert read(lines(*NESTED), DELIMITED).select(columns).rows() == [
        ("1", "P1", "2.5", "L1"), ("1", "P1", "2.5", "L2"), ("2", "P1", "-1", "L3"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda rows: rows.pop(0), "f:1: the first record is not of the type file_header"),
        (lambda rows: rows.insert(3, rows[0]), "f:4: a second record of the type file_header"),
        (lambda rows: rows.pop(1), "f:2: a record of the type line before any order"),
        (lambda rows: rows.pop(), "f:10: the last record is not of the type trailer"),
        (lambda rows: rows.append(rows[2]), "f:12: a record after that of the type trailer"),
        (lambda rows: rows.append(rows[-1]), "f:12: a record after that of the type trailer, which"),
        (lambda rows: rows.extend(list(rows)), "f:12: a second record of the type file_header"),
        (lambda rows: rows.pop(4), "f:4: no record of the type order_end follows"),
        (lambda rows: rows.pop(6), "f:6: no record of the type order_end follows"),
        (lambda rows: rows.insert(4, rows[4]), "f:6: a second record of the type order_end"),
        (lambda rows: rows.insert(4, rows.pop(3)), "f:5: a record after that of the type order_end"),
        (lambda rows: rows.pop(2), "f:4: order_end.LINES states the number of records 2, the file has 1"),
        (lambda rows: rows.__setitem__(10, "TRL00000400001151 "), "f:11: trailer.ALL_LINES states .* 4, .* has 3"),
        (lambda rows: rows.__setitem__(10, "TRL00000300001151-"), "f:11: trailer.TOTAL states .* -11.51, .* 11.51"),
        (lambda rows: rows.__setitem__(10, "TRL      00001151 "), "f:11: column 'ALL_LINES' is not a number"),
        (lambda rows: rows.__setitem__(3, "XXXP00002   10100}"), "f:4:1: a record of no declared type"),
    ],
)  # fmt: skip
def test_a_file_whose_records_do_not_fit_together_is_refused(change: Change, expected: str) -> None:
    """Each message names the types and the line."""
    rows = list(GOOD)
    change(rows)
    with pytest.raises(RefusedError, match=f"^{expected}"):
        read(lines(*rows), ORDERS)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda rows: rows.pop(1), "f:2: a record of the type LIN before any ORD"),
        (lambda rows: rows.pop(7), "f:8: a record of the type LOT before any LIN"),
        (lambda rows: rows.pop(3), "f:9: TRL.RECORDS states the number of records 8, the file has 7"),
        (lambda rows: rows.__setitem__(2, "LIN|P1|2.6"), "f:10: TRL.TOTAL states the sum 2.5, the file has 2.6"),
        (lambda rows: rows.__setitem__(2, "LIN|P1|2,5"), "f:3: column 'QTY' is not a number"),
        (lambda rows: rows.__setitem__(2, "LIN|P1"), "f:3: 2 fields instead of 3 in a record of LIN"),
        (lambda rows: rows.__setitem__(2, "XXX|P1|3"), "f:3: a record of no declared type in field 0"),
        (lambda rows: rows.__setitem__(2, 'LIN|"P1|3'), "f:3:5: .*never closed"),
        (lambda rows: rows.__setitem__(2, ""), "f:3: the line is blank"),
    ],
)
def test_a_delimited_file_of_several_types_is_as_strict(change: Change, expected: str) -> None:
    """Orphans of every level, counts, sums and the number of fields."""
    rows = list(NESTED)
    change(rows)
    with pytest.raises(RefusedError, match=f"^{expected}"):
        read(lines(*rows), DELIMITED)


def test_a_header_may_state_what_follows_it() -> None:
    """Counts of a parent are over its own records."""
    types = {
        "H": {"names": ["T", "ORDER", "LINES"], "counts": {"LINES": ["L"]}},
        "L": {"parent": "H", "names": ["LT", "SKU"]},
    }
    config = {"record_types": types, "records": "L"}
    assert read("H,1,2\nL,a\nL,b\nH,2,0\nH,3,1\nL,c\n", config)["ORDER"].to_list() == ["1", "1", "3"]
    with pytest.raises(RefusedError, match="^f:3: H.LINES states the number of records 2, the file has 1"):
        read("H,1,1\nL,a\nH,2,2\nL,b\n", config)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_quotes_and_line_ends_do_not_matter(end: str, quote: str) -> None:
    """Records in quotes are read by the strict parser, to the same rows."""
    types = {"A": {"names": ["T", "X"]}, "rest": {"otherwise": True, "names": ["T", "Y", "Z"]}}
    data = lines(f"A,{quote}1{quote}", "B,2,3", "A,4", end=end)
    assert read(data, {"record_types": types, "records": "A"}).rows() == [("A", "1", 1), ("A", "4", 3)]
    assert read(data, {"record_types": types, "records": "rest"}).rows() == [("B", "2", "3", 2)]


def test_a_file_may_have_none_of_the_chosen_records() -> None:
    """It gives a frame without rows, with all columns."""
    frame = read(
        "H,1,0\n", {"record_types": {"H": {"names": ["T", "A", "B"]}, "L": {"names": ["T", "C"]}}, "records": "L"}
    )
    assert (frame.height, frame.columns) == (0, ["T", "C", "_line"])
