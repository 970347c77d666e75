"""Starts scheduled runs. Several schedulers may share one state: its lease and its rows decide which one runs what."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Executor, Future
from contextlib import ExitStack
from datetime import datetime, timedelta

from msgspec import Struct

from crossdock.config.project.project import Project
from crossdock.config.schedules.due_times import DueTime
from crossdock.errors import CrossdockError, StateBusyError, StateError, as_crossdock_error, text_with_code
from crossdock.runs import session_shared_by_runs, sync_and_replay
from crossdock.runs.run_report import Report
from crossdock.runs.run_start_and_stop_requests import RunRequest
from crossdock.runs.session_shared_by_runs import Session
from crossdock.services.inbox.webhook_record_delivery import LISTEN_JOB_NAME, ConnectionAndTarget, InboxWorker
from crossdock.services.scheduler.due_run_decisions_and_preview import DueRunPlanner, DueRunsOfJob
from crossdock.services.scheduler.stderr_log import LOGGER, RunLog
from crossdock.state import DueRun, ScheduledRun, State, Transaction
from crossdock.values.acting_person_and_process import own_process_name
from crossdock.values.clock import Clock
from crossdock.writing.targets.platform_access_and_clock_checks import compare_clock_or_raise

ON_TIME_BEFORE_START = timedelta(minutes=5)  # runs due this short before a scheduler started were not missed
CLOCK_SET_S = 1.0  # a larger jump means that the clock was set


class WorkerPool(Struct, frozen=True):
    """Executes runs in threads of this process, at most *at_once* at the same time."""

    executor: Executor
    at_once: int = 1


class FinishedRun(Struct, frozen=True):
    """A scheduled run that has ended. Its report is None if it could not start."""

    job: str
    due: DueTime
    report: Report | None
    error: CrossdockError | None = None


class _RunningJob(Struct, frozen=True):
    due: DueTime
    future: Future[Report | None]


class Scheduler:
    """Starts due runs. Jobs that share no connection run at the same time, others in sequence.

    Args:
        run: Executes a run, in a thread of *workers*; returns None if another scheduler has already done it.

    Attributes:
        waiting: The first due run of each job that has none in progress.
        held_back_by: Why no run can start while another process has the state; None if it does not.
        inbox_errors: Why the records between these partners are not worked on.
    """

    def __init__(
        self,
        project: Project,
        clock: Clock,
        run: Callable[[Session, DueRun], Report | None],
        on_end: Callable[[FinishedRun], None],
        workers: WorkerPool,
        inbox_worker: InboxWorker | None = None,
    ) -> None:
        self._inbox_worker = inbox_worker
        self._inbox_work: dict[ConnectionAndTarget, Future[None]] = {}
        self._failed_partners = set[ConnectionAndTarget]()  # whose work has failed, until it is tried again
        self._partners_with_records = set[ConnectionAndTarget]()
        self.inbox_errors: dict[ConnectionAndTarget, str] = {}
        self._clock, self._run, self._on_end, self._workers = clock, run, on_end, workers
        self._use_project(project)
        self._state: State | None = None
        self._on_time_since: dict[str, datetime] = {}  # by job: runs due after it were not missed
        self._postponed: set[str] = set()  # jobs that could not start, until the next call tries again
        self._reported: dict[str, tuple[DueTime, str]] = {}  # by job: the last failure
        self._seen_runs: dict[str, int | None] = {}  # by job: the last one that was looked at
        self._running: dict[str, _RunningJob] = {}
        self._session: Session | None = None
        self._resources = ExitStack()  # of the session
        self._checked_offset_s: float | None = None  # wall clock minus monotonic clock at the last check

    def replace_config(self, project: Project) -> None:
        """Continue with another config. No run may be in progress."""
        self.close()
        self._use_project(project)

    def _use_project(self, project: Project) -> None:
        self._project, self._due_jobs = project, DueRunPlanner(project.jobs)
        self.waiting: dict[str, DueTime] = {}
        self.held_back_by: str | None = None
        connections = {name for job in project.jobs for name in project.connection_names_of_job(job)}
        self._at_once = max(1, min(self._workers.at_once, len(project.jobs), len(connections)))

    @property
    def busy(self) -> bool:
        return bool(self._running or self._inbox_work)

    @property
    def running_jobs(self) -> list[str]:
        return sorted(self._running)

    @property
    def inbox_error(self) -> str | None:
        """Why no record of the inbox can be worked on; None if some can, or there are none."""
        errors = self.inbox_errors
        return next(iter(errors.values()), None) if errors.keys() >= self._partners_with_records else None

    @property
    def failed_starts(self) -> set[str]:
        """The jobs whose last run could not start, which was reported. It is tried again."""
        return set(self._reported)

    def report_ended_or_start_due(self, *, may_start: bool = True) -> bool:
        """Report ended runs, or else start runs that may start. Return False if there were none."""
        if self._collect_and_report_ended():
            return True
        if not may_start:
            return False
        now = self._clock.now()
        for job in self._project.jobs:
            self._on_time_since.setdefault(job, now - ON_TIME_BEFORE_START)
        try:
            if self._start_inbox_work():  # first: to look which jobs are due may need the platform
                return True
            plans, ready = self._plan_and_choose_runs_to_start(self._open_state(), now)
        except CrossdockError:
            self._close_state()
            raise
        self.held_back_by = None
        started = [each for each in ready if self._start_run(*each)]
        self._set_waiting(plans)
        if started:
            return True
        self._failed_partners.clear()
        self._on_time_since = {plan.job: plan.on_time_since for plan in plans}  # what has to wait stays on time
        self._postponed.clear()
        return False

    def update_waiting_runs(self) -> None:
        """Update `waiting` while no run may start."""
        try:
            with self._open_state().begin() as tx:
                self._set_waiting(
                    self._due_jobs.plan_due_runs_of_all_jobs(tx.scheduled_runs, self._clock.now(), self._on_time_since)
                )
        except CrossdockError:
            self._close_state()
            raise

    def _set_waiting(self, plans: Iterable[DueRunsOfJob]) -> None:
        self.waiting = {plan.job: plan.starts[0] for plan in plans if plan.starts and plan.job not in self._running}

    def close(self) -> None:
        """Close the state. No run may be in progress."""
        self._close_session()
        self._close_state()

    def next_due_by_job(self) -> dict[str, datetime]:
        return self._due_jobs.next_due_by_job(self._clock.now())

    def _collect_and_report_ended(self) -> bool:
        """Report what has ended. After the last run, release the lease."""
        hints_ended = self._collect_ended_inbox_work()
        ended = [job for job, running in self._running.items() if running.future.done()]
        for job in ended:
            running = self._running.pop(job)
            try:
                report = running.future.result()
            except Exception as error:  # noqa: BLE001  a defect in one run must not prevent the next
                self._report_failed_start(job, running.due, as_crossdock_error(error))
            except BaseException as error:
                self._session = None
                self._resources.__exit__(type(error), error, error.__traceback__)
                raise
            else:
                self._reported.pop(job, None)
                if report is not None:
                    self._on_end(FinishedRun(job, running.due, report))
        if not self.busy:
            self._close_session()
        return bool(ended) or hints_ended

    def _collect_ended_inbox_work(self) -> bool:
        ended = [partners for partners, future in self._inbox_work.items() if future.done()]
        for partners in ended:
            error = self._inbox_work.pop(partners).exception()
            if error is None:
                self.inbox_errors.pop(partners, None)
                continue
            if not isinstance(error, Exception):
                raise error
            of = f" of {partners}" if partners.connection else ""
            reason = text_with_code(error) if isinstance(error, CrossdockError) else type(error).__name__
            self._remember_failed_inbox_work([partners], of, reason)
        return bool(ended)

    def _remember_failed_inbox_work(self, failed: Collection[ConnectionAndTarget], of: str, reason: str) -> None:
        """Log a new reason, and try again only when everything else was tried."""
        if any(self.inbox_errors.get(partners) != reason for partners in failed):
            LOGGER.error("webhooks%s: their records are not delivered now: %s", of, reason)
        self._failed_partners.update(failed)
        self.inbox_errors = self.inbox_errors | dict.fromkeys(failed, reason)  # which another thread may read

    def _forget_inbox_errors_without_records(self, due: Collection[ConnectionAndTarget]) -> None:
        left = self._partners_with_records = {*due, *self._inbox_work}
        self.inbox_errors = {partners: text for partners, text in self.inbox_errors.items() if partners in left}

    def _start_inbox_work(self) -> bool:
        """Work on records of the inbox, except between partners whose last work has just failed."""
        worker = self._inbox_worker
        if worker is None:
            return False
        due = self._open_state().run_read_only(lambda tx: worker.due_streams_by_partners(self._project, tx))
        self._forget_inbox_errors_without_records(due)
        due = {
            each: streams
            for each, streams in due.items()
            if each not in self._inbox_work.keys() | self._failed_partners
        }
        if not due:
            return False
        try:
            opened = self._open_session(RunRequest(job=LISTEN_JOB_NAME, waits=True))
        except StateBusyError:
            return False  # another process is running; the records wait for its end
        except StateError:
            raise
        except CrossdockError as error:  # which keeps no job from being tried
            self._remember_failed_inbox_work(due, "", text_with_code(error))
            return False
        for partners, streams in due.items():
            self._inbox_work[partners] = self._workers.executor.submit(
                worker.deliver_until_idle, opened, partners, streams
            )
        return True

    def _plan_and_choose_runs_to_start(
        self, state: State, now: datetime
    ) -> tuple[list[DueRunsOfJob], list[tuple[DueRunsOfJob, DueTime]]]:
        """Return all plans, and the runs to start now, in order."""
        with state.begin() as tx:
            plans = self._due_jobs.plan_due_runs_of_all_jobs(tx.scheduled_runs, now, self._on_time_since)
            early = [] if self._is_clock_checked(now) else self._runs_ahead_of_clock(tx, now)
            ahead = tx.scheduled_runs.jobs_first_seen_after(now + ON_TIME_BEFORE_START)
            self._log_runs_of_other_configs(tx)
        if early or ahead or any(plan.starts or plan.skipped for plan in plans):
            self._check_clock_with_platform(now)
        if (early or ahead) and self._is_clock_checked(now):
            plans = self._correct_times_ahead_and_replan(state, early, ahead, now)
        with state.begin() as tx:
            candidates = [plan for plan in plans if plan.job not in self._running and plan.job not in self._postponed]
            found = (
                (plan, self._due_jobs.first_run_unless_held_back(tx.scheduled_runs, plan, plans, now))
                for plan in candidates
            )
            ready = [(plan, start) for plan, start in found if start is not None]
            ready.sort(key=lambda item: self._start_order_key(tx, *item))
        if not ready:
            self._store_skipped_runs(state, [plan for plan in plans if plan.skipped and not plan.starts], now)
        return plans, self._runs_without_shared_connections(ready)

    def _log_runs_of_other_configs(self, tx: Transaction) -> None:
        for job in self._project.jobs:
            last = tx.scheduled_runs.last_finished_run(job)
            if last is None or self._seen_runs.get(job) == last.run_id:
                continue
            self._seen_runs[job] = last.run_id
            error = sync_and_replay.executed_by_other_config_error(tx, self._project, last)
            if error is not None:
                RunLog(job, last.business_date).log(text_with_code(error), logging.ERROR)

    def _runs_ahead_of_clock(self, tx: Transaction, now: datetime) -> list[ScheduledRun]:
        """Return the runs that are due or ended only later than *now*: the clock was ahead when they began."""
        skew_s = self._project.platform.max_clock_skew_s
        return [] if skew_s is None else tx.scheduled_runs.finished_due_or_ended_after(now + timedelta(seconds=skew_s))

    def _correct_times_ahead_and_replan(
        self, state: State, early: list[ScheduledRun], ahead: list[str], now: datetime
    ) -> list[DueRunsOfJob]:
        """Remove the *early* runs, which would stand for those that are due at their times, and plan again.

        The jobs *ahead* would have no due run until the time at which a clock that was ahead saw them first.
        """
        for run in early:
            message = "the run of %s for %s began when the clock was ahead, and does not count: it runs when it is due"
            LOGGER.warning(message, run.job, run.business_date)
        log_jobs_first_seen_ahead(ahead)
        with state.begin() as tx:
            tx.scheduled_runs.move_first_seen_of_jobs_back(ahead, now)
            tx.scheduled_runs.remove_as_if_not_run(early, now)
            return self._due_jobs.plan_due_runs_of_all_jobs(tx.scheduled_runs, now, self._on_time_since)

    def _check_clock_with_platform(self, now: datetime) -> None:
        """Compare the clock with the platform's, once and whenever it was set. Raise ClockError if it is wrong."""
        if not self._is_clock_checked(now):
            compared = compare_clock_or_raise(
                self._project.platform, self._clock, self._project.access_test_resources[0]
            )
            self._checked_offset_s = self._wall_minus_monotonic_s(now) if compared else None

    def _is_clock_checked(self, now: datetime) -> bool:
        checked_s = self._checked_offset_s
        return checked_s is not None and abs(self._wall_minus_monotonic_s(now) - checked_s) <= CLOCK_SET_S

    def _wall_minus_monotonic_s(self, now: datetime) -> float:
        return now.timestamp() - self._clock.monotonic()

    def _runs_without_shared_connections(
        self, ready: list[tuple[DueRunsOfJob, DueTime]]
    ) -> list[tuple[DueRunsOfJob, DueTime]]:
        """Return as many runs as may run at once, no two of which share a connection."""
        in_use = {name for job in self._running for name in self._project.connection_names_of_job(job)}
        chosen: list[tuple[DueRunsOfJob, DueTime]] = []
        for plan, start in ready:
            needed = self._project.connection_names_of_job(plan.job)
            if len(self._running) + len(chosen) < self._at_once and not needed & in_use:
                chosen.append((plan, start))
                in_use |= needed
        return chosen

    @staticmethod
    def _start_order_key(tx: Transaction, plan: DueRunsOfJob, start: DueTime) -> tuple[datetime, float]:
        seconds, _ = tx.scheduled_runs.expected_seconds_and_requests(plan.job) or (0.0, 0)
        return start.instant, seconds

    def _start_run(self, plan: DueRunsOfJob, start: DueTime) -> bool:
        due_run = DueRun(plan.job, start.instant, start.business_date, tuple(plan.skipped))
        try:
            opened = self._open_session(RunRequest(due_run, waits=True))
        except StateBusyError as error:
            self.held_back_by = text_with_code(error)
            return False  # another process is running; it may be doing this run
        except StateError:
            self._close_state()
            raise
        except CrossdockError as error:
            self._report_failed_start(plan.job, start, error)
            return False
        _log_runs_failed_by_overlap(plan)
        self._running[plan.job] = _RunningJob(start, self._workers.executor.submit(self._run, opened, due_run))
        return True

    def _report_failed_start(self, job: str, one: DueTime, error: CrossdockError) -> None:
        """Report a failure once, however often the run is retried."""
        self._postponed.add(job)
        if self._reported.get(job) != (one, str(error)):
            self._reported[job] = one, str(error)
            self._on_end(FinishedRun(job, one, None, error))

    def _store_skipped_runs(self, state: State, plans: list[DueRunsOfJob], now: datetime) -> None:
        if not plans:
            return

        def write(tx: Transaction) -> None:
            for plan in plans:
                tx.scheduled_runs.skip(plan.skipped, at=now, recipients=self._project.notification_recipient_kinds)

        if self._session is not None:
            self._session.state.run_transaction(write)
        else:
            try:
                with state.hold_run_lease(own_process_name()):
                    state.run_transaction(write)
            except StateBusyError:
                return  # the process that is running writes them, or a later call does
        for plan in plans:
            _log_runs_failed_by_overlap(plan)

    def _open_session(self, run_request: RunRequest) -> Session:
        if self._session is None:
            width = self._at_once + (self._inbox_worker is not None)  # all works on the inbox have the part of one run
            opening = session_shared_by_runs.open_session(self._project, self._clock, width=width, attempt=run_request)
            self._session = self._resources.enter_context(opening)
        return self._session

    def _close_session(self) -> None:
        self._session = None
        self._resources.close()

    def _open_state(self) -> State:
        self._state = self._state or self._project.open_state()
        return self._state

    def _close_state(self) -> None:
        if self._state is not None:
            self._state.close()
            self._state = None


def log_jobs_first_seen_ahead(jobs: Iterable[str]) -> None:
    for job in jobs:
        LOGGER.warning("%s was first seen when the clock was ahead: its runs count from now on", job)


def _log_runs_failed_by_overlap(plan: DueRunsOfJob) -> None:
    for each in plan.skipped:
        if each.status == "failed":
            RunLog(each.job, each.business_date).log(f"failed: {each.note}", logging.ERROR)
