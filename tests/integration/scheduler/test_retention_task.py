"""Retention by the scheduler: once a day, in batches, never during a run, and never at its expense."""

from __future__ import annotations

import threading
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event
from tests.conftest import PIN
from tests.integration.scheduler.scheduled_runs_race import BEGIN, Inline, job, project

from crossdock.observability.metrics import Metrics
from crossdock.project.project import Project
from crossdock.scheduler import retention_task
from crossdock.scheduler.retention_task import RetentionTask
from crossdock.scheduler.run_log import LOGGER
from crossdock.scheduler.service import Service
from crossdock.state import StateUrl, create
from crossdock.state.upkeep import retention
from crossdock.testing.manual_clock import ManualClock

DAY = timedelta(days=1)
WEEK = timedelta(days=7)


class House:
    """A project whose state keeps things for a week, and a clock; *runs* of long ago can be put into it."""

    def __init__(self, url: StateUrl, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
        create(url, PIN)
        self.clock, self._caplog = ManualClock(BEGIN), caplog
        self.project: Project = replace(project(url, folder, {"a": job()}), retention=WEEK)
        caplog.set_level("INFO", logger=LOGGER.name)

    def old_runs(self, number: int) -> None:
        """So many, and one more that stays since it is the latest."""
        at = self.clock.now() - 2 * WEEK
        with closing(self.project.open_state()) as state, state.begin() as tx:
            for _ in range(number + 1):
                run = tx.runs.start(business_date="2025-01-01", at=at)
                tx.runs.finish(run, status="done", requests=0, throttled=0, tally={}, error=None, at=at)

    def runs(self) -> int:
        with self.project.look() as tx:
            return len(tx.runs.listed(limit=99))

    def logged(self) -> list[str]:
        said = [record.getMessage() for record in self._caplog.records if "retention" in record.getMessage()]
        self._caplog.clear()
        return said


@pytest.fixture
def house(state_url: StateUrl, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> House:
    return House(state_url, tmp_path, caplog)


def test_it_is_done_once_a_day(house: House) -> None:
    """Whoever looks, and however often: what is old goes, and then nothing for a day."""
    first, other = RetentionTask(house.clock), RetentionTask(house.clock)
    house.old_runs(3)
    assert not first.turn(house.project)
    assert (house.runs(), house.logged()) == (1, ["retention: 3 runs removed"])
    house.old_runs(3)
    house.clock.advance(DAY.total_seconds() - 1)
    for each in (first, other, RetentionTask(house.clock)):
        assert not each.turn(house.project)
    assert (house.runs(), house.logged()) == (5, [])
    house.clock.advance(1)
    assert not other.turn(house.project)
    assert (house.runs(), house.logged()) == (1, ["retention: 4 runs removed"])


def test_a_turn_is_bounded(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of much that is old each turn removes a part, and the day counts from the last one."""
    monkeypatch.setattr(retention, "BATCH", 2)
    monkeypatch.setattr(retention_task, "BATCHES", 8)  # seven kinds of rows are looked at
    house.old_runs(9)
    at_work, left = RetentionTask(house.clock), []
    while at_work.turn(house.project):
        left.append(house.runs())
    assert left[:2] == [6, 2]
    assert house.runs() == 1


def test_it_is_off_by_choice(house: House) -> None:
    """Without retention everything stays."""
    house.old_runs(3)
    assert not RetentionTask(house.clock).turn(replace(house.project, retention=None))
    assert house.runs() == 4


def test_it_waits_for_a_run(house: House) -> None:
    """While another process uses the state nothing is removed or logged; it is done afterwards."""
    house.old_runs(3)
    keeper = RetentionTask(house.clock)
    with closing(house.project.open_state()) as other, other.exclusive("other"):
        assert not keeper.turn(house.project)
    assert (house.runs(), house.logged()) == (4, [])
    keeper.turn(house.project)
    assert house.runs() == 1


def test_a_clock_that_was_ahead_does_not_stop_it(house: House) -> None:
    """What was applied at an instant that is still to come is applied again."""
    with closing(house.project.open_state()) as state, state.begin() as tx:
        tx.retention.applied(house.clock.now() + 30 * DAY)
    house.old_runs(3)
    RetentionTask(house.clock).turn(house.project)
    assert house.runs() == 1


def refuse(_connection: Any, _cursor: Any, statement: str, *_: object) -> None:
    if statement.startswith("DELETE FROM runs"):
        raise ZeroDivisionError


def test_a_failure_costs_no_night(house: House) -> None:
    """It is logged once an hour, the service continues, and it is done as soon as possible."""
    house.old_runs(3)
    looks = Looks(house.clock)
    service = Service(
        house.project, house.clock, looks, Metrics(house.clock), notifier=None, trace=print, executor=Inline()
    )
    event.listen(Engine, "before_cursor_execute", refuse)
    try:
        service.run(lambda: None)
    finally:
        event.remove(Engine, "before_cursor_execute", refuse)
    assert house.logged() == ["retention: unforeseen: ZeroDivisionError"] * 2
    assert house.runs() == 4
    RetentionTask(house.clock).turn(house.project)
    assert house.runs() == 1


class Looks(threading.Event):
    """An interrupt that sets in after 80 minutes of a clock."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock, self._until = clock, clock.monotonic() + 80 * 60

    def wait(self, timeout: float | None = None) -> bool:
        self._clock.advance(timeout or 0)
        return self.is_set()

    def is_set(self) -> bool:
        return self._clock.monotonic() >= self._until


def test_a_purged_state_is_the_same_as_one_by_hand(house: House) -> None:
    """What the scheduler removes is what 'crossdock state purge' counts for the same age."""
    house.old_runs(3)
    with house.project.look() as tx:
        counted = tx.retention.count(house.project.ages(WEEK, house.clock.now()))
    RetentionTask(house.clock).turn(house.project)
    assert house.runs() == 4 - counted.runs_removed
