"""Scheduled runs of jobs: one row for each due time and business date, for all attempts and processes.

Only the holder of the run lease begins one, and finishes it in the transaction that finishes its run. So of several
schedulers one runs it, another continues after a killed one, and a paused one cannot write.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from statistics import median
from typing import Any, Literal

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Select, and_, delete, func, insert, or_, select, update

from crossdock.state.db import run_lease, sql_types_and_statements
from crossdock.state.db.schema import jobs, meta, runs
from crossdock.state.db.schema import scheduled_runs as table
from crossdock.state.tables.run_history import COMPLETED, UNRECORDED, Runs
from crossdock.values import exact_json
from crossdock.values.run_progress_and_messages import RunMessage

Status = Literal["running", "done", "degraded", "incomplete", "failed", "skipped"]
Recipients = Literal["own", "fleet"]
"""Whom the config of the state names, and whom that of the fleet names in which the state is."""
_PENDING_NOTICE = "untold"  # begins the names of marks, each a row of its own: several processes set and remove them
RECENT = 5  # scheduled runs from which the duration of the next one is estimated


@dataclass(frozen=True, slots=True)
class ScheduledRun:
    """One run that a schedule requested. An unfinished one has a *run_id* if its last attempt could not begin."""

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
    def is_finished(self) -> bool:
        return self.status != "running"

    @property
    def with_shown_status(self) -> ScheduledRun:
        """The row, ``failed`` if it could not begin. The stored row remains ``running``, as it is retried."""
        return self if self.is_finished or self.run_id is None else replace(self, status="failed")


@dataclass(frozen=True, slots=True)
class SkippedRun:
    job: str
    due: datetime
    business_date: date
    status: Literal["failed", "skipped"]
    note: str


class DueRun(Struct, frozen=True):
    """A due run, and those of its job that are skipped in favour of it, or by the settings."""

    job: str
    due: datetime
    business_date: date
    skipped: Sequence[SkippedRun] = ()


class PendingNotice(Struct, frozen=True):
    """An ended scheduled run of which recipients may not have been notified."""

    run_id: int
    job: str
    due: datetime


_FIELDS = tuple(table.c[name] for name in ScheduledRun.__slots__)
_KEY = table.c.job, table.c.due, table.c.business_date
_ADD_JOB = sql_types_and_statements.insert_or_ignore_statement(jobs, ("name", "since", "paused"), unique_column="name")


class ScheduledRuns:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get_or_register_first_seen(self, job: str, at: datetime) -> datetime:
        """Return when *job* was first seen; for a new job that is *at*. Nothing was due before."""
        known = self._connection.execute(select(jobs.c.since).where(jobs.c.name == job)).scalar()
        if known is None:
            _ADD_JOB.run(self._connection, {"name": [job], "since": [at], "paused": [False]})
        return known or at

    def jobs_first_seen_after(self, at: datetime) -> list[str]:
        return sorted(self._connection.execute(select(jobs.c.name).where(jobs.c.since > at)).scalars())

    def move_first_seen_of_jobs_back(self, names: Sequence[str], at: datetime) -> None:
        """Let the jobs of these *names* that were first seen after *at* count from then on."""
        later = and_(jobs.c.name.in_(names), jobs.c.since > at)
        self._connection.execute(update(jobs).where(later).values(since=at))

    def paused_jobs(self) -> set[str]:
        return set(self._connection.execute(select(jobs.c.name).where(jobs.c.paused)).scalars())

    def set_paused(self, job: str, at: datetime, *, paused: bool) -> None:
        """Pause or resume *job*. Its schedule decides about runs that are due meanwhile."""
        self.get_or_register_first_seen(job, at)
        self._connection.execute(update(jobs).where(jobs.c.name == job).values(paused=paused))

    def last_finished_run(self, job: str) -> ScheduledRun | None:
        query = select(*_FIELDS).where(table.c.job == job, table.c.status != "running")
        return next(
            iter(
                self._scheduled_runs_of_query(query.order_by(table.c.due.desc(), table.c.business_date.desc()).limit(1))
            ),
            None,
        )

    def finished_due_or_ended_after(self, at: datetime) -> list[ScheduledRun]:
        """Return the finished runs that are due after *at*, or ended after it."""
        later = or_(table.c.due > at, table.c.finished_at > at)
        return self._scheduled_runs_of_query(select(*_FIELDS).where(later, table.c.status != "running"))

    def remove_as_if_not_run(self, found: Sequence[ScheduledRun], at: datetime) -> None:
        """Remove *found*, as if their jobs had not run. A job that was first seen after *at* counts from then on."""
        for run in found:
            self._connection.execute(
                delete(table).where(_is_row_of_due_run(DueRun(run.job, run.due, run.business_date)))
            )
        self.move_first_seen_of_jobs_back([run.job for run in found], at)

    def last_executed_run_of_job(self, due_run: DueRun) -> ScheduledRun | None:
        """Return the run of the same job that was executed and ended last, or None."""
        executed = and_(table.c.job == due_run.job, table.c.run_id.is_not(None), table.c.status != "running")
        query = select(*_FIELDS).where(executed).order_by(table.c.finished_at.desc(), table.c.due.desc()).limit(1)
        return next(iter(self._scheduled_runs_of_query(query)), None)

    def get(self, job: str, due: datetime, business_date: date) -> ScheduledRun | None:
        query = select(*_FIELDS).where(_is_row_of_due_run(DueRun(job, due, business_date)))
        return next(iter(self._scheduled_runs_of_query(query)), None)

    def runs_of_business_date(self, job: str, business_date: date) -> list[ScheduledRun]:
        query = select(*_FIELDS).where(table.c.job == job, table.c.business_date == business_date.isoformat())
        return self._scheduled_runs_of_query(query.order_by(table.c.due))

    def is_in_progress(self, job: str, business_date: date) -> bool:
        """Return whether a process executes a run of *job* for that date now."""
        found = self._with_corrected_status(self.runs_of_business_date(job, business_date))
        return any(not run.is_finished for run in found)

    def runs_between_dates(self, first: date, last: date) -> list[ScheduledRun]:
        """Return the runs for the business dates from *first* to *last*, in the order in which they were due.

        A run is due on its business date or later, so those of earlier dates are left out by the primary key.
        """
        earliest = datetime.combine(first, time(), UTC) - timedelta(days=1)
        dates = table.c.business_date.between(first.isoformat(), last.isoformat())
        query = select(*_FIELDS).where(table.c.job.in_(select(jobs.c.name)), table.c.due >= earliest, dates)
        return self._with_corrected_status(
            self._scheduled_runs_of_query(query.order_by(table.c.due, table.c.job, table.c.business_date))
        )

    def start_of_recording_by_job(self) -> dict[str, datetime]:
        """Return for each job since when a date without a row means that its run did not take place.

        It is when the job was first seen; of what was due before `mark_unrecorded_runs_finished_until`, rows may be
        removed.
        """
        query = select(jobs.c.name, jobs.c.since, jobs.c.done_until)
        return {name: max(since, until or since) for name, since, until in self._connection.execute(query)}

    def begin_unless_finished(
        self, due_run: DueRun, *, at: datetime, again: bool = False, recipients: Sequence[Recipients] = ()
    ) -> bool:
        """Begin a run and finish those that it skips. Return False if it is finished; *again*, only if ``done``."""
        self.skip(due_run.skipped, at=at, recipients=recipients)
        known = self.get(due_run.job, due_run.due, due_run.business_date)
        is_over = known is not None and known.is_finished and not (again and known.status != "done")
        if self.may_be_purged_already(due_run) if known is None else is_over:
            return False
        values: dict[str, Any] = {"status": "running", "started_at": at, "fence": run_lease.FENCE}
        if known is None:
            self._connection.execute(insert(table).values(**_key_columns(due_run), **values, attempts=1))
        else:
            values |= {"attempts": known.attempts + 1, "finished_at": None, "run_id": None, "note": None}
            self._connection.execute(update(table).where(_is_row_of_due_run(due_run)).values(values))
        return True

    def finish(
        self, due_run: DueRun | SkippedRun, status: Status, run_id: int | None, note: str | None, *, at: datetime
    ) -> None:
        values = {"status": status, "run_id": run_id, "note": note, "finished_at": at}
        self._connection.execute(update(table).where(_is_row_of_due_run(due_run)).values(values))

    def record_failed_start(self, due_run: DueRun, run_id: int, *, at: datetime, busy: bool) -> bool:
        """Record that an attempt could not begin, for the reason of *run_id*. Return whether that is new.

        If *busy*, another process uses the state, which may be executing this very run.
        """
        known = self.get(due_run.job, due_run.due, due_run.business_date)
        if (known is None and self.may_be_purged_already(due_run)) or (known is not None and known.status == "done"):
            return False
        if known is None:
            values = {"status": "running", "attempts": 1, "started_at": at, "run_id": run_id}
            self._connection.execute(insert(table).values(**_key_columns(due_run), **values))
        elif known.is_finished:
            self.finish(due_run, "failed", run_id, None, at=at)
        elif not busy or known.run_id is not None:
            self._connection.execute(update(table).where(_is_row_of_due_run(due_run)).values(run_id=run_id))
        else:
            return False
        return known is None or known.run_id != run_id

    def skip(self, skipped: Sequence[SkippedRun], *, at: datetime, recipients: Sequence[Recipients] = ()) -> None:
        """Record runs as not executed, *recipients* to be notified of failed ones. A killed one is not run again."""
        recorded, new = self._recorded_among(skipped), list[dict[str, Any]]()
        for each in skipped:
            known = recorded.get((each.job, each.due, each.business_date))
            if each.status == "failed" and (known is None or not known.is_finished):
                self._record_skipped_as_failed(each, at, recipients)
            if known is None:
                values = {"status": each.status, "attempts": 0, "note": each.note, "finished_at": at}
                new.append(_key_columns(each) | values)
            elif not known.is_finished:
                why = "was killed" if known.run_id is None else "could not begin"
                self.finish(each, each.status, known.run_id, f"{why}; {each.note}", at=at)
        if new:
            self._connection.execute(insert(table), new)

    def _recorded_among(self, runs: Sequence[SkippedRun]) -> dict[tuple[str, datetime, date], ScheduledRun]:
        """Return what is recorded in the spans of *runs*, of which a job may have missed ten thousands."""
        found = dict[tuple[str, datetime, date], ScheduledRun]()
        for job in dict.fromkeys(run.job for run in runs):
            due = [run.due for run in runs if run.job == job]
            query = select(*_FIELDS).where(table.c.job == job, table.c.due.between(min(due), max(due)))
            found |= {(each.job, each.due, each.business_date): each for each in self._scheduled_runs_of_query(query)}
        return found

    def _record_skipped_as_failed(self, skipped: SkippedRun, at: datetime, recipients: Sequence[Recipients]) -> None:
        """Store a run with the reason. It is not that of the row, as it was not executed."""
        message = RunMessage("error", "", skipped.note, "not_started")
        day = skipped.business_date.isoformat()
        run_id = Runs(self._connection).record_failed_start(message, business_date=day, at=at, job=skipped.job)
        self.add_pending_notice(PendingNotice(run_id, skipped.job, skipped.due), recipients)

    def pending_notices(self, recipients: Recipients) -> list[PendingNotice]:
        """Return the runs of which *recipients* may not know, oldest first."""
        begin = f"{_PENDING_NOTICE}.{recipients}."
        query = select(meta.c.name, meta.c.value).where(meta.c.name.startswith(begin, autoescape=True))
        found = [
            (int(name.removeprefix(begin)), exact_json.loads(value)) for name, value in self._connection.execute(query)
        ]
        runs_in_order = sorted(found, key=lambda each: each[0])
        return [PendingNotice(run, each["job"], datetime.fromisoformat(each["due"])) for run, each in runs_in_order]

    def add_pending_notice(self, run: PendingNotice, recipients: Iterable[Recipients]) -> None:
        value = exact_json.dumps({"job": run.job, "due": run.due.isoformat()}).decode()
        rows = [{"name": _notice_name(each, run.run_id), "value": value} for each in recipients]
        sql_types_and_statements.upsert_rows(self._connection, meta, rows)

    def remove_sent_notices(self, run_ids: Iterable[int], recipients: Recipients) -> None:
        for some in sql_types_and_statements.chunks_of_in_list([_notice_name(recipients, each) for each in run_ids]):
            self._connection.execute(delete(meta).where(meta.c.name.in_(some)))

    def add_notices_of_killed_run(
        self, run_id: int, job: str, business_date: date, recipients: Iterable[Recipients]
    ) -> None:
        """Notify *recipients* that the process of a run was killed, at the first attempt of a scheduled run."""
        for run in self.runs_of_business_date(job, business_date):
            if not run.is_finished and run.run_id is None and run.attempts == 1:
                self.add_pending_notice(PendingNotice(run_id, job, run.due), recipients)

    def mark_unrecorded_runs_finished_until(self, job: str, due: datetime) -> None:
        """Treat all unrecorded scheduled runs of *job* that were due until then as finished."""
        self.get_or_register_first_seen(job, due)
        earlier = or_(jobs.c.done_until.is_(None), jobs.c.done_until < due)
        self._connection.execute(update(jobs).where(jobs.c.name == job, earlier).values(done_until=due))

    def may_be_purged_already(self, due_run: DueRun) -> bool:
        """Return whether *due_run* is so old that its row may have been purged. It is finished then."""
        until = self._connection.execute(select(jobs.c.done_until).where(jobs.c.name == due_run.job)).scalar()
        return until is not None and due_run.due <= until

    def listed(self, *, limit: int, job: str | None = None) -> list[ScheduledRun]:
        """Return the latest runs, newest first. One whose process ended without recording it is incomplete."""
        query = select(*_FIELDS).order_by(table.c.due.desc(), table.c.job).limit(limit)
        return self._with_corrected_status(
            self._scheduled_runs_of_query(query if job is None else query.where(table.c.job == job))
        )

    def _with_corrected_status(self, rows: Iterable[ScheduledRun]) -> list[ScheduledRun]:
        found = [run.with_shown_status for run in rows]
        if all(run.is_finished for run in found):
            return found
        query = select(*_KEY).where(
            table.c.status == "running", run_lease.killed_run_condition(self._connection, table.c.fence)
        )
        killed = {tuple(row) for row in self._connection.execute(query)}
        return [
            replace(run, status="incomplete", note=UNRECORDED.message)
            if not run.is_finished and (run.job, run.due, run.business_date.isoformat()) in killed
            else run
            for run in found
        ]

    def latest_by_job(self) -> dict[str, ScheduledRun]:
        """Return the run of each job that was due last, as in `listed`."""
        last = select(table.c.job, func.max(table.c.due).label("due")).group_by(table.c.job).subquery()
        query = select(*_FIELDS).join(last, and_(table.c.job == last.c.job, table.c.due == last.c.due))
        return {
            run.job: run
            for run in self._with_corrected_status(self._scheduled_runs_of_query(query.order_by(table.c.business_date)))
        }

    def last_success_by_job(self) -> dict[str, datetime]:
        """Return when the last run of each job ended after which no record was open."""
        query = select(table.c.job, func.max(table.c.finished_at)).where(table.c.status == "done")
        return {job: at for job, at in self._connection.execute(query.group_by(table.c.job))}

    def count_all(self) -> int:
        return int(self._connection.execute(select(func.count()).select_from(table)).scalar_one())

    def expected_seconds_and_requests(self, job: str) -> tuple[float, int] | None:
        """Estimate the next run by the medians of the latest ones; None without any."""
        query = select(runs.c.duration_ms, runs.c.requests).join(table, table.c.run_id == runs.c.id)
        query = query.where(table.c.job == job, table.c.status.in_(COMPLETED), runs.c.duration_ms.is_not(None))
        found = self._connection.execute(query.order_by(table.c.due.desc()).limit(RECENT)).all()
        if not found:
            return None
        seconds = median(row.duration_ms / 1000 for row in found)
        return seconds, int(median(row.requests for row in found))

    def degraded_since(self, job: str, due: datetime) -> datetime | None:
        """Return when the series of degraded runs before *due* began; skipped runs do not count."""
        earlier = select(table.c.due).where(table.c.job == job, table.c.due < due)
        others = earlier.where(table.c.status.not_in(("degraded", "skipped", "running"))).order_by(table.c.due.desc())
        last_other = self._connection.execute(others.limit(1)).scalar()
        degraded = earlier.where(table.c.status == "degraded").order_by(table.c.due)
        if last_other is not None:
            degraded = degraded.where(table.c.due > last_other)
        return self._connection.execute(degraded.limit(1)).scalar()

    def _scheduled_runs_of_query(self, query: Select[Any]) -> list[ScheduledRun]:
        found = (dict(row) for row in self._connection.execute(query).mappings())
        return [ScheduledRun(**{**row, "business_date": date.fromisoformat(row["business_date"])}) for row in found]


def _notice_name(recipients: Recipients, run_id: int) -> str:
    return f"{_PENDING_NOTICE}.{recipients}.{run_id}"


def _key_columns(due_run: DueRun | SkippedRun) -> dict[str, Any]:
    return {"job": due_run.job, "due": due_run.due, "business_date": due_run.business_date.isoformat()}


def _is_row_of_due_run(due_run: DueRun | SkippedRun) -> ColumnElement[bool]:
    return and_(*(table.c[name] == value for name, value in _key_columns(due_run).items()))
