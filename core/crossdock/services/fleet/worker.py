"""Executes one call of an executor, in a process on any host with crossdock, the configs and the secrets.

A text goes to the worker, and a text comes back, instead of pickled objects, so that a worker with another version of
crossdock can report it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import date, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from msgspec import structs
from pydantic import BaseModel, ConfigDict

from crossdock.config.project import project as projects
from crossdock.config.project.project import Project
from crossdock.config.schedules.due_times import DueTime
from crossdock.errors import CrossdockError, StateBusyError, as_crossdock_error, text_with_code
from crossdock.runs import session_shared_by_runs, sync_and_replay
from crossdock.runs.run_report import Report, Timings
from crossdock.runs.run_start_and_stop_requests import RunRequest
from crossdock.services.fleet.tenants_and_watched_configs import digest_of_files
from crossdock.services.notifications.run_events_and_messages import (
    ScheduledRunEnded,
    Status,
    notification_kinds_of_event,
)
from crossdock.services.observability.optional_trace_export import open_trace_export
from crossdock.services.scheduler import run_events_and_pending_notices, stderr_log
from crossdock.services.scheduler.retention_task import apply_retention_until_done
from crossdock.services.scheduler.run_events_and_pending_notices import (
    event_sender_of_project,
    send_event_and_pending_notices,
)
from crossdock.services.scheduler.scheduler import ON_TIME_BEFORE_START, log_jobs_first_seen_ahead
from crossdock.state import DueRun, SkippedRun, State, Transaction
from crossdock.state.fleet_leadership_and_jobs import JobFacts
from crossdock.values.clock import Clock, SystemClock
from crossdock.values.run_progress_and_messages import RunMessage
from crossdock.values.run_states_and_tally import OpenCounts
from crossdock.writing.targets.platform_access_and_clock_checks import compare_clock_or_raise

VERSION = version("crossdock")

CallOutcome = Literal["ended", "ended_before", "looked", "busy", "paused", "changed", "refused", "failed"]
"""How a call ended.

