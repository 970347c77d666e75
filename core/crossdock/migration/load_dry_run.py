"""The current reading of a migration's streams: hashes of their sources, and the requests that a load would send."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import closing

from crossdock.config.project.project import Project
from crossdock.errors import StoppedError
from crossdock.runs import dry_run
from crossdock.runs.plan_result import PlanListener, PlanResult
from crossdock.state import State
from crossdock.values.clock import Clock
from crossdock.values.run_progress_and_messages import SilentProgress


class _InterruptibleProgress(SilentProgress):
    def __init__(self, interrupt: threading.Event) -> None:
        self._interrupt = interrupt

    def advance(self, steps: int = 1) -> None:  # noqa: ARG002  the number does not matter
        if self._interrupt.is_set():
            raise StoppedError("stopped while reading", hint="nothing was changed; run again")


def dry_run_load(
    project: Project, streams: Iterable[str], *, clock: Clock, interrupt: threading.Event, state: State | None = None
) -> PlanResult:
    """Read *streams* and plan what a load would do. Nothing is written or sent. Errors of sources are raised."""
    if state is None:
        with closing(project.open_state(read_only=True)) as opened:
            return dry_run_load(project, streams, clock=clock, interrupt=interrupt, state=opened)
    names, progress = sorted(streams), _InterruptibleProgress(interrupt)
    planned = dry_run.plan_with_state(
        project, state, names, PlanListener.ignoring(), clock, progress, hash_sources=True
    )
    for error in planned.errors.values():
        raise error
    return planned
