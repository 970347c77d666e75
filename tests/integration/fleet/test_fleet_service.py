"""The service of a fleet on a sandbox: configs that change, reports, and schedulers that stand by."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml
from tests.chaos.fleet_stage import JOB, FleetStage, settings
from tests.integration.notifications.receivers import Receiver
from tests.servers import served
from tests.waiting import eventually

from crossdock.config.project.project import load
from crossdock.errors import UnavailableError
from crossdock.sandbox import SandboxServer
from crossdock.services.fleet import fleet_service, worker
from crossdock.services.fleet.executor_kinds_by_entry_point import Opened
from crossdock.services.fleet.fleet_scheduler import FleetScheduler, RunSlots
from crossdock.services.fleet.fleet_service import FleetService, GroupedNotices
from crossdock.services.fleet.tenants_and_watched_configs import WatchedTenantConfigs, digest_of_files, load_fleet_base
from crossdock.services.notifications.mail_and_webhook_notifier import Notifier
from crossdock.services.observability.health_and_metrics import Metrics
from crossdock.state.fleet_leadership_and_jobs import FleetDatabase
from crossdock.testing.manual_clock import ManualClock

T = TypeVar("T")


@dataclass
class Inline(Executor):
    """Carries out each call at once.

    Attributes:
        before: Called before each.
        away: Why it cannot be used.
    """

    before: Callable[[], object] = lambda: None
    away: str | None = None
    calls: list[str] = field(default_factory=list)

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        self.before()
        self.calls.append(json.loads(args[0])["tenant"])
        future: Future[T] = Future()
        future.set_result(fn(*args, **kwargs))
        return future

    @contextmanager
    def open(self) -> Iterator[Executor]:
        if self.away is not None:
            raise UnavailableError(self.away)
        yield self


class Fleet:
    """Services over one stage, on a clock that stands still."""

    def __init__(self, stage: FleetStage, stack: ExitStack) -> None:
        self.stage, self._stack = stage, stack
        self.clock, self.executor, self.interrupt = ManualClock(), Inline(), threading.Event()
        self.clock.step((stage.due - self.clock.now()).total_seconds() + 60.0)
        self.metrics = Metrics(self.clock, of_fleet=True)

    def service(self) -> FleetService:
        base = load_fleet_base(self.stage.base)
        notices = GroupedNotices(None if base.notify is None else Notifier(base.notify, self.clock))
        database = base.database

        def make(listener: Any, known: Any) -> FleetScheduler:
            open_executor: Callable[[], Opened] = self.executor.open
            return FleetScheduler(
                self.clock, RunSlots(4, 4), open_executor, str(database), listener, known, lambda: None
            )

        service = FleetService(
            WatchedTenantConfigs(self.stage.pattern, base),
            lambda: FleetDatabase(database),
            self.clock,
            self.interrupt,
            self.metrics,
            notices,
            make,
        )
        self._stack.callback(service.close)
        return service

    def exposed(self) -> str:
        return self.metrics.prometheus_exposition()[0].decode()


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    with SandboxServer(tmp_path / "sandbox", settings()) as platform, ExitStack() as stack:
        stage = FleetStage(tmp_path, platform, 2)
        for name, value in stage.environment.items():
            monkeypatch.setenv(name, value)
        yield Fleet(stage, stack)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with served(Receiver()) as one:
        yield one


def looked(service: FleetService, times: int = 2) -> None:
    """A file that has changed is loaded at the second look that finds it so."""
    for _ in range(times):
        service.report_ended_and_start_due()


def test_a_fleet_runs_what_is_due_and_nothing_again(fleet: Fleet) -> None:
    """Its metrics have the names of the tenants."""
    service = fleet.service()
    looked(service, 3)
    assert fleet.stage.delivered() == fleet.stage.expected()
    assert fleet.executor.calls == ["t000", "t001"] * 2, "each state is looked at, then the run"
    shown = fleet.exposed()
    assert f'crossdock_nights_total{{job="{JOB}",status="done",tenant="t000"}} 1.0' in shown
    assert 'crossdock_requests_total{tenant="t001"} 8.0' in shown
    assert 'crossdock_fleet_tenants{state="usable"} 2.0' in shown
    assert "crossdock_fleet_leading 1.0" in shown
    assert fleet.metrics.readiness() == (True, "ready")


@pytest.mark.nightly
def test_a_scheduler_that_takes_over_knows_what_has_ended(fleet: Fleet) -> None:
    """From the database of the fleet: no state is looked at again. While another leads, it stands by."""
    first, second = fleet.service(), fleet.service()
    looked(first, 3)
    looked(second, 3)
    assert "fleet_leading 0.0" in fleet.exposed()
    calls = len(fleet.executor.calls)
    first.close()
    looked(second, 3)
    assert "fleet_leading 1.0" in fleet.exposed()
    assert len(fleet.executor.calls) == calls
    assert fleet.stage.delivered() == fleet.stage.expected()


@pytest.mark.nightly
def test_a_scheduler_that_takes_over_shows_when_jobs_succeeded_last(fleet: Fleet) -> None:
    """An alert on the age would find nothing if every run since then failed."""
    first = fleet.service()
    looked(first, 3)
    name = f'crossdock_last_success_timestamp_seconds{{job="{JOB}",tenant="t001"}}'
    assert name in fleet.exposed()
    first.close()
    fleet.metrics = Metrics(fleet.clock, of_fleet=True)  # of another process
    looked(fleet.service())
    assert name in fleet.exposed()


def test_a_tenant_is_added_changed_and_removed(fleet: Fleet) -> None:
    """Without a restart; its metrics go with it."""
    service = fleet.service()
    looked(service)
    fleet.stage.add("t002", retention="off")
    fleet.stage.names.append("t002")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEY_T002", fleet.stage.environment["KEY_T002"])
        looked(service, 3)
        assert fleet.stage.delivered() == fleet.stage.expected()
        fleet.stage.config("t002").unlink()
        looked(service)
    assert "t002" not in fleet.exposed()
    assert 'crossdock_fleet_tenants{state="usable"} 2.0' in fleet.exposed()


@pytest.mark.nightly
def test_a_config_that_disappears_during_its_run_lets_the_run_end(fleet: Fleet) -> None:
    """Then the tenant is gone; the others are as before."""
    service = fleet.service()
    service.report_ended_and_start_due()
    fleet.stage.config("t000").unlink()
    looked(service, 3)
    assert fleet.stage.delivered()["t001"] == fleet.stage.expected()["t001"]
    delivered = fleet.stage.delivered()["t000"]
    assert not delivered or delivered == fleet.stage.expected()["t000"], "all of it or nothing"


def test_a_broken_config_stops_its_tenant_only_and_notifies(
    fleet: Fleet, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All tenants with news are one message."""
    fleet.stage.configure(
        fleet={"database": "sqlite:///fleet.db"},
        notify={"webhook": {"url": f"http://127.0.0.1:{receiver.server_address[1]}/hook"}},
    )
    fleet.stage.config("t000").write_text("state: [", encoding="utf-8")
    (fleet.stage.folder / "t001.db").unlink()
    service = fleet.service()
    looked(service, 3)
    assert receiver.posts == [], "events are collected"
    fleet.clock.advance(fleet_service.COLLECT_AT_MOST.total_seconds())
    service.report_ended_and_start_due()
    eventually(lambda: len(receiver.posts) == 1)
    document = json.loads(receiver.posts[0].body)
    assert document["type"] == "fleet.failed"
    assert document["text"].startswith("2 of 2 tenants: 2 failed.\nt000: (all jobs) failed for ")
    assert "is not valid YAML" in document["text"]
    assert {each["tenant"] for each in document["data"]["events"]} == {"t000", "t001"}
    looked(service, 3)
    assert len(receiver.posts) == 1
    assert 'crossdock_fleet_tenants{state="broken"} 1.0' in fleet.exposed()


