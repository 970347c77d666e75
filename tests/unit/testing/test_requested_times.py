"""Times in requests are found in the forms that APIs use."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from crossdock.testing.requested_times import instant_of, moments_in

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "from=2026-11-20T12:00:00Z",
        "from=2026-11-20T13%3A00%3A00%2B01%3A00",
        '{"from": "2026-11-20T12:00:00.000000Z"}',
        f"from={NOON.timestamp():.0f}",
        f"from={NOON.timestamp():.0f}000",
    ],
)
def test_an_instant_is_read(text: str) -> None:
    """With an offset, or as UNIX time."""
    (moment,) = moments_in(text)
    assert moment.earliest == NOON
    assert moment.latest - NOON <= timedelta(seconds=1)


def test_a_time_without_a_zone_may_be_in_any_zone() -> None:
    """So it shows nothing that is nearer than fourteen hours; a date may be a whole day later."""
    local, date = next(moments_in("at=2026-11-20T12:00:00")), next(moments_in("on=2026-11-20"))
    assert (local.earliest, local.latest) == (NOON - timedelta(hours=14), NOON + timedelta(hours=14))
    assert date.latest == datetime(2026, 11, 21, 14, tzinfo=UTC)


def test_other_numbers_are_no_times() -> None:
    """Such as ids, phone numbers and amounts."""
    assert [*moments_in("id=123456789&phone=41791234567890&price=12345678.95&day=2026-13-45")] == []
    assert [instant_of(text) for text in (None, "", "17", "2026-11-20", "2026-11-20T12:00:00")] == [None] * 5
