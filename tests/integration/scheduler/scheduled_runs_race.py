"""Schedulers on one state and one manual clock that race, sleep, are killed or are down for days.

The short forms are in `.test_scheduled_runs`, the long ones in `tests.long.test_scheduled_runs`.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import cycle
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import create_engine, select
from tests.chaos import contest
from tests.conftest import PIN
from tests.unit.scheduling.wallclock import planned, walk
from tests.waiting import WITHIN_S, eventually

from crossdock.config.project.project import Project
from crossdock.config.schedules.job_and_schedule_config import JobConfig
from crossdock.errors import CrossdockError, StateBusyError, StateError
from crossdock.platform.platform_config import Profile
from crossdock.runs.run_report import Report
from crossdock.runs.session_shared_by_runs import Session
from crossdock.services.scheduler.scheduler import ON_TIME_BEFORE_START, FinishedRun, Scheduler, WorkerPool
from crossdock.state import DueRun, RunResult, ScheduledRun, State, StateUrl, create_or_upgrade_state
from crossdock.state.db import schema
from crossdock.testing.manual_clock import ManualClock

BEGIN = datetime(2025, 3, 1, 12, tzinfo=UTC)
ZONES = (
    "America/New_York", "Europe/Berlin", "Asia/Beirut", "Africa/Cairo",
    "America/Santiago", "America/Havana", "America/Nuuk", "Australia/Lord_Howe",
)  # fmt: skip
AT = "02:30"
DUE = datetime(2025, 3, 2, 1, 30, tzinfo=UTC)  # the first run after it in Berlin
THREE_DAYS = timedelta(days=3)

T = TypeVar("T")
Wanted = dict[tuple[datetime, date], str]  # the runs of a job and how each must end


class Inline(Executor):
    """Executes what is submitted at once, in the calling thread."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001  it is raised where the result is asked for
            future.set_exception(error)
        return future


class KilledError(BaseException):
    """Raised where a process would be killed."""


def job(zone: str = "Europe/Berlin", **facts: Any) -> JobConfig:
    schedule = {"time_zone": zone, "at": AT, "catch_up": "all", **facts.pop("schedule", {})}
    if "every" in schedule:
        del schedule["at"]
    return JobConfig.model_validate({"schedule": schedule, **facts})


def job_of_each_zone(*catch_ups: str, zones: Sequence[str] = ZONES) -> dict[str, JobConfig]:
    """A job for each zone, with these values of `catch_up` in turn."""
    ways = zip(zones, cycle(catch_ups))
    return {zone.rpartition("/")[2].lower(): job(zone, schedule={"catch_up": catch_up}) for zone, catch_up in ways}


def project(url: StateUrl, folder: Path, jobs: dict[str, JobConfig]) -> Project:
    facts = {"base_url": PIN.base_url, "tenant": PIN.tenant, "auth": {"kind": "api_key", "token": "env:KEY"}}
    profile = Profile.model_validate(facts, context={"folder": folder})
    return Project(folder / "c.yaml", profile, url, folder / "spool", (), jobs)


class Met(Project, frozen=True):
    """A project that reports when another process holds its state."""

    meet: Callable[[], None] = lambda: None

    @contextmanager
    def open_state_exclusively(self, *, restored: bool = False) -> Iterator[State]:
        try:
            with Project.open_state_exclusively(self, restored=restored) as state:
                yield state
        except StateBusyError:
            self.meet()
            raise


class Nap:
    """Makes one run pause after it has started, until it is woken."""

    def __init__(self) -> None:
        self.asleep, self.wake = threading.Event(), threading.Event()
        self.due_run: DueRun | None = None

    def take(self, due_run: DueRun) -> None:
        self.due_run = due_run
        self.asleep.set()
        assert self.wake.wait(WITHIN_S)


