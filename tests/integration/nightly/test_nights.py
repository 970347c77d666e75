"""Nights on one manual clock: whoever races, sleeps or dies, each job and business date is finished once."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import PIN
from tests.patience import eventually

from crossdock.nightly.scheduler import Ended, Scheduler
from crossdock.platform.profile import Profile
from crossdock.scheduling.due import due
from crossdock.scheduling.jobs import JobConfig
from crossdock.state import Night, Occasion, State, StateUrl, create
from crossdock.sync.project import Project
from crossdock.sync.report import Report
from crossdock.testing.clock import ManualClock

BEGIN = datetime(2025, 3, 1, 12, tzinfo=UTC)
ZONES = (
    "America/New_York", "Europe/Berlin", "Asia/Beirut", "Africa/Cairo",
    "America/Santiago", "America/Havana", "America/Nuuk", "Australia/Lord_Howe",
)  # fmt: skip


class KilledError(BaseException):
    """What a test throws where a process would be killed."""


def job(zone: str = "Europe/Berlin", **facts: Any) -> JobConfig:
    schedule = {"time_zone": zone, "at": "02:30", "catch_up": "all", **facts.pop("schedule", {})}
    if "every" in schedule:
        del schedule["at"]
    return JobConfig.model_validate({"schedule": schedule, **facts})


def project(url: StateUrl, folder: Path, jobs: dict[str, JobConfig]) -> Project:
    facts = {"base_url": PIN.base_url, "tenant": PIN.tenant, "auth": {"kind": "api_key", "token": "env:KEY"}}
    profile = Profile.model_validate(facts, context={"folder": folder})
    return Project(folder / "c.yaml", profile, url, folder / "spool", (), jobs)


@dataclass
class House:
    """Schedulers on one state and one clock; each runs nights by writing what a run writes of them."""

    url: StateUrl
    folder: Path
    jobs: dict[str, JobConfig]
    clock: ManualClock = field(default_factory=lambda: ManualClock(BEGIN))
    runs: list[Occasion] = field(default_factory=list)
    told: list[Ended] = field(default_factory=list)
    lasts_s: float = 60.0
    kills: float = 0.0
    rng: random.Random = field(default_factory=lambda: random.Random(5))
    lock: threading.Lock = field(default_factory=threading.Lock)
    awake: list[Scheduler] = field(default_factory=list)

    def __post_init__(self) -> None:
        create(self.url, PIN)
        self.project = project(self.url, self.folder, self.jobs)

    def scheduler(self) -> Scheduler:
        self.awake.append(Scheduler(self.project, self.clock, self.run, self.told.append, threading.Event()))
        return self.awake[-1]

    def run(self, of: Project, occasion: Occasion) -> Report | None:
        with closing(of.open_state()) as state, state.exclusive("test"):
            with state.begin() as tx:
                if not tx.nights.begin(occasion, at=self.clock.now()):
                    return None
                run_id = tx.runs.start(business_date=str(occasion.business_date), owner="t", at=self.clock.now())
            if self.rng.random() < self.kills:
                raise KilledError
            self.clock.advance(self.lasts_s)
            with state.begin() as tx:
                tx.nights.finish(occasion, "done", run_id, None, at=self.clock.now())
            with self.lock:
                self.runs.append(occasion)
            return Report(run_id, str(occasion.business_date))

    def live(self, until: datetime, schedulers: Sequence[Scheduler], step: timedelta = timedelta(hours=2)) -> None:
        """Let time pass; all *schedulers* look at the same moments, each in a thread of its own."""
        while self.clock.now() < until:
            threads = [threading.Thread(target=self._look, args=(each,)) for each in schedulers]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.clock.advance(step.total_seconds())
        for each in self.awake:
            each.close()

    def _look(self, scheduler: Scheduler) -> None:
        try:
            while scheduler.tick():
                pass
        except KilledError:
            return

    def nights(self, name: str | None = None) -> list[Night]:
        with closing(State(self.url, PIN, read_only=True)) as state, state.begin() as tx:
            return tx.nights.listed(limit=100_000, job=name)

    def asked(self, name: str, until: datetime) -> list[tuple[datetime, date]]:
        return [(one.instant, one.business_date) for one in due(self.jobs[name].schedule, BEGIN, until)]


@pytest.fixture
def days(state_url: StateUrl) -> int:
    """Enough for the spring of all zones, and for CI."""
    return 90 if state_url.drivername == "sqlite" else 30


def test_every_night_of_every_zone_once(state_url: StateUrl, tmp_path: Path, days: int) -> None:
    """Three schedulers race through eight zones: one finished run for each business date, and none is missed."""
    house = House(state_url, tmp_path, {zone.rpartition("/")[2].lower(): job(zone) for zone in ZONES})
    house.live(BEGIN + timedelta(days=days), [house.scheduler() for _ in range(3)], timedelta(hours=12))
    until = house.clock.now() - timedelta(hours=12)
    done = Counter((run.job, run.due, run.business_date) for run in house.runs)
    assert set(done.values()) == {1}
    for name in house.jobs:
        asked = [night for night in house.asked(name, until) if night[0] < until - timedelta(hours=1)]
        finished = {(night.due, night.business_date) for night in house.nights(name) if night.status == "done"}
        assert set(asked) <= finished
        assert len({day for _, day in finished}) == len(finished) >= days - 2


def test_who_is_killed_is_followed(state_url: StateUrl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of the runs dies in the middle: another scheduler begins the same night again, and it ends once."""
    monkeypatch.setattr("crossdock.state.lease.LEASE_S", 0.2)  # real seconds, of which the manual clock knows nothing
    house = House(state_url, tmp_path, {"a": job(), "b": job()}, kills=0.33)
    house.live(BEGIN + timedelta(days=30), [house.scheduler() for _ in range(2)], timedelta(hours=3))
    house.kills = 0.0
    house.live(house.clock.now() + timedelta(hours=26), [])
    last = house.scheduler()

    def caught_up() -> bool:  # once the real lease of the last one that was killed is over
        house._look(last)
        return len(house.runs) >= 60 and all(night.finished for night in house.nights())

    with closing(last):
        eventually(caught_up)
    nights = house.nights()
    assert {night.status for night in nights} == {"done"}
    assert len(nights) == len(house.runs) >= 60
    assert max(night.attempts for night in nights) > 1


