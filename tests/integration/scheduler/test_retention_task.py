"""Retention by the scheduler: once a day, a part at a time, and never during a run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from sqlalchemy import Engine, event
from tests.conftest import PIN
from tests.integration.scheduler.scheduled_runs_race import BEGIN, Inline, job, project
from tests.servers import served
from tests.unit.targets.test_platform_access import Dated, profile_of

from crossdock.config.project.project import Project
from crossdock.services.observability.health_and_metrics import Metrics
from crossdock.services.scheduler import retention_task
from crossdock.services.scheduler.monitored_scheduler import MonitoredScheduler
from crossdock.services.scheduler.retention_task import RetentionTask
from crossdock.services.scheduler.scheduler import WorkerPool
from crossdock.services.scheduler.stderr_log import LOGGER
from crossdock.state import PinnedTenant, RunResult, StateUrl, create_or_upgrade_state, parse_database_url, retention
from crossdock.testing.manual_clock import ManualClock

DAY = timedelta(days=1)
WEEK = timedelta(days=7)


class RetentionCase:
    """A project with a retention period of one week, and a clock."""

    def __init__(self, url: StateUrl, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
        create_or_upgrade_state(url, PIN)
        self.clock, self._caplog = ManualClock(BEGIN), caplog
        loaded = project(url, folder, {"a": job()})
        unchecked = loaded.platform.model_copy(update={"max_clock_skew_s": None})
        self.project: Project = structs.replace(loaded, platform=unchecked, retention=WEEK)
        caplog.set_level("INFO", logger=LOGGER.name)

    def old_runs(self, number: int) -> None:
        """Add *number* old runs, and a later one that is kept because it is the latest."""
        at = self.clock.now() - 2 * WEEK
        with closing(self.project.open_state()) as state, state.begin() as tx:
            for _ in range(number + 1):
                run = tx.runs.start(business_date="2025-01-01", at=at)
                tx.runs.finish(run, RunResult("done"), at=at)

    def runs(self) -> int:
        with self.project.read_state() as tx:
            return len(tx.runs.listed(limit=99))

    def logged(self) -> list[str]:
        said = [record.getMessage() for record in self._caplog.records if "retention" in record.getMessage()]
        self._caplog.clear()
        return said


@pytest.fixture
def case(state_url: StateUrl, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> RetentionCase:
    return RetentionCase(state_url, tmp_path, caplog)


def test_it_is_done_once_a_day(case: RetentionCase) -> None:
    """Old rows are removed once; then nothing for a day, whichever scheduler asks."""
    first, other = RetentionTask(case.clock), RetentionTask(case.clock)
    case.old_runs(3)
    assert not first.purge_part_if_due(case.project)
    assert (case.runs(), case.logged()) == (1, ["retention: 3 runs removed"])
    case.old_runs(3)
    case.clock.advance(DAY.total_seconds() - 1)
    for each in (first, other, RetentionTask(case.clock)):
        assert not each.purge_part_if_due(case.project)
    assert (case.runs(), case.logged()) == (5, [])
    case.clock.advance(1)
    assert not other.purge_part_if_due(case.project)
    assert (case.runs(), case.logged()) == (1, ["retention: 4 runs removed"])


def test_a_part_is_bounded(case: RetentionCase, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call removes a part; the day counts from the last one."""
    monkeypatch.setattr(retention, "BATCH", 2)
    monkeypatch.setattr(retention_task, "BATCHES_PER_PART", 9)  # eight kinds of rows are looked at
    case.old_runs(9)
    task, left = RetentionTask(case.clock), []
    while task.purge_part_if_due(case.project):
        left.append(case.runs())
    assert left[:2] == [6, 2]
    assert case.runs() == 1


def test_it_can_be_off(case: RetentionCase) -> None:
    """Without retention everything stays."""
    case.old_runs(3)
    assert not RetentionTask(case.clock).purge_part_if_due(structs.replace(case.project, retention=None))
    assert case.runs() == 4


