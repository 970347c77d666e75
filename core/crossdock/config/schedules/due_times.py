"""The due times of a schedule, outside its blackouts, for preview, scheduler, trigger and catch-up."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from itertools import chain, count, islice, takewhile

from msgspec import Struct

from crossdock.config.schedules.job_and_schedule_config import ONE_DAY, Schedule, is_run_day
from crossdock.values.time_formats_and_zones import (
    first_instant_of_local_time,
    last_instant_of_local_time,
    naive_local_time_at,
)

Window = tuple[datetime, datetime]


def first_instant_outside_blackouts(schedule: Schedule, instant: datetime) -> datetime:
    """Return the first instant from *instant* on that is outside all blackouts."""
    while ends := [end for begin, end in _windows_around(schedule, instant) if begin <= instant < end]:
        instant = max(ends)
    return instant


def start_of_blackouts_or_instant(schedule: Schedule, instant: datetime) -> datetime:
    """Return the start of the unbroken series of blackouts that reaches *instant*, or *instant* itself."""
    while begins := [begin for begin, end in _windows_around(schedule, instant) if begin < instant <= end]:
        instant = min(begins)
    return instant


def blackout_windows_between(schedule: Schedule, since: datetime, until: datetime) -> list[Window]:
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
            today = naive_local_time_at(around, schedule.zone).date()
            # Two days back: one for windows through midnight, one for clocks set back over midnight or a skipped day.
            for day in (today - 2 * ONE_DAY, today - ONE_DAY, today, today + ONE_DAY):
                closing = day if begin < end else day + ONE_DAY
                yield (
                    first_instant_of_local_time(datetime.combine(day, begin), schedule.zone),
                    last_instant_of_local_time(datetime.combine(closing, end), schedule.zone),
                )


class DueTime(Struct, frozen=True, order=True):
    """One run that a schedule requests. Runs of several business dates may share an *instant* after a blackout."""

    instant: datetime
    business_date: date


def due_times_between(schedule: Schedule, since: datetime, until: datetime) -> Iterator[DueTime]:
    """Yield what is due after *since* and not after *until*, in order. Parts of a span give the same as the whole."""
    return chain.from_iterable(_due_runs_grouped_by_day(schedule, _utc(since), _utc(until)))


def first_due_time_per_business_date(schedule: Schedule, since: datetime, until: datetime) -> Iterator[DueTime]:
    """Yield the first run of `due_times_between` for each business date, without looking for the others."""
    return chain.from_iterable(
        islice(of_day, 1) for of_day in _due_runs_grouped_by_day(schedule, _utc(since), _utc(until))
    )


def due_times_after(schedule: Schedule, last: DueTime | datetime, until: datetime) -> Iterator[DueTime]:
    """Yield what is due after the run *last*, or after an instant, and not after *until*, in order."""
    if isinstance(last, datetime):
        return due_times_between(schedule, last, until)
    return (one for one in due_times_between(schedule, last.instant - timedelta.resolution, until) if one > last)


def runs_to_catch_up(schedule: Schedule, asked: Iterable[DueTime], now: datetime) -> list[DueTime]:
    """Return the missed runs of *asked* to catch up with, in order. Blackouts that began since are not considered."""
    if schedule.catch_up == "none":
        return []
    earliest = _utc(now) - schedule.within
    recent = (one for one in asked if one.instant > earliest)
    return list(recent if schedule.catch_up == "all" else deque(recent, maxlen=1))


def _due_runs_grouped_by_day(schedule: Schedule, since: datetime, until: datetime) -> Iterator[Iterator[DueTime]]:
    planned_since = start_of_blackouts_or_instant(schedule, since)
    day = naive_local_time_at(planned_since, schedule.zone).date()
    moves = schedule.on_holiday == "next_working_day"
    while _beginning_of_day(schedule, day) <= until:
        if is_run_day(day, schedule.names, schedule.holidays, moves=moves):
            yield (each for each in _due_runs_of_day(schedule, day, planned_since, until) if each.instant > since)
        day += ONE_DAY


def _due_runs_of_day(schedule: Schedule, day: date, since: datetime, until: datetime) -> Iterator[DueTime]:
    business_date = day - timedelta(days=schedule.business_date == "previous_day")
    latest: datetime | None = None
    for planned in _planned_instants(schedule, day, since):
        if latest is not None and planned <= latest:  # the clocks or a blackout move it to the same instant
            continue
        latest = first_instant_outside_blackouts(schedule, planned)
        if latest > until:
            return
        yield DueTime(latest, business_date)


def _planned_instants(schedule: Schedule, day: date, since: datetime) -> Iterable[datetime]:
    if schedule.step is not None:
        begin, end = _beginning_of_day(schedule, day), _beginning_of_day(schedule, day + ONE_DAY)
        first = begin + max(0, -((begin - since) // schedule.step)) * schedule.step
        return takewhile(lambda instant: instant < end, (first + number * schedule.step for number in count()))
    if schedule.line is not None and schedule.line.has_wildcard_time:
        return _instants_of_clock_times(schedule, day)
    return (first_instant_of_local_time(datetime.combine(day, at), schedule.zone) for at in schedule.times)


def _instants_of_clock_times(schedule: Schedule, day: date) -> list[datetime]:
    """Return every instant of *day* at which the clocks show one of the times: none if skipped, two if repeated."""
    begin, end = _beginning_of_day(schedule, day), _beginning_of_day(schedule, day + ONE_DAY)
    locals_ = [datetime.combine(day, at) for at in schedule.times]
    if end - begin == ONE_DAY and naive_local_time_at(begin, schedule.zone).time() == time():
        midnight = datetime.combine(day, time())
        return [begin + (local - midnight) for local in locals_]
    folds = (local.replace(tzinfo=schedule.zone, fold=fold) for local in locals_ for fold in (0, 1))
    instants = {
        local.astimezone(UTC)
        for local in folds
        if naive_local_time_at(local.astimezone(UTC), schedule.zone) == local.replace(tzinfo=None, fold=0)
    }
    return sorted(instant for instant in instants if begin <= instant < end)


def _beginning_of_day(schedule: Schedule, day: date) -> datetime:
    """Return the first instant of a local day; for a skipped day, that of the next."""
    return first_instant_of_local_time(datetime.combine(day, time()), schedule.zone)


def _utc(instant: datetime) -> datetime:
    if instant.tzinfo is None:
        raise ValueError("the time has no time zone")
    return instant.astimezone(UTC)
