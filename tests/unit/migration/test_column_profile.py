"""The profile of a column, compared with a simple one in Python, and the same however its rows are divided."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from datetime import date
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crossdock.migration.source_profile import (
    EXAMPLES,
    FINDINGS,
    SHOWN,
    ColumnProfile,
    pack_source_and_line,
    profile_columns,
)

CELLS = st.one_of(
    st.none(),
    st.text(max_size=8),
    st.sampled_from(
        [
            "", " ", "\t", "\u00a0", "0017", "-1", "+2.50", "1,5", "1.23456", "0.12340", "123456789012345",
            "1234567890123456", "0001234567890123456.0", "1.00000", "0000-00-00", "2027-02-31", "2027-02-28 10:00",
            "31.12.1899", "12/31/2027", "31/12/2027", "13/13/2027", "2101-01-01", "9999-12-31T00:00:00Z", "1.2.3",
            " a", "b\n", "Caf\u00c3\u00a9", "Caf\u00e9", "Cafe\u0301", "\ufffd", "a\u200bb", "\u00e2\u20ac\u2122",
            "x" * 70, "S\u00c3O", "2027-1-5", "10.1.2.30",
        ]
    ),
)  # fmt: skip
COLUMN = st.lists(CELLS, max_size=40)


def profile(cells: Sequence[str | None], first_line: int = 1, source: str = "f.csv") -> ColumnProfile:
    lines = pl.DataFrame({"line": range(first_line, first_line + len(cells))}, schema={"line": pl.UInt64})
    places = lines.select(pack_source_and_line(0, pl.col("line"))).to_series()
    return profile_columns(pl.DataFrame({"A": cells}, schema={"A": pl.String}), places, [source])["A"]


def facts(found: ColumnProfile) -> dict[str, Any]:
    """Everything that a profile says, in comparable form."""
    return {
        "filled": found.filled,
        "distinct": found.distinct.estimate,
        "numbers": (found.whole, found.decimal, found.dates),
        "lengths": dict(found.lengths),
        "extremes": (found.shortest, found.longest, found.smallest, found.largest),
        "findings": {name: (each.cells, each.examples) for name, each in found.findings.items()},
    }


def valid(year: str, month: str, day: str) -> date | None:
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None


def day_of(text: str) -> tuple[bool, date | None]:
    """Whether *text* is meant as a day, and the day."""
    found = re.fullmatch(r"(\d{1,4})[-/.](\d{1,2})[-/.](\d{1,4})(?:[ T].*)?", text.strip(), re.ASCII)
    if not found or (len(found[1]) == 4) == (len(found[3]) == 4):
        return False, None
    first, second, third = found.groups()
    if len(first) == 4:
        return True, valid(first, second, third)
    return True, valid(third, second, first) or valid(third, first, second)


def is_misread(pair: str, encoding: str) -> bool:
    """Whether two characters are one of UTF-8 that was read in *encoding*."""
    try:
        return len(pair.encode(encoding).decode()) == 1
    except UnicodeError:
        return False


OTHERS = {"invisible", "spreadsheet"}  # findings that `odd` does not compute


def odd(text: str) -> set[str]:
    """The findings about *text*, without regular expressions of polars."""
    is_day, day = day_of(text)
    number = re.fullmatch(r"[+-]?([0-9]*)(?:[.,]([0-9]+))?", text.strip()) if re.search("[0-9]", text) else None
    before, after = (number[1].lstrip("0"), (number[2] or "").rstrip("0")) if number else ("", "")
    quotes = "\u00bb\u2018\u2019\u201c\u201d"  # which close what a German or a Swede has quoted
    pairs = [text[at : at + 2] for at in range(len(text) - 1) if text[at] in "\u00c2\u00c3"]
    pairs += [
        text[at : at + 2] for at in range(len(text) - 1) if text[at] in "\u00c4\u00c5" and text[at + 1] not in quotes
    ]
    misread = any(is_misread(pair, encoding) for pair in pairs for encoding in ("latin-1", "cp1252"))
    return {
        name
        for name, holds in {
            "outer_blanks": text != text.strip(),
            "control": any(unicodedata.category(each) == "Cc" for each in text),
            "damaged": "\ufffd" in text or misread or "\u00e2\u20ac" in text or "\u00e2\u0080" in text,
            "not_nfc": not unicodedata.is_normalized("NFC", text),
            "number_out_of_range": number is not None and (len(before) > 15 or len(after) > 4),
            "date_out_of_range": day is not None and not 1900 <= day.year <= 2100,
            "date_impossible": is_day and day is None,
        }.items()
        if holds
    }


@example(["a", "ccc", "bb"], [1, 2])
@given(COLUMN, st.lists(st.integers(0, 40), max_size=4))
def test_rows_may_be_divided_anywhere(cells: list[str | None], cuts: list[int]) -> None:
    """The profiles of parts, added up, are the profile of the whole."""
    whole, parts, start = profile(cells), ColumnProfile(), 0
    for end in [*sorted(min(cut, len(cells)) for cut in cuts), len(cells)]:
        parts.merge(profile(cells[start:end], start + 1))
        start = end
    assert facts(parts) == facts(whole)


ASCII_BLANKS = st.text(st.characters(codec="cp1252", exclude_categories=["Cc"]), max_size=8)


@example(["#REF!"])
@given(st.lists(st.one_of(CELLS.filter(lambda cell: cell is None or len(cell) > 8 or cell.isascii()), ASCII_BLANKS)))
def test_a_profile_says_what_python_says(cells: list[str | None]) -> None:
    """Counts, lengths and findings are those of a simple computation, cell by cell."""
    separators = {"\x1c", "\x1d", "\x1e", "\x1f"}  # blanks to Python, and not to Unicode
    cells = [cell for cell in cells if not separators & set(cell or "")]
    filled = [cell for cell in cells if cell is not None and cell.strip()]
    found = profile(cells)
    assert found.filled == len(filled)
    assert found.distinct.estimate == len(set(filled))
    assert found.whole == sum(re.fullmatch(r"[+-]?[0-9]+", cell.strip()) is not None for cell in filled)
    assert found.decimal == sum(re.fullmatch(r"[+-]?[0-9]*[.,][0-9]+", cell.strip()) is not None for cell in filled)
    assert found.dates == sum(day_of(cell)[0] for cell in filled)
    assert sum(found.lengths.values()) == len(filled)
    assert all(length & (length - 1) == 0 for length in found.lengths)
    assert found.shortest == min(map(len, filled), default=0)
    assert found.longest == max(map(len, filled), default=0)
    assert found.smallest == min(filled, default="")[:SHOWN]
    assert found.largest == max(filled, default="")[:SHOWN]
    expected = Counter(name for cell in filled for name in odd(cell))
    assert {name: each.cells for name, each in found.findings.items() if name not in OTHERS} == expected


@pytest.mark.parametrize(
    ("cell", "finding"),
    [
        ("a ", "outer_blanks"),
        ("a\u00a0", "outer_blanks"),
        ("a\x00b", "control"),
        ("a\nb", "control"),
        ("Caf\u00c3\u00a9", "damaged"),
        ("\u00e2\u20ac\u2122s", "damaged"),
        ("M\ufffdller", "damaged"),
        ("a\u200bb", "invisible"),
        ("a\u00adb", "invisible"),
        ("e\u0301", "not_nfc"),
        ("1234567890123456", "number_out_of_range"),
        ("0,00001", "number_out_of_range"),
        ("1899-12-31", "date_out_of_range"),
        ("0000-00-00", "date_impossible"),
        ("30.02.2027", "date_impossible"),
    ],
)
def test_an_odd_cell_has_a_place(cell: str, finding: str) -> None:
    """Each kind of finding is counted, with the file and line of its first cells."""
    found = profile(["fine", cell, None, cell, "fine too"], first_line=2)
    assert finding in FINDINGS
    ((name, (cells, examples)),) = [each for each in facts(found)["findings"].items() if each[0] == finding]
    assert (name, cells) == (finding, 2)
    assert [(each.source, each.line) for each in examples] == [("f.csv", 3)]


@pytest.mark.parametrize(
    "cell", ["123456789012345.1234", "-0.50000", "2027-02-28", "1900-01-01", "S\u00c3O", "Ren\u00e9e"]
)
def test_what_is_as_it_should_be_is_not_found(cell: str) -> None:
    """Numbers that fit, possible dates and ordinary accents."""
    assert facts(profile([cell]))["findings"] == {}


def test_examples_are_the_first_of_different_values() -> None:
    """So that one value that is repeated does not hide the others; long values are cut off."""
    cells = [" a", " a", " b", " a", " c", " d", f" {'e' * 100}"]
    (found,) = profile(cells).findings.values()
    assert [(each.line, each.value) for each in found.examples] == [(1, " a"), (3, " b"), (5, " c")]
    assert (found.cells, len(found.examples)) == (7, EXAMPLES)
    assert len(profile(cells[-1:]).largest) == SHOWN
