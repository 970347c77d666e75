"""Days and instants in the texts of records."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from crossdock.errors import RecordError
from crossdock.values.raw_rows_and_records import RawBatch, Record
from crossdock.values.time_formats_and_zones import TimeFormat, raise_if_invalid_time_format

ZONES = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))


FIRST, LAST = datetime(1000, 1, 2), datetime(9999, 12, 30)  # noqa: DTZ001  the strategy adds the zone


@given(st.datetimes(FIRST, LAST, timezones=ZONES), st.sampled_from("T "))
def test_every_instant_in_iso_8601_is_exact(moment: datetime, separator: str) -> None:
    """Whatever its offset, to the microsecond."""
    found = TimeFormat().parse_instant(moment.isoformat(separator), "/at")
    assert (found, found.tzinfo) == (moment, UTC)


@given(st.text(max_size=40))
def test_any_text_is_a_day_or_an_instant_or_a_bad_value(text: str) -> None:
    """No text makes reading fail in any other way, or is part of the error."""
    refused = []
    for zone in (None, "Europe/Berlin"):
        try:
            TimeFormat().parse_day(text, "/at") if zone is None else TimeFormat(timezone=zone).parse_instant(
                text, "/at"
            )
        except RecordError as error:
            refused.append(error)
    assert all((error.code, error.pointer) == ("bad_value", "/at") for error in refused)
    assert all(any(part in error.message for part in ("ISO 8601", "years", "occur")) for error in refused)


@pytest.mark.parametrize(
    "text",
    ["2026-11-01", "20261101T080000Z", "2026-11-01T08:00:00", "2026-W44-7T08:00Z", "2026-11-01T25:00Z", "1793520000"],
)
def test_an_instant_without_time_or_offset_is_refused(text: str) -> None:
    """It would be another instant on another machine."""
    with pytest.raises(RecordError, match="is not a time in ISO 8601|has no offset"):
        TimeFormat().parse_instant(text, "/at")


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


LAYOUTS = ["%Y%m%d", "%d%m%Y", "%y%m%d", "%Y%j", "%d.%m.%Y", "%m/%d/%y", "%b %d %Y", "%A, %d %B %Y", "%G-W%V-%u",
           "cyymmdd", "cyyddd"]  # fmt: skip
CLOCKS = ["%Y%m%d%H%M%S", "%Y-%m-%d %H:%M:%S.%f", "%m/%d/%Y %I:%M:%S %p", "%Y%m%dT%H%M%S%f", "%Y-%m-%dT%H:%M:%S%z"]


def written(moment: datetime, layout: str) -> str:
    """*moment* as a sender of *layout* writes it."""
    if layout in {"cyymmdd", "cyyddd"}:
        return f"{moment.year // 100 - 19}{moment.strftime('%y%m%d' if layout == 'cyymmdd' else '%y%j')}"
    return moment.strftime(layout)


@given(st.datetimes(datetime(1970, 1, 1), datetime(2068, 12, 31)), st.sampled_from(LAYOUTS))  # noqa: DTZ001
def test_every_day_in_every_format_is_read_as_it_is_written(moment: datetime, layout: str) -> None:
    """Also without the zero before a single digit that has other characters around it."""
    text = written(moment, layout)
    short = re.sub(r"^0|(?<=[./])0(?=[0-9][./])", "", text) if layout[2:3] in {".", "/"} else text
    assert [TimeFormat(layout).parse_day(each, "A") for each in (text, short)] == [moment.date()] * 2


@given(st.datetimes(FIRST, LAST, timezones=st.just(UTC)), st.sampled_from(CLOCKS))
def test_every_time_in_every_format_is_read_as_it_is_written(moment: datetime, layout: str) -> None:
    """To the digits that the format has."""
    found = TimeFormat(layout, "UTC").parse_instant(moment.strftime(layout), "A")
    assert found == (moment if "%f" in layout else moment.replace(microsecond=0))


@given(st.datetimes(FIRST, LAST, timezones=st.just(UTC)))
def test_every_moment_is_read_from_the_time_of_unix(moment: datetime) -> None:
    """In seconds with a fraction, and in whole milliseconds, also before 1970, but for days that may be seconds."""
    ticks = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assume(not 10**12 <= ticks < 2 * 10**12)
    seconds = f"{'-' if ticks < 0 else ''}{abs(ticks) // 10**6}.{abs(ticks) % 10**6:06}"
    assert TimeFormat("unix").parse_instant(seconds, "A") == moment
    assert TimeFormat("unix_ms").parse_instant(str(ticks // 1_000), "A") == moment - timedelta(
        microseconds=ticks % 1_000
    )


@pytest.mark.parametrize(
    ("text", "layout", "other"), [("1772364600", "unix_ms", "unix"), ("1772364600900", "unix", "unix_ms")]
)
def test_a_time_of_unix_in_the_other_unit_is_refused(text: str, layout: str, other: str) -> None:
    """Seconds would be days of January 1970, and an overlap of them a thousandth; the error names their format."""
    for read in (TimeFormat(layout).parse_day, TimeFormat(layout).parse_instant):
        with pytest.raises(RecordError, match=f"is not a date in the format '{layout}', .* are '{other}'"):
            read(text, "A")
    assert TimeFormat("microsoft_json").parse_instant("/Date(1772364600)/", "A").year == 1970


@pytest.mark.parametrize(
    ("text", "at", "day"),
    [
        ("/Date(1518685950940+0000)/", datetime(2018, 2, 15, 9, 12, 30, 940_000, UTC), date(2018, 2, 15)),
        ("/Date(1439434356790)/", datetime(2015, 8, 13, 2, 52, 36, 790_000, UTC), date(2015, 8, 13)),
        ("/Date(1419937200000+1300)/", datetime(2014, 12, 30, 11, 0, 0, 0, UTC), date(2014, 12, 31)),
        ("/Date(-1000-0500)/", datetime(1969, 12, 31, 23, 59, 59, 0, UTC), date(1969, 12, 31)),
    ],
)
def test_a_date_of_microsoft_json_is_an_instant_and_a_day_at_its_offset(text: str, at: datetime, day: date) -> None:
    """The milliseconds are in UTC, whatever the offset, which only says which day it was there."""
    times = TimeFormat("microsoft_json")
    assert (times.parse_instant(text, "A"), times.parse_day(text, "A")) == (at, day)


@given(st.text("0123456789", min_size=5, max_size=9), st.sampled_from(LAYOUTS[:4]))
def test_digits_are_a_day_only_if_the_day_is_written_like_this(text: str, layout: str) -> None:
    """`datetime.strptime` reads 2026112 as 2 November, and day 366 of 2026 as 1 January 2027."""
    try:
        found = TimeFormat(layout).parse_day(text, "A")
    except RecordError:
        return
    assert found.strftime(layout).rjust(len(text), "0") == text


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("2026112", "%Y%m%d"),
        ("2026366", "%Y%j"),
        ("1112026", "%d%m%Y"),
        ("Mon 2026-11-25", "%a %Y-%m-%d"),
        ("2026-53", "%Y-%U"),
        ("2025-W53-1", "%G-W%V-%u"),
        ("\u0662\u0660\u0662\u0661-11-25", "%Y-%m-%d"),
        ("20261125 15:30 AM", "%Y%m%d %H:%M %p"),
        ("126112", "cyymmdd"),
        ("1261325", "cyymmdd"),
        ("126366", "cyyddd"),
        ("20261125 9:30", "%Y%m%d %H%M"),
        ("1e9", "unix"),
        ("12.5", "unix_ms"),
        ("/Date(12.5)/", "microsoft_json"),
        ("/Date(1518685950940+25)/", "microsoft_json"),
        ("/Date(1518685950940+9900)/", "microsoft_json"),
        ("1518685950940", "microsoft_json"),
    ],
)
def test_a_text_that_is_not_what_its_format_gives_is_refused(text: str, layout: str) -> None:
    """Whatever `datetime.strptime` makes of it."""
    for read in (TimeFormat(layout, "UTC").parse_day, TimeFormat(layout, "UTC").parse_instant):
        with pytest.raises(RecordError, match="is not a date in the format"):
            read(text, "A")


@pytest.mark.parametrize(
    ("text", "layout", "day"),
    [
        ("Nov  5 2026  9:30AM", "%b %d %Y %I:%M%p", date(2026, 11, 5)),  # SQL Server
        (" 5/11/2026", "%d/%m/%Y", date(2026, 11, 5)),
        ("25-NOV-26", "%d-%b-%y", date(2026, 11, 25)),
        ("0991231", "cyymmdd", date(1999, 12, 31)),
        ("126329", "cyyddd", date(2026, 11, 25)),
    ],
)
def test_spaces_case_and_zeros_that_cannot_be_mistaken_do_not_matter(text: str, layout: str, day: date) -> None:
    """As common programs write them."""
    assert (
        TimeFormat(layout, "UTC").parse_day(text, "A")
        == TimeFormat(layout, "UTC").parse_instant(text, "A").date()
        == day
    )


@pytest.mark.parametrize("layout", ["%d.%m. %H:%M", "%H:%M", "%Y-%m-%d %Z", "%c", "%Y-%m-%d %Y", "2026", "%Y-%"])
def test_a_format_without_a_year_or_that_machines_read_differently_is_refused(layout: str) -> None:
    """A day without a year would be one of 1900."""
    with pytest.raises(ValueError, match="year|alike|valid date format|not a date format"):
        raise_if_invalid_time_format(layout)


def test_a_format_with_hours_of_twelve_needs_am_or_pm() -> None:
    """12:30 would be half past midnight, and all other times of an afternoon bad values."""
    with pytest.raises(ValueError, match="has hours of 12 without AM or PM; add %p, or use %H"):
        raise_if_invalid_time_format("%d.%m.%Y %I:%M")
    raise_if_invalid_time_format("%m/%d/%Y %I:%M %p")


BERLIN = [  # the local time, and the hours in UTC that it may be
    ("2026-10-25 02:30", 0, 1),  # twice
    ("2026-03-29 02:30", 0, 1),  # never: an hour later, or earlier, by the clocks before and after the change
]


@pytest.mark.parametrize(("text", "earlier", "later"), BERLIN)
@pytest.mark.parametrize("layout", [None, "%Y-%m-%d %H:%M"])
def test_a_local_time_at_a_change_of_clocks_follows_the_declared_rule(
    text: str, earlier: int, later: int, layout: str | None
) -> None:
    """It is rejected by default; the message does not advise a guess."""
    for rule, hour in (("earlier", earlier), ("later", later)):
        found = TimeFormat(layout, "Europe/Berlin", rule).parse_instant(text, "A")  # type: ignore[arg-type]  # one of them
        assert (found.hour, found.minute) == (hour, 30)
    with pytest.raises(RecordError, match="where the clocks change, and no rule says"):
        TimeFormat(layout, "Europe/Berlin").parse_instant(text, "A")
    offset = TimeFormat(None, "Europe/Berlin").parse_instant(f"{text}+02:00", "A")
    assert (offset.hour, offset.minute) == (0, 30)


@pytest.mark.parametrize(
    ("text", "layout"),
    [("2026-11-25T24:00", None), ("2026-11-25 24:00:00.000", None), ("202611252400", "%Y%m%d%H%M")],
)
def test_24_00_is_the_end_of_the_day_where_that_is_declared(text: str, layout: str | None) -> None:
    """And only without minutes; otherwise it is refused, by every version of Python."""
    assert TimeFormat(layout, "UTC", hour_24=True).parse_instant(text, "A") == datetime(2026, 11, 26, tzinfo=UTC)
    for times, each in ((TimeFormat(layout, "UTC"), text), (TimeFormat(layout, "UTC", hour_24=True), text[:-1] + "1")):
        with pytest.raises(RecordError, match="is not a"):
            times.parse_instant(each, "A")


def test_a_number_in_json_is_the_time_of_unix_only_where_that_is_declared() -> None:
    """An instant that is a number is refused otherwise."""
    order = record(at=1793520000, ms=1793520000123, text="1793520000")
    moment = datetime(2026, 11, 1, 8, tzinfo=UTC)
    assert order.instant("/at", layout="unix") == order.instant("/text", layout="unix") == moment
    assert order.instant("/ms", layout="unix_ms") == moment + timedelta(milliseconds=123)
    with pytest.raises(RecordError):
        order.instant("/at")
