"""What is to be done now: which nights may start, which are left out, and why.

It looks, and writes one thing: from when a job counts that the state has never seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Literal

from crossdock.scheduling.blackouts import free_from
from crossdock.scheduling.due_times import Due, due, due_after, missed
from crossdock.scheduling.job_config import JobConfig, ordered
from crossdock.state import ScheduledRun, SkippedRun, Transaction

AHEAD = timedelta(days=366)  # as far as the next night is looked for


@dataclass(slots=True)
class DueJob:
    """What *job* has to do.

    Attributes:
        awake_since: What is due after it is on time at the next look too: all from the first that may have to wait on.
        starts: Nights that are due and not finished, in order.
        skipped: Those that its settings leave out.
    """

    job: str
    awake_since: datetime
    starts: list[Due] = field(default_factory=list)
    skipped: list[SkippedRun] = field(default_factory=list)


class DueJobs:
    """The jobs of a project against the nights that the state knows."""

    def __init__(self, jobs: Mapping[str, JobConfig]) -> None:
        self._jobs = jobs

    def plans(self, tx: Transaction, now: datetime, awake_since: Mapping[str, datetime]) -> list[DueJob]:
        """What each job has to do at *now*, those first that others come after; a paused one has nothing to do.

        Args:
            awake_since: By job: what was due after it is on time, though it may have had to wait; all before is
                caught up with.
        """
        paused = tx.scheduled_runs.paused()
        return [
            DueJob(name, now) if name in paused else self._plan(tx, name, now, awake_since[name])
            for name in ordered(self._jobs)
        ]

    def may_start(self, tx: Transaction, plan: DueJob, plans: list[DueJob], now: datetime) -> Due | None:
        """The first night of *plan*, if nothing holds it back."""
        job = self._jobs[plan.job]
        if not plan.starts or free_from(job.schedule, now) > now:
            return None
        first = plan.starts[0]
        open_ = {other.job: {start.business_date for start in other.starts} for other in plans}
        waits = any(
            first.business_date in open_.get(other, ()) or self._runs(tx, other, first.business_date)
            for other in job.after
        )
        return None if waits else first

    def next_due(self, now: datetime) -> dict[str, datetime]:
        """When each job is due next after *now*, where it is due within a year."""
        found = ((name, next(due(job.schedule, now, now + AHEAD), None)) for name, job in self._jobs.items())
        return {name: one.instant for name, one in found if one is not None}

    def preview(self, now: datetime, until: datetime) -> Iterator[tuple[str, Due]]:
        """All nights from *now* to *until*, as they come."""
        found = [(one, name) for name, job in self._jobs.items() for one in due(job.schedule, now, until)]
        for one, name in sorted(found):
            yield name, one

    @staticmethod
    def _runs(tx: Transaction, job: str, day: date) -> bool:
        return any(not night.finished for night in tx.scheduled_runs.of_date(job, day))

    def _plan(self, tx: Transaction, name: str, now: datetime, awake_since: datetime) -> DueJob:
        job = self._jobs[name]
        since, last = tx.scheduled_runs.counted_since(name, now), tx.scheduled_runs.last_finished(name)
        after = Due(last.due, last.business_date) if last else since
        asked = list(due_after(job.schedule, after, now))
        caught_up = set(missed(job.schedule, after, now))
        wanted = [one for one in asked if one in caught_up or one.instant > awake_since]
        plan = DueJob(
            name, next((one.instant - timedelta.resolution for one in asked if one.instant > awake_since), now)
        )
        why, late = f"catch_up: {job.schedule.catch_up}", [one for one in asked if one not in wanted]
        plan.skipped = [SkippedRun(name, one.instant, one.business_date, "skipped", why) for one in late]
        for one in wanted:
            if job.overlap != "queue" and last is not None and _within(last, one):
                note = f"due while the run for {last.business_date} was at work"
                status: Literal["failed", "skipped"] = "failed" if job.overlap == "forbid" else "skipped"
                plan.skipped.append(SkippedRun(name, one.instant, one.business_date, status, note))
            else:
                plan.starts.append(one)
        return plan


def _within(last: ScheduledRun, one: Due) -> bool:
    """True if *one* was due while *last* ran."""
    return (
        last.started_at is not None
        and last.finished_at is not None
        and last.started_at < one.instant < last.finished_at
    )
