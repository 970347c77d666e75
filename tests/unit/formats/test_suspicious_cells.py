"""Cells that look damaged by a program before us are found by what that program does to text."""

from __future__ import annotations

import unicodedata

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.reading.formats.suspicious_cells import find_suspicious_cells_by_column, lost_leading_zero_warnings


def frame(*cells: str | None) -> pl.DataFrame:
    return pl.DataFrame({"A": cells}, schema={"A": pl.String}).with_row_index("_line", 2).cast({"_line": pl.UInt64})


@given(st.text("äöüßéèñçåÄÖÜ", min_size=1, max_size=3), st.sampled_from(["cp1252", "latin-1"]), st.booleans())
def test_utf_8_that_was_read_in_another_encoding_is_found(letters: str, encoding: str, twice: bool) -> None:
    """Once or twice; the same text in the right encoding is not."""
    damaged = f"M{letters}ller"
    for _ in range(1 + twice):
        damaged = damaged.encode().decode(encoding, errors="replace")
    (found,) = find_suspicious_cells_by_column(frame("Bolt", damaged), ["A"])
    assert (found.damage, found.cells, found.line) == ("encoding", 1, 3)
    assert list(find_suspicious_cells_by_column(frame(f"M{letters}ller", None, ""), ["A"])) == []


WEST = ["Müller", "café\u2019s"]
WORLD = [
    "Pożyczka",
    "Gdańska",
    "Čapek",
    "\u0418\u0432\u0430\u043d",
    "\u0391\u03b8\u03ae\u03bd\u03b1",
    "東京都",
    "\ufeffSKU",
    "🙂",
]


@pytest.mark.parametrize(
    ("word", "encoding"),
    [*((word, each) for word in (*WEST, *WORLD) for each in ("cp1252", "latin-1"))]
    + [(word, each) for word in WEST for each in ("mac_roman", "cp437", "cp850")],
)
def test_words_of_many_languages_are_found_in_other_encodings(word: str, encoding: str) -> None:
    """As they are, they are not suspicious."""
    damaged = "".join(bytes([byte]).decode(encoding, errors="ignore") or chr(byte) for byte in word.encode())
    assert [each.damage for each in find_suspicious_cells_by_column(frame("Bolt", damaged), ["A"])] == ["encoding"]
    assert list(find_suspicious_cells_by_column(frame(word), ["A"])) == []


def test_a_letter_that_was_replaced_by_a_question_mark_is_found() -> None:
    """Not in addresses with a query."""
    assert [
        each.cells
        for each in find_suspicious_cells_by_column(frame("M?ller", "Stra?e 7", "Why?", "a/b?c", "?x=y"), ["A"])
    ] == [2]


@pytest.mark.parametrize(
    "cell",
    [
        "4.00638E+12",
        "4.00638e+12",
        "4.00638E12",
        "01. Mrz",
        "mars-21",
        "4,00638E+12",
        "1-Mar",
        "12-Okt",
        "Mar-01",
        "#REF!",
        "#N/A",
        "#BEZUG!",
        "########",
        "4006381333931110",
    ],
)
def test_what_a_spreadsheet_makes_of_text_is_found(cell: str) -> None:
    """The message has column, number and line, and never the cell."""
    (found,) = find_suspicious_cells_by_column(frame("0017", cell, cell), ["A"])
    assert (found.damage, found.cells) == ("spreadsheet", 2)
    assert str(found).startswith("column 'A': 2 cells with text that was changed by a spreadsheet")
    assert str(found).endswith("first in line 3")


@pytest.mark.parametrize(
    "cell",
    [
        "12E3",
        "1E5",
        "Mar",
        "1-M",
        "#12",
        "100000",
        "4006381333931",
        "CAFÉ",
        "Ångström",
        "10-2026",
        "MAR-20",
        "“SPÅ”",
        "TÄ»",
    ],
)
def test_usual_text_is_not_suspicious(cell: str) -> None:
    """Codes with an E, prices, and text with accents."""
    assert list(find_suspicious_cells_by_column(frame(cell), ["A"])) == []


@pytest.mark.parametrize("word", [*WEST, "Ελλάδα", "Йод", "ガラス", "한국"])
def test_accents_that_are_characters_of_their_own_are_found(word: str) -> None:
    """A key in that form is another key. What has no other form is not suspicious."""
    apart = unicodedata.normalize("NFD", word)
    assert [(each.damage, each.cells) for each in find_suspicious_cells_by_column(frame("Bolt", apart), ["A"])] == [
        ("not_nfc", 1)
    ]
    assert list(find_suspicious_cells_by_column(frame(word, "E\u0329", "\u0329"), ["A"])) == []


def test_numbers_that_may_have_lost_their_zeros_are_found() -> None:
    """A few are shorter than all others, and none begins with a zero."""
    whole = [f"40063813339{number:02}" for number in range(60)]
    assert list(lost_leading_zero_warnings(frame(*whole), ["A"])) == []
    assert list(lost_leading_zero_warnings(frame(*whole, "0063813339310"), ["A"])) == []
    (found,) = lost_leading_zero_warnings(frame(*whole, "63813339310"), ["A"])
    assert found == "column 'A': 1 of 61 numbers are shorter than 13 digits; zeros may be lost"
