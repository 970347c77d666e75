"""Our client in a process of its own: dispatcher, senders, state and allowance, put together as a run does it.

It says that it is ready, and begins when it is told to; killed and started again, it goes on from its state.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from tests.benchmarks.allowance_server import Server
from tests.benchmarks.bench_delivery import CHUNK, Batch, operation

from crossdock.clock import SystemClock
from crossdock.delivery.dispatcher import Dispatcher
from crossdock.delivery.senders import Senders
from crossdock.delivery.settlement import Settlement
from crossdock.pacing.allowance import Allowance, Priority
from crossdock.platform.platform_target import PlatformTarget
from crossdock.platform.profile import Profile
from crossdock.project.project import Project
from crossdock.state import parse_url

KEY = "BENCH_KEY"
STATE = "state.db"
ENDS_WITHIN_S = 30.0


@dataclass(frozen=True)
class Job:
    """What to deliver: *count* products from number *first* on, at the *rate* that a config would give.

    Attributes:
        folder: Of its state, which is kept; another job there begins with what this one has learned.
        one_by_one: Each on demand; how long it waited for its token and for its answer is told.
    """

    folder: str
    base_url: str
    tenant: str
    rate: dict[str, Any]
    first: int
    count: int
    priority: Priority = "batch"
    one_by_one: bool = False


class Client:
    """A process that is ready to do a *job* at *server* when the context begins, and gone when it ends."""

    def __init__(
        self,
        server: Server,
        folder: Path,
        rate: dict[str, Any],
        count: int,
        *,
        first: int = 0,
        priority: Priority = "batch",
        one_by_one: bool = False,
    ) -> None:
        job = Job(str(folder), server.base_url, server.tenant, rate, first, count, priority, one_by_one)
        self._command = [sys.executable, "-m", "tests.benchmarks.allowance_client", json.dumps(asdict(job))]
        self._environment = {**os.environ, KEY: server.api_key}

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, env=self._environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.told()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._process.kill()
        self._process.communicate(timeout=ENDS_WITHIN_S)

    def go(self) -> None:
        """Begin, or deliver the next of those that go one by one."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def told(self) -> Any:
        """What it tells next; waits for it."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "a client has ended too early; what it said is above"
        return json.loads(line)

    def kill(self) -> None:
        """End it at once (SIGKILL)."""
        self._process.kill()
        self._process.wait()


def batches(first: int, count: int) -> Iterator[Batch]:
    """Products by their numbers, as a planner hands them over."""
    for start in range(first, first + count, CHUNK):
        yield Batch([operation(number) for number in range(start, min(start + CHUNK, first + count))])


class Worker:
    """A job with everything that it needs opened; a context manager.

    Attributes:
        delivered: How many are, among those that this process sent.
    """

    def __init__(self, job: Job) -> None:
        self._job, self._folder = job, Path(job.folder)
        facts = {"base_url": job.base_url, "tenant": job.tenant, "rate": job.rate}
        facts |= {"auth": {"kind": "api_key", "token": f"env:{KEY}"}}
        profile = Profile.model_validate(facts, context={"folder": self._folder})
        url = parse_url(f"sqlite:///{STATE}", self._folder)
        self._project = Project(self._folder / "bench.yaml", profile, url, self._folder, ())
        self.delivered = 0

    def __enter__(self) -> Self:
        project, clock, job = self._project, SystemClock(), self._job
        project.init()
        target, in_flight = PlatformTarget(project.platform), project.platform.in_flight
        with ExitStack() as opened:
            self._state = state = opened.enter_context(project.alone())
            with state.begin() as tx:
                run_id = tx.runs.start(business_date="2026-01-01", at=clock.now())
                earlier = tx.buckets.get(target.name)
            bucket = opened.enter_context(project.bucket(clock, earlier))
            senders = opened.enter_context(Senders(target, in_flight))
            self.allowance = Allowance(clock, bucket, ceiling=in_flight, priority=job.priority)
            self.dispatcher = Dispatcher(
                state,
                target,
                self.allowance,
                senders,
                clock,
                run_id=run_id,
                settled=self._settled,
                interrupt=threading.Event(),
            )
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def deliver(self) -> None:
        """What an earlier process left in the state, and all that it had not come to."""
        with self._state.begin() as tx:
            left = tx.intents.unsettled()
        self.dispatcher.resume(left)
        done, job = self._begun(), self._job
        self.dispatcher.deliver(batches(job.first + done, job.count - done))

    def deliver_one(self, number: int) -> tuple[float, float]:
        """Deliver one product; the seconds from asking until it had its token, and until its answer was there."""
        asked = datetime.now(UTC)
        self.dispatcher.deliver(batches(self._job.first + number, 1))
        with closing(sqlite3.connect(self._folder / STATE)) as state:
            query = "SELECT first_sent_at, settled_at FROM intents ORDER BY id DESC LIMIT 1"
            sent, answered = (
                (datetime.fromisoformat(text) - asked).total_seconds() for text in state.execute(query).fetchone()
            )
        return sent, answered

    def _begun(self) -> int:
        """How many of this job are in the state; chunks enter it whole and in their order."""
        wanted = [number.to_bytes(16, "big") for number in (self._job.first, self._job.first + self._job.count)]
        with closing(sqlite3.connect(self._folder / STATE)) as state:
            query = "SELECT count(*) FROM intents WHERE key_hash >= ? AND key_hash < ?"
            return int(state.execute(query, wanted).fetchone()[0])

    def _settled(self, item: Settlement) -> None:
        self.delivered += item.intent.status == "delivered"


def _work(job: Job) -> None:
    with Worker(job) as worker:
        _tell("ready")
        if job.one_by_one:
            for number, _ in enumerate(sys.stdin):
                _tell(worker.deliver_one(number))
            return
        sys.stdin.readline()
        cpu_s = time.process_time()
        worker.deliver()
        cpu_s, known = time.process_time() - cpu_s, worker.allowance.known
        told = {"delivered": worker.delivered, "cpu_s": cpu_s, "rate_per_s": known.rate_per_s, "burst": known.burst}
        _tell(told)


def _tell(what: object) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    _work(Job(**json.loads(sys.argv[1])))
