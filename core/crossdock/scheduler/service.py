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
from crossdock.notifications.events import Late, NightEnded, Status
from crossdock.notifications.notifier import Notifier
from crossdock.observability.metrics import Vitals
from crossdock.project.project import Project
from crossdock.runs import runner
from crossdock.runs.run_report import Report
from crossdock.runs.session import Shift
from crossdock.runs.timings import Course
from crossdock.scheduler.retention_task import Upkeep
from crossdock.scheduler.run_log import LOGGER, NightLog
from crossdock.scheduler.scheduler import Ended, Scheduler
from crossdock.scheduling.due_times import Due, due
from crossdock.state import Occasion

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
        vitals: Vitals,
        *,
        notifier: Notifier | None,
        trace: Callable[[Course], None],
        executor: Executor,
        at_once: int = 1,
    ) -> None:
        self._project, self._clock, self._interrupt = project, clock, interrupt
        self._vitals, self._notifier, self._trace = vitals, notifier, trace
        self._scheduler = Scheduler(project, clock, self._run, self._ended, executor, at_once=at_once)
        self._upkeep = Upkeep(clock)
        self._logs: dict[str, NightLog] = {}  # by job, of nights that have begun
        self._fresh: Project | None = None  # a config that takes effect once nothing runs
        self._looked_at = clock.now()
        self._lost: set[str] = set()  # jobs of which was told that the state is lost

    def run(self, reloaded: Callable[[], Project | None]) -> None:
        """Go on until the interrupt; *reloaded* gives another config when somebody asked for it."""
        self._vitals.found("config")
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
                    self._vitals.due(job, None)
                self._project, self._fresh = self._fresh, None
                self._scheduler.reload(self._project)
                return

    def _look(self) -> None:
        self._vitals.beat()
        now = self._clock.now()
        try:
            while not self._interrupt.is_set() and self._scheduler.tick(may_start=self._fresh is None):
                self._vitals.beat()
                self._keep_up()
            self._keep_up()
        except CrossdockError as error:
            self._vitals.found("clock" if isinstance(error, ClockError) else "state", str(error))
            LOGGER.error("cannot look what is due: %s", error)
            self._tell_of_loss(str(error), now)
        else:
            self._vitals.found("state")
            self._vitals.found("clock")
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
                self._tell(_failed(name, one, error), NightLog(name, one.business_date))

    def _wait_s(self) -> float:
        """Seconds until the next look; when each job is due next is shown meanwhile."""
        next_due = self._scheduler.next_due()
        for job, instant in next_due.items():
            self._vitals.due(job, instant)
        return self._scheduler.wait_s(next_due.values())

    def _run(self, shift: Shift, occasion: Occasion) -> Report | None:
        self._vitals.found("state")
        bucket = shift.bucket.take(0, 0).purse.bucket

        def show(tokens: int | None) -> None:
            self._vitals.allowance(tokens=tokens, rate_per_s=bucket.rate_per_s, burst=bucket.burst)

        log = self._logs[occasion.job] = NightLog(occasion.job, occasion.business_date, show)
        self._warn_if_late(shift, occasion, log)
        self._vitals.began(occasion.job)
        course = log.course(self._clock)
        try:
            return runner.night(shift, occasion, progress=course, interrupt=self._interrupt)
        finally:
            self._trace(course)

    def _warn_if_late(self, shift: Shift, occasion: Occasion, log: NightLog) -> None:
        job = shift.project.jobs[occasion.job]
        done_by = job.deadline(occasion.due)
        if done_by is None:
            return
        with shift.state.look() as tx:
            expected = tx.nights.expected(occasion.job)
        if expected is None:
            return
        ends = self._clock.now() + timedelta(seconds=expected[0])
        if ends > done_by:
            zone = job.schedule.zone
            event = Late(occasion.job, occasion.business_date, ends.astimezone(zone), done_by.astimezone(zone))
            log.say(f"expected to end after {job.done_by}", logging.WARNING)
            self._tell(event, log)

    def _ended(self, ended: Ended) -> None:
        report, day = ended.report, ended.due.business_date
        log = self._logs.pop(ended.job, None) or NightLog(ended.job, day)
        error = ended.error or (next(map(str, report.errors.values()), None) if report else None)
        status = report.status if report else "failed"
        seconds, requests = (report.seconds, report.counters.requests) if report else (0.0, 0)
        self._vitals.ended(ended.job, status, seconds)
        if report is not None:
            self._vitals.sent(requests, report.counters.throttled)
            for name, tally in report.tallies.items():
                terms = {str(term): number for term, number in tally.records.items()}
                self._vitals.counted(name, terms)
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

    def _before(self, ended: Ended) -> Status | None:
        """How the night before ended; None where there was none, or nobody can tell."""
        try:
            with self._project.look() as tx:
                nights = tx.nights.listed(limit=50, job=ended.job)
        except CrossdockError:
            return None
        ends = (night.status for night in nights if night.due < ended.due.instant)
        return next((end for end in ends if end == "done" or end == "incomplete" or end == "failed"), None)  # noqa: PLR1714  the type checker narrows these

    def _tell(self, event: NightEnded | Late, log: NightLog) -> None:
        for problem in self._notifier.tell(event) if self._notifier else ():
            LOGGER.error("could not tell anybody: %s", problem, extra=log.facts)


def _failed(job: str, one: Due, error: str | None) -> NightEnded:
    """What is told of a night of which no run began."""
    return NightEnded(
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
