"""A fleet on a Dask cluster, of which a worker, a scheduler and a database connection are lost while it works."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Self

import psycopg
from tests.chaos import processes
from tests.chaos.fleet_stage import RECORDS, FleetStage
from tests.waiting import WITHIN_S, eventually

SOON = str(Path(__file__).with_name("soon_asking.py"))


@dataclass(frozen=True, slots=True)
class Forked:
    """What the tests need of a ``subprocess.Popen``, of a process that was forked."""

    process: ForkServerProcess

    def send_signal(self, number: signal.Signals) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        self.process.kill()

    def wait(self, within_s: float | None = None) -> int | None:
        self.process.join(within_s)
        return self.process.exitcode


Process = subprocess.Popen[bytes] | Forked
Starter = Callable[[Sequence[str], Mapping[str, str], Path], AbstractContextManager[Process]]


@contextmanager
def process(arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> Iterator[Process]:
    """``python`` with *arguments* while the block lasts; it is killed if it has not ended by then."""
    with log.open("ab") as out:
        one = subprocess.Popen(
            [sys.executable, *arguments], env={**os.environ, **environment}, stdout=out, stderr=subprocess.STDOUT
        )
        try:
            yield one
        finally:
            one.kill()
            one.wait()


@contextmanager
def forked(arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> Iterator[Process]:
    """The same, forked from a process that has imported crossdock."""
    log.touch()
    one = processes.start(arguments, {**os.environ, **environment}, log, log)
    try:
        yield Forked(one)
    finally:
        one.kill()
        one.join()


@dataclass
class Cluster:
    """A Dask scheduler and its workers, as users start them.

    Attributes:
        environment: Of the workers; the secrets are in it.
        start: How they are started otherwise.
    """

    folder: Path
    environment: Mapping[str, str]
    start: Starter = process
    workers: list[Process] = field(default_factory=list)
    address: str = ""
    _opened: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        self.start_scheduler()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def start_scheduler(self, port: int = 0) -> Process:
        """Start the Dask scheduler on a free port, or on one that it had before."""
        file = self.folder / "dask-scheduler.json"
        file.unlink(missing_ok=True)
        where = ("--host", "127.0.0.1", "--port", str(port), "--no-dashboard", "--scheduler-file", str(file))
        self.scheduler = self._start("dask_scheduler", *where)
        eventually(lambda: file.exists() and '"address": "tcp' in file.read_text())
        self.address = file.read_text().split('"address": "')[1].split('"')[0]
        return self.scheduler

    def add_worker(self, **environment: str) -> Process:
        """Start a worker with two threads."""
        where = (self.address, "--host", "127.0.0.1", "--nthreads", "2", "--no-nanny", "--no-dashboard")
        self.workers.append(self._start("dask_worker", *where, **environment))
        return self.workers[-1]

    def _start(self, program: str, *arguments: str, **environment: str) -> Process:
        folder = self.folder / "dask-space"
        command = ("-m", f"distributed.cli.{program}", *arguments)
        mine = {**self.environment, "DASK_TEMPORARY_DIRECTORY": str(folder), **environment}
        return self._opened.enter_context(self.start(command, mine, self.folder / "dask.log"))


def service(
    stage: FleetStage, executor: str, log: str, *options: str, program: Sequence[str] = processes.CROSSDOCK
) -> tuple[Sequence[str], Mapping[str, str], Path]:
    """What `process` needs to start ``crossdock schedule --fleet``."""
    command = [*program, "-C", str(stage.base), "schedule", "--fleet", stage.pattern]
    return [*command, "--executor", executor, *options], stage.environment, stage.folder / log


def begun(stage: FleetStage) -> set[str]:
    """The tenants of which something was delivered."""
    return {effect["tenant"] for effect in stage.effects()}


def cut_connection(postgres: str) -> str:
    """End a session of some tenant's state that is in the middle of a run; the name of its database."""
    query = (
        "SELECT pg_terminate_backend(pid), datname FROM pg_stat_activity WHERE datname ~ '^new_[0-9]+$'"
        " AND query ~* 'UPDATE leases' AND pid <> pg_backend_pid() LIMIT 1"
    )
    found: list[str] = []

    def cut() -> bool:
        found.extend(row[1] for row in connection.execute(query).fetchall() if row[0])
        return bool(found)

    with psycopg.connect(postgres, autocommit=True) as connection:
        eventually(cut)
    return found[0]


def lossy_night(stage: FleetStage, postgres: str, *, workers: int) -> dict[str, int]:
    """Run the jobs of all tenants while a worker, the leading scheduler and a connection are lost.

    Returns:
        How much of the night was done at each loss, in records.
    """
    done: dict[str, int] = {}
    with Cluster(stage.folder, stage.environment, forked) as cluster, ExitStack() as services:
        for _ in range(workers):
            cluster.add_worker()

        def started(log: str) -> Process:
            facts = service(stage, f"dask={cluster.address}", log, program=("-P", SOON))
            return services.enter_context(forked(*facts))

        first = started("first.log")
        eventually(lambda: "leading a fleet" in (stage.folder / "first.log").read_text())
        second = started("second.log")
        eventually(lambda: "stands by" in (stage.folder / "second.log").read_text())
        eventually(lambda: bool(begun(stage)))
        cluster.workers[0].send_signal(signal.SIGKILL)
        done["worker"] = len(stage.effects())
        cut_connection(postgres)
        done["connection"] = len(stage.effects())
        quarter = len(stage.names) * RECORDS // 4
        eventually(lambda: len(stage.effects()) >= quarter)
        first.send_signal(signal.SIGKILL)
        done["scheduler"] = len(stage.effects())
        eventually(lambda: "leading a fleet" in (stage.folder / "second.log").read_text())
        settled(stage)
        second.send_signal(signal.SIGTERM)
        assert second.wait(WITHIN_S) == 0, (stage.folder / "second.log").read_text()
    return done


def settled(stage: FleetStage, within_s: float = 4 * WITHIN_S) -> None:
    """Wait until each run has ended in its state."""
    left = list(stage.names)

    def has_ended() -> bool:
        while left and any(status == "done" for _, status in stage.runs(left[-1])):
            left.pop()
        return not left

    eventually(has_ended, within_s)


def judged(stage: FleetStage) -> None:
    """Each run was carried out once, and the platform holds what an independent script reads from the exports."""
    assert stage.delivered() == stage.expected()
    for name in stage.names:
        assert [status for _, status in stage.runs(name)] == ["done"], name
