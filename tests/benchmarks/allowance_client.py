"""Our client in a separate process: dispatcher, senders, state and allowance, assembled as in a run.

It reports that it is ready and starts on a signal; after a kill and a restart it continues from its state.
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

from crossdock.config.project.project import Project
from crossdock.pacing.request_allowance import Priority, RequestAllowance
from crossdock.platform.platform_config import Profile
from crossdock.state import parse_database_url
from crossdock.values.clock import SystemClock
from crossdock.writing.delivery.delivery_context import DeliveringRun
from crossdock.writing.delivery.dispatcher import Dispatcher
from crossdock.writing.delivery.send_queue_and_threads import SenderThreads
from crossdock.writing.delivery.state_writer import Settlement
from crossdock.writing.targets.platform_target import PlatformTarget

KEY = "BENCH_KEY"
STATE = "state.db"
ENDS_WITHIN_S = 30.0


@dataclass(frozen=True)
class Job:
    """Deliver *count* products from number *first* on, with the *rate* section of a config.

    Attributes:
        folder: Holds the state, which is kept; another job there starts with the estimate of this one.
        one_by_one: Deliver each on demand, and report the seconds until its token and until its answer.
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
    """A process that is ready when the context begins, and has ended when it ends."""

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
        self.result()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._process.kill()
        self._process.communicate(timeout=ENDS_WITHIN_S)

    def go(self) -> None:
        """Start, or deliver the next product of a job with *one_by_one*."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def result(self) -> Any:
        """Wait for its next line."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "a client ended too early; its output is above"
        return json.loads(line)

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()
        self._process.wait()


def batches(first: int, count: int) -> Iterator[Batch]:
    """Products by number, as a planner yields them."""
    for start in range(first, first + count, CHUNK):
        yield Batch([operation(number) for number in range(start, min(start + CHUNK, first + count))])


class Worker:
    """A job with its resources opened; a context manager.

    Attributes:
        delivered: Products that this process has delivered.
    """

    def __init__(self, job: Job) -> None:
        self._job, self._folder = job, Path(job.folder)
        facts = {"base_url": job.base_url, "tenant": job.tenant, "rate": job.rate}
        facts |= {"auth": {"kind": "api_key", "token": f"env:{KEY}"}}
        profile = Profile.model_validate(facts, context={"folder": self._folder})
        url = parse_database_url(f"sqlite:///{STATE}", self._folder)
        self._project = Project(self._folder / "bench.yaml", profile, url, self._folder, ())
        self.delivered = 0

    def __enter__(self) -> Self:
        project, clock, job = self._project, SystemClock(), self._job
        project.create_or_upgrade_state()
        target, in_flight = PlatformTarget(project.platform), project.platform.in_flight
        with ExitStack() as opened:
            self._state = state = opened.enter_context(project.open_state_exclusively())
            with state.begin() as tx:
                run_id = tx.runs.start(business_date="2026-01-01", at=clock.now())
                earlier = tx.buckets.get(target.name)
            bucket = opened.enter_context(project.open_rate_limit_bucket(target, clock, earlier))
            senders = opened.enter_context(SenderThreads(target, in_flight))
            self.allowance = RequestAllowance(clock, bucket, ceiling=in_flight, priority=job.priority)
            run = DeliveringRun(state, run_id, clock, threading.Event())
            self.dispatcher = Dispatcher(run, target, self.allowance, senders, self._settled)
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def deliver(self) -> None:
        """Deliver what an earlier process left in the state, and the rest."""
        with self._state.begin() as tx:
            left = tx.intents.unsettled()
        for _ in self.dispatcher.resume_unsettled_intents(left):
            """Nothing else is to be done while the target is unavailable."""
        done, job = self._begun(), self._job
        self.dispatcher.deliver(batches(job.first + done, job.count - done))

    def deliver_one(self, number: int) -> tuple[float, float]:
        """Deliver one product; the seconds until its token and until its answer."""
        asked = datetime.now(UTC)
        self.dispatcher.deliver(batches(self._job.first + number, 1))
        with closing(sqlite3.connect(self._folder / STATE)) as state:
            query = "SELECT first_sent_at, settled_at FROM intents ORDER BY id DESC LIMIT 1"
            sent, answered = (
                (datetime.fromisoformat(text) - asked).total_seconds() for text in state.execute(query).fetchone()
            )
        return sent, answered

    def _begun(self) -> int:
        """How many of this job's products are in the state; chunks are written whole and in order."""
        wanted = [number.to_bytes(16, "big") for number in (self._job.first, self._job.first + self._job.count)]
        with closing(sqlite3.connect(self._folder / STATE)) as state:
            query = "SELECT count(*) FROM intents WHERE key_hash >= ? AND key_hash < ?"
            return int(state.execute(query, wanted).fetchone()[0])

    def _settled(self, item: Settlement) -> None:
        self.delivered += item.intent.status == "delivered"


def _work(job: Job) -> None:
    with Worker(job) as worker:
        _print("ready")
        if job.one_by_one:
            for number, _ in enumerate(sys.stdin):
                _print(worker.deliver_one(number))
            return
        sys.stdin.readline()
        cpu_s = time.process_time()
        worker.deliver()
        cpu_s, estimate = time.process_time() - cpu_s, worker.allowance.limit_estimate
        limit = {"rate_per_s": estimate.rate_per_s, "burst": estimate.burst}
        _print({"delivered": worker.delivered, "cpu_s": cpu_s, **limit})


def _print(document: object) -> None:
    print(json.dumps(document), flush=True)


if __name__ == "__main__":
    _work(Job(**json.loads(sys.argv[1])))
