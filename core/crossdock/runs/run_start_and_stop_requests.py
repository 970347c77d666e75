"""Requests to begin a run, whose failed start is stored in the state, and to stop one, as `crossdock stop` does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime

from msgspec import Struct, structs

from crossdock.config.project.project import Project
from crossdock.errors import ConfigError, CrossdockError, StateBusyError, StateError
from crossdock.runs.audit_log import add_unlogged_hint
from crossdock.state import AuditEntry, DueRun, PendingNotice, RunRecord, State, Transaction
from crossdock.values.clock import Clock, call_periodically_in_thread
from crossdock.values.run_progress_and_messages import RunMessage

LOOKS_EVERY_S = 1.0


class RunInterrupt(threading.Event):
    """Is set by itself, or with the *interrupt* of the process, which may have other runs."""

    def __init__(self, interrupt: threading.Event) -> None:
        super().__init__()
        self._interrupt = interrupt

    def is_set(self) -> bool:
        return super().is_set() or self._interrupt.is_set()


@contextmanager
def set_interrupt_on_stop_request(
    state: State, run_id: int, interrupt: RunInterrupt, tell: Callable[[], None]
) -> Iterator[None]:
    """Set *interrupt* once somebody has asked the run to stop, and call *tell*, from another thread."""

    def goes_on() -> bool:
        try:
            asked = state.run_read_only(lambda tx: tx.runs.is_stop_requested(run_id))
        except StateError:
            return True  # the run has the same error, and ends
        if asked:
            interrupt.set()
            tell()
        return not asked

    with call_periodically_in_thread(goes_on, LOOKS_EVERY_S, "stop requests"):
        yield


def request_stop(tx: Transaction, run_id: int | None) -> RunRecord:
    """Ask run *run_id*, or the one in progress, to stop. Raises ConfigError if it is not in progress."""
    run = next(iter(tx.runs.listed(limit=1, status="running")), None) if run_id is None else tx.runs.get(run_id)
    if run is None or run.status != "running":
        name = "no run" if run_id is None else f"run {run_id} is not"
        raise ConfigError(f"{name} in progress", hint="'crossdock runs' lists the runs", code="run_not_active")
    tx.runs.request_stop(run.id)
    return run


class RunRequest(Struct, frozen=True):
    """The run that is to begin.

    Attributes:
        due_run: The scheduled run that it is; None for a manual one.
        continues: Continue the last run of the job, if it is of this date and has reached its end.
        waits: It is tried again by itself while another process uses the state, which is then no refusal.
        action: The command of a person that starts it, for the audit log; None if nobody did.
        shared_by: How many such runs share the part of the requests in flight that one run of a session has.
    """

    due_run: DueRun | None = None
    job: str | None = None
    command: str | None = None
    action: str | None = None
    continues: bool = False
    waits: bool = False
    shared_by: int = 1

    @property
    def job_name(self) -> str | None:
        return self.due_run.job if self.due_run else self.job

    def audit_entry(self, at: datetime) -> AuditEntry | None:
        """Return what the audit log says of the run when it begins, but for its number; None if nobody started it."""
        if self.action is None:
            return None
        job = self.job_name
        what = {"command": self.command} if job is None else {"job": job, "business_date": self.business_date(at)}
        return AuditEntry.new_by_current_actor(self.action, "", at=at, after=what)

    def business_date(self, now: datetime) -> str:
        return (self.due_run.business_date if self.due_run else now.astimezone().date()).isoformat()


def store_failed_start(
    project: Project, clock: Clock, error: CrossdockError, attempt: RunRequest, state: State | None = None
) -> None:
    """Store why a run could not begin, if the state can be written."""
    if attempt.waits and isinstance(error, StateBusyError):
        return
    try:
        if state is not None:
            _write_failed_start(state, project, clock, error, attempt)
            return
        with closing(project.open_state()) as opened:
            _write_failed_start(opened, project, clock, error, attempt)
    except CrossdockError as unwritten:
        if attempt.action is not None:
            add_unlogged_hint(error, unwritten)


def _write_failed_start(
    state: State, project: Project, clock: Clock, error: CrossdockError, attempt: RunRequest
) -> None:
    now, due_run, message = clock.now(), attempt.due_run, RunMessage.of_error("", error)
    day, job, entry = attempt.business_date(now), attempt.job_name, attempt.audit_entry(now)

    def write(tx: Transaction) -> None:
        run_id = tx.runs.record_failed_start(message, business_date=day, at=now, job=job, command=attempt.command)
        if entry is not None:
            tx.audit_log.put(structs.replace(entry, subject=f"run {run_id}").with_failure(error))
        busy = isinstance(error, StateBusyError)
        if due_run is not None and tx.scheduled_runs.record_failed_start(due_run, run_id, at=now, busy=busy):
            tx.scheduled_runs.add_pending_notice(
                PendingNotice(run_id, due_run.job, due_run.due), project.own_notification_recipient_kinds
            )

    state.run_transaction(write)
