"""The scheduled runs that may start now, are skipped or delayed, with reasons, and those of the next days."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from itertools import islice
from typing import Any, Literal, Protocol

from msgspec import Struct, field

from crossdock.config.schedules.due_times import (
    DueTime,
    due_times_after,
    due_times_between,
    first_due_time_per_business_date,
    first_instant_outside_blackouts,
    runs_to_catch_up,
)
from crossdock.config.schedules.job_and_schedule_config import JobConfig, Schedule, jobs_in_order
from crossdock.state import RunRecord, ScheduledRun, SkippedRun, Transaction
from crossdock.values.texts_of_numbers_and_times import instant_text
from crossdock.values.time_formats_and_zones import first_instant_of_local_time

SEARCHED_AHEAD = timedelta(days=366)  # how far the next run is searched
DATES_AHEAD = timedelta(days=2)  # a run is due on its business date or on the day after


class DueRunsOfJob(Struct):
    """The unfinished runs of one job.

    Runs due after *on_time_since* were not missed, even if they had to wait. The next call of `plan_all` takes it.
    """

    job: str
    on_time_since: datetime
    starts: list[DueTime] = field(default_factory=list)
    skipped: list[SkippedRun] = field(default_factory=list)


class KnownRuns(Protocol):
    """The known scheduled runs of a state: see `ScheduledRuns` in `crossdock.state.tables`."""

    def paused_jobs(self) -> set[str]: ...

    def get_or_register_first_seen(self, job: str, at: datetime) -> datetime: ...

    def last_finished_run(self, job: str) -> ScheduledRun | None: ...

    def is_in_progress(self, job: str, business_date: date) -> bool: ...


class DueRunPlanner:
    def __init__(self, jobs: Mapping[str, JobConfig]) -> None:
        self._jobs = jobs

    def plan_due_runs_of_all_jobs(
        self, known: KnownRuns, now: datetime, on_time_since: Mapping[str, datetime]
    ) -> list[DueRunsOfJob]:
        """Plan each job at *now*, in the order of `JobConfig.after`. The plan of a paused job is empty.

        Runs due after *on_time_since* were not missed; earlier ones are subject to `catch_up`. The only write to the
        state is the start time of a new job.
        """
        paused = known.paused_jobs()
        return [
            DueRunsOfJob(name, now) if name in paused else self._plan_job(known, name, now, on_time_since[name])
            for name in jobs_in_order(self._jobs)
        ]

    def first_run_unless_held_back(
        self, known: KnownRuns, plan: DueRunsOfJob, plans: list[DueRunsOfJob], now: datetime
    ) -> DueTime | None:
        """Return the first run of *plan*, unless a blackout or a job in `after` holds it back."""
        job = self._jobs[plan.job]
        if not plan.starts or first_instant_outside_blackouts(job.schedule, now) > now:
            return None
        first = plan.starts[0]
        unfinished = {other.job: {start.business_date for start in other.starts} for other in plans}
        waits = any(
            first.business_date in unfinished.get(other, ())
            or known.is_in_progress(other, first.business_date)
            or self._is_still_to_run(known, other, first.business_date, now)
            for other in job.after
        )
        return None if waits else first

    def next_due_by_job(self, now: datetime) -> dict[str, datetime]:
        """Return when each job is due next. A job that is not due within a year is left out."""
        found = (
            (name, next(due_times_between(job.schedule, now, now + SEARCHED_AHEAD), None))
            for name, job in self._jobs.items()
        )
        return {name: one.instant for name, one in found if one is not None}

    def due_between(self, now: datetime, until: datetime) -> Iterator[tuple[str, DueTime]]:
        found = [(one, name) for name, job in self._jobs.items() for one in due_times_between(job.schedule, now, until)]
        for one, name in sorted(found):
            yield name, one

    def _is_still_to_run(self, known: KnownRuns, job: str, day: date, now: datetime) -> bool:
        last = known.last_finished_run(job)
        if job in known.paused_jobs() or (last is not None and last.business_date >= day):
            return False
        coming = first_due_time_per_business_date(self._jobs[job].schedule, now, now + DATES_AHEAD)
        return any(one.business_date == day for one in coming)

    def _plan_job(self, known: KnownRuns, name: str, now: datetime, on_time_since: datetime) -> DueRunsOfJob:
        job = self._jobs[name]
        since, last = known.get_or_register_first_seen(name, now), known.last_finished_run(name)
        after = DueTime(last.due, last.business_date) if last else since
        asked = list(due_times_after(job.schedule, after, now))
        on_time = [one for one in asked if one.instant > on_time_since]
        wanted = {*on_time, *runs_to_catch_up(job.schedule, asked, now)}
        plan = DueRunsOfJob(name, on_time[0].instant - timedelta.resolution if on_time else now)
        for one in asked:
            status: Literal["failed", "skipped"] = "skipped"
            if one not in wanted:
                note = f"catch_up: {job.schedule.catch_up}"
            elif job.overlap != "queue" and last is not None and _was_due_during_last_run(last, one):
                note = f"due while the run for {last.business_date} was running"
                status = "failed" if job.overlap == "forbid" else "skipped"
            else:
                plan.starts.append(one)
                continue
            plan.skipped.append(SkippedRun(name, one.instant, one.business_date, status, note))
        return plan


def _was_due_during_last_run(last: ScheduledRun, one: DueTime) -> bool:
    return (
        last.started_at is not None
        and last.finished_at is not None
        and last.started_at < one.instant < last.finished_at
    )


_LATEST_RUNS_LOOKED_AT = 5  # runs: one in progress is among them


class StartDelay(Struct, frozen=True):
    """The reason: a *run* in progress, or an earlier *job*, that it begins after; otherwise nothing has started it."""

    text: str
    run: RunRecord | None = None
    job: str = ""


def explain_start_delay(
    tx: Transaction, jobs: Mapping[str, JobConfig], name: str, day: date, now: datetime
) -> StartDelay:
    """Return why *name* has not begun for the business date *day*, which is due by *now*."""
    for other in jobs[name].after:
        if not _has_job_ended_for_day(tx, jobs[other], other, day, now):
            return StartDelay(f"it begins after {other}, which has not ended for {day}", job=other)
    for run in tx.runs.listed(limit=_LATEST_RUNS_LOOKED_AT):
        if run.status != "running":
            continue
        what = f"job {run.job}" if run.job else run.command or "started by hand"
        since = instant_text(run.started_at)
        return StartDelay(
            f"run {run.id} ({what}) has been in progress since {since}, and it begins after that", run=run
        )
    last = max(
        (each.started_at for each in tx.scheduled_runs.latest_by_job().values() if each.started_at), default=None
    )
    since = "" if last is None else f"; the last scheduled run began at {instant_text(last)}"
    return StartDelay(f"no scheduler has started it, and no run is in its way{since}")


def _has_job_ended_for_day(tx: Transaction, job: JobConfig, name: str, day: date, now: datetime) -> bool:
    found = tx.scheduled_runs.runs_of_business_date(name, day)
    if found:
        return all(each.is_finished for each in found)
    is_due = any(
        each.business_date == day for each in first_due_time_per_business_date(job.schedule, now - DATES_AHEAD, now)
    )
    return not is_due or name in tx.scheduled_runs.paused_jobs()


MOST_COUNTED = 1_500  # runs of a day: one a minute
_INSTANT, _ONE_DAY = timedelta.resolution, timedelta(days=1)


class PreviewedDay(Struct, frozen=True):
    """The runs of one job on one local day: the first ones, how many there are, and when the last one begins.

    Attributes:
        number: None if they were not counted, because they are more than `MOST_COUNTED`.
    """

    first: Sequence[Mapping[str, Any]]
    number: int | None
    last_begins: datetime


def preview_rows(tx: Transaction, jobs: Mapping[str, JobConfig], now: datetime, days: int) -> list[dict[str, Any]]:
    """Return the runs that are due in the next *days*, in their order. Times are in the zone of each job."""
    rows = {name: _JobRows(tx, name, job) for name, job in jobs.items()}
    return [
        rows[name].row_of_due_run(due) for name, due in DueRunPlanner(jobs).due_between(now, now + timedelta(days=days))
    ]


def previewed_runs_by_day(
    tx: Transaction, name: str, job: JobConfig, now: datetime, days: int, *, listed: int
) -> dict[date, PreviewedDay]:
    """Return the days of *job* on which runs begin from *now* on. At most *listed* are in `PreviewedDay.first`."""
    schedule, rows, until = job.schedule, _JobRows(tx, name, job), now + timedelta(days=days)
    today, found = now.astimezone(schedule.zone).date(), dict[date, PreviewedDay]()
    for day in (today + timedelta(days=number) for number in range(days + 1)):
        begin, end = (
            first_instant_of_local_time(datetime.combine(each, time()), schedule.zone) for each in (day, day + _ONE_DAY)
        )
        since, before = max(now, begin - _INSTANT), min(until, end - _INSTANT)
        due = list(islice(due_times_between(schedule, since, before), MOST_COUNTED + 1))
        if due:
            is_counted = len(due) <= MOST_COUNTED
            last = due[-1] if is_counted else _last_due_in_span(schedule, since, before)
            number = len(due) if is_counted else None
            found[day] = PreviewedDay(
                [rows.row_of_due_run(each) for each in due[:listed]], number, last.instant.astimezone(schedule.zone)
            )
    return found


def _last_due_in_span(schedule: Schedule, since: datetime, until: datetime) -> DueTime:
    """Return the last run of a span with some, without looking at all."""
    back = 2 * (schedule.step or _ONE_DAY)
    while not (found := deque(due_times_between(schedule, max(since, until - back), until), maxlen=1)):
        back *= 2
    return found[0]


class _JobRows:
    def __init__(self, tx: Transaction, name: str, job: JobConfig) -> None:
        self._name, self._zone = name, job.schedule.zone
        self._expected = tx.scheduled_runs.expected_seconds_and_requests(name)

    def row_of_due_run(self, due: DueTime) -> dict[str, Any]:
        seconds, requests = self._expected or (None, None)
        ends = None if seconds is None else due.instant + timedelta(seconds=seconds)
        return {
            "job": self._name,
            "business_date": due.business_date,
            "begins": due.instant.astimezone(self._zone),
            "expected_end": None if ends is None else ends.astimezone(self._zone),
            "expected_requests": requests,
        }
