"""Days and instants in the texts of records."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.errors import RecordError
from crossdock.record_times import day_of, instant_of
from crossdock.records import RawBatch, Record

ZONES = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))


FIRST, LAST = datetime(1000, 1, 2), datetime(9999, 12, 30)  # noqa: DTZ001  the strategy adds the zone


@given(st.datetimes(FIRST, LAST, timezones=ZONES), st.sampled_from("T "))
def test_every_instant_in_iso_8601_is_exact(moment: datetime, separator: str) -> None:
    """Whatever its offset, to the microsecond."""
    found = instant_of(moment.isoformat(separator), "/at", None, None)
    assert (found, found.tzinfo) == (moment, UTC)


@given(st.text(max_size=40))
def test_any_text_is_a_day_or_an_instant_or_a_bad_value(text: str) -> None:
    """No text makes reading fail in any other way, or is part of the error."""
    refused = []
    for zone in (None, "Europe/Berlin"):
        try:
            day_of(text, "/at", None) if zone is None else instant_of(text, "/at", None, zone)
        except RecordError as error:
            refused.append(error)
    assert all((error.code, error.pointer) == ("bad_value", "/at") for error in refused)
    assert all("ISO 8601" in error.message or "years" in error.message for error in refused)


@pytest.mark.parametrize(
    "text",
    ["2026-11-01", "20261101T080000Z", "2026-11-01T08:00:00", "2026-W44-7T08:00Z", "2026-11-01T25:00Z", "1793520000"],
)
def test_an_instant_without_time_or_offset_is_refused(text: str) -> None:
    """It would be another instant on another machine."""
    with pytest.raises(RecordError, match="is not a time in ISO 8601|has no offset"):
        instant_of(text, "/at", None, None)


def record(**members: Any) -> Record:
    """A record of one JSON object."""
    row = RawBatch.json([{"id": 1, **members}], source="page", key=["id"]).load().drop("_line").to_dicts()[0]
    return Record("1", (row,), "page", (1,))


def test_a_record_gives_days_and_instants() -> None:
    """In ISO 8601 or a format, with a zone for local times, and a default for empty values."""
    order = record(at="2026-11-01T09:30:00+01:00", local="01.11.2026 09:30", due="20261231", none=None, empty="")
    moment = datetime(2026, 11, 1, 8, 30, tzinfo=UTC)
    assert order.instant("/at") == moment
    assert order.instant("/local", layout="%d.%m.%Y %H:%M", timezone="Europe/Berlin") == moment
    assert order.day("/due", layout="%Y%m%d") == date(2026, 12, 31)
    assert [order.day(path, default=None) for path in ("/none", "/empty", "/missing")] == [None, None, None]
    assert order.instant("/empty", default=None) is None


@pytest.mark.parametrize("path", ["/none", "/empty", "/missing", "/number"])
def test_a_value_that_is_no_day_is_the_fault_of_its_record(path: str) -> None:
    """Without a default, and for other types also with one."""
    with pytest.raises(RecordError) as failed:
        record(none=None, empty="", number=7).day(path)
    assert (failed.value.code, failed.value.pointer) == ("bad_value", path)
    with pytest.raises(RecordError):
        record(number=7).instant("/number", default=None)
