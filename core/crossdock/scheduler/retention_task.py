"""Retention, applied by the scheduler: once a day, a bounded part at a time, and only while no run is at work."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timedelta

from crossdock.clock import Clock
from crossdock.errors import CrossdockError, StateBusyError
from crossdock.project.project import Project
from crossdock.scheduler.run_log import LOGGER
from crossdock.state.upkeep import purge

EVERY = timedelta(days=1)  # also by other schedulers on the same state
AGAIN = timedelta(hours=1)  # after a failure
BATCHES = 50  # of one turn; another scheduler's night waits for the turn at most


class RetentionTask:
    """Removes from a state what its config keeps no longer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next: datetime | None = None

    def turn(self, project: Project) -> bool:
        """Do a part of it if a day has passed; True if more is left to do. A failure is logged, and costs no night."""
        now = self._clock.now()
        if project.retention is None or (self._next is not None and now < self._next):
            return False
        try:
            self._next = self._due(project, now)
            return self._next <= now and not self._work(project, now)
        except StateBusyError:
            return False  # a run is at work: the next turn does it
        except CrossdockError as error:
            self._next = now + AGAIN
            LOGGER.error("retention: %s", error)
            return False
        except Exception as error:  # noqa: BLE001  a defect here must not cost a night
            self._next = now + AGAIN
            LOGGER.error("retention: unforeseen: %s", type(error).__name__)
            return False

    @staticmethod
    def _due(project: Project, now: datetime) -> datetime:
        with project.look() as tx:
            last = tx.retention.applied_at()
        return now if last is None or last > now else last + EVERY  # a clock that was ahead must not stop it

    def _work(self, project: Project, now: datetime) -> bool:
        assert project.retention is not None
        ages = project.ages(project.retention, now)
        with project.alone() as state:
            purged, is_whole = purge.work(state, ages, batches=BATCHES)
            if is_whole:
                state.apply(lambda tx: tx.retention.applied(now))
                self._next = now + EVERY
        done = [f"{number:,} {name.replace('_', ' ')}" for name, number in asdict(purged).items() if number]
        if done:
            LOGGER.info("retention: %s", ", ".join(done))
        return is_whole
