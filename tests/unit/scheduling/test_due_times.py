"""When a schedule is due, compared with a walk through every minute."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.scheduling import wallclock
from tests.unit.scheduling.wallclock import ODD_SPANS, ONE_DAY, Span, schedule, utc

from crossdock.config.schedules.due_times import DueTime, due_times_between, first_due_time_per_business_date
from crossdock.config.schedules.job_and_schedule_config import WEEKDAYS, Schedule

ZONES = [
    "America/New_York", "Europe/Berlin", "Asia/Beirut", "Africa/Cairo", "America/Santiago", "America/Havana",
    "America/Nuuk", "Australia/Lord_Howe",
]  # fmt: skip
FIRST = date(2025, 1, 15)
HALF_HOURS = [f"{number // 2:02}:{number % 2 * 30:02}" for number in range(48)]

clock_times = st.builds(lambda hour, minute: f"{hour:02}:{minute:02}", st.integers(0, 23), st.integers(0, 59))
windows = st.lists(st.tuples(clock_times, clock_times).filter(lambda pair: pair[0] != pair[1]), max_size=2)


def all_due(plan: Schedule, span: Span) -> list[DueTime]:
    return list(due_times_between(plan, *wallclock.bounds(span)))


def blacked_out(pairs: list[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"from": begin, "to": end} for begin, end in pairs]


@pytest.mark.nightly(but=["Asia/Beirut"])
@pytest.mark.parametrize("zone", ZONES)
def test_400_days_are_due_as_the_clocks_on_the_wall_say(zone: str) -> None:
    """Each time of every date is due when the clocks first show it, or have jumped over it."""
    span = (zone, FIRST, 400)
    times = [*HALF_HOURS[:8], "12:00", *HALF_HOURS[-4:]]
    steps = wallclock.walk(span, minutes=15)
    expected = wallclock.moved(steps, wallclock.planned(steps, times), set())
    assert all_due(schedule(time_zone=zone, at=times), span) == expected


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("at", ["00:00", "00:30", "02:30", "23:30"])
def test_each_of_400_days_is_due_once(zone: str, at: str) -> None:
    """One run per date, whatever the clocks do, for its planned business date."""
    found = all_due(schedule(time_zone=zone, at=at, business_date="previous_day"), (zone, FIRST, 400))
    assert len(found) == 400
    assert {later.business_date - one.business_date for one, later in pairwise(found)} == {ONE_DAY}
    assert found[0].business_date == found[0].instant.astimezone(ZoneInfo(zone)).date() - ONE_DAY


@pytest.mark.parametrize("span", ODD_SPANS, ids=str)
def test_odd_days_are_due_as_the_clocks_on_the_wall_say(span: Span) -> None:
    """Skipped and repeated hours, midnights and days, minute by minute."""
    times = [*HALF_HOURS, "00:01", "00:02", "01:59", "02:17", "23:01", "23:59"]
    steps = wallclock.walk(span)
    assert len({local - instant.replace(tzinfo=None) for instant, local in steps}) == 2, "no clock was changed"
    expected = wallclock.moved(steps, wallclock.planned(steps, times), set())
    assert all_due(schedule(time_zone=span[0], at=times), span) == expected


@given(st.sampled_from(ODD_SPANS), st.lists(clock_times, min_size=1, max_size=6), windows)
@settings(max_examples=examples(40))
def test_blackouts_move_what_is_due_to_their_end(span: Span, times: list[str], pairs: list[tuple[str, str]]) -> None:
    """Nothing is due in a window; what was comes at the first minute after it, for its own date."""
    try:
        plan = schedule(time_zone=span[0], at=times, blackouts=blacked_out(pairs))
    except ValueError as error:
        assert "leave no time of day" in str(error)  # noqa: PT017  two windows may
        return
    steps = wallclock.walk(span)
    shut = wallclock.closed(steps, pairs)
    inside = (steps[0][0] + ONE_DAY, steps[-1][0])  # what came from before the first step is not known to the walk
    expected = wallclock.moved(steps, wallclock.planned(steps, times), shut)
    found = list(due_times_between(plan, *inside))
    assert found == [one for one in expected if one.instant > inside[0]]
    assert not shut.intersection(one.instant for one in found)


@st.composite
def schedules(draw: st.DrawFn, zone: str, around: date) -> Schedule:
    """Any schedule whose dates lie near *around*."""
    dates = st.integers(-3, 8).map(lambda days: around + timedelta(days=days))
    day = st.sampled_from(["mon", "wed", "sun", "weekdays", "first_working_day", "last_working_day", 1, 29, 31])
    said: dict[str, object] = {
        "time_zone": zone,
        "days": draw(st.just(list(WEEKDAYS)) | st.lists(day, min_size=1, max_size=3)),
        "holidays": draw(st.lists(dates, max_size=3)),
        "on_holiday": draw(st.sampled_from(["skip", "next_working_day"])),
        "business_date": draw(st.sampled_from(["same_day", "previous_day"])),
    }
    if draw(st.booleans()):
        said["at"] = draw(st.lists(clock_times, min_size=1, max_size=4))
    else:
        said["every"] = draw(st.sampled_from(["17m", "90m", "3h", "7h", "24h"]))
    freeze = [datetime.combine(draw(dates), time.fromisoformat(draw(clock_times))) for _ in range(2)]
    said["blackouts"] = [
        *blacked_out(draw(windows.filter(lambda pairs: len(pairs) < 2))),
        *([{"from": f"{min(freeze)}+00:00", "to": f"{max(freeze)}+00:00"}] if freeze[0] != freeze[1] else []),
    ]
    return schedule(**said)


@given(st.data())
@settings(max_examples=examples(120))
def test_parts_give_what_the_whole_gives(data: st.DataObject) -> None:
    """However a span is divided, nothing is lost, repeated or out of order, also of the first runs of dates."""
    span = data.draw(st.sampled_from(ODD_SPANS))
    plan = data.draw(schedules(span[0], span[1]))
    begin, end = wallclock.bounds(span)
    whole = list(due_times_between(plan, begin, end))
    minutes = st.integers(0, (end - begin) // timedelta(minutes=1)).map(
        lambda number: begin + number * timedelta(0, 60)
    )
    at_one = st.sampled_from([one.instant for one in whole] or [begin])
    cuts = data.draw(
        st.lists(minutes | at_one | at_one.map(lambda instant: instant - timedelta.resolution), max_size=6)
    )
    ends = [begin, *sorted(cut for cut in cuts if cut >= begin), end]
    assert [one for since, until in pairwise(ends) for one in due_times_between(plan, since, until)] == whole
    assert whole == sorted(set(whole))
    firsts = {one.business_date: one for one in reversed(whole)}
    assert list(first_due_time_per_business_date(plan, begin, end)) == sorted(firsts.values())


@pytest.mark.nightly(but=["America/New_York", "Europe/Berlin", "Asia/Beirut"])
@pytest.mark.parametrize("zone", ZONES)
def test_every_so_often_has_neither_hole_nor_double(zone: str) -> None:
    """A quarter of an hour lies between any two runs of 400 days, and each is for the date that its day has."""
    found = all_due(schedule(time_zone=zone, every="15m"), (zone, FIRST, 400))
    assert {later.instant - one.instant for one, later in pairwise(found)} == {timedelta(minutes=15)}
    shown = dict(wallclock.walk((zone, FIRST, 400), minutes=15))
    assert all(one.business_date == shown[one.instant].date() for one in found)


@pytest.mark.parametrize(
    ("zone", "day", "every", "expected"),
    [
        pytest.param("Europe/Berlin", date(2026, 3, 28), "15m", 96, id="a plain day"),
        pytest.param("Europe/Berlin", date(2026, 3, 29), "15m", 92, id="spring"),
        pytest.param("Europe/Berlin", date(2026, 10, 25), "15m", 100, id="autumn"),
        pytest.param("Asia/Beirut", date(2026, 3, 29), "1h", 23, id="no midnight"),
        pytest.param("Australia/Lord_Howe", date(2026, 4, 5), "30m", 49, id="half an hour more"),
        pytest.param(
            "America/St_Johns", date(2010, 11, 6), "1h", 24, id="its last hour comes again after the next day"
        ),
        pytest.param("America/St_Johns", date(2010, 11, 7), "1h", 25, id="which has begun, and counts it"),
        pytest.param("Pacific/Apia", date(2011, 12, 30), "15m", 0, id="a skipped day"),
        pytest.param("Europe/Berlin", date(2026, 3, 28), "7h", 4, id="a last step of three hours"),
        pytest.param("Europe/Berlin", date(2026, 3, 29), "24h", 1, id="once a day"),
        pytest.param("Europe/Berlin", date(2026, 3, 28), "90s", 960, id="seconds"),
    ],
)
def test_a_day_has_as_many_steps_as_it_is_long(zone: str, day: date, every: str, expected: int) -> None:
    """Steps are counted from the first instant of each local day."""
    found = [
        one.instant
        for one in all_due(schedule(time_zone=zone, every=every), (zone, day - 2 * ONE_DAY, 5))
        if one.business_date == day
    ]
    assert len(found) == expected
    assert len({later - one for one, later in pairwise(found)}) <= 1


@pytest.mark.parametrize(
    ("zone", "at", "business_date", "day", "expected"),
    [
        pytest.param("Europe/Berlin", "02:30", "same_day", date(2026, 3, 29), utc(2026, 3, 29, 1), id="gap"),
        pytest.param("Europe/Berlin", "02:30", "same_day", date(2026, 10, 25), utc(2026, 10, 25, 0, 30), id="doubled"),
        pytest.param("Europe/Berlin", "02:30", "previous_day", date(2026, 3, 28), utc(2026, 3, 29, 1), id="day before"),
        pytest.param(
            "America/Nuuk", "23:30", "same_day", date(2026, 3, 28), utc(2026, 3, 29, 1), id="shown the day after"
        ),
        pytest.param("Africa/Cairo", "00:00", "same_day", date(2026, 4, 24), utc(2026, 4, 23, 22), id="no midnight"),
        pytest.param(
            "America/Havana", "00:30", "same_day", date(2025, 11, 2), utc(2025, 11, 2, 4, 30), id="midnight twice"
        ),
        pytest.param("Pacific/Apia", "14:00", "same_day", date(2011, 12, 30), utc(2011, 12, 30, 10), id="skipped day"),
        pytest.param(
            "Australia/Lord_Howe", "02:15", "same_day", date(2025, 10, 5), utc(2025, 10, 4, 15, 30), id="half"
        ),
    ],
)
def test_a_business_date_is_due_at_a_known_instant(
    zone: str, at: str, business_date: str, day: date, expected: datetime
) -> None:
    """Instants worked out by hand from the rules of each zone."""
    found = all_due(schedule(time_zone=zone, at=at, business_date=business_date), (zone, day - 2 * ONE_DAY, 5))
    assert [one.instant for one in found if one.business_date == day] == [expected]


def test_what_meets_at_the_end_of_a_gap_for_one_date_is_one_run() -> None:
    """Two times in one skipped hour are due once; a third one is a run of its own."""
    found = all_due(schedule(at=["02:15", "02:45", "03:30"]), ("Europe/Berlin", date(2026, 3, 29), 1))
    assert [one.instant for one in found] == [utc(2026, 3, 29, 1), utc(2026, 3, 29, 1, 30)]


def test_the_future_is_looked_at_only_as_far_as_is_asked() -> None:
    """The next run is found without computing all runs of eight thousand years."""
    coming = due_times_between(schedule(at="06:00", days="last_working_day"), utc(2026, 1, 1), utc(9990, 1, 1))
    assert [one.business_date for one in islice(coming, 3)] == [
        date(2026, 1, 30), date(2026, 2, 27), date(2026, 3, 31),
    ]  # fmt: skip


def test_nothing_is_due_backwards() -> None:
    """After a clock is set back, a span may end before it begins."""
    assert list(due_times_between(schedule(every="1m"), utc(2026, 1, 2), utc(2026, 1, 1))) == []


def test_an_instant_without_a_zone_is_refused() -> None:
    """The machine's own time zone is never assumed."""
    for since, until in (
        (utc(2026, 1, 1).replace(tzinfo=None), utc(2026, 1, 2)),
        (utc(2026, 1, 1), utc(2026, 1, 2).replace(tzinfo=None)),
    ):
        with pytest.raises(ValueError, match="no time zone"):
            next(due_times_between(schedule(at="02:30"), since, until))