def test_it_waits_for_a_run(case: RetentionCase) -> None:
    """While another process holds the lease nothing is removed or logged; afterwards it is."""
    case.old_runs(3)
    task = RetentionTask(case.clock)
    with closing(case.project.open_state()) as other, other.hold_run_lease("other"):
        assert not task.purge_part_if_due(case.project)
    assert (case.runs(), case.logged()) == (4, [])
    task.purge_part_if_due(case.project)
    assert case.runs() == 1


def test_a_clock_that_was_ahead_does_not_stop_it(case: RetentionCase) -> None:
    """If the last time lies in the future, it is applied again."""
    with closing(case.project.open_state()) as state, state.begin() as tx:
        tx.retention.store_applied_time(case.clock.now() + 30 * DAY)
    case.old_runs(3)
    RetentionTask(case.clock).purge_part_if_due(case.project)
    assert case.runs() == 1


@pytest.fixture
def platform(case: RetentionCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Dated]:
    """A platform whose clock is that of the case, with which it is compared."""
    monkeypatch.setenv("KEY", "k")
    with served(Dated()) as server:
        profile = profile_of(f"http://127.0.0.1:{server.server_port}")
        url = parse_database_url("sqlite:///dated.db", tmp_path)
        create_or_upgrade_state(url, PinnedTenant(profile.base_url, profile.tenant))
        case.project = structs.replace(case.project, platform=profile, state_url=url)
        server.date = format_datetime(case.clock.now(), usegmt=True)
        yield server


def test_a_wrong_clock_removes_nothing(case: RetentionCase, platform: Dated) -> None:
    """While the clock is a year ahead of the platform's nothing is removed; it is once the clock is right."""
    case.old_runs(3)
    task, year_s = RetentionTask(case.clock), 365 * DAY.total_seconds()
    case.clock.step(year_s)
    assert not task.purge_part_if_due(case.project)
    (said,) = case.logged()
    assert (case.runs(), "365 days, 0:00:00 ahead of the platform's" in said) == (4, True)
    case.clock.step(-year_s)
    assert not task.purge_part_if_due(case.project)
    assert (case.runs(), platform.asked) == (1, 2)


def test_nothing_is_removed_while_the_platform_does_not_tell_its_time(case: RetentionCase, platform: Dated) -> None:
    """An answer without a date is asked for again an hour later."""
    case.old_runs(3)
    task, platform.date = RetentionTask(case.clock), None
    for _ in range(9):
        assert not task.purge_part_if_due(case.project)
    (said,) = case.logged()
    assert (case.runs(), platform.asked, "did not tell its time" in said) == (4, 1, True)
    case.clock.advance(3600)
    platform.date = format_datetime(case.clock.now(), usegmt=True)
    task.purge_part_if_due(case.project)
    assert case.runs() == 1


def refuse(_connection: Any, _cursor: Any, statement: str, *_: object) -> None:
    if statement.startswith("DELETE FROM runs"):
        raise ZeroDivisionError


def test_a_failure_does_not_stop_the_service(case: RetentionCase) -> None:
    """It is logged once an hour, and retention is applied when it succeeds."""
    case.old_runs(3)
    metrics, interrupt = Metrics(case.clock), threading.Event()
    workers = WorkerPool(Inline())
    service = MonitoredScheduler(
        case.project, case.clock, interrupt, metrics, notifier=None, trace=print, workers=workers
    )
    event.listen(Engine, "before_cursor_execute", refuse)
    try:
        for _ in range(80):
            service.report_ended_and_start_due()
            service.apply_retention()
            case.clock.advance(60)
    finally:
        event.remove(Engine, "before_cursor_execute", refuse)
        service.close()
    assert case.logged() == ["retention: unexpected error: ZeroDivisionError"] * 2
    assert case.runs() == 4
    RetentionTask(case.clock).purge_part_if_due(case.project)
    assert case.runs() == 1


def test_a_purged_state_is_the_same_as_one_by_hand(case: RetentionCase) -> None:
    """What the scheduler removes is what 'crossdock state purge' counts for the same age."""
    case.old_runs(3)
    with case.project.read_state() as tx:
        counted = tx.retention.count_removable(case.project.purge_times(WEEK, case.clock.now()))
    RetentionTask(case.clock).purge_part_if_due(case.project)
    assert case.runs() == 4 - counted.runs_removed
