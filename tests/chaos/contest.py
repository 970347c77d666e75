"""Real syncs that begin together, and a whole look at a state of either kind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Self

from sqlalchemy import create_engine, inspect, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import OperationalError
from tests.waiting import WITHIN_S, eventually

# All that costs time is imported once. Each sync is a process of its own all the same, forked before anything has run.
_STARTER = """
import json, os, sys
import crossdock.cli.main, crossdock.cli.sync, crossdock.runs.runner, crossdock.state, polars, psycopg
import crossdock_connectors.sftp_warehouse
from crossdock.delivery import turn_writer
turn_writer.LEAVE_AT_MOST_S = turn_writer.LEAVE_WITHIN_S  # so that a test knows how long is long enough
for line in sys.stdin:
    asked = json.loads(line)
    if "wait" in asked:
        print(os.waitstatus_to_exitcode(os.waitpid(asked["wait"], 0)[1]), flush=True)
        continue
    children = []
    for out in asked["start"]:
        child = os.fork()
        if child == 0:
            for number, ending in ((1, ".out"), (2, ".err")):
                os.dup2(os.open(out + ending, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            os.environ.update(asked["env"])
            try:
                crossdock.cli.main.main(asked["arguments"])
            except SystemExit as ended:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(ended.code)
            os._exit(99)
        children.append(child)
    print(json.dumps(children), flush=True)
"""


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

    starter: Starter
    pid: int
    out: str

    def ended(self) -> Ended:
        """Wait for its end."""
        code = int(self.starter.ask({"wait": self.pid}))
        self.starter.running.discard(self.pid)
        return Ended(code, Path(f"{self.out}.out").read_text(), Path(f"{self.out}.err").read_text())

    @property
    def at_work(self) -> bool:
        return self._status() not in {"Z", "X"}

    def freeze(self) -> None:
        """Stop it where it is, as a suspended machine would."""
        os.kill(self.pid, signal.SIGSTOP)
        eventually(lambda: self._status() == "T")

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        assert self.ended().code == -signal.SIGKILL, "it had ended before it was killed"

    def _status(self) -> str:
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]


class Starter:
    """Starts syncs that begin together; a context manager that leaves none of them behind."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._numbers = folder, count()
        self.running: set[int] = set()

    def __enter__(self) -> Self:
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
        self._process = subprocess.Popen([sys.executable, "-c", _STARTER], **pipes, text=True)
        return self

    def __exit__(self, *_: object) -> None:
        for pid in self.running:
            os.kill(pid, signal.SIGKILL)
        self._process.communicate(timeout=WITHIN_S)

    def start(self, config: Path, number: int) -> list[Runner]:
        """Let *number* syncs of *config* begin at once."""
        outs = [str(self._folder / f"sync{next(self._numbers)}") for _ in range(number)]
        arguments = ["-C", str(config), "sync", "--json"]
        pids = json.loads(self.ask({"start": outs, "arguments": arguments, "env": dict(os.environ)}))
        self.running.update(pids)
        return [Runner(self, pid, out) for pid, out in zip(pids, outs, strict=True)]

    def ask(self, question: dict[str, Any]) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer: str = self._process.stdout.readline()
        return answer


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