@pytest.mark.nightly
def test_a_scheduler_that_stands_by_notifies_of_nothing(fleet: Fleet, receiver: Receiver) -> None:
    """The leader has done so."""
    fleet.stage.configure(
        fleet={"database": "sqlite:///fleet.db"},
        notify={"webhook": {"url": f"http://127.0.0.1:{receiver.server_address[1]}/hook"}},
    )
    first, second = fleet.service(), fleet.service()
    looked(first)
    looked(second)
    fleet.stage.config("t000").write_text("state: [", encoding="utf-8")
    for service in (first, second):
        looked(service, 3)
    fleet.clock.advance(fleet_service.COLLECT_AT_MOST.total_seconds())
    for service in (second, first):
        service.report_ended_and_start_due()
        service.close()
    assert len(receiver.posts) == 1


@pytest.mark.nightly
def test_a_failure_that_the_leader_has_collected_outlives_it(fleet: Fleet, receiver: Receiver) -> None:
    """The scheduler that takes over tells people of it; the one after that knows that they were told."""
    fleet.stage.configure(
        fleet={"database": "sqlite:///fleet.db"},
        notify={"webhook": {"url": f"http://127.0.0.1:{receiver.server_address[1]}/hook"}},
    )
    invoices = fleet.stage.folder / "out" / "t000" / "INV1.csv"
    invoices.write_text(invoices.read_text() + "9;C7;P0;1;1.5\n")
    first = fleet.service()
    looked(first, 3)
    first._notices._events.clear()  # as when its process is killed: the lease is free some time later
    first._resources.close()
    for _ in range(2):
        service = fleet.service()
        looked(service, 3)
        fleet.clock.advance(fleet_service.COLLECT_AT_LEAST.total_seconds())
        service.report_ended_and_start_due()
        eventually(lambda: len(receiver.posts) == 1)
        eventually(lambda: all(each.done() for _, each in service._notices._sending))  # noqa: B023
        looked(service, 3)
        service.close()
    (event,) = json.loads(receiver.posts[0].body)["data"]["events"]
    assert (event["tenant"], event["kinds"], event["run"]) == ("t000", ["degraded"], 1)


