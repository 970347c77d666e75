"""Local times and instants where clocks are changed."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.scheduling.wallclock import utc

from crossdock.values.time_formats_and_zones import (
    check_zone_name,
    clock_change_instants_and_shifts,
    first_instant_of_local_time,
    last_instant_of_local_time,
    naive_local_time_at,
)

BERLIN = ZoneInfo("Europe/Berlin")
SPRING, AUTUMN = datetime(2026, 3, 29, 2, 30), datetime(2026, 10, 25, 2, 30)  # noqa: DTZ001  local times


@pytest.mark.parametrize(
    ("local", "first", "last"),
    [
        pytest.param(SPRING - timedelta(days=1), utc(2026, 3, 28, 1, 30), utc(2026, 3, 28, 1, 30), id="plain"),
        pytest.param(SPRING, utc(2026, 3, 29, 1), utc(2026, 3, 29, 1), id="skipped"),
        pytest.param(AUTUMN, utc(2026, 10, 25, 0, 30), utc(2026, 10, 25, 1, 30), id="repeated"),
    ],
)
def test_a_local_time_is_shown_from_and_until(local: datetime, first: datetime, last: datetime) -> None:
    """In Berlin. A skipped time means the end of the gap."""
    assert (first_instant_of_local_time(local, BERLIN), last_instant_of_local_time(local, BERLIN)) == (first, last)


@given(
    days=st.integers(0, 800),
    minutes=st.integers(0, 24 * 60 - 1),
    zone=st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Beirut", "Pacific/Apia"]),
)
def test_the_first_showing_is_the_first(days: int, minutes: int, zone: str) -> None:
    """At that instant the clocks show the time or later, and a minute before they showed an earlier one."""
    local = datetime(2025, 1, 1) + timedelta(days=days, minutes=minutes)  # noqa: DTZ001  a local time
    instant = first_instant_of_local_time(local, ZoneInfo(zone))
    assert naive_local_time_at(instant, ZoneInfo(zone)) >= local
    assert naive_local_time_at(instant - timedelta(minutes=1), ZoneInfo(zone)) < local


@pytest.mark.parametrize(
    ("zone", "since", "until", "changes"),
    [
        ("Europe/Berlin", utc(2026, 3, 1), utc(2026, 12, 1), [(utc(2026, 3, 29, 1), 60), (utc(2026, 10, 25, 1), -60)]),
        ("Europe/Berlin", utc(2026, 3, 29, 0, 59), utc(2026, 3, 29, 1), [(utc(2026, 3, 29, 1), 60)]),
        ("Europe/Berlin", utc(2026, 3, 29, 1), utc(2026, 10, 25, 0, 59), []),
        ("Australia/Lord_Howe", utc(2026, 4, 1), utc(2026, 5, 1), [(utc(2026, 4, 4, 15), -30)]),
        ("Pacific/Apia", utc(2011, 12, 20), utc(2012, 1, 3), [(utc(2011, 12, 30, 10), 1440)]),
    ],
)
def test_clock_changes(zone: str, since: datetime, until: datetime, changes: list[tuple[datetime, int]]) -> None:
    """Each with the minutes by which the clocks go on; the first instant is not part of the time."""
    found = [
        (at, by // timedelta(minutes=1)) for at, by in clock_change_instants_and_shifts(ZoneInfo(zone), since, until)
    ]
    assert found == changes


@pytest.mark.parametrize("name", ["Europe/Berln", "localtime", "right/UTC", "../UTC", ""])
def test_an_unknown_zone_is_refused(name: str) -> None:
    """Files below the zone database that are not zones are refused, too."""
    with pytest.raises(ValueError, match="is not an IANA time zone"):
        check_zone_name(name)
