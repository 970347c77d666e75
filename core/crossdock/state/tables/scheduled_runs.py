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
from crossdock.state.db.schema import jobs, nights, runs

Status = Literal["running", "done", "incomplete", "failed", "skipped"]
RECENT = 5  # nights that tell how long the next one takes


@dataclass(frozen=True, slots=True)
class Night:
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
class LeftOut:
    """A night that is not run, and why."""

    job: str
    due: datetime
    business_date: date
    status: Literal["failed", "skipped"]
    note: str


@dataclass(frozen=True, slots=True)
class Occasion:
    """The night that a run is for.

    Attributes:
        left_out: Nights of its job that are not run because this one is, or because settings say so.
    """

    job: str
    due: datetime
    business_date: date
    left_out: Sequence[LeftOut] = ()


_FIELDS = tuple(nights.c[name] for name in Night.__slots__)
_SEEN = sql_statements.inserting(jobs, ("name", "since", "paused"), unless="name")


class Nights:
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

    def last_finished(self, job: str) -> Night | None:
        """The finished night of *job* that was due last."""
        query = select(*_FIELDS).where(nights.c.job == job, nights.c.status != "running")
        row = self._connection.execute(
            query.order_by(nights.c.due.desc(), nights.c.business_date.desc()).limit(1)
        ).first()
        return _night(row) if row else None

    def get(self, job: str, due: datetime, business_date: date) -> Night | None:
        where = _of(Occasion(job, due, business_date))
        row = self._connection.execute(select(*_FIELDS).where(where)).first()
        return _night(row) if row else None

    def of_date(self, job: str, business_date: date) -> list[Night]:
        """The nights of *job* for *business_date*, as they were due."""
        query = select(*_FIELDS).where(nights.c.job == job, nights.c.business_date == business_date.isoformat())
        return [_night(row) for row in self._connection.execute(query.order_by(nights.c.due))]

    def begin(self, occasion: Occasion, *, at: datetime) -> bool:
        """Begin a night, or begin it again; False if it has ended. What it leaves out has ended then, too."""
        self.leave_out(occasion.left_out, at=at)
        night = self.get(occasion.job, occasion.due, occasion.business_date)
        if self.is_forgotten(occasion) if night is None else night.finished:
            return False
        if night is None:
            facts = {"job": occasion.job, "due": occasion.due, "business_date": occasion.business_date.isoformat()}
            self._connection.execute(insert(nights).values(**facts, status="running", attempts=1, started_at=at))
        else:
            again = update(nights).where(_of(occasion)).values(attempts=night.attempts + 1, started_at=at)
            self._connection.execute(again)
        return True

    def finish(
        self, night: Occasion | LeftOut, status: Status, run_id: int | None, note: str | None, *, at: datetime
    ) -> None:
        """End a night that has begun."""
        values = {"status": status, "run_id": run_id, "note": note, "finished_at": at}
        self._connection.execute(update(nights).where(_of(night)).values(values))

    def leave_out(self, left_out: Sequence[LeftOut], *, at: datetime) -> None:
        """Say of nights that they are not run; one that was begun and killed is not run again."""
        for one in left_out:
            night = self.get(one.job, one.due, one.business_date)
            if night is None:
                facts = {"job": one.job, "due": one.due, "business_date": one.business_date.isoformat(), "attempts": 0}
                ends = {"status": one.status, "note": one.note, "finished_at": at}
                self._connection.execute(insert(nights).values(**facts, **ends))
            elif not night.finished:
                self.finish(one, one.status, None, f"was killed; {one.note}", at=at)

    def end_until(self, job: str, due: datetime) -> None:
        """Let every night of *job* that was due until then count as ended, where nothing else is on record of it."""
        self.counted_since(job, due)
        earlier = or_(jobs.c.done_until.is_(None), jobs.c.done_until < due)
        self._connection.execute(update(jobs).where(jobs.c.name == job, earlier).values(done_until=due))

    def is_forgotten(self, occasion: Occasion) -> bool:
        """True for a night so long ago that it counts as ended without being on record."""
        until = self._connection.execute(select(jobs.c.done_until).where(jobs.c.name == occasion.job)).scalar()
        return until is not None and occasion.due <= until

    def listed(self, *, limit: int, job: str | None = None) -> list[Night]:
        """The latest nights, newest first."""
        query = select(*_FIELDS).order_by(nights.c.due.desc(), nights.c.job).limit(limit)
        query = query if job is None else query.where(nights.c.job == job)
        return [_night(row) for row in self._connection.execute(query)]

    def expected(self, job: str) -> tuple[float, int] | None:
        """Seconds and requests that a night of *job* takes: the medians of the latest ones; None before the first."""
        fields = (runs.c.started_at, runs.c.finished_at, runs.c.requests)
        query = select(*fields).join(nights, nights.c.run_id == runs.c.id)
        query = query.where(nights.c.job == job, nights.c.status == "done", runs.c.finished_at.is_not(None))
        query = query.order_by(nights.c.due.desc()).limit(RECENT)
        found = self._connection.execute(query).all()
        if not found:
            return None
        seconds = median((row.finished_at - row.started_at).total_seconds() for row in found)
        return seconds, int(median(row.requests for row in found))


def _of(night: Occasion | LeftOut) -> Any:
    day = night.business_date.isoformat()
    return and_(nights.c.job == night.job, nights.c.due == night.due, nights.c.business_date == day)


def _night(row: Any) -> Night:
    facts = dict(zip(Night.__slots__, row, strict=True))
    return Night(**{**facts, "business_date": date.fromisoformat(facts["business_date"])})
