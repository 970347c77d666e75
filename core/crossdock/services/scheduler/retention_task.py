"""Retention, applied once a day while no run is in progress, a bounded part at a time."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta

from msgspec import structs

from crossdock.config.project.project import Project
from crossdock.errors import CrossdockError, StateBusyError, text_with_code
from crossdock.services.scheduler.stderr_log import LOGGER
from crossdock.state import purge_and_compaction
from crossdock.values.clock import Clock
from crossdock.writing.targets.platform_access_and_clock_checks import raise_unless_clock_is_proved_right

RETENTION_INTERVAL = timedelta(days=1)  # for all schedulers of a state together
RETRY_AFTER = timedelta(hours=1)
BATCHES_PER_PART = 50  # per part; runs of other schedulers wait until a part is done


class RetentionTask:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next: datetime | None = None

    def purge_part_if_due(self, project: Project) -> bool:
        """Remove a part if a day has passed. Return True if more is left. Log failures, which must not prevent runs."""
        now = self._clock.now()
        if project.retention is None or self._is_done_or_delayed(now):
            return False
        try:
            self._next = self._next_due_time(project, now)
            return self._next <= now and not self._purge_bounded_part(project, now)
        except StateBusyError:
            return False  # a run is in progress; the next call tries again
        except Exception as error:  # noqa: BLE001  a defect here must not prevent runs
            self._next = now + RETRY_AFTER
            reason = (
                text_with_code(error)
                if isinstance(error, CrossdockError)
                else f"unexpected error: {type(error).__name__}"
            )
            LOGGER.error("retention: %s", reason)
            return False

    def _is_done_or_delayed(self, now: datetime) -> bool:
        return (
            self._next is not None and now < self._next <= now + RETENTION_INTERVAL
        )  # a later time was set by a clock that was ahead

    @staticmethod
    def _next_due_time(project: Project, now: datetime) -> datetime:
        with project.read_state() as tx:
            last = tx.retention.last_applied_time()
        return (
            now if last is None or last > now else last + RETENTION_INTERVAL
        )  # a later time means that the clock was ahead then

    def _purge_bounded_part(self, project: Project, now: datetime) -> bool:
        assert project.retention is not None
        ages = project.purge_times(project.retention, now)
        with project.open_state_exclusively() as state:
            raise_unless_clock_is_proved_right(project.platform, self._clock, project.access_test_resources[0])
            purged, is_whole = purge_and_compaction.purge_in_batches(state, ages, batches=BATCHES_PER_PART)
            if is_whole:
                state.run_transaction(lambda tx: tx.retention.store_applied_time(now))
                self._next = now + RETENTION_INTERVAL
        counts = [f"{number:,} {name.replace('_', ' ')}" for name, number in structs.asdict(purged).items() if number]
        if counts:
            LOGGER.info("retention: %s", ", ".join(counts))
        return is_whole


def apply_retention_until_done(loaded: Project, clock: Clock, interrupt: threading.Event) -> None:
    task, is_more_left = RetentionTask(clock), True
    while is_more_left and not interrupt.is_set():
        is_more_left = task.purge_part_if_due(loaded)
