"""The scheduler as a service: it looks, runs, tells and shows itself until it is asked to end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from datetime import datetime, timedelta

from crossdock.clock import Clock
from crossdock.errors import ClockError, CrossdockError
from crossdock.notifications.events import RunOverdue, ScheduledRunEnded, Status
from crossdock.notifications.notifier import Notifier
from crossdock.observability.metrics import Metrics
from crossdock.project.project import Project
from crossdock.runs import runner
from crossdock.runs.run_report import Report
from crossdock.runs.session import Session
from crossdock.runs.timings import Timings
from crossdock.scheduler.retention_task import RetentionTask
from crossdock.scheduler.run_log import LOGGER, RunLog
from crossdock.scheduler.scheduler import FinishedRun, Scheduler
from crossdock.scheduling.due_times import Due, due
from crossdock.state import DueRun

NAP_S = 1.0  # so long after a signal at most it is noticed
GLANCE_S = 0.1  # and so long after a night that it has ended


class Service:
    """Runs the jobs of a project.

    Args:
        notifier: Tells people; None where the config names nobody.
        trace: Told of each run that ended, however it did.
        executor: Runs nights, in threads of this process.
        at_once: Most nights that run side by side.
    """

    def __init__(
        self,
        project: Project,
        clock: Clock,
        interrupt: threading.Event,
        metrics: Metrics,
        *,
        notifier: Notifier | None,
        trace: Callable[[Timings], None],
        executor: Executor,
        at_once: int = 1,
    ) -> None:
        self._project, self._clock, self._interrupt = project, clock, interrupt
        self._metrics, self._notifier, self._trace = metrics, notifier, trace
        self._scheduler = Scheduler(project, clock, self._run, self._ended, executor, at_once=at_once)
        self._upkeep = RetentionTask(clock)
        self._logs: dict[str, RunLog] = {}  # by job, of nights that have begun
        self._fresh: Project | None = None  # a config that takes effect once nothing runs
        self._looked_at = clock.now()
        self._lost: set[str] = set()  # jobs of which was told that the state is lost

    def run(self, reloaded: Callable[[], Project | None]) -> None:
        """Go on until the interrupt; *reloaded* gives another config when somebody asked for it."""
        self._metrics.found("config")
        try:
            while not self._interrupt.is_set():
                self._look()
                self._pause(self._wait_s(), reloaded)
            while self._scheduler.runs:  # the interrupt ends them in order
                self._scheduler.tick(may_start=False)
                self._clock.sleep(GLANCE_S)
        finally:
            if not self._scheduler.runs:  # else its threads write still, and must hold the lease to their end
                self._scheduler.close()

    def _pause(self, seconds: float, reloaded: Callable[[], Project | None]) -> None:
        """Wait for what is new; a signal may come to another thread, which does not wake this one."""
        until = self._clock.monotonic() + seconds
        while (left := until - self._clock.monotonic()) > 0 and not self._scheduler.has_news:
            if self._interrupt.wait(min(left, GLANCE_S if self._scheduler.runs else NAP_S)):
                return
            self._fresh = reloaded() or self._fresh
            if self._fresh is not None and not self._scheduler.runs:
                for job in self._project.jobs:
                    self._metrics.due(job, None)
                self._project, self._fresh = self._fresh, None
                self._scheduler.reload(self._project)
                return

    def _look(self) -> None:
        self._metrics.beat()
        now = self._clock.now()
        try:
            while not self._interrupt.is_set() and self._scheduler.tick(may_start=self._fresh is None):
                self._metrics.beat()
                self._keep_up()
            self._keep_up()
        except CrossdockError as error:
            self._metrics.found("clock" if isinstance(error, ClockError) else "state", str(error))
            LOGGER.error("cannot look what is due: %s", error)
            self._tell_of_loss(str(error), now)
        else:
            self._metrics.found("state")
            self._metrics.found("clock")
            self._looked_at, self._lost = now, set()

    def _keep_up(self) -> None:
        if not self._scheduler.runs and not self._interrupt.is_set():
            self._upkeep.turn(self._project)

    def _tell_of_loss(self, error: str, now: datetime) -> None:
        """Tell of the first night of each job that is due while the state cannot be used."""
        for name, job in self._project.jobs.items():
            one = next(due(job.schedule, self._looked_at, now), None)
            if one is not None and name not in self._lost:
                self._lost.add(name)
                self._tell(_failed(name, one, error), RunLog(name, one.business_date))

    def _wait_s(self) -> float:
        """Seconds until the next look; when each job is due next is shown meanwhile."""
        next_due = self._scheduler.next_due()
        for job, instant in next_due.items():
            self._metrics.due(job, instant)
        return self._scheduler.wait_s(next_due.values())

    def _run(self, session: Session, due_run: DueRun) -> Report | None:
        self._metrics.found("state")
        bucket = session.bucket.take(0, 0).bucket_state.bucket

        def show(tokens: int | None) -> None:
            self._metrics.allowance(tokens=tokens, rate_per_s=bucket.rate_per_s, burst=bucket.burst)

        log = self._logs[due_run.job] = RunLog(due_run.job, due_run.business_date, show)
        self._warn_if_late(session, due_run, log)
        self._metrics.began(due_run.job)
        timings = log.timings(self._clock)
        try:
            return runner.night(session, due_run, progress=timings, interrupt=self._interrupt)
        finally:
            self._trace(timings)

    def _warn_if_late(self, session: Session, due_run: DueRun, log: RunLog) -> None:
        job = session.project.jobs[due_run.job]
        done_by = job.deadline(due_run.due)
        if done_by is None:
            return
        with session.state.look() as tx:
            expected = tx.scheduled_runs.expected(due_run.job)
        if expected is None:
            return
        ends = self._clock.now() + timedelta(seconds=expected[0])
        if ends > done_by:
            zone = job.schedule.zone
            event = RunOverdue(due_run.job, due_run.business_date, ends.astimezone(zone), done_by.astimezone(zone))
            log.say(f"expected to end after {job.done_by}", logging.WARNING)
            self._tell(event, log)

    def _ended(self, ended: FinishedRun) -> None:
        report, day = ended.report, ended.due.business_date
        log = self._logs.pop(ended.job, None) or RunLog(ended.job, day)
        error = ended.error or (next(map(str, report.errors.values()), None) if report else None)
        status = report.status if report else "failed"
        seconds, requests = (report.seconds, report.counters.requests) if report else (0.0, 0)
        self._metrics.ended(ended.job, status, seconds)
        if report is not None:
            self._metrics.sent(requests, report.counters.throttled)
            for name, tally in report.tallies.items():
                terms = {str(term): number for term, number in tally.records.items()}
                self._metrics.counted(name, terms)
        log.ended(report, ended.error)
        event = replace(
            _failed(ended.job, ended.due, error),
            run_id=report.run if report else None,
            status=status,
            degraded=report is not None and report.exit_code == 1,
            seconds=seconds,
            requests=requests,
            previous=self._before(ended),
        )
        self._tell(event, log)

    def _before(self, ended: FinishedRun) -> Status | None:
        """How the night before ended; None where there was none, or nobody can tell."""
        try:
            with self._project.look() as tx:
                scheduled_runs = tx.scheduled_runs.listed(limit=50, job=ended.job)
        except CrossdockError:
            return None
        ends = (night.status for night in scheduled_runs if night.due < ended.due.instant)
        return next((end for end in ends if end == "done" or end == "incomplete" or end == "failed"), None)  # noqa: PLR1714  the type checker narrows these

    def _tell(self, event: ScheduledRunEnded | RunOverdue, log: RunLog) -> None:
        for problem in self._notifier.tell(event) if self._notifier else ():
            LOGGER.error("could not tell anybody: %s", problem, extra=log.facts)


def _failed(job: str, one: Due, error: str | None) -> ScheduledRunEnded:
    """What is told of a night of which no run began."""
    return ScheduledRunEnded(
        job=job,
        business_date=one.business_date,
        due=one.instant,
        run_id=None,
        status="failed",
        degraded=False,
        seconds=0.0,
        requests=0,
        error=error,
        previous=None,
    )
