"""On which dates a schedule runs: names, numbers, holidays."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.scheduling.wallclock import ONE_DAY, schedule, utc

from crossdock.config.schedules.due_times import due_times_between


def run_days(first: date, last: date, **said: Any) -> list[date]:
    """The dates from *first* to *last* on which a schedule at noon runs."""
    begin, end = utc(first.year, first.month, first.day), utc(last.year, last.month, last.day, 23)
    return [one.business_date for one in due_times_between(schedule(at="12:00", **said), begin, end)]


@pytest.mark.parametrize(
    ("said", "month", "expected"),
    [
        pytest.param({"days": ["mon", "sun"]}, 2, [1, 2, 8, 9, 15, 16, 22, 23], id="names"),
        pytest.param({"days": "sat"}, 2, [7, 14, 21, 28], id="one name, no list"),
        pytest.param(
            {"days": "weekdays"}, 5, [1, *range(4, 9), *range(11, 16), *range(18, 23), *range(25, 30)], id="weekdays"
        ),
        pytest.param({"days": "last_working_day"}, 5, [29], id="last working day"),
        pytest.param({"days": "first_working_day"}, 8, [3], id="first working day"),
        pytest.param({"days": "last_working_day", "holidays": ["2026-05-29"]}, 5, [28], id="last before a holiday"),
        pytest.param({"days": "first_working_day", "holidays": ["2026-05-01"]}, 5, [4], id="first after a holiday"),
        pytest.param({"days": [15, 1]}, 2, [1, 15], id="numbers"),
        pytest.param({"days": [31]}, 2, [28], id="a number that February lacks"),
        pytest.param({"days": [31]}, 4, [30], id="a number that April just lacks"),
        pytest.param({"days": [29, 30, 31]}, 2, [28], id="three numbers that February lacks"),
        pytest.param({"days": [30, 31]}, 4, [30], id="a number there and one lacking, on one day"),
        pytest.param({"days": [30]}, 5, [30], id="a number that is not the last day"),
        pytest.param({"days": ["fri", 1]}, 5, [1, 8, 15, 22, 29], id="two reasons, one run"),
        pytest.param({"days": "fri", "holidays": ["2026-05-01"]}, 5, [8, 15, 22, 29], id="skipped"),
        pytest.param(
            {"days": "fri", "holidays": ["2026-05-01"], "on_holiday": "next_working_day"},
            5,
            [4, 8, 15, 22, 29],
            id="moved past a weekend",
        ),
        pytest.param(
            {"days": [14, 18], "holidays": ["2026-05-14", "2026-05-15"], "on_holiday": "next_working_day"},
            5,
            [18],
            id="moved onto a day that runs",
        ),
        pytest.param(
            {"days": [16], "holidays": ["2026-05-16"], "on_holiday": "next_working_day"},
            5,
            [18],
            id="a holiday on Saturday",
        ),
        pytest.param(
            {"days": [15], "holidays": ["2026-05-14"], "on_holiday": "next_working_day"},
            5,
            [15],
            id="a holiday that asks for nothing moves nothing",
        ),
        pytest.param({"days": [16], "on_holiday": "next_working_day"}, 5, [16], id="a Saturday is no holiday"),
    ],
)
def test_a_month_has_these_run_days(said: dict[str, Any], month: int, expected: list[int]) -> None:
    """Months of 2026."""
    last = date(2026, month + 1, 1) - ONE_DAY
    assert run_days(date(2026, month, 1), last, **said) == [date(2026, month, day) for day in expected]


def test_a_moved_run_may_leave_its_month() -> None:
    """The last day of the year, a holiday before another one and a weekend, runs on the fourth of January."""
    said = {"days": [31], "holidays": [date(2026, 12, 31), date(2027, 1, 1)], "on_holiday": "next_working_day"}
    assert run_days(date(2026, 12, 1), date(2027, 1, 20), **said) == [date(2027, 1, 4)]


@given(st.sets(st.dates(date(2026, 1, 1), date(2026, 2, 28)), max_size=20), st.sampled_from(["first", "last"]))
def test_a_month_has_one_first_and_one_last_working_day(holidays: set[date], which: str) -> None:
    """It is the first or last of the Mondays to Fridays that are no holidays, found by listing them."""
    for month, last in ((1, 31), (2, 28)):
        dates = [date(2026, month, number) for number in range(1, last + 1)]
        working = [day for day in dates if day.isoweekday() <= 5 and day not in holidays]
        said = {"days": f"{which}_working_day", "holidays": sorted(holidays)}
        assert run_days(dates[0], dates[-1], **said) == [working[0 if which == "first" else -1]]


@given(st.sets(st.dates(date(2026, 5, 1), date(2026, 5, 31)), max_size=12), st.sets(st.integers(1, 31), min_size=1))
def test_every_holiday_that_would_run_is_taken_over(holidays: set[date], numbers: set[int]) -> None:
    """Each date that is asked for runs itself, or its next working day does; nothing else runs."""
    wanted = {date(2026, 5, number) for number in numbers}
    expected = set()
    for day in wanted:
        if day in holidays:
            while day in holidays or day.isoweekday() > 5:
                day += ONE_DAY  # noqa: PLW2901  walking on
        expected.add(day)
    said = {"days": sorted(numbers), "holidays": sorted(holidays), "on_holiday": "next_working_day"}
    found = run_days(date(2026, 5, 1), date(2026, 6, 15), **said)
    in_june = {date(2026, 6, min(number, 30)) for number in numbers if min(number, 30) <= 15}
    assert found == sorted(expected | in_june)


def test_holidays_and_days_hold_for_every_so_often_too() -> None:
    """Every six hours on weekdays, without a holiday."""
    plan = schedule(every="6h", days="weekdays", holidays=["2026-05-14"])
    found = due_times_between(plan, utc(2026, 5, 13, 22), utc(2026, 5, 17, 21))
    assert [one.business_date for one in found] == [date(2026, 5, 15)] * 4