@pytest.mark.nightly
def test_a_broken_config_found_before_leading_is_reported(fleet: Fleet, receiver: Receiver) -> None:
    """Once the database of the fleet is there."""
    fleet.stage.configure(
        fleet={"database": "sqlite:///fleet.db"},
        notify={"webhook": {"url": f"http://127.0.0.1:{receiver.server_address[1]}/hook"}},
    )
    database = fleet.stage.folder / "fleet.db"
    database.mkdir()
    fleet.stage.config("t000").write_text("state: [", encoding="utf-8")
    service = fleet.service()
    looked(service, 3)
    database.rmdir()
    looked(service, 3)
    service.close()
    assert "t000: (all jobs) failed for " in json.loads(receiver.posts[0].body)["text"]


def test_a_cluster_that_is_away_makes_runs_late_and_loses_none(fleet: Fleet, receiver: Receiver) -> None:
    """It is reported once, and the runs take place when it is back."""
    fleet.stage.configure(
        fleet={"database": "sqlite:///fleet.db"},
        notify={"when": ["late"], "webhook": {"url": f"http://127.0.0.1:{receiver.server_address[1]}/hook"}},
    )
    service = fleet.service()
    looked(service)
    fleet.executor.away = "the Dask scheduler does not answer"
    service._scheduler._close_executor()
    fleet.clock.advance(86_400)  # the next night
    for _ in range(12):
        service.report_ended_and_start_due()
        fleet.clock.advance(60)
    assert fleet.metrics.readiness() == (False, "not ready; executor: the Dask scheduler does not answer [unavailable]")
    assert "crossdock_fleet_runs_waiting 2.0" in fleet.exposed()
    fleet.clock.advance(fleet_service.COLLECT_AT_MOST.total_seconds())
    service.report_ended_and_start_due()
    eventually(lambda: len(receiver.posts) == 1)
    text = json.loads(receiver.posts[0].body)["text"]
    assert text.startswith("2 of 2 tenants: 2 late.")
    assert "nightly has not started" in text
    fleet.executor.away = None
    fleet.clock.advance(600)
    looked(service, 3)
    assert fleet.metrics.readiness()[0]
    assert [len(fleet.stage.runs(name)) for name in fleet.stage.names] == [2, 2]
    assert fleet.stage.delivered() == fleet.stage.expected()


def _watched_for_an_hour(fleet: Fleet, service: FleetService, receiver: Receiver) -> str:
    for _ in range(60):
        service.report_ended_and_start_due()
        fleet.clock.advance(60)
    eventually(lambda: len(receiver.posts) == 1)
    return str(json.loads(receiver.posts[0].body)["text"])


