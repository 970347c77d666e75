"""Webhook dispatch: from an order's arrival at the sandbox, before its commit, to the first byte at a healthy receiver.

A dead receiver, which accepts no connection, and a slow one have subscriptions to the same events.
"""

from __future__ import annotations

import argparse
import json
import socket
import statistics
import tempfile
import threading
import time
from datetime import datetime
from pathlib import Path

from tests.benchmarks import results
from tests.integration.test_sandbox_webhooks import Orders
from tests.sandbox_load import Platform, process
from tests.unit.sandbox.webhook_receiver import SUBSCRIPTIONS, Received, Receiver

RATE = 50  # events a second
SLOW_S = 5.0  # until the slow receiver answers
GOAL_MEAN_MS, GOAL_99_MS = 20, 100
DEADLINE_S = 60.0


def measure(data_dir: Path, count: int) -> list[float]:
    """Milliseconds of each of *count* events to the healthy receiver, at `RATE`."""
    ended, done = threading.Event(), threading.Event()

    def slow(_: Received) -> int:
        ended.wait(SLOW_S)
        return 200

    def healthy(_: Received) -> int:
        if len(receiver.received) >= count:
            done.set()
        return 200

    with (
        Receiver(healthy) as receiver,
        Receiver(slow) as slow_receiver,
        socket.create_server(("127.0.0.1", 0), backlog=0) as dead,
        process(data_dir) as (_, facts),
    ):
        platform = Platform(**facts)
        orders = Orders(platform)
        for url in (f"http://127.0.0.1:{dead.getsockname()[1]}", slow_receiver.url, receiver.url):
            platform.call("POST", SUBSCRIPTIONS, json.dumps({"url": url, "events": ["order.created"]}))
        began = time.monotonic()
        for number in range(count):
            time.sleep(max(0.0, began + number / RATE - time.monotonic()))
            orders.create()
        assert done.wait(DEADLINE_S)
        ended.set()
        assert len(set(receiver.ids)) == len(receiver.ids) == count
    return [(each.at - _timestamp(each)) * 1000 for each in receiver.received]


def _timestamp(received: Received) -> float:
    return datetime.fromisoformat(json.loads(received.body)["timestamp"]).timestamp()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    rows = []
    for run in range(given.runs):
        with tempfile.TemporaryDirectory() as folder:
            found = sorted(measure(Path(folder), RATE * given.seconds))
        last = found[min(len(found) - 1, int(len(found) * 0.99))]
        rows.append((run + 1, len(found), *(f"{each:.1f}" for each in (statistics.mean(found), last, found[-1]))))
    columns = ("run", "events", f"mean ms (goal {GOAL_MEAN_MS})", f"99 % ms (goal {GOAL_99_MS})", "longest ms")
    notes = (
        f"{RATE} orders a second, with a dead receiver and one that takes {SLOW_S:g} s. Measured from the arrival of"
        " the request at the sandbox, so that the commit is included, to the first byte at the healthy receiver."
    )
    results.write("Webhook dispatch of the sandbox", columns, rows, notes)


if __name__ == "__main__":
    main()