@dataclass
class Simulation:
    """Schedulers on one state and one clock; a run writes only its scheduled run.

    Attributes:
        runs: Those that ended well, in the order in which their end was written.
        met: How often a scheduler found the state busy.
        refused: What was said to runs whose end could not be written.
        outages: From the last look of all before each outage to the first one after it.
        nap: What the next run that starts does.
        unable: What keeps runs from beginning.
        meanwhile: Called while a run is in progress.
    """

    url: StateUrl
    folder: Path
    jobs: dict[str, JobConfig]
    begin: datetime = BEGIN
    clock: ManualClock = field(init=False)
    runs: list[DueRun] = field(default_factory=list)
    finished: list[FinishedRun] = field(default_factory=list)
    lasts_s: float = 60.0
    kills: float = 0.0
    rng: random.Random = field(default_factory=lambda: random.Random(5))
    met: int = 0
    refused: list[str] = field(default_factory=list)
    outages: list[tuple[datetime, datetime]] = field(default_factory=list)
    nap: Nap | None = None
    unable: CrossdockError | None = None
    meanwhile: Callable[[], object] = lambda: None
    awake: list[Scheduler] = field(default_factory=list)
    _active: int = 0
    _ended: int = 0
    _turn: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        self.clock = ManualClock(self.begin)
        create_or_upgrade_state(self.url, PIN)
        plain = project(self.url, self.folder, self.jobs)
        facts = {name: getattr(plain, name) for name in plain.__struct_fields__}
        self.project = Met(**facts, meet=self._meet)

    # ---- schedulers

    def scheduler(self) -> Scheduler:
        self.awake.append(Scheduler(self.project, self.clock, self.run, self.finished.append, WorkerPool(Inline())))
        return self.awake[-1]

    def schedulers(self, number: int = 3) -> list[Scheduler]:
        """New schedulers, as after a restart of their host."""
        return [self.scheduler() for _ in range(number)]

    def run(self, session: Session, due_run: DueRun) -> Report | None:
        if self.unable is not None:
            raise self.unable
        try:
            with self._working():
                return self._alone(session.state, due_run)
        except StateError as error:
            self.refused.append(error.message)
            raise

    def _alone(self, state: State, due_run: DueRun) -> Report | None:
        now, day = self.clock.now(), str(due_run.business_date)
        with state.begin() as tx:
            if not tx.scheduled_runs.begin_unless_finished(due_run, at=now):
                return None
            run_id = tx.runs.start(business_date=day, at=now, job=due_run.job)
        if self.rng.random() < self.kills:
            raise KilledError
        nap, self.nap = self.nap, None
        if nap is not None:
            self._counted(-1)  # nobody waits for its end
            nap.take(due_run)
            self._counted(1)
        self.clock.advance(self.lasts_s)
        self.meanwhile()
        with state.begin() as tx:
            now = self.clock.now()
            tx.runs.finish(run_id, RunResult("done", duration_ms=1), at=now)
            tx.scheduled_runs.finish(due_run, "done", run_id, None, at=now)
        self.runs.append(due_run)
        return Report(run_id, day)

    @contextmanager
    def _working(self) -> Iterator[None]:
        self._counted(1)
        try:
            yield
        finally:
            self._counted(-1, ended=1)

    def _counted(self, active: int, ended: int = 0) -> None:
        with self._turn:
            self._active += active
            self._ended += ended
            self._turn.notify_all()

    # ---- time

    def live(self, until: datetime, schedulers: Sequence[Scheduler], step: timedelta = timedelta(hours=2)) -> None:
        """Let time pass; all *schedulers* look at the same moments, each in a thread of its own."""
        while self.clock.now() < until:
            self.look(schedulers)
            self.clock.advance(step.total_seconds())
        for each in self.awake:
            each.close()

    def look(self, schedulers: Iterable[Scheduler]) -> None:
        """Let all look at once, again after every run of another, until nothing is left to do."""
        threads = [threading.Thread(target=self.look_alone, args=(each,)) for each in schedulers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def look_alone(self, scheduler: Scheduler) -> None:
        try:
            while True:
                ended_before = self._ended
                if not scheduler.report_ended_or_start_due() and not self._another_ended(ended_before):
                    return
        except KilledError:
            return

    def _meet(self) -> None:
        with self._turn:
            self.met += 1

    def _another_ended(self, ended_before: int) -> bool:
        """Wait while another is running; True if a run has ended since *ended_before*."""
        with self._turn:
            self._turn.wait_for(lambda: self._ended != ended_before or not self._active, timeout=WITHIN_S)
            return self._ended != ended_before

    @contextmanager
    def watched(self) -> Iterator[Scheduler]:
        """A scheduler that was up from the first day until a minute before the first run is due."""
        with closing(self.scheduler()) as scheduler:
            self.look_until(DUE - timedelta(minutes=1), scheduler, timedelta(hours=1))
            yield scheduler

    @contextmanager
    def busy(self) -> Iterator[State]:
        """Another process holds the lease."""
        with closing(self.project.open_state()) as other, other.hold_run_lease("other"):
            yield other

    def pause(self, name: str, *, paused: bool) -> None:
        with closing(State(self.url, PIN)) as state, state.begin() as tx:
            tx.scheduled_runs.set_paused(name, self.clock.now(), paused=paused)

    def look_until(self, until: datetime, scheduler: Scheduler, step: timedelta = timedelta(minutes=5)) -> None:
        """Let time pass; *scheduler* looks all the time, and last at *until*."""
        self.look_alone(scheduler)
        while self.clock.now() < until:
            self.clock.advance(min(step, until - self.clock.now()).total_seconds())
            self.look_alone(scheduler)

    def away(self, schedulers: Sequence[Scheduler], length: timedelta) -> list[Scheduler]:
        """The host is down for *length*; the schedulers that look again then, at a minute at which nothing is due."""
        self.look(schedulers)
        gone = self.clock.now()
        back = (gone + length).replace(minute=17)
        self.clock.advance((back - gone).total_seconds())
        self.outages.append((gone, back))
        return self.schedulers(len(schedulers))

    def oversleep(self, schedulers: Sequence[Scheduler]) -> None:
        """One pauses in its next run until its lease has expired and another has done the run; its write fails."""
        self.look(schedulers)
        nap = self.nap = Nap()
        sleeper, *others = schedulers
        self.clock.advance(timedelta(hours=12).total_seconds())  # in which something is due in one of the zones
        thread = threading.Thread(target=self.look_alone, args=(sleeper,))
        thread.start()
        assert nap.asleep.wait(WITHIN_S)
        eventually(lambda: contest.expire(self.url))
        self.look(others)
        assert nap.due_run in self.runs, "nobody took over"
        before, refused = contest.contents(self.url), len(self.refused)
        nap.wake.set()
        thread.join(WITHIN_S)
        assert not thread.is_alive()
        assert len(self.refused) == refused + 1
        assert "another run has taken over" in self.refused[-1]
        assert contest.changed(before, contest.contents(self.url)) == []

    # ---- what is there

    def scheduled_runs(self, name: str | None = None) -> list[ScheduledRun]:
        with closing(State(self.url, PIN, read_only=True)) as state, state.begin() as tx:
            return tx.scheduled_runs.listed(limit=100_000, job=name)

    def finished_runs(self) -> Counter[tuple[str, str]]:
        """How many runs of each job and business date were done, by the table of runs."""
        engine = create_engine(self.url)
        try:
            with engine.connect() as connection:
                done = select(schema.runs.c.job, schema.runs.c.business_date).where(schema.runs.c.status == "done")
                return Counter((row.job, row.business_date) for row in connection.execute(done))
        finally:
            engine.dispose()

    def wanted(self, name: str, until: datetime) -> Wanted:
        """How each run of a job that was due until *until* must have ended, by the oracle."""
        schedule = self.jobs[name].schedule
        span = schedule.time_zone, self.begin.date(), (until - self.begin).days + 2
        asked = [run for run in planned(walk(span, minutes=30), [AT]) if self.begin < run[0] <= until]
        ends = dict.fromkeys(asked, "done")
        for gone, back in self.outages:
            missed = [run for run in asked if gone < run[0] <= back]
            assert all(run[0] <= back - ON_TIME_BEFORE_START for run in missed)
            skipped = {"all": [], "latest": missed[:-1], "none": missed}[schedule.catch_up]
            ends |= dict.fromkeys(skipped, "skipped")
        return ends


@dataclass(frozen=True, slots=True)
class Figures:
    """What a race did. *met*: how often a scheduler found the state busy."""

    days: int
    jobs: int
    done: int
    skipped: int
    outages: int
    zombies: int
    met: int


def race(
    url: StateUrl,
    folder: Path,
    jobs: dict[str, JobConfig],
    *,
    begin: datetime = BEGIN,
    days: int,
    outages: int,
    zombies: int,
) -> Figures:
    """Three schedulers race through all runs of *jobs*: each is finished once, or skipped by `catch_up`.

    Args:
        outages: How often the host is down for three days.
        zombies: How often one of them sleeps longer than its lease.
    """
    simulation = Simulation(url, folder, jobs, begin=begin)
    schedulers, trials = simulation.schedulers(), ["outage"] * outages + ["zombie"] * zombies
    random.Random(7).shuffle(trials)
    half = timedelta(days=days) / (len(trials) + 1) / 2
    for number, trial in enumerate(trials, 1):
        simulation.live(begin + number * 2 * half, schedulers, timedelta(hours=12))
        if trial == "outage":
            schedulers = simulation.away(schedulers, THREE_DAYS)
        else:
            simulation.oversleep(schedulers)
    simulation.live(begin + timedelta(days=days), schedulers, timedelta(hours=12))
    looked_last = simulation.clock.now() - timedelta(hours=12)
    skipped = 0
    for name in jobs:
        found = {(run.due, run.business_date): run.status for run in simulation.scheduled_runs(name)}
        wanted = simulation.wanted(name, looked_last)
        assert found == wanted, {run: (found.get(run), end) for run, end in wanted.items() if found.get(run) != end}
        skipped += Counter(wanted.values())["skipped"]
    assert len(simulation.refused) == zombies
    done = simulation.finished_runs()
    assert set(done.values()) == {1}
    assert done.keys() == {(run.job, str(run.business_date)) for run in simulation.runs}
    assert len(done) == len(simulation.runs)
    assert simulation.met > days, "too few met at all"
    return Figures(days, len(jobs), len(done), skipped, outages, zombies, simulation.met)
