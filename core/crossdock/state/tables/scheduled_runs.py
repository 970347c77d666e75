"""The nights of jobs: one row for each run that a schedule asks for, whoever does it and however often it is tried.

A night is begun and ended by the holder of the state's run lease only, and it ends in the transaction that ends its
run. So of several schedulers one does it, a killed one is followed by another, and a paused one can write nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from statistics import median
from typing import Any, Literal

from sqlalchemy import Connection, and_, insert, or_, select, update

from crossdock.state.db import sql_statements
from crossdock.state.db.schema import jobs, runs, scheduled_runs

Status = Literal["running", "done", "incomplete", "failed", "skipped"]
RECENT = 5  # nights that tell how long the next one takes


@dataclass(frozen=True, slots=True)
class ScheduledRun:
    """One run that a schedule asked for.

    Attributes:
        attempts: How often it was begun.
        note: Why it failed or was skipped.
    """

    job: str
    due: datetime
    business_date: date
    status: Status
    attempts: int
    run_id: int | None
    started_at: datetime | None
    finished_at: datetime | None
    note: str | None

    @property
    def finished(self) -> bool:
        return self.status != "running"


@dataclass(frozen=True, slots=True)
class SkippedRun:
    """A night that is not run, and why."""

    job: str
    due: datetime
    business_date: date
    status: Literal["failed", "skipped"]
    note: str


@dataclass(frozen=True, slots=True)
class DueRun:
    """The night that a run is for.

    Attributes:
        skipped: Nights of its job that are not run because this one is, or because settings say so.
    """

    job: str
    due: datetime
    business_date: date
    skipped: Sequence[SkippedRun] = ()


_FIELDS = tuple(scheduled_runs.c[name] for name in ScheduledRun.__slots__)
_SEEN = sql_statements.inserting(jobs, ("name", "since", "paused"), unless="name")


class ScheduledRuns:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def counted_since(self, job: str, at: datetime) -> datetime:
        """Since when *job* counts: *at*, if it was never seen before."""
        known = self._connection.execute(select(jobs.c.since).where(jobs.c.name == job)).scalar()
        if known is None:
            _SEEN.run(self._connection, {"name": [job], "since": [at], "paused": [False]})
        return known or at

    def paused(self) -> set[str]:
        return set(self._connection.execute(select(jobs.c.name).where(jobs.c.paused)).scalars())

    def pause(self, job: str, at: datetime, *, paused: bool) -> None:
        """Start none of *job* until it goes on; what is due meanwhile is caught up with as its schedule says."""
        self.counted_since(job, at)
        self._connection.execute(update(jobs).where(jobs.c.name == job).values(paused=paused))

    def last_finished(self, job: str) -> ScheduledRun | None:
        """The finished night of *job* that was due last."""
        query = select(*_FIELDS).where(scheduled_runs.c.job == job, scheduled_runs.c.status != "running")
        row = self._connection.execute(
            query.order_by(scheduled_runs.c.due.desc(), scheduled_runs.c.business_date.desc()).limit(1)
        ).first()
        return _night(row) if row else None

    def get(self, job: str, due: datetime, business_date: date) -> ScheduledRun | None:
        where = _of(DueRun(job, due, business_date))
        row = self._connection.execute(select(*_FIELDS).where(where)).first()
        return _night(row) if row else None

    def of_date(self, job: str, business_date: date) -> list[ScheduledRun]:
        """The nights of *job* for *business_date*, as they were due."""
        query = select(*_FIELDS).where(
            scheduled_runs.c.job == job, scheduled_runs.c.business_date == business_date.isoformat()
        )
        return [_night(row) for row in self._connection.execute(query.order_by(scheduled_runs.c.due))]

    def begin(self, due_run: DueRun, *, at: datetime) -> bool:
        """Begin a night, or begin it again; False if it has ended. What it leaves out has ended then, too."""
        self.skip(due_run.skipped, at=at)
        night = self.get(due_run.job, due_run.due, due_run.business_date)
        if self.is_forgotten(due_run) if night is None else night.finished:
            return False
        if night is None:
            facts = {"job": due_run.job, "due": due_run.due, "business_date": due_run.business_date.isoformat()}
            self._connection.execute(
                insert(scheduled_runs).values(**facts, status="running", attempts=1, started_at=at)
            )
        else:
            again = update(scheduled_runs).where(_of(due_run)).values(attempts=night.attempts + 1, started_at=at)
            self._connection.execute(again)
        return True

    def finish(
        self, night: DueRun | SkippedRun, status: Status, run_id: int | None, note: str | None, *, at: datetime
    ) -> None:
        """End a night that has begun."""
        values = {"status": status, "run_id": run_id, "note": note, "finished_at": at}
        self._connection.execute(update(scheduled_runs).where(_of(night)).values(values))

    def skip(self, skipped: Sequence[SkippedRun], *, at: datetime) -> None:
        """Say of nights that they are not run; one that was begun and killed is not run again."""
        for one in skipped:
            night = self.get(one.job, one.due, one.business_date)
            if night is None:
                facts = {"job": one.job, "due": one.due, "business_date": one.business_date.isoformat(), "attempts": 0}
                ends = {"status": one.status, "note": one.note, "finished_at": at}
                self._connection.execute(insert(scheduled_runs).values(**facts, **ends))
            elif not night.finished:
                self.finish(one, one.status, None, f"was killed; {one.note}", at=at)

    def end_until(self, job: str, due: datetime) -> None:
        """Let every night of *job* that was due until then count as ended, where nothing else is on record of it."""
        self.counted_since(job, due)
        earlier = or_(jobs.c.done_until.is_(None), jobs.c.done_until < due)
        self._connection.execute(update(jobs).where(jobs.c.name == job, earlier).values(done_until=due))

    def is_forgotten(self, due_run: DueRun) -> bool:
        """True for a night so long ago that it counts as ended without being on record."""
        until = self._connection.execute(select(jobs.c.done_until).where(jobs.c.name == due_run.job)).scalar()
        return until is not None and due_run.due <= until

    def listed(self, *, limit: int, job: str | None = None) -> list[ScheduledRun]:
        """The latest nights, newest first."""
        query = select(*_FIELDS).order_by(scheduled_runs.c.due.desc(), scheduled_runs.c.job).limit(limit)
        query = query if job is None else query.where(scheduled_runs.c.job == job)
        return [_night(row) for row in self._connection.execute(query)]

    def expected(self, job: str) -> tuple[float, int] | None:
        """Seconds and requests that a night of *job* takes: the medians of the latest ones; None before the first."""
        fields = (runs.c.started_at, runs.c.finished_at, runs.c.requests)
        query = select(*fields).join(scheduled_runs, scheduled_runs.c.run_id == runs.c.id)
        query = query.where(
            scheduled_runs.c.job == job, scheduled_runs.c.status == "done", runs.c.finished_at.is_not(None)
        )
        query = query.order_by(scheduled_runs.c.due.desc()).limit(RECENT)
        found = self._connection.execute(query).all()
        if not found:
            return None
        seconds = median((row.finished_at - row.started_at).total_seconds() for row in found)
        return seconds, int(median(row.requests for row in found))


def _of(night: DueRun | SkippedRun) -> Any:
    day = night.business_date.isoformat()
    return and_(
        scheduled_runs.c.job == night.job, scheduled_runs.c.due == night.due, scheduled_runs.c.business_date == day
    )


def _night(row: Any) -> ScheduledRun:
    facts = dict(zip(ScheduledRun.__slots__, row, strict=True))
    return ScheduledRun(**{**facts, "business_date": date.fromisoformat(facts["business_date"])})