@pytest.mark.nightly
def test_a_tenant_whose_state_is_in_use_is_late(
    fleet: Fleet, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    """People are told once, with the reason; its run takes place when the state is free."""
    fleet.stage.configure(
        fleet={"database": "sqlite:///fleet.db"},
        notify={"when": ["late"], "webhook": {"url": f"http://127.0.0.1:{receiver.server_address[1]}/hook"}},
    )
    service = fleet.service()
    with closing(load(fleet.stage.base, fleet.stage.config("t000")).open_state()) as state, state.hold_run_lease("x"):
        text = _watched_for_an_hour(fleet, service, receiver)
    assert text.startswith("1 of 2 tenants: 1 late.")
    assert "nightly has not started" in text
    warned = [each for each in caplog.messages if "another run is using this state" in each]
    assert len(warned) == 2, "at the first attempt, and when it is late"
    assert all(each.startswith("t000:") for each in warned)
    looked(service, 5)
    assert [len(fleet.stage.runs(name)) for name in fleet.stage.names] == [1, 1]


def test_people_are_told_of_a_tenant_whose_config_differs_on_the_worker(
    fleet: Fleet, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if nothing is known of its jobs, since its state could not be looked at."""
    fleet.stage.configure(
        fleet={"database": "sqlite:///fleet.db"},
        notify={"when": ["failed"], "webhook": {"url": f"http://127.0.0.1:{receiver.server_address[1]}/hook"}},
    )
    monkeypatch.setattr(
        worker, "digest_of_files", lambda files: "" if "t000" in str(list(files)) else digest_of_files(files)
    )
    text = _watched_for_an_hour(fleet, fleet.service(), receiver)
    assert text.startswith("1 of 2 tenants: 1 failed.")
    assert "the config on this worker differs from the scheduler's" in text


@pytest.mark.nightly
def test_a_run_that_will_end_after_its_deadline_is_late(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged once, while the run waits."""
    schedule = {"time_zone": "UTC", "at": fleet.stage.due.strftime("%H:%M"), "catch_up": "latest"}
    done_by = fleet.clock.now().strftime("%H:%M")
    jobs = {JOB: {"schedule": schedule, "done_by": done_by}}
    fleet.stage.configure(fleet={"database": "sqlite:///fleet.db"}, jobs=jobs)
    service = fleet.service()
    looked(service)
    service._scheduler._close_executor()
    fleet.executor.away = "away"
    fleet.clock.advance(86_400)  # the next night
    for _ in range(3):
        fleet.clock.advance(60)
        service.report_ended_and_start_due()
    late = [each.message for each in caplog.records if "to end after" in each.message]
    day = fleet.clock.now().date()
    assert sorted(late) == [f"{name}: {JOB} for {day}: expected to end after {done_by}" for name in fleet.stage.names]


def test_a_database_of_the_fleet_that_is_away_stops_nothing_for_good(fleet: Fleet) -> None:
    """Nothing runs meanwhile, and it is reported."""
    database = fleet.stage.folder / "fleet.db"
    database.mkdir()
    service = fleet.service()
    looked(service)
    is_ready, text = fleet.metrics.readiness()
    assert not is_ready
    assert "is not a regular file" in text
    assert fleet.executor.calls == []
    database.rmdir()
    looked(service, 3)
    assert fleet.metrics.readiness()[0]
    assert fleet.stage.delivered() == fleet.stage.expected()


def test_a_leader_that_was_overtaken_starts_nothing(fleet: Fleet) -> None:
    """Until it leads again; what it runs is decided by the states in any case."""
    service = fleet.service()
    service.report_ended_and_start_due()
    leader = service._leader
    assert leader is not None
    leader._lease = type(leader._lease)(leader._lease.url, leader._lease.fence - 1)
    fleet.clock.advance(86_400)
    looked(service, 1)
    assert service._leader is None
    calls = len(fleet.executor.calls)
    looked(service, 3)
    assert fleet.stage.delivered() == fleet.stage.expected()
    assert len(fleet.executor.calls) >= calls


def test_an_interrupt_starts_nothing_more(fleet: Fleet) -> None:
    """The service ends as soon as its runs have."""
    service = fleet.service()
    fleet.interrupt.set()
    looked(service, 3)
    assert not service.busy
    assert fleet.executor.calls == []


@pytest.mark.nightly
def test_schedules_that_are_equal_are_one(fleet: Fleet) -> None:
    """What wakes the service is planned anew only after a change."""
    service = fleet.service()
    service.report_ended_and_start_due()
    before = service.schedules
    assert len(before) == 1
    service.report_ended_and_start_due()
    assert service.schedules is before
    config = yaml.safe_load(fleet.stage.config("t000").read_text())
    config["jobs"] = {JOB: {"schedule": {"time_zone": "UTC", "at": "05:00"}}}
    fleet.stage.config("t000").write_text(yaml.safe_dump(config))
    looked(service)
    assert len(service.schedules) == 2
