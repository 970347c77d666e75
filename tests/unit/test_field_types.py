"""Types of the resources' fields."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from crossdock.values.field_types import (
    Country,
    Currency,
    Exact,
    Instant,
    is_valid_target_id,
    minor_unit_digits_or_value_error,
)

EXACT: TypeAdapter[Decimal] = TypeAdapter(Exact)


@given(units=st.integers(-(10**19) + 1, 10**19 - 1), zeros=st.integers(0, 50))
def test_numbers_in_range_are_exact(units: int, zeros: int) -> None:
    """At most 15 digits before and 4 after the point, however many zeros follow."""
    number = Decimal(units).scaleb(-4)
    assert EXACT.validate_python(Decimal(f"{number:f}" + "0" * zeros)) == number


@pytest.mark.parametrize(
    "value", [1.5, True, "1", Decimal("NaN"), Decimal("Infinity"), Decimal("1E15"), Decimal("1E-5"), 10**15, None]
)
def test_other_numbers_are_refused(value: Any) -> None:
    """Neither floats nor text are taken for amounts."""
    with pytest.raises(ValidationError):
        EXACT.validate_python(value)


def test_codes_are_those_of_the_standards() -> None:
    """ISO 4217 and ISO 3166-1, with the minor units of the former."""
    assert (
        minor_unit_digits_or_value_error("EUR"),
        minor_unit_digits_or_value_error("JPY"),
        minor_unit_digits_or_value_error("XAU"),
    ) == (2, 0, None)
    for kind, code in ((Currency, "EUX"), (Currency, "eur"), (Country, "XX")):
        with pytest.raises(ValidationError):
            TypeAdapter(kind).validate_python(code)


def test_an_instant_is_in_utc_and_in_range() -> None:
    """The year 10000 cannot be represented."""
    adapter: TypeAdapter[Any] = TypeAdapter(Instant)
    assert adapter.validate_python("2026-07-01T12:00:00+02:00").isoformat() == "2026-07-01T10:00:00+00:00"
    for text in ("2026-07-01T12:00:00", "9999-12-31T23:59:59-05:00"):
        with pytest.raises(ValidationError):
            adapter.validate_python(text)


@pytest.mark.parametrize(
    ("text", "valid"), [("a/b", True), ("x" * 64, True), ("x" * 65, False), ("..", False), ("a\n", False), ("", False)]
)
def test_a_platform_id_is_one_printable_path_segment(text: str, valid: bool) -> None:
    """Dot segments would name another path."""
    assert is_valid_target_id(text) is valid
