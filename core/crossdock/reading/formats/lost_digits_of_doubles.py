"""Texts of doubles, and whether they are exact: a double keeps 15 digits of any number. Spreadsheets use doubles."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

KEPT_DIGITS = 15
XML_NUMBER_PATTERN = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?\s*", re.ASCII)
"""A number as XML has it (XML Schema, part 2, 3.3.5)."""
_HARMLESS = Decimal("1E-10")
"""A difference that no price, rate or weight has."""
_FIRST_LOST = 11
"""From 10 to this power on, a number of more than 15 digits has lost some of the four decimals of a price."""


def parse_double(text: str) -> Any:
    """Return the double that a spreadsheet program stores for the number *text*."""
    return float(text)


def loses_digits_as_double(text: str) -> bool:
    """Return whether a double loses digits of *text*. It loses none of 0.28999999999999998, as Excel writes 0.29."""
    if len(text) <= KEPT_DIGITS or not (found := XML_NUMBER_PATTERN.fullmatch(text)):
        return False
    number, double = Decimal(text), parse_double(text)
    digits = len(found[1].replace(".", "").strip("0"))
    if digits <= KEPT_DIGITS or abs(number - Decimal(repr(double))) < _HARMLESS:
        return False
    return Decimal(f"{double:.{digits - 1}e}") != number


def is_float_instance(value: Any) -> bool:
    return isinstance(value, float)


def exact_number_text_or_none(value: Any) -> str | None:
    """Return the shortest text of a number, without a point if it is whole; None if it may be rounded, or is none."""
    number = Decimal(repr(value))
    if not number.is_finite():
        return None
    is_whole = number == number.to_integral_value()
    if number.copy_abs() >= 10**KEPT_DIGITS if is_whole else may_have_lost_digits(number):
        return None
    return str(int(number)) if is_whole else format(number, "f")


def may_have_lost_digits(number: Decimal) -> bool:
    """Return whether *number*, the shortest text of a double, may differ from what was meant by more than 0.00001."""
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0")
    return len(digits) > KEPT_DIGITS and number.adjusted() >= _FIRST_LOST
