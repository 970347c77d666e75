"""A number of a sheet is exact, or refused."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.reading.formats.lost_digits_of_doubles import loses_digits_as_double, may_have_lost_digits


@given(st.floats(-1e14, 1e14), st.integers(15, 60))
def test_what_programs_write_of_a_double_is_not_rounded(number: float, digits: int) -> None:
    """With any number of digits, as 17 by Excel."""
    assert not loses_digits_as_double(format(number, f".{digits}g"))


@given(st.decimals(-(10**11), 10**11, places=4))
def test_prices_below_a_hundred_billion_are_exact(price: Decimal) -> None:
    """They have 15 digits, which doubles keep."""
    assert not loses_digits_as_double(str(price))
    assert Decimal(repr(float(price))) == price


@pytest.mark.parametrize(
    "number",
    ["1234567890123.4567", "99999999999999.9999", "-123456789012.34567", "9007199254740.9921", "12345678901.12345678"],
)
def test_longer_numbers_are_refused(number: str) -> None:
    """Also where the rounded number has few digits."""
    assert loses_digits_as_double(number) or may_have_lost_digits(Decimal(repr(float(number))))
