"""The days on which a schedule runs. Working days are Monday to Friday, except holidays."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Collection, Iterator
from datetime import date, timedelta

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY_NAMES = (*WEEKDAYS, "weekdays", "first_working_day", "last_working_day")
ONE_DAY = timedelta(days=1)


def is_working_day(day: date, holidays: Collection[date]) -> bool:
    return day.weekday() < 5 and day not in holidays


def all_days_of_month(day: date) -> Iterator[date]:
    return (day.replace(day=number) for number in range(1, monthrange(day.year, day.month)[1] + 1))


def runs_on(day: date, named: Callable[[date], bool], holidays: Collection[date], *, moves: bool) -> bool:
    """Return whether a schedule runs on *day*. If it *moves*, a run on a holiday is on the next working day, once."""
    return day not in holidays and (named(day) or (moves and _is_moved_from_holiday(day, named, holidays)))


def is_one_of_named_days(day: date, days: Collection[str | int], holidays: Collection[date]) -> bool:
    """Return whether *day* is in *days*: names and 1 to 31. The last day of a month also has the numbers it lacks."""
    if WEEKDAYS[day.weekday()] in days or ("weekdays" in days and day.weekday() < 5) or day.day in days:
        return True
    if (day + ONE_DAY).day == 1 and any(isinstance(number, int) and number > day.day for number in days):
        return True
    if not is_working_day(day, holidays) or not {"first_working_day", "last_working_day"}.intersection(days):
        return False
    working = [other for other in all_days_of_month(day) if is_working_day(other, holidays)]
    return (day == working[0] and "first_working_day" in days) or (day == working[-1] and "last_working_day" in days)


def _is_moved_from_holiday(day: date, named: Callable[[date], bool], holidays: Collection[date]) -> bool:
    """Return whether *day* is the next working day after a holiday that the schedule names."""
    if not is_working_day(day, holidays):
        return False
    earlier = day - ONE_DAY
    while not is_working_day(earlier, holidays):
        if earlier in holidays and named(earlier):
            return True
        earlier -= ONE_DAY
    return False
