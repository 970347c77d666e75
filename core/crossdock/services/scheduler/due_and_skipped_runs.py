"""The scheduled runs that may start now, and those that are skipped, with reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from typing import Literal, Protocol

from msgspec import Struct, field

from crossdock.config.schedules.blackouts import first_instant_outside
from crossdock.config.schedules.due_times import (
    Due,
    all_due_after,
    due_between,
    first_due_per_business_date,
    runs_to_catch_up,
)
from crossdock.config.schedules.job_and_schedule_config import JobConfig, jobs_in_order
from crossdock.state import ScheduledRun, SkippedRun

AHEAD = timedelta(days=366)  # how far the next run is searched
DATES_AHEAD = timedelta(days=2)  # a run is due on its business date or on the day after


class DueJob(Struct):
    """The unfinished runs of one job.

    Runs due after *on_time_since* were not missed, even if they had to wait. The next call of `plan_all` takes it.
    """

    job: str
    on_time_since: datetime
    starts: list[Due] = field(default_factory=list)
    skipped: list[SkippedRun] = field(default_factory=list)


class KnownRuns(Protocol):
    """The known scheduled runs of a state: see `ScheduledRuns` in `crossdock.state.tables`."""

    def paused_jobs(self) -> set[str]: ...

    def get_or_register_first_seen(self, job: str, at: datetime) -> datetime: ...

    def last_finished_run(self, job: str) -> ScheduledRun | None: ...

    def is_in_progress(self, job: str, business_date: date) -> bool: ...


class DueJobs:
    def __init__(self, jobs: Mapping[str, JobConfig]) -> None:
        self._jobs = jobs

    def plan_all(self, known: KnownRuns, now: datetime, on_time_since: Mapping[str, datetime]) -> list[DueJob]:
        """Plan each job at *now*, in the order of `JobConfig.after`. The plan of a paused job is empty.

        Runs due after *on_time_since* were not missed; earlier ones are subject to `catch_up`. The only write to the
        state is the start time of a new job.
        """
        paused = known.paused_jobs()
        return [
            DueJob(name, now) if name in paused else self._plan_job(known, name, now, on_time_since[name])
            for name in jobs_in_order(self._jobs)
        ]

    def run_to_start(self, known: KnownRuns, plan: DueJob, plans: list[DueJob], now: datetime) -> Due | None:
        """Return the first run of *plan*, unless a blackout or a job in `after` holds it back."""
        job = self._jobs[plan.job]
        if not plan.starts or first_instant_outside(job.schedule, now) > now:
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
        found = ((name, next(due_between(job.schedule, now, now + AHEAD), None)) for name, job in self._jobs.items())
        return {name: one.instant for name, one in found if one is not None}

    def due_between(self, now: datetime, until: datetime) -> Iterator[tuple[str, Due]]:
        found = [(one, name) for name, job in self._jobs.items() for one in due_between(job.schedule, now, until)]
        for one, name in sorted(found):
            yield name, one

    def _is_still_to_run(self, known: KnownRuns, job: str, day: date, now: datetime) -> bool:
        last = known.last_finished_run(job)
        if job in known.paused_jobs() or (last is not None and last.business_date >= day):
            return False
        coming = first_due_per_business_date(self._jobs[job].schedule, now, now + DATES_AHEAD)
        return any(one.business_date == day for one in coming)

    def _plan_job(self, known: KnownRuns, name: str, now: datetime, on_time_since: datetime) -> DueJob:
        job = self._jobs[name]
        since, last = known.get_or_register_first_seen(name, now), known.last_finished_run(name)
        after = Due(last.due, last.business_date) if last else since
        asked = list(all_due_after(job.schedule, after, now))
        on_time = [one for one in asked if one.instant > on_time_since]
        wanted = {*on_time, *runs_to_catch_up(job.schedule, asked, now)}
        plan = DueJob(name, on_time[0].instant - timedelta.resolution if on_time else now)
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


def _was_due_during_last_run(last: ScheduledRun, one: Due) -> bool:
    return (
        last.started_at is not None
        and last.finished_at is not None
        and last.started_at < one.instant < last.finished_at
    )
