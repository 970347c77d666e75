"""What a tenant looks like now: its jobs, and what is open."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from crossdock.config.schedules.due_times import DueTime, first_due_time_per_business_date
from crossdock.config.schedules.job_and_schedule_config import JobConfig
from crossdock.console.run_progress import progress_text
from crossdock.console.tenant_configs_and_states import Tenant, Tenants
from crossdock.errors import CrossdockError, text_with_code
from crossdock.runs.audit_log import job_paused_by_sentence
from crossdock.services.scheduler.due_run_decisions_and_preview import DueRunPlanner, StartDelay, explain_start_delay
from crossdock.state import DueRun, OverdueBatch, RunRecord, ScheduledRun, Transaction
from crossdock.state.queries.record_counts_and_state_size import OpenRecordTotal
from crossdock.values.clock import Clock
from crossdock.values.run_progress_and_messages import RunMessage

FRESH_S = 5.0
SHARE = 10  # overviews are shown for at least this many times as long as it took to read all, so that no run is delayed
STALE_S = 30.0  # what is older is not shown if it can be read at once
WAIT_S = 0.1  # for all overviews, before a page shows those that are read
_LATE_FILES = 20
LATE = timedelta(minutes=5)  # a scheduler looks every 30 seconds, and jobs of one tenant run one after the other
_LOOKS_BACK = timedelta(days=8)  # a weekly job was due once in it


class JobCondition(StrEnum):
    """The condition of a job, the worst first."""

    FAILED = "failed"
    MISSING = "missing"
    DEGRADED = "degraded"
    RUNNING = "running"
    PAUSED = "paused"
    GREEN = "green"
    NEW = "new"


class JobOverview(Struct, frozen=True, kw_only=True):
    """One job, or what is started by hand, whose *job* is empty.

    Attributes:
        note: Why no run was executed, or who has paused the job.
        delay: Why it is missing.
        progress: How far a run in progress is.
    """

    job: str
    condition: JobCondition
    business_date: str
    since: datetime | None
    next_due: datetime | None = None
    run: RunRecord | None = None
    note: str = ""
    delay: StartDelay | None = None
    progress: str = ""
    is_paused: bool = False

    @property
    def errors(self) -> list[RunMessage]:
        return [each for each in (self.run.messages if self.run else ()) if each.level == "error"]


class TenantOverview(Struct, frozen=True):
    """All of a tenant.

    Attributes:
        held: How many changes of *held_streams* are beyond a limit. Those of *approved* streams may be made.
        problem: Why the config cannot be loaded; empty if it can.
        overdue_files: Files that a partner has not acknowledged in time, and whether a run has marked them as overdue.
    """

    jobs: tuple[JobOverview, ...]
    open: tuple[OpenRecordTotal, ...]
    held: int
    held_since: datetime | None
    held_streams: frozenset[str]
    approved: frozenset[str]
    overdue_files: tuple[tuple[OverdueBatch, bool], ...]
    at: datetime
    problem: str = ""

    @property
    def condition(self) -> JobCondition:
        if self.problem:
            return JobCondition.FAILED
        order = list(JobCondition)
        return min((each.condition for each in self.jobs), key=order.index, default=JobCondition.NEW)


def read_overview(tx: Transaction, jobs: Mapping[str, JobConfig], now: datetime, problem: str = "") -> TenantOverview:
    newest, limited = tx.runs.listed(limit=1), tx.pending_approvals.listed()
    waiting = [each for each in limited if each.approved_at is None]
    by_hand = (_manual_run_overview(tx, run, now) for run in newest if not jobs or run.job not in jobs)
    return TenantOverview(
        (*_job_overviews(tx, jobs, now), *by_hand),
        tuple(tx.open_record_totals.by_state()),
        sum(each.record_count for each in waiting),
        min((each.since for each in waiting), default=None),
        frozenset(each.stream for each in waiting),
        frozenset(each.stream for each in limited if each.approved_at is not None),
        tuple(tx.batches.late_batches(at=now, limit=_LATE_FILES)),
        now,
        problem,
    )


def _job_overviews(tx: Transaction, jobs: Mapping[str, JobConfig], now: datetime) -> Iterator[JobOverview]:
    latest, paused, coming = (
        tx.scheduled_runs.latest_by_job(),
        tx.scheduled_runs.paused_jobs(),
        DueRunPlanner(jobs).next_due_by_job(now),
    )
    for name, job in jobs.items():
        last = latest.get(name)
        missed = None if name in paused else _missed_run(job, last, now)
        if last is not None and last.status == "skipped":  # nothing was delivered: what ran before counts
            last = tx.scheduled_runs.last_executed_run_of_job(DueRun(name, last.due, last.business_date)) or last
        run = None if last is None or last.run_id is None else tx.runs.get(last.run_id)
        if last is not None and not last.is_finished and run is None:
            run = next(iter(tx.runs.listed(limit=1, job=name)), None)
        condition, shown = _job_condition(last, paused=name in paused, missed=missed is not None), missed or last
        yield JobOverview(
            job=name,
            condition=condition,
            business_date="" if shown is None else shown.business_date.isoformat(),
            since=missed.instant if missed else None if last is None else last.finished_at or last.started_at,
            next_due=coming.get(name),
            run=run,
            note=job_paused_by_sentence(tx, name)
            if condition is JobCondition.PAUSED
            else ""
            if last is None
            else last.note or "",
            delay=explain_start_delay(tx, jobs, name, missed.business_date, now) if missed else None,
            progress=progress_text(tx, run, now) if run and condition is JobCondition.RUNNING else "",
            is_paused=name in paused,
        )


def _missed_run(job: JobConfig, last: ScheduledRun | None, now: datetime) -> DueTime | None:
    """Return the first run that should have begun; None if there is none."""
    if last is None or not last.is_finished:  # before the service sees a job, nothing of it is due
        return None
    since = max(last.due, now - _LOOKS_BACK)
    found = first_due_time_per_business_date(job.schedule, since, now - LATE)
    return next((each for each in found if each.business_date > last.business_date), None)


def _job_condition(last: ScheduledRun | None, *, paused: bool, missed: bool) -> JobCondition:
    if last is not None and last.status == "running":
        return JobCondition.RUNNING
    if paused:
        return JobCondition.PAUSED
    if missed:
        return JobCondition.MISSING
    return JobCondition.NEW if last is None else _condition_of_status(last.status)


def _manual_run_overview(tx: Transaction, run: RunRecord, now: datetime) -> JobOverview:
    condition = _condition_of_status(run.status)
    progress = progress_text(tx, run, now) if condition is JobCondition.RUNNING else ""
    since = run.finished_at or run.started_at
    return JobOverview(
        job="", condition=condition, business_date=run.business_date, since=since, run=run, progress=progress
    )


def _condition_of_status(status: str) -> JobCondition:
    return {
        "running": JobCondition.RUNNING,
        "done": JobCondition.GREEN,
        "skipped": JobCondition.GREEN,
        "degraded": JobCondition.DEGRADED,
    }.get(status, JobCondition.FAILED)


def sort_worst_first(found: Sequence[tuple[str, TenantOverview]]) -> list[tuple[str, TenantOverview]]:
    order = list(JobCondition)
    return sorted(found, key=lambda each: (order.index(each[1].condition), each[0]))


class KnownOverviews(Struct, frozen=True):
    """The overviews of all tenants that were read so far, and why others could not be read."""

    found: Mapping[str, TenantOverview]
    errors: Mapping[str, CrossdockError]
    unread: Sequence[str]


class TenantOverviewCache:
    """The overviews of all tenants. Those of many are read in a thread, so that a page need not wait for all."""

    def __init__(self, tenants: Tenants, clock: Clock) -> None:
        self._tenants, self._clock = tenants, clock
        self._lock, self._read = threading.Lock(), threading.Lock()
        self._found: dict[str, TenantOverview] = {}
        self._errors: dict[str, CrossdockError] = {}
        self._ended_at: float | None = None
        self._lasted_s = 0.0
        self._thread: threading.Thread | None = None
        self._closing = False

    def stop_background_reading(self) -> None:
        """Stop reading: a thread that is cut off at the end of the process can make it crash."""
        with self._lock:
            self._closing, thread = True, self._thread
        if thread is not None:
            thread.join()

    def read_tenant(self, tenant: Tenant) -> TenantOverview:
        """Read one now. Raises ConfigError or StateError."""
        jobs, problem = dict[str, JobConfig](), ""
        try:
            jobs |= tenant.project().jobs
        except CrossdockError as error:
            problem = text_with_code(error)  # the state is shown although the config is wrong
        with self._tenants.read_transaction(tenant) as tx:
            return read_overview(tx, jobs, self._clock.now(), problem)

    def latest_with_background_refresh(self) -> KnownOverviews:
        """Return what is known of all tenants. They are read again if the last reading ended a while ago."""
        names = [each.name for each in self._tenants.all()]
        with self._lock:
            age_s = math.inf if self._ended_at is None else self._clock.monotonic() - self._ended_at
            is_due = age_s > max(FRESH_S, SHARE * self._lasted_s) and not self._closing
            if is_due and self._thread is None:
                self._thread = threading.Thread(target=self._read_all, name="overviews", daemon=True)
                self._thread.start()
            thread = self._thread
        if thread is not None and age_s > STALE_S:
            thread.join(WAIT_S)
        with self._read:
            found = {name: self._found[name] for name in names if name in self._found}
            errors = {name: self._errors[name] for name in names if name in self._errors}
        return KnownOverviews(found, errors, [name for name in names if name not in found and name not in errors])

    def _read_all(self) -> None:
        began = self._clock.monotonic()
        try:
            for tenant in self._tenants.all():
                if self._closing:
                    return
                try:
                    found = self.read_tenant(tenant)
                except CrossdockError as error:
                    with self._read:
                        self._found.pop(tenant.name, None)
                        self._errors[tenant.name] = error
                else:
                    with self._read:
                        self._errors.pop(tenant.name, None)
                        self._found[tenant.name] = found
        finally:
            with self._lock:
                self._ended_at, self._thread = self._clock.monotonic(), None
                self._lasted_s = self._ended_at - began
