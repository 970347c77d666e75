"""Schedulers that race, sleep or are killed finish each job and business date once."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.integration.scheduler.scheduled_runs_race import BEGIN, DUE, Inline, Simulation, job, job_of_each_zone, race
from tests.waiting import eventually

from crossdock.errors import ConfigError, StateError
from crossdock.services.observability.health_and_metrics import Metrics
from crossdock.services.scheduler.monitored_scheduler import MonitoredScheduler
from crossdock.services.scheduler.scheduler import WorkerPool
from crossdock.state import DueRun, StateUrl

NO_CATCH_UP = {"catch_up": "none"}
BEFORE_CHANGES = datetime(2025, 3, 28, 12, tzinfo=UTC)
CHANGING_ZONES = "Europe/Berlin", "Asia/Beirut", "America/Santiago", "Australia/Lord_Howe"  # within 10 days


@pytest.mark.nightly
def test_each_run_of_each_zone_is_done_once(state_url: StateUrl, tmp_path: Path) -> None:
    """Three schedulers race through four zones; the host is down for three days, one sleeps longer than its lease."""
    jobs = job_of_each_zone("all", "latest", zones=CHANGING_ZONES)
    race(state_url, tmp_path, jobs, begin=BEFORE_CHANGES, days=11, outages=1, zombies=1)


def test_another_scheduler_takes_over_after_a_kill(state_url: StateUrl, tmp_path: Path) -> None:
    """A third of the runs are killed: another scheduler starts the same run again, and it ends once."""
    another_takes_over(state_url, tmp_path, days=10)


def another_takes_over(state_url: StateUrl, tmp_path: Path, days: int) -> None:
    simulation = Simulation(state_url, tmp_path, {"a": job(), "b": job()}, kills=0.33)
    simulation.live(BEGIN + timedelta(days=days), [simulation.scheduler() for _ in range(2)], timedelta(hours=3))
    simulation.kills = 0.0
    simulation.live(simulation.clock.now() + timedelta(hours=26), [])
    last = simulation.scheduler()

    def caught_up() -> bool:  # once nobody holds the state of those that were killed
        simulation.look_alone(last)
        return len(simulation.runs) >= 2 * days and all(run.is_finished for run in simulation.scheduled_runs())

    with closing(last):
        eventually(caught_up)
    scheduled_runs = simulation.scheduled_runs()
    assert {run.status for run in scheduled_runs} == {"done"}
    assert len(scheduled_runs) == len(simulation.runs) >= 2 * days
    assert max(run.attempts for run in scheduled_runs) > 1


@pytest.mark.parametrize(
    ("catch_up", "done", "skipped"),
    [
        pytest.param("all", 5, 0, id="all"),
        pytest.param("latest", 3, 2, id="latest"),
        pytest.param("none", 2, 3, id="none"),
    ],
)
def test_a_host_that_was_down(state_url: StateUrl, tmp_path: Path, catch_up: str, done: int, skipped: int) -> None:
    """After three days without a scheduler, runs are caught up with or recorded as skipped."""
    simulation = Simulation(state_url, tmp_path, {"a": job(schedule={"catch_up": catch_up})})
    first, second = simulation.scheduler(), simulation.scheduler()
    simulation.live(BEGIN + timedelta(days=1), [first])
    simulation.clock.advance(timedelta(days=3).total_seconds())
    simulation.live(simulation.clock.now() + timedelta(hours=24), [second])
    assert Counter(run.status for run in simulation.scheduled_runs()) == Counter({"done": done, "skipped": skipped})
    assert all("catch_up" in (run.note or "") for run in simulation.scheduled_runs() if run.status == "skipped")


def test_a_job_after_another_waits_for_its_date(state_url: StateUrl, tmp_path: Path) -> None:
    """Both are due at the same time; the second runs once the first has ended, each date."""
    simulation = Simulation(state_url, tmp_path, {"z": job(), "a": job(after=["z"])})
    simulation.live(BEGIN + timedelta(days=3), [simulation.scheduler(), simulation.scheduler()], timedelta(hours=6))
    assert [run.job for run in simulation.runs] == ["z", "a"] * 3


@pytest.mark.parametrize("overlap", ["queue", "skip", "forbid"])
def test_a_run_that_takes_too_long(state_url: StateUrl, tmp_path: Path, overlap: str) -> None:
    """A run that becomes due while the previous one is running is queued, skipped, or recorded as failed."""
    simulation = Simulation(state_url, tmp_path, {"a": job(schedule={"every": "1h"}, overlap=overlap)}, lasts_s=4000)
    scheduler = simulation.scheduler()
    scheduler.report_ended_or_start_due()
    simulation.clock.advance(3700)
    for _ in range(4):  # a third would be due when the second has ended, and so on
        scheduler.report_ended_or_start_due()
    scheduler.close()
    statuses = Counter(run.status for run in simulation.scheduled_runs())
    expected = {"queue": {"done": 2}, "skip": {"done": 1, "skipped": 1}, "forbid": {"done": 1, "failed": 1}}
    assert statuses == Counter(expected[overlap])


def test_a_resumed_job_continues(state_url: StateUrl, tmp_path: Path) -> None:
    """While a job is paused none of its runs start; then they are caught up with."""
    simulation = Simulation(state_url, tmp_path, {"a": job()})
    scheduler = simulation.scheduler()
    simulation.live(BEGIN + timedelta(days=1), [scheduler])
    simulation.pause("a", paused=True)
    simulation.live(BEGIN + timedelta(days=4), [scheduler])
    assert len(simulation.runs) == 1
    simulation.pause("a", paused=False)
    simulation.live(BEGIN + timedelta(days=5), [scheduler])
    assert len(simulation.runs) == 5


@pytest.mark.nightly(but=["sqlite-True"])
@pytest.mark.parametrize("begun", [False, True])
def test_a_run_waits_for_the_state(state_url: StateUrl, tmp_path: Path, begun: bool) -> None:
    """It starts after a manual run, and after one of its own that was killed, even with `catch_up: none`."""
    simulation = Simulation(state_url, tmp_path, {"a": job(schedule=NO_CATCH_UP)})
    with simulation.watched() as scheduler:
        with simulation.busy() as other:
            if begun:
                with other.begin() as tx:
                    assert tx.scheduled_runs.begin_unless_finished(DueRun("a", DUE, DUE.date()), at=DUE)
            simulation.look_until(DUE + timedelta(hours=2), scheduler)
        assert not simulation.runs
        simulation.look_until(DUE + timedelta(hours=3), scheduler)
    assert [(run.due, run.status, run.attempts) for run in simulation.scheduled_runs()] == [(DUE, "done", 1 + begun)]


def test_runs_that_waited_for_the_state_are_all_done(state_url: StateUrl, tmp_path: Path) -> None:
    """A run that became due during another one was not missed."""
    simulation = Simulation(state_url, tmp_path, {"a": job(schedule={"every": "1h", "catch_up": "latest"})})
    with simulation.watched() as scheduler:
        done = len(simulation.runs)
        with simulation.busy():
            simulation.look_until(simulation.clock.now() + timedelta(hours=3), scheduler)
        simulation.look_until(simulation.clock.now() + timedelta(minutes=10), scheduler)
    assert len(simulation.runs) == done + 3
    assert {run.status for run in simulation.scheduled_runs()} == {"done"}


def test_a_run_that_cannot_start_is_tried_again(state_url: StateUrl, tmp_path: Path) -> None:
    """The failure is reported, and it starts as soon as it can."""
    simulation = Simulation(state_url, tmp_path, {"a": job(schedule=NO_CATCH_UP)})
    with simulation.watched() as scheduler:
        simulation.unable = StateError("no room")
        simulation.look_until(DUE + timedelta(minutes=20), scheduler)
        assert not simulation.runs
        assert {(ended.due.instant, str(ended.error)) for ended in simulation.finished} == {(DUE, "no room")}
        simulation.unable = None
        simulation.look_until(DUE + timedelta(minutes=25), scheduler)
    assert [run.due for run in simulation.runs] == [DUE]


@pytest.mark.parametrize("lasts_s", [60, 3600])
def test_a_job_after_a_long_one_is_on_time(state_url: StateUrl, tmp_path: Path, lasts_s: float) -> None:
    """However long the first takes, the second starts after it, even if the scheduler started when both were due."""
    simulation = Simulation(
        state_url, tmp_path, {"z": job(), "a": job(after=["z"], schedule=NO_CATCH_UP)}, lasts_s=lasts_s
    )
    with simulation.watched():
        simulation.clock.advance(120)
    fresh = simulation.scheduler()
    simulation.look_until(simulation.clock.now(), fresh)
    fresh.close()
    assert [run.job for run in simulation.runs] == ["z", "a"]


def test_a_job_after_one_that_another_scheduler_runs_is_on_time(state_url: StateUrl, tmp_path: Path) -> None:
    """The scheduler that waits meanwhile does not skip the second job."""
    simulation = Simulation(
        state_url, tmp_path, {"z": job(), "a": job(after=["z"], schedule=NO_CATCH_UP)}, lasts_s=3600
    )
    with simulation.watched() as scheduler, simulation.watched() as other:
        simulation.clock.advance(120)
        simulation.meanwhile = scheduler.report_ended_or_start_due
        assert other.report_ended_or_start_due()
        simulation.meanwhile = lambda: None
        assert other.report_ended_or_start_due()  # reports its end, and releases the lease
        simulation.look_until(simulation.clock.now(), scheduler)
    assert [run.job for run in simulation.runs] == ["z", "a"]
    assert {run.status for run in simulation.scheduled_runs()} == {"done"}


@pytest.mark.parametrize(
    ("blackout", "busy_min"),
    [
        pytest.param(("02:00", "04:00"), 0, id="due in it"),
        pytest.param(("02:40", "04:00"), 20, id="held up until it began"),
    ],
)
def test_a_blackout_does_not_skip_a_run(
    state_url: StateUrl, tmp_path: Path, blackout: tuple[str, str], busy_min: int
) -> None:
    """A run that is due in a blackout, or delayed until it begins, starts at its end."""
    window = dict(zip(("from", "to"), blackout, strict=True))
    simulation = Simulation(state_url, tmp_path, {"a": job(schedule={**NO_CATCH_UP, "blackouts": [window]})})
    with simulation.watched() as scheduler:
        with simulation.busy():
            simulation.look_until(DUE + timedelta(minutes=busy_min), scheduler)
        simulation.look_until(DUE + timedelta(minutes=89), scheduler)
        assert not simulation.runs
        simulation.look_until(DUE + timedelta(minutes=90), scheduler)
    assert [(run.job, run.business_date) for run in simulation.runs] == [("a", DUE.date())]


def test_a_waiting_run_does_not_revive_missed_ones(state_url: StateUrl, tmp_path: Path) -> None:
    """While one run waits, the missed runs of other jobs stay skipped."""
    simulation = Simulation(
        state_url, tmp_path, {"late": job(schedule={"catch_up": "latest"}), "a": job(schedule=NO_CATCH_UP)}
    )
    with simulation.watched():
        simulation.clock.advance(timedelta(days=3, hours=2).total_seconds())
    fresh = simulation.scheduler()
    with simulation.busy():
        simulation.look_until(simulation.clock.now() + timedelta(hours=1), fresh)
    simulation.look_until(simulation.clock.now() + timedelta(hours=1), fresh)
    fresh.close()
    assert [(run.job, run.due) for run in simulation.runs] == [("late", DUE + timedelta(days=3))]
    assert Counter(run.status for run in simulation.scheduled_runs("a")) == Counter({"skipped": 4})


def test_a_waiting_run_does_not_revive_paused_ones(state_url: StateUrl, tmp_path: Path) -> None:
    """A run that was due while its job was paused stays skipped."""
    simulation = Simulation(state_url, tmp_path, {"z": job(), "a": job(schedule=NO_CATCH_UP)})
    with simulation.watched() as scheduler:
        simulation.pause("a", paused=True)
        with simulation.busy():
            simulation.look_until(DUE + timedelta(hours=1), scheduler)
        simulation.pause("a", paused=False)
        simulation.look_until(DUE + timedelta(hours=2), scheduler)
    assert {(run.job, run.status) for run in simulation.scheduled_runs()} == {("z", "done"), ("a", "skipped")}


def test_an_overlap_is_recorded_once_the_state_is_free(state_url: StateUrl, tmp_path: Path) -> None:
    """`overlap: forbid` records a failure, however long the state was busy."""
    hourly = {"every": "1h", **NO_CATCH_UP}
    simulation = Simulation(state_url, tmp_path, {"a": job(schedule=hourly, overlap="forbid")}, lasts_s=4000)
    scheduler = simulation.scheduler()
    scheduler.report_ended_or_start_due()
    simulation.clock.advance(3600)
    assert scheduler.report_ended_or_start_due()
    assert scheduler.report_ended_or_start_due()  # reports its end, and releases the lease
    with simulation.busy():
        simulation.look_until(simulation.clock.now() + timedelta(minutes=15), scheduler)
    simulation.look_until(simulation.clock.now() + timedelta(minutes=15), scheduler)
    scheduler.close()
    assert [run.status for run in simulation.scheduled_runs()] == ["failed", "done"]


def test_a_run_that_cannot_start_is_reported_once(state_url: StateUrl, tmp_path: Path) -> None:
    """It is tried again each time, and reported once per reason."""
    simulation = Simulation(state_url, tmp_path, {"a": job()})
    scheduler = simulation.scheduler()
    scheduler.report_ended_or_start_due()
    simulation.clock.advance(timedelta(days=1).total_seconds())
    simulation_error = simulation.unable = ConfigError("the environment variable KEY is not set")
    for _ in range(5):
        scheduler.report_ended_or_start_due()
        simulation.clock.advance(30)
    simulation.unable = None
    simulation.look_until(simulation.clock.now() + timedelta(minutes=1), scheduler)
    scheduler.close()
    assert [run.status for run in simulation.scheduled_runs()] == ["done"]
    assert [ended.error for ended in simulation.finished] == [simulation_error, None]


def test_the_service_shows_what_is_due_next(state_url: StateUrl, tmp_path: Path) -> None:
    """In its metrics, for each job, after each look."""
    simulation = Simulation(state_url, tmp_path, {"a": job(schedule={"every": "1h"}), "z": job()})
    metrics, facts = Metrics(simulation.clock), {"notifier": None, "trace": print, "workers": WorkerPool(Inline())}
    scheduler = MonitoredScheduler(simulation.project, simulation.clock, threading.Event(), metrics, **facts)  # type: ignore[arg-type]
    with closing(scheduler) as service:
        service.report_ended_and_start_due()
    shown = next(family for family in metrics.collect() if family.name == "crossdock_next_due_timestamp_seconds")
    expected = {"a": (BEGIN + timedelta(hours=1)).timestamp(), "z": DUE.timestamp()}
    assert {sample.labels["job"]: sample.value for sample in shown.samples} == expected
