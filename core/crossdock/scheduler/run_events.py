"""The notification about a scheduled run: what happened, and what is new since the run before."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from crossdock.notifications.events import ScheduledRunEnded
from crossdock.runs.run_report import Report
from crossdock.scheduler.repeated_runs import previous_run
from crossdock.scheduler.stderr_log import first_error
from crossdock.scheduling.due_times import Due
from crossdock.state import Transaction


def could_not_start(job: str, one: Due, error: str | None) -> ScheduledRunEnded:
    """A run that was due and could not start."""
    return ScheduledRunEnded(
        job=job,
        business_date=one.business_date,
        due=one.instant,
        run_id=None,
        status="failed",
        seconds=0.0,
        requests=0,
        error=error,
        previous=None,
    )


def ended(job: str, one: Due, report: Report) -> ScheduledRunEnded:
    """A run that has ended."""
    return replace(
        could_not_start(job, one, first_error(report)),
        run_id=report.run,
        status=report.status,
        seconds=report.seconds,
        requests=report.counters.requests,
        open=report.all_open,
        warnings=tuple(report.warnings),
    )


def compared(tx: Transaction, event: ScheduledRunEnded, due: datetime) -> ScheduledRunEnded:
    """*event* with what is known of the job's previous run."""
    previous = previous_run(tx, event.job, due)
    if previous is None:
        return event
    repeated = previous.is_repeated_by(due, event.status, event.open)
    return replace(event, previous=previous.status, repeated=repeated)
