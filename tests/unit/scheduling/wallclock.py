"""An oracle for schedules: it walks through UTC step by step and reads the local time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from crossdock.config.schedules.due_times import DueTime
from crossdock.config.schedules.job_and_schedule_config import Schedule

ONE_DAY = timedelta(days=1)
Step = tuple[datetime, datetime]  # an instant, and what the clocks show
Span = tuple[str, date, int]  # a zone, a first day, and a number of days

ODD_SPANS: list[Span] = [  # all that clocks have done to a day, or nearly
    ("Pacific/Apia", date(2011, 12, 27), 7),  # 30 December was skipped
    ("Pacific/Kwajalein", date(1993, 8, 18), 7),  # 21 August was skipped
    ("Pacific/Kwajalein", date(1969, 9, 28), 7),  # a day was nearly repeated
    ("America/St_Johns", date(2010, 11, 5), 5),  # at 00:01 back to the day before
    ("America/St_Johns", date(2011, 3, 11), 5),  # at 00:01 forward
    ("America/St_Johns", date(1988, 4, 1), 5),  # by two hours
    ("Australia/Lord_Howe", date(2026, 4, 3), 5),  # by half an hour
    ("Australia/Lord_Howe", date(2025, 10, 3), 5),
    ("America/Nuuk", date(2026, 3, 27), 5),  # in the evening
    ("America/Nuuk", date(2025, 10, 24), 5),
    ("Asia/Beirut", date(2026, 3, 27), 5),  # no midnight
    ("Asia/Beirut", date(2025, 10, 24), 5),  # 23:00 to 24:00 twice
    ("Africa/Cairo", date(2026, 4, 22), 5),
    ("America/Havana", date(2025, 11, 1), 4),  # midnight twice on one date
    ("America/Havana", date(2026, 3, 6), 5),
    ("America/Santiago", date(2025, 9, 5), 5),
    ("America/Caracas", date(2007, 12, 7), 5),  # for good, by half an hour
    ("Asia/Kathmandu", date(1985, 12, 30), 5),  # by a quarter
    ("Antarctica/Troll", date(2026, 3, 27), 5),  # by two hours
    ("Europe/Dublin", date(2026, 10, 23), 5),  # winter is the exception
    ("Africa/Casablanca", date(2026, 2, 13), 5),  # Ramadan is
    ("Europe/Berlin", date(2026, 3, 27), 5),
    ("America/New_York", date(2025, 10, 31), 5),
]


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]  # the parts are those of a datetime


def schedule(**said: Any) -> Schedule:
    """A schedule, in Berlin by default."""
    return Schedule.model_validate({"time_zone": "Europe/Berlin", **said})


def bounds(span: Span) -> tuple[datetime, datetime]:
    """Both ends of *span*, in UTC."""
    _, first, days = span
    begin = datetime.combine(first, time(), UTC)
    return begin, begin + days * ONE_DAY


@cache
def walk(span: Span, *, minutes: int = 1) -> list[Step]:
    """Every step from one end of *span* to the other, both included."""
    zone, (begin, end) = ZoneInfo(span[0]), bounds(span)
    count = (end - begin) // timedelta(minutes=minutes)
    instants = (begin + number * timedelta(minutes=minutes) for number in range(count + 1))
    return [(instant, instant.astimezone(zone).replace(tzinfo=None, fold=0)) for instant in instants]


def planned(steps: Sequence[Step], times: Iterable[str]) -> list[tuple[datetime, date]]:
    """When each of *times* of each date is first reached or passed, without what was so before the first step."""
    first, last = steps[0][1].date(), steps[-1][1].date()
    dates = (first + number * ONE_DAY for number in range((last - first).days + 2))
    locals_ = sorted(datetime.combine(day, time.fromisoformat(text)) for day in dates for text in set(times))
    waiting = deque(local for local in locals_ if local > steps[0][1])
    found = []
    for instant, local in steps:
        while waiting and waiting[0] <= local:
            found.append((instant, waiting.popleft().date()))
    return found


def closed(steps: Sequence[Step], windows: Iterable[tuple[str, str]]) -> set[datetime]:
    """The instants of *steps* in daily *windows*."""
    shut: set[datetime] = set()
    first, last = steps[0][1].date() - 2 * ONE_DAY, steps[-1][1].date()
    for begin, end in windows:
        for number in range((last - first).days + 2):
            opening = datetime.combine(first + number * ONE_DAY, time.fromisoformat(begin))
            closing = datetime.combine(opening.date() + (begin > end) * ONE_DAY, time.fromisoformat(end))
            since = min((instant for instant, local in steps if local >= opening), default=None)
            until = max((instant for instant, local in steps if local == closing), default=None)
            until = until or min((instant for instant, local in steps if local >= closing), default=None)
            shut |= {at for at, _ in steps if since and since <= at and (until is None or at < until)}
    return shut


def moved(steps: Sequence[Step], runs: Iterable[tuple[datetime, date]], shut: set[datetime]) -> list[DueTime]:
    """*runs*, each at the first instant of *steps* that is not *shut*; without what would be the same run."""
    open_steps = deque(instant for instant, _ in steps if instant not in shut)
    found: list[DueTime] = []
    for planned_at, day in runs:
        while open_steps and open_steps[0] < planned_at:
            open_steps.popleft()
        if open_steps and [DueTime(open_steps[0], day)] != found[-1:]:
            found.append(DueTime(open_steps[0], day))
    return found
