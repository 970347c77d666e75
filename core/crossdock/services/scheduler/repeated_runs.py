"""Comparison of a job's run with the previous one, so that people are notified of news only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from crossdock.services.notifications.events import Status
from crossdock.state import ScheduledRun, Transaction
from crossdock.values.tally import NOTHING_OPEN, OpenCounts

REMIND_AFTER = timedelta(days=7)  # and again after as long, while a job stays degraded


@dataclass(frozen=True, slots=True)
class PreviousRun:
    """The last run of a job before another one, without skipped runs.

    Attributes:
        open: The open records at its end.
        degraded_since: When the current series of degraded runs began; None if it was not degraded.
    """

    due: datetime
    status: Status
    open: OpenCounts
    degraded_since: datetime | None

    def is_repeated_by(self, due: datetime, status: Status, now_open: OpenCounts) -> bool:
        """Return whether the next run is degraded like this one, with no more open records, and no reminder is due."""
        if status != "degraded" or self.degraded_since is None or now_open.exceeds(self.open):
            return False
        return (due - self.degraded_since) // REMIND_AFTER == (self.due - self.degraded_since) // REMIND_AFTER


def previous_run(tx: Transaction, job: str, due: datetime) -> PreviousRun | None:
    for run in tx.scheduled_runs.listed(limit=50, job=job):
        if run.due < due and run.status not in {"running", "skipped"}:
            return described(tx, run)
    return None


def described(tx: Transaction, run: ScheduledRun) -> PreviousRun:
    assert run.status != "running"
    record = tx.runs.get(run.run_id) if run.run_id is not None else None
    since = tx.scheduled_runs.degraded_since(run.job, run.due + timedelta.resolution)
    left = record.open if record is not None else None
    return PreviousRun(run.due, run.status, left or NOTHING_OPEN, since)
