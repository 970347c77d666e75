"""Events of scheduled runs, and ended runs that people may not know of: a process was killed, or a channel failed.

The transaction that ends a run marks it, and the mark is removed once every channel has accepted the message. So people
are notified at least once, and a second time if the process is killed between the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import date, datetime, timedelta

from msgspec import Struct

from crossdock.config.project.project import Project
from crossdock.config.schedules.due_times import DueTime
from crossdock.config.schedules.job_and_schedule_config import JobConfig
from crossdock.errors import CrossdockError, text_with_code
from crossdock.runs.run_report import Report
from crossdock.runs.session_shared_by_runs import Session
from crossdock.services.notifications.mail_and_webhook_notifier import Notifier, have_all_channels_accepted
from crossdock.services.notifications.run_events_and_messages import (
    Event,
    RunOverdue,
    RunWaiting,
    ScheduledRunEnded,
    Status,
    notification_kinds_of_event,
)
from crossdock.state import DueRun, PendingNotice, Recipients, ScheduledRun, Transaction
from crossdock.state.tables.run_history import COMPLETED, UNRECORDED
from crossdock.values.clock import Clock, call_periodically_in_thread
from crossdock.values.run_progress_and_messages import RunMessage, error_texts, warning_texts
from crossdock.values.run_states_and_tally import NOTHING_OPEN, OpenCounts

WATCH_S = 5.0  # between looks at the deadline of a run
LATE_START_AFTER = timedelta(minutes=5)
"""A run that has not started this long after its due time is reported."""


def could_not_start_event(job: str, one: DueTime, *messages: RunMessage) -> ScheduledRunEnded:
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


def run_ended_event(job: str, one: DueTime, report: Report) -> ScheduledRunEnded:
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
    name: str, job: JobConfig, at: DueTime, now: datetime, expected_end: datetime
) -> RunOverdue | None:
    """Return the event of an unfinished run, unless it is expected to end by `done_by`."""
    done_by = job.deadline(at.instant)
    if done_by is None or max(now, expected_end) <= done_by:
        return None
    zone = job.schedule.zone
    expected = expected_end.astimezone(zone) if expected_end > now else None
    return RunOverdue(name, at.business_date, expected, done_by.astimezone(zone))


def event_if_not_started_in_time(
    name: str, job: JobConfig, at: DueTime, now: datetime, expected_s: float, reason: str | None
) -> RunOverdue | RunWaiting | None:
    """Return the event of a run that is due and has not started because of *reason*; None as long as it is not late."""
    event = overdue_event_if_late(name, job, at, now, now + timedelta(seconds=expected_s))
    if event is None and reason is not None and now - at.instant > LATE_START_AFTER:
        return RunWaiting(name, at.business_date, at.instant, reason)
    return event


@contextmanager
def reporting_run_if_overdue(
    session: Session, due_run: DueRun, clock: Clock, tell: Callable[[RunOverdue], None]
) -> Iterator[None]:
    """Call *tell* once if the run in this context is expected to end after `done_by`, or has not ended by then.

    *tell* is called in a thread of its own if the run has begun.
    """
    job, at = session.project.jobs[due_run.job], DueTime(due_run.due, due_run.business_date)
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


SendEvent = Callable[[Event], Sequence[str]]
"""Sends an event if it is selected, and returns a sentence for each channel that failed."""

NOTIFYING_LASTS_AT_MOST = timedelta(
    seconds=30
)  # the process that executed it may still notify people: see `Notifier.notify`
FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=5), timedelta(days=1)
"""Between attempts to tell people of a run, after a channel failed. Each pause is twice the one before."""
_MOST_NOTICES_IN_A_ROW = 20  # messages in a row; the others follow at the next call
_AGAIN = "It is tried again."


def duration_of_pause_after_failures(failures: int) -> timedelta:
    return min(LONGEST_PAUSE, FIRST_PAUSE * (1 << min(failures - 1, 10)))


def is_pause_over(until: datetime, now: datetime) -> bool:
    """Return whether a pause after failures is over. A clock that was ahead has set an end later than any pause."""
    return not now < until <= now + LONGEST_PAUSE


def send_pending_and_new_notice(project: Project, send: SendEvent, event: ScheduledRunEnded, clock: Clock) -> list[str]:
    """Send what people were not notified of before, then *event*. Return a sentence for each channel that failed."""

    def is_left(old: ScheduledRunEnded) -> bool:
        return old.run_id != event.run_id and not _makes_event_redundant(event, old)

    problems = send_pending_notices(project, send, clock, is_left)
    found = send(event)
    _try_store_notice_status(project, event, delivered=have_all_channels_accepted(found))
    return list(dict.fromkeys([*problems, *found]))


def send_notices_of_killed_runs(project: Project, send: SendEvent, clock: Clock, job: str) -> list[str]:
    """Send the event of a run of *job* whose process was killed: the process of its next attempt may be killed too."""

    def is_wanted(event: ScheduledRunEnded) -> bool:
        return event.job == job and any(each.code == UNRECORDED.code for each in event.messages)

    return send_pending_notices(project, send, clock, is_wanted, older_than=timedelta())


def send_pending_notices(
    project: Project,
    send: SendEvent,
    clock: Clock,
    is_wanted: Callable[[ScheduledRunEnded], bool] = lambda _: True,
    *,
    older_than: timedelta = NOTIFYING_LASTS_AT_MOST,
) -> list[str]:
    """Send the events of runs that people may not know of, oldest first, until a channel fails.

    Return a sentence for each channel that failed. A state that cannot be used is reported elsewhere.
    """
    seen, problems = set[int](), list[str]()
    with suppress(CrossdockError):
        while len(seen) < _MOST_NOTICES_IN_A_ROW:
            event = _next_pending_event(project, clock.now() - older_than, seen)
            if event is None:
                break
            if is_wanted(event):
                problems += (found := send(event))
                if not have_all_channels_accepted(found):
                    break
                _try_store_notice_status(project, event, delivered=True)
    return list(dict.fromkeys(problems))


def _next_pending_event(project: Project, ended_before: datetime, seen: set[int]) -> ScheduledRunEnded | None:
    """Return the next event, compared again: the message before may have made it a repetition."""
    with project.read_state() as tx:
        for run in tx.scheduled_runs.pending_notices("own"):
            if run.run_id not in seen:
                seen.add(run.run_id)
                event = event_of_ended_run_or_none(tx, project, run, ended_before)
                if event is not None:
                    return event
    return None


def event_of_ended_run_or_none(
    tx: Transaction, project: Project, run: PendingNotice, ended_before: datetime
) -> ScheduledRunEnded | None:
    """Return the event of an ended run from its row; None if the run is gone or ended later.

    One that ended much later ended when the clock was ahead.
    """
    record = tx.runs.get(run.run_id)
    if record is None or record.finished_at is None:
        return None
    if ended_before < record.finished_at <= ended_before + NOTIFYING_LASTS_AT_MOST:
        return None
    day, job = date.fromisoformat(record.business_date), project.jobs.get(run.job)
    event = ScheduledRunEnded(
        job=run.job,
        business_date=day,
        due=run.due if job is None else run.due.astimezone(job.schedule.zone),
        run_id=run.run_id,
        status=record.status,  # type: ignore[arg-type]  # of an ended run
        seconds=record.duration.total_seconds() if record.duration is not None else 0.0,
        requests=record.requests,
        messages=tuple(_with_retry_advice(tx, run, day, record.messages)),
        previous=None,
        open=record.open_record_counts or NOTHING_OPEN,
    )
    return event_with_previous_run(tx, event, run.due)


def _with_retry_advice(
    tx: Transaction, run: PendingNotice, day: date, messages: Iterable[RunMessage]
) -> Iterable[RunMessage]:
    known = tx.scheduled_runs.get(run.job, run.due, day)
    is_open = known is not None and not known.is_finished
    return (replace(each, advice=_AGAIN) if is_open and each == UNRECORDED else each for each in messages)


def store_notice_status(tx: Transaction, recipients: Recipients, event: ScheduledRunEnded, *, delivered: bool) -> None:
    """Store whether *recipients* know of *event*."""
    if event.run_id is None or event.due is None:
        return
    if not delivered:
        tx.scheduled_runs.add_pending_notice(PendingNotice(event.run_id, event.job, event.due), [recipients])
        return
    tx.scheduled_runs.remove_sent_notices([event.run_id, *_runs_made_redundant_by(tx, recipients, event)], recipients)


def _try_store_notice_status(project: Project, event: ScheduledRunEnded, *, delivered: bool) -> None:
    """Store it if the state can be written. The state is opened for writing only if something changes."""
    with suppress(CrossdockError):
        with project.read_state() as tx:
            is_marked = any(each.run_id == event.run_id for each in tx.scheduled_runs.pending_notices("own"))
            is_stored = is_marked != delivered and not (delivered and _runs_made_redundant_by(tx, "own", event))
        if not is_stored:
            with closing(project.open_state()) as state, state.begin() as tx:
                store_notice_status(tx, "own", event, delivered=delivered)


def _runs_made_redundant_by(tx: Transaction, recipients: Recipients, event: ScheduledRunEnded) -> list[int]:
    """Return the marked runs about which *event* says all that people need to know, and those that are forgotten."""
    found = []
    for run in tx.scheduled_runs.pending_notices(recipients):
        record = tx.runs.get(run.run_id)
        if record is None or (
            run.job == event.job and _makes_notice_redundant(event, run, record.status, record.messages)
        ):
            found.append(run.run_id)
    return found


def _makes_event_redundant(event: ScheduledRunEnded, old: ScheduledRunEnded) -> bool:
    if old.job != event.job or old.run_id is None or old.due is None:
        return False
    return _makes_notice_redundant(event, PendingNotice(old.run_id, old.job, old.due), old.status, old.messages)


def _makes_notice_redundant(
    event: ScheduledRunEnded, old: PendingNotice, old_status: str, old_messages: Iterable[RunMessage]
) -> bool:
    """Return whether *event* has the open records and warnings of an earlier degraded run, or is the next attempt that
    failed.
    """
    if event.run_id is None or old.run_id >= event.run_id or not notification_kinds_of_event(event):
        return False
    if event.status == "degraded":
        return old_status == "degraded" and set(warning_texts(old_messages)) <= set(event.warnings)
    return event.status not in COMPLETED and old_status not in COMPLETED and old.due == event.due


def send_event_and_pending_notices(loaded: Project, event: Event, clock: Clock) -> tuple[str, ...]:
    """Send *event*, and what people were not notified of before. Return a sentence for each channel that failed."""
    send = event_sender_of_project(loaded, clock)
    return tuple(
        send_pending_and_new_notice(loaded, send, event, clock) if isinstance(event, ScheduledRunEnded) else send(event)
    )


def event_sender_of_project(loaded: Project, clock: Clock) -> SendEvent:
    if loaded.notify is None:
        return lambda _: ()
    try:
        return Notifier(loaded.notify, clock).notify
    except CrossdockError as error:  # a secret that is missing on this host
        problem = text_with_code(error)
        return lambda _: (problem,)
