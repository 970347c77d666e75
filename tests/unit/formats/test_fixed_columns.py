"""Columns by position: texts, numbers with implied decimals, signs, padding."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from crossdock.reading.formats.fixed_width_columns import (
    TEXT,
    FixedColumn,
    cell_text_expression,
    digits_by_overpunched_character,
    invalid_cell_expression,
)


def parsed(raw: str, encoding: str = "utf-8", **column: Any) -> str | None:
    """The cell; None if it is refused."""
    of = FixedColumn(at=1, length=len(raw), **column)
    frame, odd = pl.DataFrame({TEXT: [raw]}), invalid_cell_expression(of, encoding)
    if odd is not None and frame.select(odd).item():
        return None
    return str(frame.select(cell_text_expression(of, encoding)).item())


@pytest.mark.parametrize(
    ("raw", "column", "expected"),
    [
        ("0017  ", {}, "0017"),
        ("  0017", {}, "  0017"),
        ("      ", {}, ""),
        ("  ab  ", {"padding": "both"}, "ab"),
        ("  ab  ", {"padding": "none"}, "  ab  "),
        ("000017", {"padding": "left", "fill": "0"}, "17"),
        ("000000", {"padding": "left", "fill": "0"}, "0"),
        ("001234", {"decimals": 2}, "12.34"),
        ("     7", {"decimals": 2}, "0.07"),
        ("000000", {"decimals": 2}, "0.00"),
        ("000000", {"decimals": 0}, "0"),
        ("      ", {"decimals": 2}, ""),
        ("**1234", {"decimals": 2, "fill": "*"}, "12.34"),
        ("-01234", {"decimals": 2, "sign": "leading"}, "-12.34"),
        ("  -  7", {"decimals": 2, "sign": "leading"}, "-0.07"),
        ("  1234", {"decimals": 0, "sign": "leading"}, "1234"),
        ("01234-", {"decimals": 2, "sign": "trailing"}, "-12.34"),
        ("01234+", {"decimals": 2, "sign": "trailing"}, "12.34"),
        ("01234 ", {"decimals": 2, "sign": "trailing"}, "12.34"),
        ("00000-", {"decimals": 2, "sign": "trailing"}, "0.00"),
        ("      ", {"decimals": 2, "sign": "trailing"}, ""),
        ("00123D", {"decimals": 2, "sign": "overpunch"}, "12.34"),
        ("00123M", {"decimals": 2, "sign": "overpunch"}, "-12.34"),
        ("00123t", {"decimals": 2, "sign": "overpunch"}, "-12.34"),
        ("001234", {"decimals": 2, "sign": "overpunch"}, "12.34"),
        ("00000}", {"decimals": 2, "sign": "overpunch"}, "0.00"),
        ("     {", {"decimals": 2, "sign": "overpunch"}, "0.00"),
        ("      ", {"decimals": 2, "sign": "overpunch"}, ""),
    ],
)
def test_a_cell_is_read_as_declared(raw: str, column: dict[str, Any], expected: str) -> None:
    """Padding is left out, and a number becomes a plain decimal."""
    assert parsed(raw, **column) == expected


@pytest.mark.parametrize(
    ("raw", "column"),
    [
        ("12.345", {"decimals": 2}),
        ("-12345", {"decimals": 2}),
        ("12345 ", {"decimals": 2}),
        (" 12345", {"decimals": 2, "padding": "none"}),
        (" 12345", {"decimals": 2, "fill": "0"}),
        ("12 345", {"decimals": 2}),
        ("1234\u0665\u0665", {"decimals": 2}),
        ("12345-", {"decimals": 2, "sign": "leading"}),
        ("--1234", {"decimals": 2, "sign": "leading"}),
        ("     -", {"decimals": 2, "sign": "leading"}),
        ("123456", {"decimals": 2, "sign": "trailing"}),
        ("-1234 ", {"decimals": 2, "sign": "trailing"}),
        ("00123S", {"decimals": 2, "sign": "overpunch"}),
        ("0012D3", {"decimals": 2, "sign": "overpunch"}),
        ("00123-", {"decimals": 2, "sign": "overpunch"}),
    ],
)
def test_a_number_that_is_written_otherwise_is_found(raw: str, column: dict[str, Any]) -> None:
    """Nothing is guessed."""
    assert parsed(raw, **column) is None


@pytest.mark.parametrize(
    ("encoding", "zero"), [("cp037", "{}"), ("cp500", "{}"), ("cp273", "\u00e4\u00fc"), ("utf-8", "{}")]
)
def test_overpunched_signs_are_those_of_the_encoding(encoding: str, zero: str) -> None:
    """In EBCDIC, the bytes C0 to C9 and D0 to D9 are signed digits, whatever characters the code page has there."""
    zones = digits_by_overpunched_character(encoding)
    assert (zones[zero[0]], zones[zero[1]]) == (("0", False), ("0", True))
    assert (zones["I"], zones["R"], zones["9"]) == (("9", False), ("9", True), ("9", False))
    assert ("p" in zones) is (encoding == "utf-8")


@given(
    number=st.integers(-(10**17), 10**17),
    decimals=st.integers(0, 4),
    sign=st.sampled_from(["leading", "trailing", "overpunch"]),
    encoding=st.sampled_from(["utf-8", "cp037", "cp273", "cp1252"]),
    fill=st.sampled_from([" ", "0"]),
)
def test_a_number_survives_being_written_and_read(
    number: int, decimals: int, sign: str, encoding: str, fill: str
) -> None:
    """What a program writes by the same declaration is read as the same number, with all of its decimals."""
    digits = str(abs(number)).rjust(18, "0")
    if sign == "overpunch":
        marks = {value: mark for mark, value in digits_by_overpunched_character(encoding).items()}
        raw = digits[:-1] + marks[digits[-1], number < 0]
    else:
        mark = "-" if number < 0 else "+"
        raw = mark + digits if sign == "leading" else digits + mark
    raw = raw.rjust(20, fill)
    found = parsed(raw, encoding, decimals=decimals, sign=sign, fill=fill)
    assert found is not None
    assert Decimal(found) == Decimal(number).scaleb(-decimals)
    assert len(found.partition(".")[2]) == decimals
    assert not (number == 0 and found.startswith("-"))


@given(st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=20))
def test_a_text_survives_being_written_and_read(text: str) -> None:
    """Only the blanks after it are lost."""
    assert parsed(text.ljust(25)) == text.rstrip(" ")


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"sign": "trailing"}, "declare decimals"),
        ({"decimals": 2, "padding": "right"}, "padded on the left"),
        ({"decimals": 2, "length": 39}, "at most 38 characters"),
        ({"decimals": 2, "fill": "7"}, "cannot be filled up"),
        ({"decimals": 0, "length": 1, "sign": "leading"}, "at least 2 characters"),
        ({"at": 0}, "greater than or equal to 1"),
    ],
)
def test_a_column_that_cannot_be_is_refused(column: dict[str, Any], message: str) -> None:
    """The config says so before a file is read."""
    with pytest.raises(ValidationError, match=message):
        FixedColumn(**{"at": 1, "length": 5, **column})
