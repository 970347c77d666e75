"""On which days a schedule runs. Working days are Monday to Friday without the holidays."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Collection, Iterator
from datetime import date, timedelta

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY_NAMES = (*WEEKDAYS, "weekdays", "first_working_day", "last_working_day")
ONE_DAY = timedelta(days=1)


def is_working(day: date, holidays: Collection[date]) -> bool:
    return day.weekday() < 5 and day not in holidays


def days_of_month(day: date) -> Iterator[date]:
    """All days of the month of *day*."""
    return (day.replace(day=number) for number in range(1, monthrange(day.year, day.month)[1] + 1))


def runs_on(day: date, days: Collection[str | int], holidays: Collection[date], *, moves: bool) -> bool:
    """True if a schedule of these *days* runs on *day*.

    Args:
        days: Of `DAY_NAMES`, and numbers from 1 to 31. A month that lacks a number has it on its last day.
        moves: True if what falls on a holiday runs on the next working day. What is due there anyway runs once.
    """
    if day in holidays:
        return False
    return _is_named(day, days, holidays) or (moves and _takes_over(day, days, holidays))


def _is_named(day: date, days: Collection[str | int], holidays: Collection[date]) -> bool:
    if WEEKDAYS[day.weekday()] in days or ("weekdays" in days and day.weekday() < 5):
        return True
    if day.day in days:
        return True
    if (day + ONE_DAY).day == 1 and any(isinstance(number, int) and number > day.day for number in days):
        return True
    if not is_working(day, holidays) or not {"first_working_day", "last_working_day"}.intersection(days):
        return False
    working = [other for other in days_of_month(day) if is_working(other, holidays)]
    return (day == working[0] and "first_working_day" in days) or (day == working[-1] and "last_working_day" in days)


def _takes_over(day: date, days: Collection[str | int], holidays: Collection[date]) -> bool:
    """True if *day* is the next working day after a holiday on which the schedule would have run."""
    if not is_working(day, holidays):
        return False
    earlier = day - ONE_DAY
    while not is_working(earlier, holidays):
        if earlier in holidays and _is_named(earlier, days, holidays):
            return True
        earlier -= ONE_DAY
    return False
