"""Times in requests are found in the forms that APIs use."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from crossdock.testing.cursors_and_times_in_requests import (
    contains_cursor_or_slightly_earlier,
    moments_in,
    parse_instant,
)

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


@pytest.mark.parametrize(
    ("text", "zone", "hours"),
    [
        ("at=2026-07-20T12:00:00", "Europe/London", (-1, -1)),
        ("at=2026-07-20T12:00:00", "America/Chicago", (5, 5)),
        ("at=2026-10-25T01:30:00", "Europe/London", (-1, 0)),  # twice in this night
        ("at=2026-07-20T12:00:00Z", "Europe/London", (0, 0)),
        ("on=2026-07-20", "Europe/London", (-1, 23)),
    ],
)
def test_a_time_without_an_offset_is_read_in_the_zone_of_the_cursor(
    text: str, zone: str, hours: tuple[int, int]
) -> None:
    """Earliest and latest, in hours from the same time in UTC."""
    (moment,) = moments_in(text, zone)
    (utc,) = moments_in(text, "UTC")
    assert [(each - utc.earliest) / timedelta(hours=1) for each in moment] == [*hours]


@pytest.mark.parametrize(
    ("asked", "zone", "is_asked"),
    [
        ("2026-07-20T13:00:00", "Europe/London", True),
        ("2026-07-20T13:00:01", "Europe/London", False),
        ("2026-07-20T07:00:00", "America/Chicago", True),
        ("2026-07-20T12:00:00", "America/Chicago", False),  # UTC, which is five hours too late there
        ("2026-07-20T12:00:00", None, True),
    ],
)
def test_local_times_in_requests_are_compared_with_the_cursor(asked: str, zone: str | None, *, is_asked: bool) -> None:
    """Noon in UTC; where the zone is unknown, any time that may be it counts."""
    request = "GET", f"https://shop.example/orders?since={asked}", b""
    assert contains_cursor_or_slightly_earlier(request, "2026-07-20T12:00:00Z", "since", zone) is is_asked


def test_other_numbers_are_no_times() -> None:
    """Such as ids, phone numbers and amounts."""
    assert [*moments_in("id=123456789&phone=41791234567890&price=12345678.95&day=2026-13-45")] == []
    assert [parse_instant(text) for text in (None, "", "17", "2026-11-20", "2026-11-20T12:00:00")] == [None] * 5
