"""Numbers are read exactly as the format declares them, and nothing is guessed."""

from __future__ import annotations

from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from crossdock.errors import RecordError
from crossdock.mapping import convert
from crossdock.mapping.convert import DecimalMark, NumberFormat, Rounding, Sign, Thousands

NUMBERS = st.decimals(min_value=-(10**15) + 1, max_value=10**15 - 1, places=4)
MARKS: st.SearchStrategy[DecimalMark] = st.sampled_from([".", ","])
THOUSANDS: st.SearchStrategy[Thousands | None] = st.sampled_from([None, ",", ".", " ", "'"])
SIGNS: st.SearchStrategy[Sign] = st.sampled_from(["leading", "trailing", "parentheses"])
SPACE = st.sampled_from(["", " ", "  ", "\t", "\u00a0"])


def written(number: Decimal, mark: str, thousands: str | None, sign: str) -> str:
    """*number* as the format declares it."""
    whole, _, fraction = f"{abs(number):f}".partition(".")
    grouped = f"{int(whole):,}".replace(",", thousands) if thousands else whole
    text = grouped + mark + fraction
    if number >= 0:
        return text
    return {"leading": f"-{text}", "trailing": f"{text}-", "parentheses": f"({text})"}[sign]


@example(Decimal("-1.2345"), ".", None, "leading", 0, "", "")
@example(Decimal("-1.2345"), ".", None, "trailing", 0, "", "")
@example(Decimal("-1.2345"), ".", None, "parentheses", 0, "", "")
@given(NUMBERS, MARKS, THOUSANDS, SIGNS, st.integers(0, 9), SPACE, SPACE)
def test_every_number_is_read_exactly_in_every_format(
    number: Decimal, mark: DecimalMark, thousands: Thousands | None, sign: Sign, zeros: int, before: str, after: str
) -> None:
    """Marks and signs stand where they are declared; zeros after the fourth digit and white space change nothing."""
    assume(mark != thousands)
    text = written(number, mark, thousands, sign)
    padded = text.rstrip("-)") + "0" * zeros + text[len(text.rstrip("-)")) :]
    assert NumberFormat(mark, thousands, sign).parse_decimal(f"{before}{padded}{after}") == number


@given(NUMBERS, MARKS, THOUSANDS, SIGNS, MARKS, THOUSANDS, SIGNS)
def test_a_number_of_another_format_is_refused_or_the_same(
    number: Decimal,
    mark: DecimalMark,
    thousands: Thousands | None,
    sign: Sign,
    other_mark: DecimalMark,
    other_thousands: Thousands | None,
    other_sign: Sign,
) -> None:
    """A format that declares another mark or sign never reads another number than the one that was written."""
    assume(mark != thousands)
    assume(other_mark != other_thousands)
    text = written(number, mark, thousands, sign)
    try:
        found = NumberFormat(other_mark, other_thousands, other_sign).parse_decimal(text)
    except ValueError:
        return
    # four digits after a mark are never a group of three, so a mark is never taken for the other one
    assert found == number


@given(st.decimals(min_value=-(10**14), max_value=10**14, places=9), st.sampled_from(["half_even", "half_up", "down"]))
def test_rounding_is_that_of_decimal(number: Decimal, way: Rounding) -> None:
    """Digits after the fourth are rounded as declared, exactly."""
    modes = {"half_even": ROUND_HALF_EVEN, "half_up": ROUND_HALF_UP, "down": ROUND_DOWN}
    expected = number.quantize(Decimal("0.0001"), modes[way])
    assert NumberFormat(round=way).parse_decimal(f"{number:f}") == expected


@given(st.integers(-(10**15) + 1, 10**15 - 1), st.integers(0, 6), THOUSANDS)
def test_a_whole_number_may_have_zeros_after_the_mark(number: int, zeros: int, thousands: Thousands | None) -> None:
    """They are no loss."""
    mark: DecimalMark = "," if thousands == "." else "."
    text = f"{number:,}".replace(",", thousands or "") + mark + "0" * zeros
    read = NumberFormat(mark, thousands).parse_integer(text)
    assert (read, type(read)) == (number, int)


