"""Pausing a load: by a person, by the hours of the config, and by Ctrl-C while it waits."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

import pytest
from tests.chaos import processes
from tests.chaos.processes import CROSSDOCK
from tests.e2e.migrated_folder import MigratedFolder
from tests.e2e.platform_faults import end_faults, set_faults
from tests.waiting import eventually

from crossdock.config.project import project
from crossdock.errors import StoppedError
from crossdock.migration.load_progress_and_duration import WaveProgress
from crossdock.migration.wave_loading import LoadChoice, LoadResult, load_migration_waves
from crossdock.sandbox import SandboxServer
from crossdock.values.clock import SystemClock
from crossdock.values.run_progress_and_messages import SilentProgress

CUSTOMERS = 60


@pytest.fixture
def migrated(tmp_path: Path) -> Iterator[MigratedFolder]:
    with SandboxServer(tmp_path / "sandbox") as platform:
        made = MigratedFolder(tmp_path / "project", platform)
        made.configure(platform={"in_flight": 1})
        made.fill(customers=CUSTOMERS)
        yield made


@pytest.fixture
def slow(migrated: MigratedFolder) -> Iterator[None]:
    """Each request takes long enough for a load to be noticed among its customers."""
    set_faults(migrated.platform.base_url, [{"name": "slow", "probability": 1.0, "route": "POST", "ms": 100}], 1)
    yield
    end_faults(migrated.platform.base_url)


class Started:
    """A load in a process of its own; what it says is in a file."""

    def __init__(self, migrated: MigratedFolder) -> None:
        command = [*CROSSDOCK, "-C", str(migrated.config), "migrate", "load"]
        environment = {**os.environ, "CROSSDOCK_API_KEY": migrated.platform.api_key}
        self._err, self._read = migrated.folder / "stderr", 0
        self._process = processes.start(command, environment, err=self._err)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()

    def until_said(self, words: str) -> str:
        """Wait for a line with *words* after those that were waited for."""

        def said() -> bool:
            lines = self.said.splitlines()
            self._line = next((number for number in range(self._read, len(lines)) if words in lines[number]), -1)
            return self._line >= 0

        eventually(said)
        self._read = self._line + 1
        return self.said.splitlines()[self._line]

    def interrupt(self) -> None:
        assert self._process.pid is not None
        os.kill(self._process.pid, signal.SIGINT)

    def ended(self) -> int | None:
        self._process.join(300)
        return self._process.exitcode

    @property
    def said(self) -> str:
        return self._err.read_text() if self._err.exists() else ""


@pytest.mark.usefixtures("slow")
def test_a_load_is_paused_and_resumed_from_another_terminal(migrated: MigratedFolder) -> None:
    """It stops in order within the wave, leaves the state to others, and goes on with the same wave when resumed."""
    with Started(migrated) as started:
        eventually(lambda: len(migrated.effects()) > 2)
        assert migrated.states()["customers"] == ("running", None)
        assert migrated.migrate("pause", "--by", "Bob").exit_code == 0
        started.until_said("wave 1 of 3: customers: stopped in order")
        assert "paused by Bob" in started.until_said("waiting:")
        done_before = len(migrated.effects())
        assert done_before < CUSTOMERS
        status = migrated.status()
        assert status["migration"]["paused_by"] == "Bob"
        assert status["waves"][0]["state"] == "incomplete"
        assert status["waves"][0]["open"]["in_doubt"] == 0
        assert status["waves"][0]["delivered"] == done_before
        assert migrated.run("state", "purge", "--older-than", "36525d").exit_code == 0  # the state is free
        end_faults(migrated.platform.base_url)
        assert migrated.migrate("resume").exit_code == 0
        assert started.ended() == 0, started.said
    assert Counter(migrated.created()) == {"customer": CUSTOMERS, "product": 3, "invoice": 6}
    assert list(migrated.states().values()) == [("done", "open")] * 3


@pytest.mark.nightly
def test_a_load_that_waits_ends_at_ctrl_c(migrated: MigratedFolder) -> None:
    """A load that is started while the migration is paused waits; a signal ends it, with exit 130."""
    migrated.load("--until", "products")
    migrated.migrate("pause")
    with Started(migrated) as started:
        started.until_said("waiting: paused by")
        started.interrupt()
        assert started.ended() == 130, started.said
    assert "stopped while it waited: paused by" in started.said
    assert "invoice" not in migrated.created()


@pytest.mark.nightly
@pytest.mark.usefixtures("slow")
def test_an_interrupt_stops_a_load_in_order(migrated: MigratedFolder) -> None:
    """Ctrl-C among the customers settles what is in flight, ends with 130, and the next load does the rest."""
    with Started(migrated) as started:
        eventually(lambda: len(migrated.effects()) > 2)
        started.interrupt()
        assert started.ended() == 130, started.said
    assert migrated.states()["customers"] == ("incomplete", None)
    end_faults(migrated.platform.base_url)
    migrated.load()
    assert Counter(migrated.created()) == {"customer": CUSTOMERS, "product": 3, "invoice": 6}


# ---- hours


class ShiftedClock(SystemClock):
    """The machine's clock at another time of the day."""

    def __init__(self, at: datetime) -> None:
        self.shift = at - datetime.now(UTC)

    def now(self) -> datetime:
        return super().now() + self.shift


class Told(SilentProgress):
    """Keeps what a load tells."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def show_progress(self, progress: WaveProgress) -> None:
        """Ignore it."""

    def show_message(self, text: str) -> None:
        self.texts.append(text)

    def has(self, words: str) -> bool:
        return any(words in text for text in self.texts)


def at(hour: int) -> datetime:
    return datetime(2027, 1, 15, hour, tzinfo=UTC)


@pytest.mark.nightly
@pytest.mark.usefixtures("slow")
def test_a_load_waits_in_hours_without_an_allowance(migrated: MigratedFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """When such hours begin, the load stops in order; when they end, it goes on; a signal ends one that waits."""
    monkeypatch.setenv("CROSSDOCK_API_KEY", migrated.platform.api_key)
    monkeypatch.setattr("crossdock.migration.wave_loading.LOOKS_EVERY_S", 0.05)
    migrated.waves(hours=[{"from": "08:00", "to": "18:00", "percent": 0}])
    clock, told, interrupt = ShiftedClock(at(7)), Told(), threading.Event()

    def loading() -> LoadResult:
        loaded = project.load(migrated.config)
        return load_migration_waves(loaded, LoadChoice("Ann"), clock=clock, listener=told, interrupt=interrupt)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(loading)
        eventually(lambda: len(migrated.effects()) > 2)
        clock.shift += timedelta(hours=5)
        eventually(lambda: told.has("allow no requests until 2027-01-15 18:00:00Z"))
        assert told.has("stopped in order")
        assert len(migrated.effects()) < CUSTOMERS
        end_faults(migrated.platform.base_url)
        clock.shift += timedelta(hours=7)
        assert running.result(300).exit_code == 0
        assert len(migrated.created()) == CUSTOMERS + 3 + 6
        told.texts.clear()
        clock.shift += timedelta(hours=15)
        waiting = pool.submit(loading)
        eventually(lambda: told.has("waiting: the hours of the config"))
        interrupt.set()
        ended = waiting.result(300)
    assert isinstance(ended.error, StoppedError)
    assert ended.exit_code == 130
