"""The daemon: when it calls the service, and how it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

import pytest
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.schedulers.base import STATE_STOPPED
from apscheduler.triggers.base import BaseTrigger
from tests.waiting import WITHIN_S, eventually

from crossdock.config.schedules.job_and_schedule_config import JobConfig
from crossdock.services.scheduler import apscheduler_daemon
from crossdock.services.scheduler.apscheduler_daemon import Daemon

YEARLY = JobConfig.model_validate({"schedule": {"time_zone": "UTC", "at": "00:00", "days": 1}})
EVERY_SECOND = JobConfig.model_validate({"schedule": {"time_zone": "UTC", "every": "1s"}})


@dataclass
class Jobs:
    """As much of a project as the daemon needs."""

    jobs: dict[str, JobConfig]


@dataclass
class FakeService:
    """Records how it is called.

    Attributes:
        on_look: Called by each look.
    """

    project: Jobs
    on_look: Callable[[], object] = lambda: None
    looks: int = 0
    busy: bool = False
    closed: bool = False
    threads: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.use(self.project)

    @property
    def periodic_tasks(self) -> dict[str, tuple[Callable[[], None], float]]:
        return {"retention": (self.note_thread, 0.01)}

    def report_ended_and_start_due(self) -> None:
        self.looks += 1
        self.threads.add(threading.current_thread().name)
        self.on_look()

    def note_thread(self) -> None:
        self.threads.add(threading.current_thread().name)

    def use(self, project: Jobs) -> None:
        self.schedules = {name: job.schedule for name, job in project.jobs.items()}

    def close(self) -> None:
        self.closed = True


class Running:
    """A daemon in a thread, with what the main thread of a process would give it."""

    def __init__(self, service: FakeService) -> None:
        self.service, self.daemon, self.interrupt = service, Daemon(2), threading.Event()
        self.fresh: list[Jobs | BaseException] = []
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self.daemon.run(self.service, self.interrupt, self._asked)
        except BaseException as error:  # noqa: BLE001  tests look at it
            self.error = error

    def _asked(self) -> Callable[[], None] | None:
        found = self.fresh.pop() if self.fresh else None
        if isinstance(found, BaseException):
            raise found
        return None if found is None else partial(self.service.use, found)

    def ends(self) -> None:
        self._thread.join(WITHIN_S)
        assert not self._thread.is_alive()

    def looks_again(self) -> None:
        before = self.service.looks
        eventually(lambda: self.service.looks > before)


@contextmanager
def running(service: FakeService) -> Iterator[Running]:
    one = Running(service)
    one._thread.start()
    try:
        eventually(lambda: service.looks > 0)
        yield one
    finally:
        service.busy = False
        one.interrupt.set()
        one.ends()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apscheduler_daemon, "SIGNAL_S", 0.01)


def test_it_looks_at_once_and_when_a_job_is_due() -> None:
    """All calls come from one thread."""
    with running(FakeService(Jobs({"a": EVERY_SECOND}))) as one:
        one.looks_again()
        one.looks_again()
    assert one.service.closed
    assert one.error is None
    assert len(one.service.threads) == 1


def test_it_looks_when_a_run_has_ended() -> None:
    """With its result or its error, even if another one is still in progress."""
    go_on = threading.Event()
    with running(FakeService(Jobs({"a": YEARLY}))) as one:
        try:
            slow = one.daemon.executor.submit(go_on.wait, WITHIN_S)
            quick = one.daemon.executor.submit(int, "7")
            one.looks_again()
            assert (quick.result(WITHIN_S), slow.done()) == (7, False)
            failed = one.daemon.executor.submit(int, "x")
            assert isinstance(failed.exception(WITHIN_S), ValueError)
        finally:
            go_on.set()


def test_a_run_may_end_while_the_daemon_shuts_down() -> None:
    """The end of a run does not wait for a lock that the shutdown holds, in any order of the two."""
    for _ in range(50):
        go_on = threading.Event()
        with running(FakeService(Jobs({"a": YEARLY}))) as one:
            runs = [one.daemon.executor.submit(go_on.wait, WITHIN_S) for _ in range(2)]
            one.interrupt.set()
            go_on.set()
        assert all(run.done() for run in runs)


def test_a_call_may_be_removed_while_the_timer_shuts_down() -> None:
    """A call that is made once is removed after the shutdown has begun, and no thread fails."""

    class Once(BaseTrigger):  # type: ignore[misc]  # APScheduler has no types
        def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None:
            if previous_fire_time is None:
                return now
            removing.set()
            eventually(lambda: timer.state == STATE_STOPPED)
            return None

    removing = threading.Event()
    timer = apscheduler_daemon._SchedulerToleratingShutdown()
    timer.start()
    timer.add_job(int, Once())
    assert removing.wait(WITHIN_S)
    timer.shutdown()


def test_no_call_that_comes_while_another_is_running_is_lost() -> None:
    """Many at once are merged into one that begins later."""
    go_on, begun = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        assert go_on.wait(WITHIN_S)

    service = FakeService(Jobs({"a": YEARLY}))
    with running(service) as one:
        service.on_look = wait
        one.daemon._call_service_soon()
        assert begun.wait(WITHIN_S)
        during = service.looks
        for _ in range(20):
            one.daemon.executor.submit(int).result(WITHIN_S)
        go_on.set()
        eventually(lambda: service.looks > during)


def test_an_interrupt_waits_for_runs() -> None:
    """The service is called until its runs have ended, and then closed."""
    service = FakeService(Jobs({"a": YEARLY}), busy=True)
    with running(service) as one:
        one.interrupt.set()
        one.looks_again()
        one.looks_again()
        assert not service.closed
        service.busy = False
        one.ends()
    assert service.closed


def test_a_second_signal_ends_it_at_once() -> None:
    """It does not close the service, whose runs still write."""
    service = FakeService(Jobs({"a": YEARLY}), busy=True)
    with running(service) as one:
        one.fresh.append(KeyboardInterrupt())
        one.ends()
        assert isinstance(one.error, KeyboardInterrupt)
        assert not service.closed


def test_an_unexpected_error_is_raised() -> None:
    """It is not lost in a thread."""
    service = FakeService(Jobs({"a": YEARLY}))

    def fail() -> None:
        raise ZeroDivisionError

    with running(service) as one:
        service.on_look = fail
        one.daemon._call_service_soon()
        one.ends()
    assert isinstance(one.error, ZeroDivisionError)
    assert service.closed


def test_a_reloaded_config_brings_its_own_schedules() -> None:
    """The new job is called for, the old one no longer."""
    with running(FakeService(Jobs({"a": YEARLY}))) as one:
        one.fresh.append(Jobs({"b": EVERY_SECOND}))
        eventually(lambda: one.daemon._timer.get_job("due: b") is not None)
        assert one.daemon._timer.get_job("due: a") is None
        one.looks_again()
        one.looks_again()


def test_a_clock_that_is_set_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """All calls are planned anew: APScheduler would otherwise wait for the old time."""
    offsets = [0.0]
    monkeypatch.setattr(apscheduler_daemon, "_wall_minus_monotonic_s", lambda: offsets[-1])
    with running(FakeService(Jobs({"a": YEARLY}))) as one:
        eventually(lambda: one.daemon._timer.get_job("poll") is not None)
        planned = one.daemon._timer.get_job("poll")
        offsets.append(-3600.0)
        eventually(lambda: all(one.daemon._timer.get_job("poll") is not job for job in (None, planned)))


def test_a_clock_that_is_set_during_the_start_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first calls were planned by the old time."""
    offsets, schedules = [0.0], []
    monkeypatch.setattr(apscheduler_daemon, "_wall_minus_monotonic_s", lambda: offsets[-1])
    start, schedule = BackgroundScheduler.start, Daemon._schedule_calls

    def set_clock(scheduler: BackgroundScheduler) -> None:
        start(scheduler)
        offsets.append(3600.0)

    def record(one: Daemon) -> None:
        schedules.append(one)
        schedule(one)

    monkeypatch.setattr(BackgroundScheduler, "start", set_clock)
    monkeypatch.setattr(Daemon, "_schedule_calls", record)
    with running(FakeService(Jobs({"a": YEARLY}))):
        eventually(lambda: len(schedules) == 2)
