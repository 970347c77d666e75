"""Until when a run waits: what a config may say, and which instant it means."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from crossdock.reading.sources.run_context import WaitingRun
from crossdock.sources import Wait

DAY = timedelta(days=1)
ZONES = ["Europe/Berlin", "America/Havana", "Australia/Lord_Howe", "America/Nuuk", "Asia/Kathmandu", "UTC"]
TIMES = st.builds("{:02}:{:02}".format, st.integers(0, 23), st.integers(0, 59))
INSTANTS = st.integers(0, 3 * 366 * 24 * 60).map(
    lambda minutes: datetime(2025, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
)


def until(text: str, since: str, zone: tzinfo | None) -> str:
    deadline = Wait(until=text).deadline(WaitingRun(datetime.fromisoformat(since), zone))
    return deadline.isoformat().removesuffix(":00+00:00")


@given(text=TIMES, since=INSTANTS, zone=st.sampled_from(ZONES).map(ZoneInfo))
def test_a_deadline_is_the_first_such_time(text: str, since: datetime, zone: ZoneInfo) -> None:
    """The clocks show it at the deadline and not before, since the run was due; later only where they skip it."""
    deadline = Wait(until=text).deadline(WaitingRun(since, zone))
    assert since <= deadline <= since + DAY + timedelta(hours=1)
    minutes = range(1, -int((since - deadline) // timedelta(minutes=1)))
    before = {f"{(deadline - timedelta(minutes=number)).astimezone(zone):%H:%M}" for number in minutes}
    assert text not in before
    if f"{deadline.astimezone(zone):%H:%M}" != text:
        assert zone.utcoffset(deadline.astimezone(zone)) != zone.utcoffset((deadline - DAY / 8).astimezone(zone))


@pytest.mark.parametrize(
    ("text", "since", "deadline"),
    [
        ("05:00", "2026-01-02T02:00+01:00", "2026-01-02T04:00"),
        ("05:00", "2026-01-01T22:00+01:00", "2026-01-02T04:00"),
        ("05:00", "2026-01-02T05:00+01:00", "2026-01-02T04:00"),
        ("05:00", "2026-01-02T05:01+01:00", "2026-01-03T04:00"),
        ("05:00", "2026-03-29T01:00+01:00", "2026-03-29T03:00"),
        ("02:30", "2026-03-29T01:00+01:00", "2026-03-29T01:30"),
        ("02:30", "2026-10-25T01:00+02:00", "2026-10-25T00:30"),
        ("02:30", "2026-10-25T02:45+02:00", "2026-10-25T01:30"),
    ],
)
def test_deadlines_in_berlin(text: str, since: str, deadline: str) -> None:
    """The same day or the next, at once where it is that time already; as it should be on the days of DST changes."""
    assert until(text, since, ZoneInfo("Europe/Berlin")) == deadline


@pytest.fixture
def in_new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "America/New_York")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("in_new_york")
def test_a_run_without_a_zone_goes_by_the_clocks_of_its_machine() -> None:
    """Without a zone the machine's own counts, DST and all."""
    assert until("05:00", "2026-03-08T06:00Z", None) == "2026-03-08T09:00"
    assert until("05:00", "2026-03-07T06:00Z", None) == "2026-03-07T10:00"


def test_a_while_counts_from_when_the_run_was_due() -> None:
    """``for`` adds to the due instant, however the clocks jump."""
    wait = Wait.model_validate({"for": "45m"})
    since = datetime(2026, 3, 29, 1, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    assert wait.deadline(WaitingRun(since, None)) == datetime(2026, 3, 29, 1, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({}, "needs either until or for"),
        ({"until": "05:00", "for": "1h"}, "needs either until or for"),
        ({"until": 870}, "in quotes"),
        ({"until": "24:00"}, "is not a time"),
        ({"until": "5:00"}, "is not a time"),
        ({"for": 45}, "is not a duration"),
        ({"for": "25h"}, "up to 24h"),
        ({"for": "0m"}, "is not a duration"),
        ({"for": "1h", "poll": "1d"}, "is not a duration"),
        ({"for": "1h", "then": "hope"}, "'without' or 'fail'"),
        ({"for": "1h", "than": "fail"}, "did you mean 'then'"),
    ],
)
def test_what_makes_no_sense_is_refused(said: dict[str, Any], why: str) -> None:
    """Each mistake is reported in terms of the file."""
    with pytest.raises(ValidationError, match=why):
        Wait.model_validate(said)
