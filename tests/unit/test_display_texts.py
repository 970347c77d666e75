"""Texts of numbers."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.values.texts_of_numbers_and_times import byte_size_text


@given(st.integers(0, 2**60))
def test_a_size_is_rounded_to_a_tenth_of_its_unit(size: int) -> None:
    """The text means the size, up to rounding."""
    number, unit = byte_size_text(size).split(" ")
    power = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"].index(unit)
    assert abs(Decimal(number.replace(",", "")) * 1024**power - size) <= Decimal(1024**power) / 20


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (71 * 2**20 + 2**19, "71.5 MiB"),
        (2**40, "1.0 TiB"),
        (5_000 * 2**50, "5,000.0 PiB"),
    ],
)
def test_sizes_have_units(size: int, text: str) -> None:
    """A size has one digit after the point, and the largest unit that it reaches."""
    assert byte_size_text(size) == text
