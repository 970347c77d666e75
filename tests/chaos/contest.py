"""Real syncs that begin together, and a whole look at a state of either kind."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, Self

from sqlalchemy import create_engine, inspect, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import OperationalError
from tests.chaos import processes, soon_leaving
from tests.waiting import WITHIN_S, eventually

_PROGRAM = ("-P", soon_leaving.__file__)


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def requests(self) -> int:
        return int(json.loads(self.out)["requests"])

    @property
    def was_locked_out(self) -> bool:
        return self.code == 3 and "another run is using" in self.err


@dataclass(frozen=True, slots=True)
class Runner:
    """One ``crossdock sync --json`` in a process of its own."""

    process: ForkServerProcess
    out: Path
    err: Path
    writing: Path

    def ended(self) -> Ended:
        """Wait for its end."""
        self.process.join(WITHIN_S)
        assert self.process.exitcode is not None, "it did not end"
        return Ended(self.process.exitcode, self.out.read_text(), self.err.read_text())

    @property
    def at_work(self) -> bool:
        return self.process.is_alive()

    def freeze(self) -> None:
        """Stop it where it is, as a suspended machine would, but not between the last look at the time and the write.

        Nothing can hold that request back: it leaves when the process goes on.
        """
        while True:
            self._signal(signal.SIGSTOP)
            eventually(self._is_frozen)
            if not any(self.writing.read_bytes()):
                return
            self.thaw()

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        self.process.kill()
        assert self.ended().code == -signal.SIGKILL, "it had ended before it was killed"

    def _signal(self, number: signal.Signals) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    def _is_frozen(self) -> bool:
        return Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


class Starter:
    """Starts syncs that begin together; a context manager that leaves none of them behind."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[Runner] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for runner in self._started:
            runner.process.kill()
            runner.process.join()

    def start(self, config: Path, number: int) -> list[Runner]:
        """Let *number* syncs of *config* begin at once."""
        return [self._start((*_PROGRAM, "-C", str(config), "sync", "--json")) for _ in range(number)]

    def _start(self, command: Sequence[str]) -> Runner:
        name = f"sync{len(self._started)}"
        out, err, writing = (self._folder / f"{name}.{ending}" for ending in ("out", "err", "writing"))
        writing.write_bytes(bytes(soon_leaving.THREADS))
        environment = {**os.environ, soon_leaving.WRITING: str(writing)}
        runner = Runner(processes.start(command, environment, out, err), out, err, writing)
        self._started.append(runner)
        return runner


@contextmanager
def _connected(url: URL) -> Iterator[Any]:
    options = {"timeout": 0.2} if url.drivername == "sqlite" else {"options": "-c lock_timeout=200"}
    engine = create_engine(url, connect_args=options)
    try:
        with closing(engine.connect()) as connection:
            yield connection
    finally:
        engine.dispose()


def expire(url: URL) -> bool:
    """Let the lease be over since long; False if somebody sleeps in the middle of a transaction."""
    try:
        with _connected(url) as connection:
            connection.execute(text("UPDATE leases SET until = '2020-01-01T00:00:00.000000+00:00'"))
            connection.commit()
    except OperationalError:
        return False
    return True


def sending(url: URL) -> list[str]:
    """The keys of the records whose operations are marked as on their way."""
    with _connected(url) as connection:
        return list(connection.execute(text("SELECT key FROM intents WHERE status = 'sending'")).scalars())


def contents(url: URL) -> dict[str, list[str]]:
    """Every row of every table."""
    with _connected(url) as connection:
        names = inspect(connection).get_table_names()
        return {name: sorted(map(repr, connection.execute(text(f'SELECT * FROM "{name}"')))) for name in names}


def changed(before: dict[str, list[str]], after: dict[str, list[str]]) -> list[str]:
    """The tables that differ."""
    return [name for name in {*before, *after} if before.get(name) != after.get(name)]


def fences(url: URL) -> int:
    with _connected(url) as connection:
        return int(connection.execute(text("SELECT fence FROM leases")).scalar_one())


def hang_up(url: URL) -> int:
    """Let a PostgreSQL server end all sessions on the state but ours, as its restart does; how many those were."""
    with _connected(url) as connection:
        others = "WHERE pid <> pg_backend_pid() AND datname = current_database()"
        return len(connection.execute(text(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity {others}")).all())