@pytest.mark.parametrize(
    ("text", "options", "number"),
    [
        (".0000", {}, "0"),
        (".21", {}, "0.21"),
        ("-.5", {}, "-0.5"),
        ("5.", {}, "5"),
        ("1.000000", {}, "1"),
        ("1.23450", {}, "1.2345"),
        (" 12.5 ", {}, "12.5"),
        ("0000000000000000001.5", {}, "1.5"),
        ("1234.5-", {"sign": "trailing"}, "-1234.5"),
        ("1234.5+", {"sign": "trailing"}, "1234.5"),
        ("1234.5", {"sign": "trailing"}, "1234.5"),
        ("(12.50)", {"sign": "parentheses"}, "-12.5"),
        ("1,234.50", {"thousands": ","}, "1234.5"),
        ("1.234,50", {"thousands": ".", "decimal_mark": ","}, "1234.5"),
        ("1234.50", {"thousands": ","}, "1234.5"),
        ("12\u202f345,5", {"thousands": " ", "decimal_mark": ","}, "12345.5"),
        ("12\u2019345.5", {"thousands": "'"}, "12345.5"),
        ("0.00005", {"round": "half_up"}, "0.0001"),
        ("0.00005", {"round": "half_even"}, "0"),
        ("-0.00009", {"round": "down"}, "0"),
    ],
)
def test_numbers_of_legacy_exports(text: str, options: dict[str, Any], number: str) -> None:
    """The same keyword arguments serve mapping code and the map of a config file."""
    assert convert.decimal({"A": text}, "A", **options) == Decimal(number)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (".", {}),
        ("", {}),
        ("  ", {}),
        ("-", {}),
        ("1.00001", {}),
        ("1 234", {}),
        ("1,234", {}),
        ("1234-", {}),
        ("(1)", {}),
        ("-1", {"sign": "trailing"}),
        ("-1-", {"sign": "trailing"}),
        ("-1", {"sign": "parentheses"}),
        ("(-1)", {"sign": "parentheses"}),
        ("(1", {"sign": "parentheses"}),
        ("()", {"sign": "parentheses"}),
        ("12,34", {"thousands": ","}),
        ("1,2345", {"thousands": ","}),
        ("1234,567", {"thousands": ","}),
        (",123", {"thousands": ","}),
        ("1,,234", {"thousands": ","}),
        ("1.234,5", {"thousands": ","}),
        ("1.123,456", {"thousands": ","}),
        ("1e3", {}),
        ("NaN", {}),
        ("٣", {}),
        ("1_000", {}),
        ("1" * 16, {}),
        ("1" * 16 + ".00005", {"round": "down"}),
        ("9" * 15 + ".99995", {"round": "half_up"}),
    ],
)
def test_what_is_not_declared_is_a_dead_letter(text: str, options: dict[str, Any]) -> None:
    """It names the column and does not quote the cell."""
    with pytest.raises(RecordError) as refused:
        convert.decimal({"A": text}, "A", **options)
    assert (refused.value.code, refused.value.pointer) == ("bad_value", "A")
    assert len(text) < 4 or text not in refused.value.message


@pytest.mark.parametrize("text", ["1.5", "0.00001", "x", "1" * 16])
def test_what_is_not_whole_is_a_dead_letter(text: str) -> None:
    """An integer is never rounded."""
    with pytest.raises(RecordError):
        convert.integer({"A": text}, "A")


def test_one_mark_cannot_have_two_meanings() -> None:
    """``1.234`` would be two numbers."""
    with pytest.raises(ValueError, match=r"both '\.'"):
        NumberFormat(thousands=".")


@given(st.text(max_size=30) | st.text("0123456789.,+-() ' ", max_size=30), MARKS, THOUSANDS, SIGNS)
def test_any_text_is_read_or_refused(text: str, mark: DecimalMark, thousands: Thousands | None, sign: Sign) -> None:
    """What is read has at most 15 and 4 digits."""
    assume(mark != thousands)
    try:
        number = NumberFormat(mark, thousands, sign).parse_decimal(text)
    except ValueError:
        return
    exponent = number.as_tuple().exponent
    assert abs(number) < 10**15
    assert isinstance(exponent, int)
    assert -4 <= exponent <= 0


@given(st.integers(-(10**15) + 1, 10**15 - 1), st.integers(0, 4), st.sampled_from(["leading", "trailing", "overpunch"]))
def test_implied_decimals_and_overpunched_signs_are_read_exactly(units: int, decimals: int, sign: Sign) -> None:
    """As COBOL writes them into delimited files too: ``123D`` with two decimals is 12.34."""
    digits = str(abs(units)).zfill(decimals + 1)
    punched = digits[:-1] + ("}JKLMNOPQR" if units < 0 else "{ABCDEFGHI")[int(digits[-1])]
    minus = "-" if units < 0 else ""
    text = {"leading": f"{minus}{digits}", "trailing": f"{digits}{minus}"}.get(sign, punched)
    expected = Decimal(units).scaleb(-decimals)
    assert NumberFormat(sign=sign, decimals=decimals).parse_decimal(text) == expected


@pytest.mark.parametrize("text", ["12.34", "1234.", "", "-", "12 34", "1234-", "\u0661"])
def test_implied_decimals_are_digits_alone(text: str) -> None:
    """A mark shows that the sender writes decimals otherwise."""
    with pytest.raises(ValueError, match="is not a number with digits alone, 2 of them decimals"):
        NumberFormat(decimals=2).parse_decimal(text)


@given(
    st.decimals(-(10**9), 10**9, places=4), st.decimals(min_value=0, max_value=10**5, places=4).filter(lambda f: f > 0)
)
def test_a_factor_multiplies_exactly_or_is_refused(number: Decimal, factor: Decimal) -> None:
    """Cases to eaches: more than four digits after the mark are refused, or rounded as declared."""
    with localcontext(prec=60):
        exact = number * factor
        expected = exact.quantize(Decimal("0.0001"), ROUND_HALF_UP)
    text = f"{number:f}"
    assert NumberFormat(factor=factor, round="half_up").parse_decimal(text) == expected
    if exact == expected:
        assert NumberFormat(factor=factor).parse_decimal(text) == exact
    else:
        with pytest.raises(ValueError, match="more than 4 digits after"):
            NumberFormat(factor=factor).parse_decimal(text)
