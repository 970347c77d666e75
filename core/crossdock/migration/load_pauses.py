"""Reasons for a load to wait: a person has paused it, or nothing may be sent at this hour."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from zoneinfo import ZoneInfo

from crossdock.config.project.migration_config import MigrationConfig
from crossdock.config.project.project import Project
from crossdock.errors import StateError, StoppedError
from crossdock.migration.load_duration import next_allowed_instant
from crossdock.state import Migration, State, Transaction
from crossdock.values.clock import Clock
from crossdock.values.display_texts import instant_text
from crossdock.values.repeated_calls import call_repeatedly

LOOKS_EVERY_S = 1.0
_NOTICES_S = 0.1  # an interrupt


def pause_reason(migration: Migration | None, config: MigrationConfig, at: datetime) -> str | None:
    if migration is not None and migration.paused_at is not None:
        since = instant_text(migration.paused_at)
        return f"paused by {migration.paused_by} since {since}; 'crossdock migrate resume' lets it go on"
    if config.percent_at(at) > 0:
        return None
    until = next_allowed_instant(config, at)
    if until is None:
        return "the hours of the config allow no requests at any time"
    return (
        f"the hours of the config allow no requests until {instant_text(until.astimezone(ZoneInfo(config.time_zone)))}"
    )


@dataclass(slots=True)
class LoadPause:
    """Stops a run in order. *why* is the reason for which the load waits; None if a person wants it to end."""

    stop: threading.Event = field(default_factory=threading.Event)
    why: str | None = None


class LoadPauses:
    def __init__(self, project: Project, config: MigrationConfig, clock: Clock, interrupt: threading.Event) -> None:
        self._project, self._config, self._clock, self._interrupt = project, config, clock, interrupt

    def reason(self, tx: Transaction) -> str | None:
        return pause_reason(tx.migrations.current(), self._config, self._clock.now())

    @contextmanager
    def watch(self, state: State) -> Iterator[LoadPause]:
        """Look every second during the block. The first reason to wait, or the interrupt, stops the run."""
        pause, looked_at = LoadPause(), self._clock.monotonic()

        def goes_on() -> bool:
            nonlocal looked_at
            if not self._interrupt.is_set():
                if self._clock.monotonic() - looked_at < LOOKS_EVERY_S:
                    return True
                looked_at = self._clock.monotonic()
                pause.why = self._read_reason(state)
            if pause.why is not None or self._interrupt.is_set():
                pause.stop.set()
            return not pause.stop.is_set()

        with call_repeatedly(goes_on, _NOTICES_S, "load-pauses"):
            yield pause

    def _read_reason(self, state: State) -> str | None:
        try:
            return state.run_read_only(self.reason)
        except StateError:
            return None  # the run has the same error, and ends

    def wait_until_allowed(self, tell: Callable[[str], None]) -> None:
        """Return once requests may be sent. Call *tell* once with each reason. Others may use the state meanwhile."""
        told = None
        with closing(self._project.open_state(read_only=True)) as state:
            while (why := state.run_read_only(self.reason)) is not None:
                if why != told:
                    tell(why)
                    told = why
                if self._interrupt.wait(LOOKS_EVERY_S):
                    raise StoppedError(f"stopped while it waited: {why}", hint="load again to continue")
