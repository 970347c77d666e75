"""Runs that could not begin, stored in the state so that they are found with other runs."""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import dataclass

from crossdock.config.project.project import Project
from crossdock.errors import CrossdockError, StateBusyError
from crossdock.state import DueRun, State, Transaction
from crossdock.values.clock import Clock
from crossdock.values.run_messages import RunMessage


@dataclass(frozen=True, slots=True)
class Attempt:
    """The run that is to begin.

    Attributes:
        due_run: The scheduled run; None for a manual one.
        job: The job of the run; None for a manual one.
        command: The command that starts a manual run.
        waits: Whether it is retried automatically while another process uses the state. That is no refusal.
    """

    due_run: DueRun | None = None
    job: str | None = None
    command: str | None = None
    waits: bool = False


def record(project: Project, clock: Clock, error: CrossdockError, attempt: Attempt, state: State | None = None) -> None:
    """Store why a run could not begin, if the state can be written."""
    if attempt.waits and isinstance(error, StateBusyError):
        return
    with suppress(CrossdockError):
        if state is not None:
            _write(state, clock, error, attempt)
            return
        with closing(project.open_state()) as opened:
            _write(opened, clock, error, attempt)


def _write(state: State, clock: Clock, error: CrossdockError, attempt: Attempt) -> None:
    now, due_run, command = clock.now(), attempt.due_run, attempt.command
    day = (due_run.business_date if due_run else now.astimezone().date()).isoformat()
    message, job = RunMessage.of_error("", error), due_run.job if due_run else attempt.job

    def write(tx: Transaction) -> None:
        run_id = tx.runs.refuse(message, business_date=day, at=now, job=job, command=command)
        if due_run is not None:
            tx.scheduled_runs.refuse(due_run, run_id, at=now, busy=isinstance(error, StateBusyError))

    state.apply(write)
