"""Why a run of a job has not begun although it is due."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime

from msgspec import Struct

from crossdock.config.schedules.due_times import first_due_per_business_date
from crossdock.config.schedules.job_and_schedule_config import JobConfig
from crossdock.services.scheduler.due_and_skipped_runs import DATES_AHEAD
from crossdock.state import RunRecord, Transaction
from crossdock.values.texts_of_numbers_and_times import instant_text

_LATEST = 5  # runs: one in progress is among them


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
    for run in tx.runs.listed(limit=_LATEST):
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
        each.business_date == day for each in first_due_per_business_date(job.schedule, now - DATES_AHEAD, now)
    )
    return not is_due or name in tx.scheduled_runs.paused_jobs()