``ended``: with a report. ``ended_before``: the run had ended already. ``looked``: the state was looked at, as asked.
``busy``: another process uses the state. ``paused``: the job is paused. ``changed``: the config differs from the
one that the scheduler read. ``refused``: the worker cannot run it. ``failed``: the run could not start.
"""


class _JsonModel(BaseModel):
    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)


class SharedLimit(_JsonModel):
    """The bucket of tenants that share a credential, in the database with this address."""

    database: str
    name: str


class ScheduledCall(_JsonModel):
    """The order for a worker. Without a job, it only looks at the state.

    Attributes:
        digest: The digest of the contents of the files, as the scheduler read them.
        shared_limit: None if the tenant has its credential to itself.
        notify: Whether the tenant is notified separately.
        is_grouped: Whether the recipients of the fleet are notified of its runs, by the scheduler.
        notified: The ended runs of which they were notified.
        reported: The reported reason why the last call for this run could not start it.
    """

    version: str = VERSION
    tenant: str
    files: tuple[Path, ...]
    digest: str
    job: str | None = None
    due: datetime | None = None
    business_date: date | None = None
    skipped: tuple[SkippedRun, ...] = ()
    shared_limit: SharedLimit | None = None
    notify: bool = False
    is_grouped: bool = False
    notified: tuple[int, ...] = ()
    reported: str | None = None

    @property
    def due_run(self) -> DueRun | None:
        """The run; None to look only at the state."""
        if self.job is None or self.due is None or self.business_date is None:
            return None
        return DueRun(self.job, self.due, self.business_date, self.skipped)

    @property
    def due_instant_and_date(self) -> DueTime | None:
        return None if self.due is None or self.business_date is None else DueTime(self.due, self.business_date)


class RunFacts(_JsonModel):
    status: Status
    event: ScheduledRunEnded
    exit_code: int
    throttled: int
    tallies: dict[str, dict[str, int]]
    open: dict[str, OpenCounts]


class CallResult(_JsonModel):
    """The result of a worker.

    Attributes:
        message: The same as *error* for a run that could not start, with its parts.
        jobs: The facts in the state about all jobs of the tenant.
        problems: Sentences about notifications that were not sent.
        pending_notices: Earlier runs of which the recipients of the fleet may not know.
    """

    outcome: CallOutcome
    error: str | None = None
    message: RunMessage | None = None
    run: RunFacts | None = None
    jobs: tuple[JobFacts, ...] = ()
    problems: tuple[str, ...] = ()
    pending_notices: tuple[ScheduledRunEnded, ...] = ()


def sender_version(text: str) -> str:
    """Return the version of crossdock that wrote the text of a call; empty if it is missing."""
    try:
        found: Any = json.loads(text)
        return str(found["version"])
    except (ValueError, TypeError, KeyError):
        return ""


MOST_PENDING_NOTICES = 100  # runs in one result; the others follow when people were notified of these
_INTERRUPT = threading.Event()
_CALLS = threading.Condition()
_in_progress = 0


def ask_runs_to_stop() -> None:
    """Let the runs of this process settle their requests in flight and end. No run begins any more."""
    _INTERRUPT.set()


def wait_until_idle() -> None:
    with _CALLS:
        _CALLS.wait_for(lambda: _in_progress == 0)


@contextmanager
def _counted_as_in_progress() -> Iterator[None]:
    global _in_progress  # noqa: PLW0603  one number for the whole process
    with _CALLS:
        _in_progress += 1
    try:
        yield
    finally:
        with _CALLS:
            _in_progress -= 1
            _CALLS.notify_all()


def execute(text: str) -> str:
    """Execute a `ScheduledCall` and return a `CallResult`, both as JSON. Any number of threads may call it.

    Errors are results; only exceptions that end the process are raised.
    """
    if (theirs := sender_version(text)) != VERSION:
        error = f"this worker has crossdock {VERSION}, the scheduler has {theirs or 'an unknown version'}"
        return CallResult(outcome="refused", error=error).model_dump_json()
    with _counted_as_in_progress():
        return _execute_call(ScheduledCall.model_validate_json(text)).model_dump_json()


def _execute_call(call: ScheduledCall) -> CallResult:
    try:
        if digest_of_files(call.files) != call.digest:
            return CallResult(outcome="changed", error="the config on this worker differs from the scheduler's")
        loaded = _project_with_shared_limit(projects.load(*call.files), call)
        loaded = structs.replace(loaded, notify=loaded.notify if call.notify else None, in_fleet=call.is_grouped)
        due_run = call.due_run
        return (
            _send_notices_and_collect_facts(loaded, call)
            if due_run is None
            else _run_or_notify_of_failure(loaded, call, due_run, SystemClock())
        )
    except StateBusyError as error:
        return CallResult(outcome="busy", error=text_with_code(error))
    except Exception as error:  # noqa: BLE001  a defect in one run must not prevent the next; its text may quote data
        return _failed_result(as_crossdock_error(error))


def _failed_result(error: CrossdockError) -> CallResult:
    return CallResult(outcome="failed", error=text_with_code(error), message=RunMessage.of_error("", error))


def _project_with_shared_limit(loaded: Project, call: ScheduledCall) -> Project:
    limit = call.shared_limit
    if limit is None:
        return loaded
    rate = loaded.platform.rate.model_copy(update={"shared": limit.database})
    return structs.replace(loaded, platform=loaded.platform.model_copy(update={"rate": rate}), shared_bucket=limit.name)


def _send_notices_and_collect_facts(loaded: Project, call: ScheduledCall) -> CallResult:
    clock = SystemClock()
    now, recipients = clock.now(), loaded.notification_recipient_kinds
    if call.skipped:
        with loaded.open_state_exclusively() as state:
            state.run_transaction(lambda tx: tx.scheduled_runs.skip(call.skipped, at=now, recipients=recipients))
    problems = run_events_and_pending_notices.send_pending_notices(
        loaded, event_sender_of_project(loaded, clock), clock
    )
    with closing(loaded.open_state()) as state:
        _count_jobs_first_seen_ahead_from_now(loaded, state, clock)
        state.run_transaction(lambda tx: tx.scheduled_runs.remove_sent_notices(call.notified, "fleet"))
        pending = state.run_read_only(lambda tx: _pending_fleet_notice_events(tx, loaded, now))
        jobs = state.run_transaction(lambda tx: _read_job_facts(tx, loaded))
    return CallResult(outcome="looked", jobs=jobs, problems=tuple(problems), pending_notices=pending)


def _count_jobs_first_seen_ahead_from_now(loaded: Project, state: State, clock: Clock) -> None:
    now = clock.now()
    ahead = state.run_read_only(lambda tx: tx.scheduled_runs.jobs_first_seen_after(now + ON_TIME_BEFORE_START))
    if ahead and compare_clock_or_raise(loaded.platform, clock, loaded.access_test_resources[0]):
        log_jobs_first_seen_ahead(ahead)
        state.run_transaction(lambda tx: tx.scheduled_runs.move_first_seen_of_jobs_back(ahead, now))


def _run_or_notify_of_failure(loaded: Project, call: ScheduledCall, due_run: DueRun, clock: Clock) -> CallResult:
    """Execute a run. If it could not begin, notify people once for each new error."""
    try:
        return _run_job(loaded, due_run, clock)
    except StateBusyError:
        raise
    except Exception as error:  # noqa: BLE001  as above
        result = _failed_result(as_crossdock_error(error))
    if not call.notify or result.message is None:
        return result
    if result.error == call.reported:
        problems = run_events_and_pending_notices.send_pending_notices(
            loaded, event_sender_of_project(loaded, clock), clock
        )
        return result.model_copy(update={"problems": tuple(problems)})
    event = run_events_and_pending_notices.could_not_start_event(
        due_run.job, DueTime(due_run.due, due_run.business_date), result.message
    )
    event = run_events_and_pending_notices.event_with_previous_if_readable(loaded, event, due_run.due)
    return result.model_copy(update={"problems": send_event_and_pending_notices(loaded, event, clock)})


def _run_job(loaded: Project, due_run: DueRun, clock: Clock) -> CallResult:
    with session_shared_by_runs.open_session(loaded, clock, attempt=RunRequest(due_run, waits=True)) as session:
        state = session.state
        if due_run.job in state.run_read_only(lambda tx: tx.scheduled_runs.paused_jobs()):
            return CallResult(outcome="paused", jobs=state.run_transaction(lambda tx: _read_job_facts(tx, loaded)))
        compare_clock_or_raise(loaded.platform, clock, loaded.access_test_resources[0])
        problems = tuple(
            run_events_and_pending_notices.send_notices_of_killed_runs(
                loaded, event_sender_of_project(loaded, clock), clock, due_run.job
            )
        )
        timings = Timings(clock)
        with open_trace_export(stderr_log.log_warning) as trace:
            report = sync_and_replay.run_scheduled(session, due_run, progress=timings, interrupt=_INTERRUPT)
            trace(timings)
        if report is None:
            now = clock.now()
            pending = state.run_read_only(lambda tx: _pending_fleet_notice_events(tx, loaded, now))
            jobs = state.run_transaction(lambda tx: _read_job_facts(tx, loaded))
            return CallResult(outcome="ended_before", jobs=jobs, problems=problems, pending_notices=pending)
        event = run_events_and_pending_notices.run_ended_event(
            due_run.job, DueTime(due_run.due, due_run.business_date), report
        )
        event = state.run_read_only(
            lambda tx: run_events_and_pending_notices.event_with_previous_run(tx, event, due_run.due)
        )
        if not notification_kinds_of_event(event):  # nobody is to be told of it
            state.run_transaction(
                lambda tx: run_events_and_pending_notices.store_notice_status(tx, "fleet", event, delivered=True)
            )
    if not _INTERRUPT.is_set():
        problems = (*problems, *send_event_and_pending_notices(loaded, event, clock))
    apply_retention_until_done(loaded, clock, _INTERRUPT)
    with loaded.read_state() as tx:
        jobs, pending = (
            _read_job_facts(tx, loaded),
            _pending_fleet_notice_events(tx, loaded, clock.now(), but=event.run_id),
        )
    return CallResult(
        outcome="ended", run=_run_facts(report, event), jobs=jobs, problems=problems, pending_notices=pending
    )


def _pending_fleet_notice_events(
    tx: Transaction, loaded: Project, now: datetime, *, but: int | None = None
) -> tuple[ScheduledRunEnded, ...]:
    """Return the ended runs, without *but*, of which the recipients of the fleet may not know."""
    found = [each for each in tx.scheduled_runs.pending_notices("fleet") if each.run_id != but]
    events = (
        run_events_and_pending_notices.event_of_ended_run_or_none(tx, loaded, each, now)
        for each in found[:MOST_PENDING_NOTICES]
    )
    return tuple(event for event in events if event is not None)


def _run_facts(report: Report, event: ScheduledRunEnded) -> RunFacts:
    return RunFacts(
        status=report.status,
        event=event,
        exit_code=report.exit_code,
        throttled=report.counters.throttled,
        tallies={name: {str(term): n for term, n in each.records.items()} for name, each in report.tallies.items()},
        open=dict(report.open),
    )


def _read_job_facts(tx: Transaction, loaded: Project) -> tuple[JobFacts, ...]:
    paused, now = tx.scheduled_runs.paused_jobs(), SystemClock().now()
    pending = [*tx.scheduled_runs.pending_notices("own"), *tx.scheduled_runs.pending_notices("fleet")]
    jobs, successes = {each.job for each in pending}, tx.scheduled_runs.last_success_by_job()
    return tuple(
        JobFacts(
            name,
            tx.scheduled_runs.get_or_register_first_seen(name, now),
            name in paused,
            (tx.scheduled_runs.expected_seconds_and_requests(name) or (None,))[0],
            tx.scheduled_runs.last_finished_run(name),
            name in jobs,
            successes.get(name),
        )
        for name in loaded.jobs
    )


@contextmanager
def clear_interrupt_at_end() -> Iterator[None]:
    try:
        yield
    finally:
        _INTERRUPT.clear()
