from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from crossdock.sandbox.rfc3339 import INSTANT_PATTERN, instant_text

zones = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
bounds = datetime(1, 1, 2), datetime(9999, 12, 30)  # noqa: DTZ001  the strategy takes naive bounds
instants = st.datetimes(*bounds, timezones=zones)


@given(instants, instants)
def test_the_order_of_texts_is_the_order_of_times(one: datetime, other: datetime) -> None:
    """Every text is accepted, stands for the same time, and sorts as the times do."""
    texts = [instant_text(each) for each in (one, other)]
    assert [datetime.fromisoformat(text) for text in texts] == [one, other]
    assert all(INSTANT_PATTERN.fullmatch(text) for text in texts)
    assert (texts[0] < texts[1]) == (one < other)


def test_a_number_is_seconds_since_the_epoch() -> None:
    """The text is in UTC, with microseconds."""
    assert instant_text(1_800_000_000.5) == "2027-01-15T08:00:00.500000Z"
    assert instant_text(datetime(2027, 1, 15, 8, tzinfo=UTC)) == "2027-01-15T08:00:00.000000Z"