@pytest.mark.parametrize(
    ("catch_up", "done", "skipped"),
    [
        pytest.param("all", 5, 0, id="all"),
        pytest.param("latest", 3, 2, id="latest"),
        pytest.param("none", 2, 3, id="none"),
    ],
)
def test_a_host_that_was_down(state_url: StateUrl, tmp_path: Path, catch_up: str, done: int, skipped: int) -> None:
    """After three days without a scheduler nights are caught up as the schedule says, and the others are on record."""
    house = House(state_url, tmp_path, {"a": job(schedule={"catch_up": catch_up})})
    first, second = house.scheduler(), house.scheduler()
    house.live(BEGIN + timedelta(days=1), [first])
    house.clock.advance(timedelta(days=3).total_seconds())
    house.live(house.clock.now() + timedelta(hours=24), [second])
    assert Counter(night.status for night in house.nights()) == Counter({"done": done, "skipped": skipped})
    assert all("catch_up" in (night.note or "") for night in house.nights() if night.status == "skipped")


def test_a_job_after_another_waits_for_its_date(state_url: StateUrl, tmp_path: Path) -> None:
    """Both are due at the same time; the second runs once the first has ended, each date."""
    house = House(state_url, tmp_path, {"z": job(), "a": job(after=["z"])})
    house.live(BEGIN + timedelta(days=3), [house.scheduler(), house.scheduler()], timedelta(hours=6))
    assert [run.job for run in house.runs] == ["z", "a"] * 3


@pytest.mark.parametrize("overlap", ["queue", "skip", "forbid"])
def test_a_run_that_takes_too_long(state_url: StateUrl, tmp_path: Path, overlap: str) -> None:
    """What is due while the run before is at work follows, is left out, or is shown as failed."""
    house = House(state_url, tmp_path, {"a": job(schedule={"every": "1h"}, overlap=overlap)}, lasts_s=4000)
    scheduler = house.scheduler()
    scheduler.tick()
    house.clock.advance(3700)
    assert scheduler.tick()
    scheduler.tick()
    scheduler.close()
    statuses = Counter(night.status for night in house.nights())
    expected = {"queue": {"done": 2}, "skip": {"done": 1, "skipped": 1}, "forbid": {"done": 1, "failed": 1}}
    assert statuses == Counter(expected[overlap])


def test_a_paused_job_goes_on_where_it_was(state_url: StateUrl, tmp_path: Path) -> None:
    """While a job is paused none of its nights starts; then they are caught up."""
    house = House(state_url, tmp_path, {"a": job()})
    scheduler = house.scheduler()
    house.live(BEGIN + timedelta(days=1), [scheduler])
    with closing(State(state_url, PIN)) as state, state.begin() as tx:
        tx.nights.pause("a", house.clock.now(), paused=True)
    house.live(BEGIN + timedelta(days=4), [scheduler])
    assert len(house.runs) == 1
    with closing(State(state_url, PIN)) as state, state.begin() as tx:
        tx.nights.pause("a", house.clock.now(), paused=False)
    house.live(BEGIN + timedelta(days=5), [scheduler])
    assert len(house.runs) == 5
