"""Which jobs may run at the same time, and what they share."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.waiting import eventually

from crossdock.config.project import project
from crossdock.config.project.project import Project
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.runs.run_report import Report
from crossdock.runs.session_shared_by_runs import Session, open_session
from crossdock.services.inbox.webhook_record_delivery import InboxWorker
from crossdock.services.scheduler.scheduler import FinishedRun, Scheduler, WorkerPool
from crossdock.state import DueRun
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.run_progress_and_messages import SilentProgress

CONFIG = """\
platform:
  base_url: http://127.0.0.1:9
  tenant: acme
  auth: {kind: api_key, token: env:KEY}
  in_flight: 9
state: sqlite:///state.db
connections:
  north:
    kind: folder_warehouse
    path: .
    streams: {items: {mode: append, files: "N_*", key: [K], resource: product, map: {sku: K, name: K}}}
  south:
    kind: folder_warehouse
    path: .
    streams: {items: {mode: append, files: "S_*", key: [K], resource: product, map: {sku: K, name: K}}}
jobs:
  one: {streams: [north], schedule: {time_zone: UTC, at: "02:00"}}
  two: {streams: [south], schedule: {time_zone: UTC, at: "02:00"}}
  three: {streams: [north.items], schedule: {time_zone: UTC, at: "02:00"}}
  four: {schedule: {time_zone: UTC, at: "02:00"}, after: [one, two, three]}
"""
BEGIN = datetime(2026, 3, 3, 1, tzinfo=UTC)


@pytest.fixture
def loaded(tmp_path: Path) -> Project:
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG)
    found = project.load(path)
    found.create_or_upgrade_state()
    return found


class ScheduledRuns:
    """Runs that end on request; records which run at the same time."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.gates = {name: threading.Event() for name in ("one", "two", "three", "four")}
        self.lock, self.now, self.together = threading.Lock(), set[str](), set[frozenset[str]]()
        self.sessions = list[Session]()  # of each run; kept, so that no later one has the identity of an ended one

    def numbers_per_session(self) -> list[int]:
        return sorted(Counter(map(id, self.sessions)).values())

    def run(self, session: Session, due_run: DueRun) -> Report | None:
        with self.lock:
            self.now.add(due_run.job)
            self.together.add(frozenset(self.now))
            self.sessions.append(session)
        with session.state.begin() as tx:
            assert tx.scheduled_runs.begin_unless_finished(due_run, at=self.clock.now())
            run_id = tx.runs.start(business_date=str(due_run.business_date), at=self.clock.now())
        assert self.gates[due_run.job].wait(60)
        with session.state.begin() as tx:
            tx.scheduled_runs.finish(due_run, "done", run_id, None, at=self.clock.now())
        with self.lock:
            self.now.remove(due_run.job)
        return Report(run_id, str(due_run.business_date))


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def test_jobs_without_a_connection_in_common_run_side_by_side(loaded: Project, threads: ThreadPoolExecutor) -> None:
    """Others run one after the other; they share one lease."""
    clock, finished = ManualClock(BEGIN), list[FinishedRun]()
    scheduled_runs = ScheduledRuns(clock)
    workers = WorkerPool(threads, at_once=4)
    with closing(Scheduler(loaded, clock, scheduled_runs.run, finished.append, workers)) as scheduler:
        scheduler.report_ended_or_start_due()
        clock.advance(3600)
        assert scheduler.report_ended_or_start_due()
        eventually(lambda: scheduled_runs.now == {"one", "two"})
        assert not scheduler.report_ended_or_start_due()
        for first, then in (("one", {"two", "three"}), ("two", {"three"}), ("three", {"four"}), ("four", set())):
            scheduled_runs.gates[first].set()
            eventually(scheduler.report_ended_or_start_due)
            while scheduler.report_ended_or_start_due():
                pass
            eventually(lambda: scheduled_runs.now == then)  # noqa: B023  it is asked at once
        assert not scheduler.busy
    assert [ended.job for ended in finished] == ["one", "two", "three", "four"]
    assert not any({"one", "three"} <= some or ("four" in some and len(some) > 1) for some in scheduled_runs.together)
    assert scheduled_runs.numbers_per_session() == [1, 3]


def test_runs_side_by_side_share_what_may_be_on_its_way(loaded: Project) -> None:
    """Together they have no more requests in flight than configured."""
    with open_session(loaded, ManualClock(BEGIN), width=2) as session:
        assert session.in_flight_limit_per_run(session.targets[PLATFORM]) == 4


@pytest.mark.parametrize("listens", [False, True])
def test_one_at_once_is_what_it_says(loaded: Project, threads: ThreadPoolExecutor, listens: bool) -> None:
    """With a maximum of one, no run starts before the previous one has ended, also if webhooks are received."""
    clock = ManualClock(BEGIN)
    scheduled_runs = ScheduledRuns(clock)
    for gate in scheduled_runs.gates.values():
        gate.set()
    worker = InboxWorker(clock, SilentProgress, threading.Event(), lambda *_: None) if listens else None
    made = Scheduler(loaded, clock, scheduled_runs.run, lambda _: None, WorkerPool(threads), worker)
    with closing(made) as scheduler:
        scheduler.report_ended_or_start_due()
        clock.advance(3600)
        eventually(lambda: not scheduler.report_ended_or_start_due() and not scheduler.busy)
    assert max(map(len, scheduled_runs.together)) == 1
    assert len(scheduled_runs.sessions) == 4
