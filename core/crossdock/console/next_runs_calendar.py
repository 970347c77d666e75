"""The next runs of each job as a calendar, with what moves or hinders them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta

from msgspec import Struct

from crossdock.config.schedules.blackouts import windows_between
from crossdock.config.schedules.job_and_schedule_config import JobConfig, Schedule
from crossdock.console.page_tables import Table, table
from crossdock.services.scheduler.schedule_preview import MOST_COUNTED, PreviewedDay, previewed_runs_by_day
from crossdock.state import Transaction
from crossdock.values.texts_of_numbers_and_times import count_with_noun, duration_text
from crossdock.values.time_zones import clock_change_instants_and_shifts

DAYS = 14
_EACH = 3  # most runs of a day that are listed one by one
_Days = Mapping[date, Sequence[str]]


class NextRunsCalendar(Struct, frozen=True):
    """*days* has a row for each day and a column for each job. *notes* say what holds for a job as a whole."""

    days: Table
    notes: Sequence[str]
    changes: Sequence[str]


def make_next_runs_calendar(tx: Transaction, jobs: Mapping[str, JobConfig], now: datetime) -> NextRunsCalendar:
    until = now + timedelta(days=DAYS)
    found = {name: previewed_runs_by_day(tx, name, job, now, DAYS, listed=_EACH) for name, job in jobs.items()}
    changes = [
        change
        for zone in sorted({job.schedule.time_zone for job in jobs.values()})
        for change in _clock_changes(zone, jobs, now, until)
    ]
    hindered = {name: _holidays_and_blackouts(job.schedule, now, until) for name, job in jobs.items()}
    days = sorted(
        {
            now.astimezone(job.schedule.zone).date() + timedelta(days=number)
            for job in jobs.values()
            for number in range(DAYS + 1)
        }
    )
    changed = {day for day, _ in changes}
    rows = (
        (
            f"{day:%a %Y-%m-%d}" + (", clocks change" if day in changed else ""),
            *([*_run_texts(found[name].get(day)), *hindered[name].get(day, [])] for name in jobs),
        )
        for day in days
    )
    return NextRunsCalendar(
        table(("day", *jobs), rows, kind="days"),
        [
            _job_schedule_sentence(name, job, is_paused=name in tx.scheduled_runs.paused_jobs())
            for name, job in jobs.items()
        ],
        [text for _, text in changes],
    )


def _run_texts(of_day: PreviewedDay | None) -> Iterator[str]:
    """Describe the runs of one job on one day."""
    if of_day is None:
        return
    if of_day.number is None or of_day.number > _EACH:
        number = f"more than {MOST_COUNTED:,} runs" if of_day.number is None else count_with_noun(of_day.number, "run")
        yield f"{number}, {of_day.first[0]['begins']:%H:%M} to {of_day.last_begins:%H:%M}"
        return
    for row in of_day.first:
        begins, ends, requests = row["begins"], row["expected_end"], row["expected_requests"]
        until = "" if ends is None else f", ends about {ends:%H:%M}"
        number = "" if requests is None else f", about {count_with_noun(requests, 'request')}"
        is_of = "" if row["business_date"] == begins.date() else f", for {row['business_date']}"
        yield f"{begins:%H:%M}{is_of}{until}{number}"


def _holidays_and_blackouts(schedule: Schedule, now: datetime, until: datetime) -> _Days:
    found: dict[date, list[str]] = defaultdict(list)
    for day in schedule.holidays:
        found[day].append("holiday")
    for begin, end in windows_between(schedule, now, until):
        first, last = begin.astimezone(schedule.zone), end.astimezone(schedule.zone)
        shown = f"{last:%H:%M}" if last.date() == first.date() else f"{last:%a %H:%M}"
        found[max(first, now.astimezone(schedule.zone)).date()].append(f"blackout {first:%H:%M} to {shown}")
    return found


def _clock_changes(
    zone_name: str, jobs: Mapping[str, JobConfig], now: datetime, until: datetime
) -> Iterator[tuple[date, str]]:
    zone = next(job.schedule.zone for job in jobs.values() if job.schedule.time_zone == zone_name)
    for instant, by in clock_change_instants_and_shifts(zone, now, until):
        before, after = (instant - timedelta(seconds=1)).astimezone(zone), instant.astimezone(zone)
        way = "forward" if by > timedelta() else "back"
        meant = "times between are skipped" if by > timedelta() else "times between come twice"
        shown = f"{before + timedelta(seconds=1):%H:%M}"
        text = f"{before:%a %Y-%m-%d}: the clocks of {zone_name} go {way} by {duration_text(abs(by))}, from {shown} to "
        yield before.date(), f"{text}{after:%H:%M}; {meant}."


def _job_schedule_sentence(name: str, job: JobConfig, *, is_paused: bool) -> str:
    schedule = job.schedule
    when = f"every {schedule.every}" if schedule.every else f"at {', '.join(schedule.at or ())}"
    when = f"by the crontab line {schedule.cron}" if schedule.cron else when
    after = f", after {', '.join(job.after)}" if job.after else ""
    done_by = f", to be done by {job.done_by}" if job.done_by else ""
    paused = " It is paused: nothing starts until it is resumed." if is_paused else ""
    return f"{name}: {when} in {schedule.time_zone}{after}{done_by}.{paused}"
