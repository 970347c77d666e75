"""Nights on one manual clock: whoever races, sleeps or dies, each job and business date is finished once."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from tests.integration.scheduler.scheduled_runs_race import BEGIN, DUE, House, Inline, job, job_of_each_zone, race
from tests.waiting import eventually

from crossdock.errors import ConfigError, StateError
from crossdock.observability.metrics import Metrics
from crossdock.scheduler.service import Service
from crossdock.state import DueRun, StateUrl

NO_CATCH_UP = {"catch_up": "none"}


def test_every_night_of_every_zone_once(state_url: StateUrl, tmp_path: Path) -> None:
    """Three schedulers race through eight zones; the host is down for three days, one sleeps longer than its lease."""
    days = 60 if state_url.drivername == "sqlite" else 15  # the spring of all zones, and of some
    race(state_url, tmp_path, job_of_each_zone("all", "latest"), days=days, outages=1, zombies=1)


def test_who_is_killed_is_followed(state_url: StateUrl, tmp_path: Path) -> None:
    """A third of the runs dies in the middle: another scheduler begins the same night again, and it ends once."""
    house = House(state_url, tmp_path, {"a": job(), "b": job()}, kills=0.33)
    days = 30 if state_url.drivername == "sqlite" else 12
    house.live(BEGIN + timedelta(days=days), [house.scheduler() for _ in range(2)], timedelta(hours=3))
    house.kills = 0.0
    house.live(house.clock.now() + timedelta(hours=26), [])
    last = house.scheduler()

    def caught_up() -> bool:  # once nobody holds the state of those that were killed
        house.look_alone(last)
        return len(house.runs) >= 2 * days and all(night.finished for night in house.scheduled_runs())

    with closing(last):
        eventually(caught_up)
    scheduled_runs = house.scheduled_runs()
    assert {night.status for night in scheduled_runs} == {"done"}
    assert len(scheduled_runs) == len(house.runs) >= 2 * days
    assert max(night.attempts for night in scheduled_runs) > 1


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
    assert Counter(night.status for night in house.scheduled_runs()) == Counter({"done": done, "skipped": skipped})
    assert all("catch_up" in (night.note or "") for night in house.scheduled_runs() if night.status == "skipped")


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
    for _ in range(4):  # a third would be due when the second has ended, and so on
        scheduler.tick()
    scheduler.close()
    statuses = Counter(night.status for night in house.scheduled_runs())
    expected = {"queue": {"done": 2}, "skip": {"done": 1, "skipped": 1}, "forbid": {"done": 1, "failed": 1}}
    assert statuses == Counter(expected[overlap])


def test_a_paused_job_goes_on_where_it_was(state_url: StateUrl, tmp_path: Path) -> None:
    """While a job is paused none of its nights starts; then they are caught up."""
    house = House(state_url, tmp_path, {"a": job()})
    scheduler = house.scheduler()
    house.live(BEGIN + timedelta(days=1), [scheduler])
    house.pause("a", paused=True)
    house.live(BEGIN + timedelta(days=4), [scheduler])
    assert len(house.runs) == 1
    house.pause("a", paused=False)
    house.live(BEGIN + timedelta(days=5), [scheduler])
    assert len(house.runs) == 5


@pytest.mark.parametrize("begun", [False, True])
def test_a_night_waits_for_the_state(state_url: StateUrl, tmp_path: Path, begun: bool) -> None:
    """It follows a run by hand, and one of it that was killed, also where nothing is caught up with."""
    house = House(state_url, tmp_path, {"a": job(schedule=NO_CATCH_UP)})
    with house.watched() as scheduler:
        with house.busy() as other:
            if begun:
                with other.begin() as tx:
                    assert tx.scheduled_runs.begin(DueRun("a", DUE, DUE.date()), at=DUE)
            house.look_until(DUE + timedelta(hours=2), scheduler)
        assert not house.runs
        house.look_until(DUE + timedelta(hours=3), scheduler)
    assert [(night.due, night.status, night.attempts) for night in house.scheduled_runs()] == [(DUE, "done", 1 + begun)]


def test_nights_that_waited_for_the_state_follow_each_other(state_url: StateUrl, tmp_path: Path) -> None:
    """None that came due while another run was at work is left out: nobody missed it."""
    house = House(state_url, tmp_path, {"a": job(schedule={"every": "1h", "catch_up": "latest"})})
    with house.watched() as scheduler:
        done = len(house.runs)
        with house.busy():
            house.look_until(house.clock.now() + timedelta(hours=3), scheduler)
        house.look_until(house.clock.now() + timedelta(minutes=10), scheduler)
    assert len(house.runs) == done + 3
    assert {night.status for night in house.scheduled_runs()} == {"done"}


def test_a_night_that_cannot_begin_is_tried_again(state_url: StateUrl, tmp_path: Path) -> None:
    """Each failure is told, and it runs at the first look at which it can."""
    house = House(state_url, tmp_path, {"a": job(schedule=NO_CATCH_UP)})
    with house.watched() as scheduler:
        house.unable = StateError("no room")
        house.look_until(DUE + timedelta(minutes=20), scheduler)
        assert not house.runs
        assert {(ended.due.instant, ended.error) for ended in house.told} == {(DUE, "no room")}
        house.unable = None
        house.look_until(DUE + timedelta(minutes=25), scheduler)
    assert [run.due for run in house.runs] == [DUE]


@pytest.mark.parametrize("lasts_s", [60, 3600])
def test_a_job_after_a_long_one_is_on_time(state_url: StateUrl, tmp_path: Path, lasts_s: float) -> None:
    """However long the first takes, the second follows, also where the scheduler began to look when both were due."""
    house = House(state_url, tmp_path, {"z": job(), "a": job(after=["z"], schedule=NO_CATCH_UP)}, lasts_s=lasts_s)
    with house.watched():
        house.clock.advance(120)
    fresh = house.scheduler()
    house.look_until(house.clock.now(), fresh)
    fresh.close()
    assert [run.job for run in house.runs] == ["z", "a"]


def test_a_job_after_one_that_another_scheduler_runs_is_on_time(state_url: StateUrl, tmp_path: Path) -> None:
    """Who looks on while it runs does not leave out what comes after it."""
    house = House(state_url, tmp_path, {"z": job(), "a": job(after=["z"], schedule=NO_CATCH_UP)}, lasts_s=3600)
    with house.watched() as scheduler, house.watched() as other:
        house.clock.advance(120)
        house.meanwhile = scheduler.tick
        assert other.tick()
        house.meanwhile = lambda: None
        assert other.tick()  # tells of its end, and gives the state free
        house.look_until(house.clock.now(), scheduler)
    assert [run.job for run in house.runs] == ["z", "a"]
    assert {night.status for night in house.scheduled_runs()} == {"done"}


@pytest.mark.parametrize(
    ("blackout", "busy_min"),
    [
        pytest.param(("02:00", "04:00"), 0, id="due in it"),
        pytest.param(("02:40", "04:00"), 20, id="held up until it began"),
    ],
)
def test_a_blackout_is_no_reason_to_leave_a_night_out(
    state_url: StateUrl, tmp_path: Path, blackout: tuple[str, str], busy_min: int
) -> None:
    """What is due in one, or cannot start before it, starts at its end."""
    window = dict(zip(("from", "to"), blackout, strict=True))
    house = House(state_url, tmp_path, {"a": job(schedule={**NO_CATCH_UP, "blackouts": [window]})})
    with house.watched() as scheduler:
        with house.busy():
            house.look_until(DUE + timedelta(minutes=busy_min), scheduler)
        house.look_until(DUE + timedelta(minutes=89), scheduler)
        assert not house.runs
        house.look_until(DUE + timedelta(minutes=90), scheduler)
    assert [(run.job, run.business_date) for run in house.runs] == [("a", DUE.date())]


def test_one_that_waits_brings_nothing_back_that_others_missed(state_url: StateUrl, tmp_path: Path) -> None:
    """While a night is held up, others that the host slept through stay left out."""
    house = House(state_url, tmp_path, {"late": job(schedule={"catch_up": "latest"}), "a": job(schedule=NO_CATCH_UP)})
    with house.watched():
        house.clock.advance(timedelta(days=3, hours=2).total_seconds())
    fresh = house.scheduler()
    with house.busy():
        house.look_until(house.clock.now() + timedelta(hours=1), fresh)
    house.look_until(house.clock.now() + timedelta(hours=1), fresh)
    fresh.close()
    assert [(run.job, run.due) for run in house.runs] == [("late", DUE + timedelta(days=3))]
    assert Counter(night.status for night in house.scheduled_runs("a")) == Counter({"skipped": 4})


def test_one_that_waits_brings_nothing_back_that_was_paused(state_url: StateUrl, tmp_path: Path) -> None:
    """A job that was paused over its time stays without that night, whatever waited meanwhile."""
    house = House(state_url, tmp_path, {"z": job(), "a": job(schedule=NO_CATCH_UP)})
    with house.watched() as scheduler:
        house.pause("a", paused=True)
        with house.busy():
            house.look_until(DUE + timedelta(hours=1), scheduler)
        house.pause("a", paused=False)
        house.look_until(DUE + timedelta(hours=2), scheduler)
    assert {(night.job, night.status) for night in house.scheduled_runs()} == {("z", "done"), ("a", "skipped")}


def test_what_overlapped_is_on_record_once_the_state_is_free(state_url: StateUrl, tmp_path: Path) -> None:
    """It is a failure by ``overlap: forbid``, however long it could not be written down."""
    hourly = {"every": "1h", **NO_CATCH_UP}
    house = House(state_url, tmp_path, {"a": job(schedule=hourly, overlap="forbid")}, lasts_s=4000)
    scheduler = house.scheduler()
    scheduler.tick()
    house.clock.advance(3600)
    assert scheduler.tick()
    assert scheduler.tick()  # tells of its end, and gives the state free
    with house.busy():
        house.look_until(house.clock.now() + timedelta(minutes=15), scheduler)
    house.look_until(house.clock.now() + timedelta(minutes=15), scheduler)
    scheduler.close()
    assert [night.status for night in house.scheduled_runs()] == ["failed", "done"]


def test_a_night_that_cannot_begin_is_told_of_once(state_url: StateUrl, tmp_path: Path) -> None:
    """It is tried again at every look, as long as its reason lasts, and then it ends; nobody is told each time."""
    house = House(state_url, tmp_path, {"a": job()})
    scheduler = house.scheduler()
    scheduler.tick()
    house.clock.advance(timedelta(days=1).total_seconds())
    house.unable = ConfigError("the environment variable KEY is not set")
    for _ in range(5):
        scheduler.tick()
        house.clock.advance(30)
    house.unable = None
    house.look_until(house.clock.now() + timedelta(minutes=1), scheduler)
    scheduler.close()
    assert [night.status for night in house.scheduled_runs()] == ["done"]
    assert [ended.error for ended in house.told] == ["the environment variable KEY is not set", None]


def test_the_service_shows_what_is_due_next(state_url: StateUrl, tmp_path: Path) -> None:
    """In its metrics, for each job, after each look."""
    house = House(state_url, tmp_path, {"a": job(schedule={"every": "1h"}), "z": job()})
    metrics, facts = Metrics(house.clock), {"notifier": None, "trace": print, "executor": Inline()}
    with closing(Service(house.project, house.clock, threading.Event(), metrics, **facts)) as service:  # type: ignore[arg-type]
        service.look()
    shown = next(family for family in metrics.families() if family.name == "crossdock_next_due_timestamp_seconds")
    expected = {"a": (BEGIN + timedelta(hours=1)).timestamp(), "z": DUE.timestamp()}
    assert {sample.labels["job"]: sample.value for sample in shown.samples} == expected
