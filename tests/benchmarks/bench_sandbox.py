"""Invoices of five lines into the sandbox, default storage, witness on: the server on one core, the load on another."""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from pathlib import Path

from tests.benchmarks import results
from tests.sandbox_load import Platform, process

GOAL = 600
CONNECTIONS = 64
LINES = 5


def measure(data_dir: Path, count: int, *cores: int) -> tuple[float, float]:
    """Seconds, and CPU seconds of the server, for *count* creations in a fresh sandbox, each under its own key."""
    with process(data_dir, *map(str, cores)) as (server, facts):
        platform = Platform(**facts)
        body = platform.invoice(LINES)
        keys = [f"bench-{number}" for number in range(count)]
        began, cpu_s = time.perf_counter(), _cpu_s(server.pid)
        answers = asyncio.run(platform.create(body, keys, connections=CONNECTIONS))
        seconds, cpu_s = time.perf_counter() - began, _cpu_s(server.pid) - cpu_s
        assert all(answer and answer.startswith(b"HTTP/1.1 201") for answer in answers.values())
        assert sorted(answers) == sorted(keys) == sorted(each["idempotencyKey"] for each in platform.effects())
    return seconds, cpu_s


def _cpu_s(pid: int) -> float:
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="invoices in each run")
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    servers, *others = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, set(others) or {servers})
    rows = []
    for run in range(given.runs):
        with tempfile.TemporaryDirectory() as folder:
            seconds, cpu_s = measure(Path(folder), given.count, servers)
        rate, possible = f"{given.count / seconds:,.0f}", f"{given.count / cpu_s:,.0f}"
        rows.append((run + 1, given.count, f"{seconds:.2f}", rate, GOAL, f"{cpu_s:.2f}", possible))
    columns = ("run", "invoices", "seconds", "a second", "goal", "CPU seconds of the server", "a CPU second")
    where = "a core for the server, another for the load" if others else "one core for both, for want of another"
    notes = f"{CONNECTIONS} connections, a key for each invoice, synchronous=FULL; {where}."
    results.write(f"Sandbox, creations of invoices with {LINES} lines", columns, rows, notes)


if __name__ == "__main__":
    main()
