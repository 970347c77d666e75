"""Positions sort as the values of their columns do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from crossdock.errors import RecordError
from crossdock.mapping.row_order_and_cursors import OrderBy, position_prefix_from_order_hash

OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
TIMES = st.datetimes(datetime.fromisoformat("0002-01-01"), datetime.fromisoformat("9998-12-31"), timezones=OFFSETS)
NUMBERS = st.decimals(min_value=-(10**15) + 1, max_value=10**15 - 1, places=4)


def position(text: str | None, as_: str, **facts: Any) -> str:
    return OrderBy.model_validate({"column": "A", "as": as_, **facts}).position({"A": text})


@given(TIMES, TIMES)
def test_instants_sort_as_times_whatever_their_offsets(one: datetime, other: datetime) -> None:
    """Equal instants with different offsets have the same position, of a fixed width."""
    first, second = position(one.isoformat(), "instant"), position(other.isoformat(), "instant")
    assert (first < second, first == second) == (one < other, one == other)
    assert len(first) == len("2026-01-01T00:00:00.000000000Z")


@given(st.integers(0, 10**9 - 1), st.integers(0, 10**9 - 1))
def test_fractions_of_a_second_sort_to_the_nanosecond(one: int, other: int) -> None:
    """Programs that leave out trailing zeros do not change the order."""

    def text(nanoseconds: int) -> str:
        digits = f"{nanoseconds:09}".rstrip("0")
        return f"2026-07-01T00:00:00{'.' + digits if digits else ''}Z"

    assert (position(text(one), "instant") < position(text(other), "instant")) == (one < other)


@given(NUMBERS, NUMBERS)
def test_numbers_sort_with_their_signs(one: Decimal, other: Decimal) -> None:
    """Whatever their number of digits."""
    first, second = position(f"{one:f}", "decimal"), position(f"{other:f}", "decimal")
    assert (first < second, first == second) == (one < other, one == other)


@given(st.integers(-(10**15) + 1, 10**15 - 1), st.integers(-(10**15) + 1, 10**15 - 1))
def test_whole_numbers_sort_with_their_signs(one: int, other: int) -> None:
    """9 is before 10."""
    assert (position(str(one), "integer") < position(str(other), "integer")) == (one < other)


def test_an_instant_may_have_a_format_and_a_zone() -> None:
    """As in a map."""
    local = position("01.07.2026 02:00", "instant", format="%d.%m.%Y %H:%M", timezone="Europe/Berlin")
    assert local == position("2026-07-01 00:00", "instant", timezone="UTC") == "2026-07-01T00:00:00.000000000Z"
    assert local == position("2026-07-01T02:00:00,000+0200", "instant")
    micro = position("2026-07-01 00:00:00.5", "instant", format="%Y-%m-%d %H:%M:%S.%f", timezone="UTC")
    assert micro == position(datetime(2026, 7, 1, 0, 0, 0, 500_000, UTC).isoformat(), "instant")


@pytest.mark.parametrize("as_", ["text", "instant", "decimal", "integer"])
def test_an_empty_cell_is_the_oldest(as_: str) -> None:
    """A row that was never changed has no time of its change."""
    assert position("", as_) == position(None, as_) == ""


@pytest.mark.parametrize(
    ("as_", "text"),
    [
        ("instant", "2026-07-01T00:00:00"),
        ("instant", "2026-02-30T00:00:00Z"),
        ("instant", "2026-07-01"),
        ("instant", "9999-12-31T23:59:59-05:00"),
        ("instant", "canary"),
        ("decimal", "canary"),
        ("decimal", "1.00001"),
        ("integer", "1.5"),
    ],
)
def test_a_cell_that_does_not_convert_is_a_bad_value(as_: str, text: str) -> None:
    """The column is named, and the cell is not quoted."""
    with pytest.raises(RecordError) as refused:
        position(text, as_)
    assert (refused.value.code, refused.value.pointer) == ("bad_value", "A")
    assert text not in refused.value.message


def test_positions_of_different_declarations_are_told_apart() -> None:
    """A stored position is compared only with those that mean the same; plain text has no mark, as before."""
    instant, number = OrderBy(column="A", as_="instant"), OrderBy(column="A", as_="decimal")
    assert position_prefix_from_order_hash([OrderBy(column="A")]) == ""
    assert (
        position_prefix_from_order_hash([instant])
        == position_prefix_from_order_hash([OrderBy(column="A", as_="instant")])
        == "\x1e1d4ae1c4\x1f"
    )
    assert len({position_prefix_from_order_hash(columns) for columns in ([instant], [number], [instant, number])}) == 3


@pytest.mark.parametrize("facts", [{"format": "%Y"}, {"timezone": "UTC"}, {"as": "decimal", "timezone": "UTC"}])
def test_a_format_or_zone_needs_an_instant(facts: dict[str, Any]) -> None:
    """What has no effect is refused."""
    with pytest.raises(ValidationError, match="needs as: instant"):
        OrderBy.model_validate({"column": "A", **facts})
