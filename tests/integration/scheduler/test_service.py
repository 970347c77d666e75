"""The service round the scheduler: what it says, tells and shows when a night cannot be run as it should."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.conftest import PIN
from tests.integration.notifications.test_receivers import Receiver
from tests.integration.scheduler.scheduled_runs_race import BEGIN, Inline, job, project
from tests.servers import served

from crossdock import exact_json
from crossdock.errors import StateBusyError
from crossdock.notifications.notifier import Notifier, NotifyConfig
from crossdock.observability.exposition import exposition
from crossdock.observability.metrics import Metrics
from crossdock.project.project import Project
from crossdock.runs import runner
from crossdock.runs.run_report import Report
from crossdock.scheduler.run_log import LOGGER
from crossdock.scheduler.service import Service
from crossdock.state import create, parse_url
from crossdock.testing.manual_clock import ManualClock

Before = Callable[[], object]


class Served:
    """A service with one job that is due every second, on a manual clock."""

    def __init__(
        self, folder: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture, executor: Executor | None = None
    ) -> None:
        self.folder, self._caplog = folder, caplog
        self.clock = ManualClock(BEGIN - timedelta(milliseconds=5))  # so soon, by the real clock, is each night due
        self.url = parse_url("sqlite:///state.db", folder)
        create(self.url, PIN)
        self.project: Project = project(
            self.url, folder, {"nightly": job(schedule={"every": "1s", "catch_up": "latest"})}
        )
        self.service_metrics, self._interrupt = Metrics(self.clock), threading.Event()
        notifier = Notifier(NotifyConfig.model_validate({"webhook": {"url": receiver.url}}), self.clock)
        self.service = Service(
            self.project,
            self.clock,
            self._interrupt,
            self.service_metrics,
            notifier=notifier,
            trace=lambda _: None,
            executor=executor or Inline(),
        )

    def looks(self, *before: Before) -> None:
        """Let it look, and again after each of these was done and a second has passed; then close it."""
        with closing(self.service):
            self.service.look()
            for step in before:
                step()
                self.clock.advance(1)
                self.service.look()

    @property
    def log(self) -> list[str]:
        """What it said."""
        return self._caplog.messages

    def lose_state(self) -> None:
        (self.folder / "state.db").rename(self.folder / "away.db")

    def find_state(self) -> None:
        (self.folder / "away.db").rename(self.folder / "state.db")

    @property
    def metrics(self) -> dict[str, float]:
        families = text_string_to_metric_families(exposition(self.service_metrics.families()).decode())
        return {sample.name: sample.value for family in families for sample in family.samples if sample.labels}


@pytest.fixture
def receiver() -> Any:
    with served(Receiver()) as receiver:
        yield receiver


@pytest.fixture
def house(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Served:
    monkeypatch.setenv("KEY", "k")
    caplog.set_level(logging.INFO, LOGGER.name)
    return Served(tmp_path, receiver, caplog)


def told(receiver: Receiver) -> list[tuple[str, str]]:
    """What programs were told: the kind and the error of each notice."""
    notices = [exact_json.loads(post.body) for post in receiver.posts]
    return [(notice["type"], notice["data"]["error"]) for notice in notices]


def nothing() -> None:
    """Change nothing."""


def test_who_finds_another_at_work_shows_no_run_of_its_own(house: Served) -> None:
    """A second scheduler on the state neither logs that a run started, nor counts itself as running."""
    with closing(house.project.open_state()) as state, state.exclusive("another"):
        house.looks(nothing, nothing, nothing)
    assert house.metrics.get("crossdock_running", 0) == 0
    assert [line for line in house.log if "started" in line] == []


def test_a_state_that_is_lost_is_told(house: Served, receiver: Receiver) -> None:
    """When a night is due and the state cannot be used, people hear of it, and not at every look."""
    house.looks(nothing, house.lose_state, nothing, nothing, house.find_state, nothing)
    assert any("there is no state here" in line for line in house.log)
    kinds = [kind for kind, _ in told(receiver)]
    assert kinds.count("night.failed") == 1


def test_what_nobody_foresaw_in_a_night_does_not_end_the_service(
    house: Served, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The night fails, is told of, and the next one comes."""
    night = runner.night

    def broken(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(runner, "night", broken)
    house.looks(nothing, nothing, lambda: monkeypatch.setattr(runner, "night", night))
    assert [line for line in house.log if "failed" in line]
    assert told(receiver)[0][0] == "night.failed"
    assert house.log[-1].endswith("done after 0 s")


def test_a_second_signal_leaves_the_lease_to_nights_that_run(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The service ends at once, and nobody else may write as long as a night of it does."""
    monkeypatch.setenv("KEY", "k")
    begun, go_on = threading.Event(), threading.Event()

    def slow(*_: Any, **__: Any) -> None:
        begun.set()
        assert go_on.wait(30)

    def signal() -> None:
        assert begun.wait(30)
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "night", slow)
    with ThreadPoolExecutor(1) as pool:
        house = Served(tmp_path, receiver, caplog, pool)
        try:
            with pytest.raises(KeyboardInterrupt):
                house.looks(nothing, signal)
            with (
                closing(house.project.open_state()) as other,
                pytest.raises(StateBusyError),
                other.exclusive("another"),
            ):
                pass
        finally:
            go_on.set()


def test_a_service_whose_state_is_back_is_ready(house: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, and not only when all nights that were caught up with are done, which may take hours."""
    seen, night = list[tuple[bool, str]](), runner.night

    def watched(*arguments: Any, **more: Any) -> Report | None:
        seen.append(house.service_metrics.ready())
        return night(*arguments, **more)

    monkeypatch.setattr(runner, "night", watched)
    house.looks(nothing, house.lose_state, house.find_state)
    assert set(seen) == {(True, "ready")}
