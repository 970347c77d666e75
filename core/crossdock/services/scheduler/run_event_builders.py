"""The notification about a scheduled run: what happened, and what is new since the previous run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import datetime, timedelta

from msgspec import Struct

from crossdock.config.project.project import Project
from crossdock.config.schedules.due_times import Due
from crossdock.config.schedules.job_and_schedule_config import JobConfig
from crossdock.errors import CrossdockError
from crossdock.runs.run_report import Report
from crossdock.runs.session_shared_by_runs import Session
from crossdock.services.notifications.run_events_and_messages import RunOverdue, RunWaiting, ScheduledRunEnded, Status
from crossdock.state import DueRun, ScheduledRun, Transaction
from crossdock.values.clock import Clock
from crossdock.values.periodic_background_calls import call_periodically_in_thread
from crossdock.values.run_messages import RunMessage, error_texts
from crossdock.values.tally import NOTHING_OPEN, OpenCounts

WATCH_S = 5.0  # between looks at the deadline of a run
LATE = timedelta(minutes=5)
"""A run that has not started this long after its due time is reported."""


def could_not_start_event(job: str, one: Due, *messages: RunMessage) -> ScheduledRunEnded:
    return ScheduledRunEnded(
        job=job,
        business_date=one.business_date,
        due=one.instant,
        run_id=None,
        status="failed",
        seconds=0.0,
        requests=0,
        messages=messages,
        previous=None,
    )


def run_ended_event(job: str, one: Due, report: Report) -> ScheduledRunEnded:
    return replace(
        could_not_start_event(job, one),
        run_id=report.run,
        status=report.status,
        seconds=report.seconds,
        requests=report.counters.requests,
        open=report.all_open,
        messages=tuple(report.messages),
    )


def event_with_previous_if_readable(
    project: Project, event: ScheduledRunEnded, due: datetime, earlier: ScheduledRun | None = None
) -> ScheduledRunEnded:
    with suppress(CrossdockError), project.read_state() as tx:
        return event_with_previous_run(tx, event, due, earlier)
    return event


def event_with_previous_run(
    tx: Transaction, event: ScheduledRunEnded, due: datetime, earlier: ScheduledRun | None = None
) -> ScheduledRunEnded:
    """Add the facts of the job's previous run to *event*; for a run that could not begin, also the run with the reason.

    *earlier* is the previous attempt of a retried run, which replaces the previous run.
    """
    if event.run_id is None:
        known = tx.scheduled_runs.get(event.job, due, event.business_date)
        event = replace(
            event, run_id=known.run_id if known is not None and known.with_shown_status.is_finished else None
        )
    earlier = None if earlier is None else earlier.with_shown_status
    if earlier is not None and (earlier.run_id is None or not earlier.is_finished):
        earlier = None
    if earlier is None and event.run_id is not None and tx.runs.follows_failed_start(event.run_id):
        return replace(event, previous="failed")
    previous = previous_run(tx, event.job, due) if earlier is None else as_previous_run(tx, earlier)
    if previous is None:
        return event
    repeated = previous.is_still_degraded_without_news(due, event.status, event.open)
    if earlier is not None and earlier.status == event.status and earlier.run_id is not None:
        repeated = repeated or error_texts(tx.runs.messages(earlier.run_id)) == error_texts(event.messages) != []
    return replace(event, previous=previous.status, repeated=repeated and not _follows_pending_notice(tx, event, due))


def _follows_pending_notice(tx: Transaction, event: ScheduledRunEnded, due: datetime) -> bool:
    """Return whether people may not know of an earlier run of the job. Then *event* is not a repetition for them."""
    found = [*tx.scheduled_runs.pending_notices("own"), *tx.scheduled_runs.pending_notices("fleet")]
    return any(each.job == event.job and each.run_id != event.run_id and each.due <= due for each in found)


def overdue_event_if_late(
    name: str, job: JobConfig, at: Due, now: datetime, expected_end: datetime
) -> RunOverdue | None:
    """Return the event of an unfinished run, unless it is expected to end by `done_by`."""
    done_by = job.deadline(at.instant)
    if done_by is None or max(now, expected_end) <= done_by:
        return None
    zone = job.schedule.zone
    expected = expected_end.astimezone(zone) if expected_end > now else None
    return RunOverdue(name, at.business_date, expected, done_by.astimezone(zone))


def event_if_not_started_in_time(
    name: str, job: JobConfig, at: Due, now: datetime, expected_s: float, reason: str | None
) -> RunOverdue | RunWaiting | None:
    """Return the event of a run that is due and has not started because of *reason*; None as long as it is not late."""
    event = overdue_event_if_late(name, job, at, now, now + timedelta(seconds=expected_s))
    if event is None and reason is not None and now - at.instant > LATE:
        return RunWaiting(name, at.business_date, at.instant, reason)
    return event


@contextmanager
def reporting_run_if_overdue(
    session: Session, due_run: DueRun, clock: Clock, tell: Callable[[RunOverdue], None]
) -> Iterator[None]:
    """Call *tell* once if the run in this context is expected to end after `done_by`, or has not ended by then.

    *tell* is called in a thread of its own if the run has begun.
    """
    job, at = session.project.jobs[due_run.job], Due(due_run.due, due_run.business_date)
    expected = session.state.run_read_only(lambda tx: tx.scheduled_runs.expected_seconds_and_requests(due_run.job))
    expected_end = clock.now() + timedelta(seconds=expected[0] if expected is not None else 0.0)

    def is_in_time() -> bool:
        event = overdue_event_if_late(due_run.job, job, at, clock.now(), expected_end)
        if event is not None:
            tell(event)
        return event is None

    with (
        call_periodically_in_thread(is_in_time, WATCH_S, "deadline")
        if job.done_by is not None and is_in_time()
        else nullcontext()
    ):
        yield


REMIND_AFTER = timedelta(days=7)  # and again after as long, while a job stays degraded


class PreviousRun(Struct, frozen=True):
    """The last run of a job that was not skipped. *degraded_since* is None if it was not degraded."""

    due: datetime
    status: Status
    open: OpenCounts
    degraded_since: datetime | None

    def is_still_degraded_without_news(self, due: datetime, status: Status, now_open: OpenCounts) -> bool:
        """Return whether the next run is degraded like this one, with no more open records, and no reminder is due."""
        if status != "degraded" or self.degraded_since is None or now_open.has_any_more_than(self.open):
            return False
        return (due - self.degraded_since) // REMIND_AFTER == (self.due - self.degraded_since) // REMIND_AFTER


def previous_run(tx: Transaction, job: str, due: datetime) -> PreviousRun | None:
    for run in tx.scheduled_runs.listed(limit=50, job=job):
        if run.due < due and run.status not in {"running", "skipped"}:
            return as_previous_run(tx, run)
    return None


def as_previous_run(tx: Transaction, run: ScheduledRun) -> PreviousRun:
    assert run.status != "running"
    record = tx.runs.get(run.run_id) if run.run_id is not None else None
    since = tx.scheduled_runs.degraded_since(run.job, run.due + timedelta.resolution)
    left = record.open_record_counts if record is not None else None
    return PreviousRun(run.due, run.status, left or NOTHING_OPEN, since)
