"""Blackouts: windows in which nothing starts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from crossdock.config.schedules.calendar_days import ONE_DAY
from crossdock.config.schedules.job_and_schedule_config import Schedule
from crossdock.values.time_zones import first_instant_showing, last_instant_showing, local_time

Window = tuple[datetime, datetime]


def first_instant_outside(schedule: Schedule, instant: datetime) -> datetime:
    """Return the first instant from *instant* on that is outside all blackouts."""
    while ends := [end for begin, end in _windows_around(schedule, instant) if begin <= instant < end]:
        instant = max(ends)
    return instant


def start_of_blackouts_or_instant(schedule: Schedule, instant: datetime) -> datetime:
    """Return the start of the unbroken series of blackouts that reaches *instant*, or *instant* itself."""
    while begins := [begin for begin, end in _windows_around(schedule, instant) if begin < instant <= end]:
        instant = min(begins)
    return instant


def windows_between(schedule: Schedule, since: datetime, until: datetime) -> list[Window]:
    """Return the windows that overlap the time from *since* to *until*, in order."""
    days = range((until - since).days + 2)
    found = {window for number in days for window in _windows_around(schedule, since + number * ONE_DAY)}
    return sorted((begin, end) for begin, end in found if begin < until and end > since)


def _windows_around(schedule: Schedule, around: datetime) -> Iterator[Window]:
    for blackout in schedule.blackouts:
        if blackout.instants_unless_daily:
            yield blackout.instants_unless_daily
        if blackout.times:
            begin, end = blackout.times
            today = local_time(around, schedule.zone).date()
            # Two days back: one for windows through midnight, one for clocks set back over midnight or a skipped day.
            for day in (today - 2 * ONE_DAY, today - ONE_DAY, today, today + ONE_DAY):
                closing = day if begin < end else day + ONE_DAY
                yield (
                    first_instant_showing(datetime.combine(day, begin), schedule.zone),
                    last_instant_showing(datetime.combine(closing, end), schedule.zone),
                )
