"""Text -> values: exact, strict, and without the cell's content in any error."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.errors import RecordError
from crossdock.mapping import convert


@given(number=st.decimals(min_value=-(10**15) + 1, max_value=10**15 - 1, places=4))
def test_every_number_in_range_is_read_exactly(number: Decimal) -> None:
    """With a point, and with a comma."""
    text = f"{number:f}"
    assert convert.decimal({"A": text}, "A") == number
    assert convert.decimal({"A": text.replace(".", ",")}, "A", decimal_mark=",") == number


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (convert.text, ""),
        (convert.decimal, "1,000.00"),
        (convert.decimal, "1e3"),
        (convert.decimal, "1 .75"),
        (convert.decimal, "  "),
        (convert.decimal, "NaN"),
        (convert.decimal, "٣"),
        (convert.decimal, "1.00001"),
        (convert.integer, "1.5"),
        (convert.integer, "1" * 16),
        (convert.day, "2026-02-30"),
        (convert.day, "canary"),
        (convert.day, "2026-07-01T00:00:01"),
        (convert.day, "2026-07-01T00:00:00Z"),
        (convert.instant, "2026-01-01T00:00:00"),
        (convert.instant, "9999-12-31T23:59:59-0500"),
    ],
)
def test_other_text_is_a_dead_letter_that_names_the_column(read: Callable[..., Any], text: str) -> None:
    """The reason is ``bad_value``, and the cell is not quoted."""
    with pytest.raises(RecordError) as refused:
        read({"A": text}, "A")
    assert (refused.value.code, refused.value.pointer) == ("bad_value", "A")
    assert not text or text not in refused.value.message


def test_instants_are_in_utc() -> None:
    """An offset in the text counts, else the declared time zone."""
    noon = datetime(2026, 7, 1, 10, tzinfo=UTC)
    assert convert.instant({"A": "2026-07-01T12:00:00+0200"}, "A") == noon
    local = convert.instant({"A": "01.07.2026 12:00"}, "A", layout="%d.%m.%Y %H:%M", timezone="Europe/Berlin")
    assert (local, local.tzinfo) == (noon, UTC)
    assert convert.day({"A": "20260701"}, "A", layout="%Y%m%d") == date(2026, 7, 1)


def test_a_day_may_be_the_time_at_which_it_begins() -> None:
    """In the default layout, as sheets and Parquet files have days in columns of times."""
    assert convert.day({"A": "2026-07-01T00:00:00"}, "A") == convert.day({"A": "2026-07-01"}, "A") == date(2026, 7, 1)


def test_a_boolean_is_one_of_two_texts() -> None:
    """Nothing else is guessed to be true or false."""
    assert convert.boolean({"A": "Y"}, "A", true="Y", false="N")
    assert not convert.boolean({"A": "N"}, "A", true="Y", false="N")
    with pytest.raises(RecordError, match="is neither 'Y' nor 'N'"):
        convert.boolean({"A": "y"}, "A", true="Y", false="N")
