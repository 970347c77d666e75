"""Local times in requests, also while a clock repeats an hour."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock_connectors.request_time_formats import format_range_bound

LAYOUT = "%Y-%m-%dT%H:%M:%S"
REPEATED = datetime(2026, 11, 1, 7, tzinfo=UTC)  # clocks in Chicago go back from 02:00 to 01:00
SKIPPED = datetime(2026, 3, 8, 8, tzinfo=UTC)
ZONES = st.sampled_from(["America/Chicago", "Europe/Berlin", "Australia/Lord_Howe", "UTC"])
MOMENTS = st.builds(
    lambda at, seconds: at + timedelta(seconds=seconds),
    st.sampled_from([REPEATED, SKIPPED, datetime(2026, 10, 25, 1, tzinfo=UTC), datetime(2026, 4, 4, 15, tzinfo=UTC)]),
    st.integers(-4 * 3600, 4 * 3600),
)


def text(moment: datetime, zone: str) -> str:
    return moment.astimezone(ZoneInfo(zone)).strftime(LAYOUT)


@given(MOMENTS, MOMENTS, ZONES)
def test_no_text_of_a_later_time_is_less(one: datetime, other: datetime, zone: str) -> None:
    """An API that compares texts lists everything from that time on, and nothing before the end is left out."""
    since, later = sorted((one, other))
    assert format_range_bound(since, LAYOUT, zone) <= text(later, zone)
    if since < later:
        assert text(since, zone) < format_range_bound(later, LAYOUT, zone, excluded=True)


@pytest.mark.parametrize(
    ("layout", "sent"),
    [
        (LAYOUT, "2026-06-30T22:30:00"),
        ("%Y-%m-%d", "2026-06-30"),
        ("%Y-%m-%dT%H:%M:%SZ", "2026-07-01T03:30:00Z"),
        ("%Y-%m-%dT%H:%M:%S%z", "2026-07-01T03:30:00+0000"),
        ("%a, %d %b %Y %H:%M:%S GMT", "Wed, 01 Jul 2026 03:30:00 GMT"),
        ("unix", "1782876600"),
        ("unix_ms", "1782876600000"),
    ],
)
def test_a_layout_without_offset_is_in_local_time(layout: str, sent: str) -> None:
    """One with an offset, and unix, are in UTC."""
    assert format_range_bound(datetime(2026, 7, 1, 3, 30, tzinfo=UTC), layout, "America/Chicago") == sent


def test_the_repeated_hour_is_asked_for_from_its_beginning() -> None:
    """A time in its first pass is written as the earliest text of the second."""
    assert format_range_bound(REPEATED - timedelta(minutes=20), LAYOUT, "America/Chicago") == "2026-11-01T01:00:00"
    assert format_range_bound(REPEATED + timedelta(minutes=20), LAYOUT, "America/Chicago") == "2026-11-01T01:20:00"
