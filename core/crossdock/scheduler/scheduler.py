"""Runs scheduled runs. Several schedulers may watch one state: its lease and its rows decide which one runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta

from crossdock.clock import Clock
from crossdock.errors import CrossdockError, StateBusyError, StateError
from crossdock.platform.access_check import check_clock
from crossdock.project.project import Project, this_process
from crossdock.runs import session
from crossdock.runs.run_report import Report
from crossdock.runs.session import Session
from crossdock.scheduler.due_jobs import DueJob, DueJobs
from crossdock.scheduling.due_times import Due
from crossdock.state import DueRun, State, Transaction

ON_TIME = timedelta(minutes=5)  # a scheduler that starts so soon after an instant has not missed it
CLOCK_SET_S = 1.0  # a clock that is adjusted in passing does not jump by so much
LOOK_S = 30.0  # between two looks, so that what others did, and a clock that was set, are noticed


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A night that came to an end, or could not be run.

    Attributes:
        report: What the run did; None where it did not come to that.
        error: Why it failed.
    """

    job: str
    due: Due
    report: Report | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class _Running:
    due: Due
    future: Future[Report | None]


class Scheduler:
    """Runs what is due: nights of jobs that have no connection in common side by side, others one after the other.

    Args:
        run: Runs a night, in a thread of *executor*; None if another scheduler has done it meanwhile.
        tell: Told of every night that ended.
        at_once: Most nights that run side by side.
    """

    def __init__(
        self,
        project: Project,
        clock: Clock,
        run: Callable[[Session, DueRun], Report | None],
        tell: Callable[[FinishedRun], None],
        executor: Executor,
        *,
        at_once: int = 1,
    ) -> None:
        self._clock, self._run, self._tell, self._executor, self._at_once = clock, run, tell, executor, at_once
        self._follow(project)
        self._state: State | None = None
        self._awake_since: dict[str, datetime] = {}  # by job: nothing that was due after it was missed
        self._put_off: set[str] = set()  # jobs that could not begin at this look, so that the next one tries again
        self._told: dict[str, tuple[Due, str]] = {}  # by job: what failed last, and why
        self._running: dict[str, _Running] = {}
        self._session: Session | None = None
        self._held = ExitStack()  # what the shift holds
        self._checked_offset_s: float | None = None  # of the clock to the monotonic one, when it was compared last

    def reload(self, project: Project) -> None:
        """Go on with another config; what runs must have ended."""
        self.close()
        self._follow(project)

    def _follow(self, project: Project) -> None:
        self._project, self._due_jobs = project, DueJobs(project.jobs)
        connections = {name for job in project.jobs for name in project.connections_of(job)}
        self._width = max(1, min(self._at_once, len(project.jobs), len(connections)))

    @property
    def runs(self) -> bool:
        """True while a night runs."""
        return bool(self._running)

    @property
    def has_news(self) -> bool:
        """True if a night has ended that nobody was told of."""
        return any(running.future.done() for running in self._running.values())

    def tick(self, *, may_start: bool = True) -> bool:
        """Tell of the nights that have ended, and start those that may start; False if there was none of either.

        Raises:
            CrossdockError: If the state cannot be used.
        """
        if self._gather():
            return True
        if not may_start:
            return False
        now = self._clock.now()
        for job in self._project.jobs:
            self._awake_since.setdefault(job, now - ON_TIME)
        try:
            plans, ready = self._look(self._opened(), now)
        except CrossdockError:
            self._forget()
            raise
        started = [each for each in ready if self._start(*each)]
        if started:
            return True
        self._awake_since = {plan.job: plan.awake_since for plan in plans}  # what has to wait stays on time
        self._put_off.clear()
        return False

    def _gather(self) -> bool:
        """Tell of what has ended; when nothing runs any more, others may have the state."""
        ended = [job for job, running in self._running.items() if running.future.done()]
        for job in ended:
            running = self._running.pop(job)
            try:
                report = running.future.result()
            except CrossdockError as error:
                self._failed(job, running.due, str(error))
            except Exception as error:  # noqa: BLE001  a defect in one night must not cost the next
                self._failed(job, running.due, f"unforeseen: {type(error).__name__}")
            except BaseException as error:
                self._session = None
                self._held.__exit__(type(error), error, error.__traceback__)
                raise
            else:
                self._told.pop(job, None)
                if report is not None:
                    self._tell(FinishedRun(job, running.due, report))
        if not self._running:
            self._leave()
        return bool(ended)

    def _leave(self) -> None:
        self._session = None
        self._held.close()

    def _look(self, state: State, now: datetime) -> tuple[list[DueJob], list[tuple[DueJob, Due]]]:
        """All plans, and the nights that may start together, those first that go first."""
        with state.begin() as tx:
            plans = self._due_jobs.plans(tx, now, self._awake_since)
        if any(plan.starts or plan.skipped for plan in plans):
            self._check_clock(now)
        with state.begin() as tx:
            ready = [(plan, start) for plan in plans if (start := self._may_start(tx, plan, plans, now))]
            ready.sort(key=lambda item: self._order(tx, *item))
        if not ready:
            self._skip(state, [plan for plan in plans if plan.skipped and not plan.starts], now)
        return plans, self._side_by_side(ready)

    def _check_clock(self, now: datetime) -> None:
        """Compare this machine's clock with the platform's once, and again whenever it was set since.

        Raises:
            ClockError: If they differ by too much: what is due by it must neither be run nor left out.
        """
        offset_s = now.timestamp() - self._clock.monotonic()
        if self._checked_offset_s is None or abs(offset_s - self._checked_offset_s) > CLOCK_SET_S:
            compared = check_clock(self._project.platform, self._clock)
            self._checked_offset_s = offset_s if compared else None

    def _may_start(self, tx: Transaction, plan: DueJob, plans: list[DueJob], now: datetime) -> Due | None:
        if plan.job in self._running or plan.job in self._put_off:
            return None
        return self._due_jobs.may_start(tx, plan, plans, now)

    def _side_by_side(self, ready: list[tuple[DueJob, Due]]) -> list[tuple[DueJob, Due]]:
        """As many as may run at once, of which no two have a connection in common."""
        busy = {name for job in self._running for name in self._project.connections_of(job)}
        chosen: list[tuple[DueJob, Due]] = []
        for plan, start in ready:
            needed = self._project.connections_of(plan.job)
            if len(self._running) + len(chosen) < self._width and not needed & busy:
                chosen.append((plan, start))
                busy |= needed
        return chosen

    def _opened(self) -> State:
        self._state = self._state or self._project.open_state()
        return self._state

    def close(self) -> None:
        """Give the state free; what runs must have ended."""
        self._leave()
        self._forget()

    def _forget(self) -> None:
        if self._state is not None:
            self._state.close()
            self._state = None

    @staticmethod
    def _order(tx: Transaction, plan: DueJob, start: Due) -> tuple[datetime, float]:
        """What was due first goes first; of those that are due together, the one that took the shortest so far."""
        seconds, _ = tx.scheduled_runs.expected(plan.job) or (0.0, 0)
        return start.instant, seconds

    def _start(self, plan: DueJob, start: Due) -> bool:
        due_run = DueRun(plan.job, start.instant, start.business_date, tuple(plan.skipped))
        try:
            taken = self._taken()
        except StateBusyError:
            return False  # another run is at work: a look later it may have done this one
        except StateError:
            self._forget()
            raise
        except CrossdockError as error:
            self._failed(plan.job, start, str(error))
            return False
        self._running[plan.job] = _Running(start, self._executor.submit(self._run, taken, due_run))
        return True

    def _taken(self) -> Session:
        if self._session is None:
            self._session = self._held.enter_context(session.opened(self._project, self._clock, width=self._width))
        return self._session

    def _failed(self, job: str, one: Due, error: str) -> None:
        """Tell of it once, however often it is tried again."""
        self._put_off.add(job)
        if self._told.get(job) != (one, error):
            self._told[job] = one, error
            self._tell(FinishedRun(job, one, None, error))

    def _skip(self, state: State, plans: list[DueJob], now: datetime) -> None:
        if not plans:
            return

        def write(tx: Transaction) -> None:
            for plan in plans:
                tx.scheduled_runs.skip(plan.skipped, at=now)

        if self._session is not None:
            self._session.state.apply(write)
            return
        try:
            with state.exclusive(this_process()):
                state.apply(write)
        except StateBusyError:
            return  # whoever is at work leaves them out, or the next look does

    def next_due(self) -> dict[str, datetime]:
        """When each job is due next."""
        return self._due_jobs.next_due(self._clock.now())

    def wait_s(self, instants: Iterable[datetime]) -> float:
        """Seconds until the first of the *instants* at which something is due, 0 to `LOOK_S`."""
        now = self._clock.now()
        return max(0.0, min([LOOK_S, *((instant - now).total_seconds() for instant in instants)]))
