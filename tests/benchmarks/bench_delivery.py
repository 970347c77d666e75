"""Delivery through threads with a client each, intents and grouped commits at synchronous=FULL.

How many requests a second go through when nothing paces them, for four answer times; the server is another process.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.allowances import allowance
from tests.benchmarks import results, slow_server
from tests.benchmarks.delivery_peer import product

from crossdock.platform.platform_config import Profile
from crossdock.state import (
    PinnedTenant,
    RecordIdentity,
    Scope,
    State,
    Transaction,
    create_or_upgrade_state,
    parse_database_url,
)
from crossdock.values.clock import SystemClock
from crossdock.values.raw_rows_and_records import Record
from crossdock.writing.delivery.delivery_context import DeliveringRun
from crossdock.writing.delivery.dispatcher import Dispatcher
from crossdock.writing.delivery.operations_and_intents import Operation
from crossdock.writing.delivery.send_queue_and_threads import SenderThreads
from crossdock.writing.delivery.state_writer import Settlement
from crossdock.writing.targets.platform_target import PlatformTarget

SCOPE = Scope("platform", "product", "bench")
CHUNK = 200


@dataclass(frozen=True)
class Batch:
    operations: list[Operation]
    acknowledged_settlements: Sequence[Settlement] = ()

    def store_all_but_operations(self, tx: Transaction) -> None:
        """Nothing else."""


def operation(number: int) -> Operation:
    payload = product(number)
    row: dict[str, str | None] = {"SKU": f"S{number}", "NAME": f"Product {number}"}
    record = Record(str(number), (row,), "bench.csv", (number + 2,))
    identity = RecordIdentity("bench.products", record.key, number, number, None, record.source, number + 2)
    return Operation("create", identity, SCOPE, record, payload, payload, None)


def batches(count: int) -> Iterator[Batch]:
    for start in range(0, count, CHUNK):
        yield Batch([operation(number) for number in range(start, min(start + CHUNK, count))])


def deliver(port: int, folder: Path, count: int) -> tuple[float, float, int]:
    """Seconds, CPU seconds of this process and deliveries of one load."""
    os.environ["BENCH_KEY"] = "k"
    auth = {"kind": "api_key", "token": "env:BENCH_KEY"}
    profile = Profile.model_validate(
        {"base_url": f"http://127.0.0.1:{port}", "tenant": "bench", "auth": auth}, context={"folder": folder}
    )
    url = parse_database_url("sqlite:///state.db", folder)
    create_or_upgrade_state(url, PinnedTenant(profile.base_url, profile.tenant))
    state, clock, target = (
        State(url, PinnedTenant(profile.base_url, profile.tenant)),
        SystemClock(),
        PlatformTarget(profile),
    )
    delivered: list[Settlement] = []
    with state.begin() as tx:
        run_id = tx.runs.start(business_date="2026-01-01", at=clock.now())
    with SenderThreads(target, profile.in_flight) as senders:
        run = DeliveringRun(state, run_id, clock, threading.Event())
        dispatcher = Dispatcher(run, target, allowance(clock), senders, delivered.append)
        began, cpu = time.perf_counter(), time.process_time()
        dispatcher.deliver(batches(count))
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    state.close()
    assert all(item.intent.status == "delivered" for item in delivered)
    return seconds, cpu, len(delivered)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=4000, help="requests for each answer time")
    parser.add_argument("--port", type=int, help="of such a server that runs already: only deliver to it once")
    given = parser.parse_args()
    count = given.count
    if given.port:
        with tempfile.TemporaryDirectory() as folder:
            print(deliver(given.port, Path(folder), count)[2])
        return
    rows = []
    for delay_ms, goal in ((0, 400), (50, 400), (200, 400), (500, 160)):
        with tempfile.TemporaryDirectory() as folder, slow_server.running(delay_ms) as port:
            seconds, cpu, delivered = deliver(port, Path(folder), count)
            assert delivered == count
        rows.append((delay_ms, count, f"{count / seconds:,.0f}", goal, f"{cpu / seconds:.2f}"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    columns = ("answer after, ms", "requests", "requests a second", "goal", "cores used by the client")
    results.write("Delivery, 100 in flight, SQLite with synchronous=FULL", columns, rows, f"Peak memory {peak} MiB.")


if __name__ == "__main__":
    main()
