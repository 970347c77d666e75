"""Ended runs that people may not know of: the process was killed after their end, or a channel failed.

The transaction that ends a run marks it, and the mark is removed once every channel has accepted the message. So people
are notified at least once, and a second time if the process is killed between the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import date, datetime, timedelta

from crossdock.config.project.project import Project
from crossdock.errors import CrossdockError, text_with_code
from crossdock.services.notifications.notifier import Notifier, are_people_told
from crossdock.services.notifications.run_events_and_messages import Event, ScheduledRunEnded, kinds_of_event
from crossdock.services.scheduler.run_event_builders import event_with_previous_run
from crossdock.state import PendingNotice, Recipients, Transaction
from crossdock.state.tables.run_history import COMPLETED, UNRECORDED
from crossdock.values.clock import Clock
from crossdock.values.run_messages import RunMessage, warning_texts
from crossdock.values.tally import NOTHING_OPEN

Send = Callable[[Event], Sequence[str]]
"""Sends an event if it is selected, and returns a sentence for each channel that failed."""

IN_PROGRESS = timedelta(seconds=30)  # the process that executed it may still notify people: see `Notifier.notify`
FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=5), timedelta(days=1)
"""Between attempts to tell people of a run, after a channel failed. Each pause is twice the one before."""
_MOST = 20  # messages in a row; the others follow at the next call
_AGAIN = "It is tried again."


def duration_of_pause_after_failures(failures: int) -> timedelta:
    return min(LONGEST_PAUSE, FIRST_PAUSE * (1 << min(failures - 1, 10)))


def is_pause_over(until: datetime, now: datetime) -> bool:
    """Return whether a pause after failures is over. A clock that was ahead has set an end later than any pause."""
    return not now < until <= now + LONGEST_PAUSE


def send_pending_and_new_notice(project: Project, send: Send, event: ScheduledRunEnded, clock: Clock) -> list[str]:
    """Send what people were not notified of before, then *event*. Return a sentence for each channel that failed."""

    def is_left(old: ScheduledRunEnded) -> bool:
        return old.run_id != event.run_id and not _makes_event_redundant(event, old)

    problems = send_pending_notices(project, send, clock, is_left)
    found = send(event)
    _try_store_notice_status(project, event, delivered=are_people_told(found))
    return list(dict.fromkeys([*problems, *found]))


def notify_of_killed_run(project: Project, send: Send, clock: Clock, job: str) -> list[str]:
    """Send the event of a run of *job* whose process was killed: the process of its next attempt may be killed too."""

    def is_wanted(event: ScheduledRunEnded) -> bool:
        return event.job == job and any(each.code == UNRECORDED.code for each in event.messages)

    return send_pending_notices(project, send, clock, is_wanted, older_than=timedelta())


def send_pending_notices(
    project: Project,
    send: Send,
    clock: Clock,
    is_wanted: Callable[[ScheduledRunEnded], bool] = lambda _: True,
    *,
    older_than: timedelta = IN_PROGRESS,
) -> list[str]:
    """Send the events of runs that people may not know of, oldest first, until a channel fails.

    Return a sentence for each channel that failed. A state that cannot be used is reported elsewhere.
    """
    seen, problems = set[int](), list[str]()
    with suppress(CrossdockError):
        while len(seen) < _MOST:
            event = _next_pending_event(project, clock.now() - older_than, seen)
            if event is None:
                break
            if is_wanted(event):
                problems += (found := send(event))
                if not are_people_told(found):
                    break
                _try_store_notice_status(project, event, delivered=True)
    return list(dict.fromkeys(problems))


def _next_pending_event(project: Project, ended_before: datetime, seen: set[int]) -> ScheduledRunEnded | None:
    """Return the next event, compared again: the message before may have made it a repetition."""
    with project.read_state() as tx:
        for run in tx.scheduled_runs.pending_notices("own"):
            if run.run_id not in seen:
                seen.add(run.run_id)
                event = event_of_run(tx, project, run, ended_before)
                if event is not None:
                    return event
    return None


def event_of_run(
    tx: Transaction, project: Project, run: PendingNotice, ended_before: datetime
) -> ScheduledRunEnded | None:
    """Return the event of an ended run from its row; None if the run is gone or ended later.

    One that ended much later ended when the clock was ahead.
    """
    record = tx.runs.get(run.run_id)
    if record is None or record.finished_at is None:
        return None
    if ended_before < record.finished_at <= ended_before + IN_PROGRESS:
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
    if event.run_id is None or old.run_id >= event.run_id or not kinds_of_event(event):
        return False
    if event.status == "degraded":
        return old_status == "degraded" and set(warning_texts(old_messages)) <= set(event.warnings)
    return event.status not in COMPLETED and old_status not in COMPLETED and old.due == event.due


def notify_of_event_and_pending(loaded: Project, event: Event, clock: Clock) -> tuple[str, ...]:
    """Send *event*, and what people were not notified of before. Return a sentence for each channel that failed."""
    send = notification_sender_of_project(loaded, clock)
    return tuple(
        send_pending_and_new_notice(loaded, send, event, clock) if isinstance(event, ScheduledRunEnded) else send(event)
    )


def notification_sender_of_project(loaded: Project, clock: Clock) -> Send:
    if loaded.notify is None:
        return lambda _: ()
    try:
        return Notifier(loaded.notify, clock).notify
    except CrossdockError as error:  # a secret that is missing on this host
        problem = text_with_code(error)
        return lambda _: (problem,)
