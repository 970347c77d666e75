"""Windows in which no run starts."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest
from tests.unit.scheduling.wallclock import schedule, utc

from crossdock.config.schedules.due_times import (
    DueTime,
    blackout_windows_between,
    due_times_between,
    first_instant_outside_blackouts,
)

FREEZE = {"from": "2026-12-24T12:00:00+01:00", "to": "2026-12-27T12:00:00+01:00"}


@pytest.mark.parametrize(
    ("blackouts", "asked", "free"),
    [
        pytest.param([], utc(2026, 6, 1, 2), utc(2026, 6, 1, 2), id="none"),
        pytest.param([{"from": "02:00", "to": "06:00"}], utc(2026, 6, 1, 2), utc(2026, 6, 1, 4), id="inside"),
        pytest.param([{"from": "02:00", "to": "06:00"}], utc(2026, 6, 1), utc(2026, 6, 1, 4), id="at its begin"),
        pytest.param([{"from": "02:00", "to": "06:00"}], utc(2026, 6, 1, 4), utc(2026, 6, 1, 4), id="at its end"),
        pytest.param([{"from": "22:00", "to": "06:00"}], utc(2026, 6, 1, 21), utc(2026, 6, 2, 4), id="before midnight"),
        pytest.param([{"from": "22:00", "to": "06:00"}], utc(2026, 6, 1, 23), utc(2026, 6, 2, 4), id="after midnight"),
        pytest.param([{"from": "22:00", "to": "00:00"}], utc(2026, 6, 1, 21), utc(2026, 6, 1, 22), id="to midnight"),
        pytest.param(
            [{"from": "22:00", "to": "02:00"}, {"from": "01:00", "to": "03:00"}, {"from": "03:00", "to": "04:00"}],
            utc(2026, 6, 1, 21),
            utc(2026, 6, 2, 2),
            id="one after the other",
        ),
        pytest.param([FREEZE], utc(2026, 12, 25), utc(2026, 12, 27, 11), id="between instants"),
        pytest.param(
            [FREEZE, {"from": "08:00", "to": "18:00"}],
            utc(2026, 12, 24, 11),
            utc(2026, 12, 27, 17),
            id="out of the one into the other",
        ),
        pytest.param(
            [{"from": "01:00", "to": "02:30"}], utc(2026, 10, 25, 0), utc(2026, 10, 25, 1, 30), id="to the second 02:30"
        ),
        pytest.param(
            [{"from": "02:30", "to": "04:00"}],
            utc(2026, 10, 25, 0, 45),
            utc(2026, 10, 25, 3),
            id="from the first 02:30",
        ),
        pytest.param(
            [{"from": "01:00", "to": "02:30"}], utc(2026, 3, 29, 0), utc(2026, 3, 29, 1), id="to a time that is skipped"
        ),
        pytest.param(
            [{"from": "02:15", "to": "02:45"}], utc(2026, 3, 29, 1), utc(2026, 3, 29, 1), id="skipped as a whole"
        ),
    ],
)
def test_the_first_instant_at_which_something_may_start(
    blackouts: list[dict[str, str]], asked: datetime, free: datetime
) -> None:
    """In Berlin."""
    assert first_instant_outside_blackouts(schedule(at="00:00", blackouts=blackouts), asked) == free


def test_runs_held_back_by_a_freeze_are_due_at_its_end() -> None:
    """Three runs are held back; none is lost or merged, and each keeps its business date."""
    plan = schedule(at="20:00", blackouts=[FREEZE])
    end = utc(2026, 12, 27, 11)
    held = [DueTime(end, date(2026, 12, day)) for day in (24, 25, 26)]
    assert list(due_times_between(plan, utc(2026, 12, 24, 12), utc(2026, 12, 28))) == [
        *held, DueTime(utc(2026, 12, 27, 19), date(2026, 12, 27)),
    ]  # fmt: skip
    assert list(due_times_between(plan, utc(2026, 12, 26, 23), end)) == held
    assert list(due_times_between(plan, end, utc(2026, 12, 27, 12))) == []


@pytest.mark.parametrize(
    ("zone", "windows", "at", "asked", "expected"),
    [
        pytest.param(
            "UTC",
            [("01:00", "03:00"), ("03:00", "04:00")],
            "02:00",
            utc(2026, 6, 1, 3, 30),
            DueTime(utc(2026, 6, 1, 4), date(2026, 6, 1)),
            id="two that touch",
        ),
        pytest.param(
            "Pacific/Apia",
            [("22:00", "06:00")],
            "23:00",
            utc(2011, 12, 30, 13),
            DueTime(utc(2011, 12, 30, 16), date(2011, 12, 29)),
            id="over a skipped day",
        ),
        pytest.param(
            "America/St_Johns",
            [("00:00", "06:00")],
            "00:00",
            utc(2010, 11, 7, 3),
            DueTime(utc(2010, 11, 7, 9, 30), date(2010, 11, 7)),
            id="begun, when the clocks went back to the day before",
        ),
    ],
)
def test_what_a_window_holds_back_is_known_within_it(
    zone: str, windows: list[tuple[str, str]], at: str, asked: datetime, expected: DueTime
) -> None:
    """A query that starts inside a window finds everything that is due at its end."""
    plan = schedule(time_zone=zone, at=at, blackouts=[{"from": begin, "to": end} for begin, end in windows])
    assert first_instant_outside_blackouts(plan, asked) == expected.instant
    assert next(due_times_between(plan, asked, expected.instant)) == expected


def test_steps_of_one_date_are_merged_at_the_end() -> None:
    """Of the runs of one date that a window holds back, one is left."""
    plan = schedule(every="15m", blackouts=[{"from": "08:00", "to": "18:00"}])
    found = list(due_times_between(plan, utc(2026, 6, 1, 5, 30), utc(2026, 6, 1, 16, 15)))
    assert [one.instant for one in found] == [utc(2026, 6, 1, 5, 45), utc(2026, 6, 1, 16), utc(2026, 6, 1, 16, 15)]


def test_instants_hold_in_whatever_offset_they_are_written() -> None:
    """A freeze may be written with any offset."""
    said: dict[str, Any] = {"from": "2026-12-24T03:00:00-08:00", "to": "2026-12-24T12:00Z"}
    assert first_instant_outside_blackouts(schedule(at="00:00", blackouts=[said]), utc(2026, 12, 24, 11)) == utc(
        2026, 12, 24, 12
    )


def test_windows_between_two_instants() -> None:
    """Each once, in order, and also those that only reach into the time."""
    found = blackout_windows_between(
        schedule(at="02:00", blackouts=[FREEZE, {"from": "22:00", "to": "06:00"}]),
        utc(2026, 12, 24, 1),
        utc(2026, 12, 25, 12),
    )
    nights = [(utc(2026, 12, day, 21), utc(2026, 12, day + 1, 5)) for day in (23, 24)]
    freeze = utc(2026, 12, 24, 11), utc(2026, 12, 27, 11)
    assert found == [nights[0], freeze, nights[1]]
