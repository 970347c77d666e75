"""The pages of the console on a large state and on a large fleet: the time to the first byte of each.

It serves from a process of its own, as users do. Each figure is the median of 20 requests after one that warms it up.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks import console_states, results, slow_server
from tests.benchmarks.delta_processes import python

REPEATS = 20
GOAL_MS = 300
KEY = "P0000001"
PAGES = (
    "",
    "/runs",
    "/runs?before=200",
    "/runs/400",
    "/runs/calendar",
    "/month/{month}",
    "/records",
    "/records/rejected",
    "/records/rejected?reason=bad_value",
    "/records/rejected?stream=wms.items&text=number",
    "/record?stream=wms.items&key=" + KEY,
    "/record?stream=wms.items&key=P1000007",
    "/files?name=ITEM_7.csv",
    "/approvals",
    "/connections",
    "/migration",
    "/settings",
    "/settings/schedule",
    "/audit",
    "/commands",
    "/do/replay",
)


@contextmanager
def served(*arguments: str | Path) -> Iterator[str]:
    """Serve the console from a process of its own; yield its host and port."""
    command = [sys.executable, "-m", "crossdock", *map(str, arguments), "--address", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"})
    try:
        assert process.stdout is not None
        found = re.search(r"http://(\S+)", process.stdout.readline())
        assert found, "the console did not start"
        yield found[1]
    finally:
        process.terminate()
        process.wait()


def first_byte_ms(netloc: str, path: str) -> tuple[float, int]:
    """Return the time from the request to the first byte of the answer, and its status."""
    connection = http.client.HTTPConnection(netloc, timeout=60)
    connection.connect()
    began = time.perf_counter()
    connection.request("GET", path)
    answer = connection.getresponse()
    lasted = (time.perf_counter() - began) * 1000
    answer.read()
    connection.close()
    return lasted, answer.status


def measure(netloc: str, paths: Sequence[str], repeats: int = REPEATS) -> Iterator[tuple[str, float, float, int]]:
    """Yield the path, the median, the longest time in ms, and the status of each page."""
    for path in paths:
        first_byte_ms(netloc, path)
        found = [first_byte_ms(netloc, path) for _ in range(repeats)]
        times = [lasted for lasted, _ in found]
        yield path, statistics.median(times), max(times), found[-1][1]


VIEWS_PER_S = 20


def delay(config: Path, records: int, rounds: int) -> tuple[float, float]:
    """Return the median seconds of syncs of new records without and with pages viewed meanwhile, in turns."""
    alone, beside = list[float](), list[float]()
    with served("-C", config, "console") as netloc:
        for number in range(rounds):
            alone.append(_sync(config, 2 * number, records))
            with _views(netloc, pages(1)):
                beside.append(_sync(config, 2 * number + 1, records))
    return statistics.median(alone), statistics.median(beside)


def _sync(config: Path, number: int, records: int) -> float:
    lines = [f"N{number}-{each},{each}.50\n" for each in range(records)]
    (config.parent / "out" / f"ITEM_N{number}.csv").write_text("SKU,PRICE\n" + "".join(lines), encoding="utf-8")
    command = python("-m", "crossdock", "-C", config, "sync", "--json")
    began = time.perf_counter()
    ended = subprocess.run(command, env=os.environ | {"CROSSDOCK_API_KEY": "k"}, capture_output=True, check=False)
    lasted = time.perf_counter() - began
    assert f'"created": {records}' in ended.stdout.decode(), ended.stderr.decode()
    assert b"locked" not in ended.stderr
    return lasted


@contextmanager
def _views(netloc: str, paths: list[str]) -> Iterator[None]:
    """View `VIEWS_PER_S` pages a second from several threads during the block; none may be an error."""
    over, statuses = threading.Event(), list[int]()

    def view(first: int) -> None:
        for path in itertools.cycle(paths[first:] + paths[:first]):
            if over.wait(4 / VIEWS_PER_S):
                return
            statuses.append(first_byte_ms(netloc, path)[1])

    threads = [threading.Thread(target=view, args=(number * len(paths) // 4,)) for number in range(4)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert statuses, "no page was viewed"
    assert {*statuses} <= {200, 404}, statuses


def pages(dates: int) -> list[str]:
    month = f"{console_states._night(0):%Y-%m}"
    return [f"/t/big{page}".format(month=month).replace("/runs/400", f"/runs/{dates}") for page in PAGES]


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--dates", type=int, default=400)
    parser.add_argument("--bindings", type=int, default=1_000_000)
    parser.add_argument("--rejected", type=int, default=100_000)
    parser.add_argument("--tenants", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rows = list[tuple[str, float, float, int]]()
    with tempfile.TemporaryDirectory() as name, slow_server.running(20) as port:
        folder, sizes = Path(name), {name: getattr(options, name) for name in ("dates", "bindings", "rejected")}
        config = console_states.make(folder / "big", "big", base_url=f"http://127.0.0.1:{port}", **sizes)
        with served("-C", config, "console") as netloc:
            rows += list(measure(netloc, pages(options.dates)))
        alone, beside = delay(config, 5_000, options.rounds)
        place = console_states.tenants(folder / "fleet", options.tenants)
        with served("console", "--fleet", place) as netloc:
            rows += list(measure(netloc, ("/", "/?page=2", "/t/t7")))
    shown = [(f"`{path}`", f"{median:.0f} ms", f"{worst:.0f} ms", status) for path, median, worst, status in rows]
    notes = f"Median and longest of {REPEATS}; the goal is {GOAL_MS} ms. {sum(r[1] > GOAL_MS for r in rows)} are above."
    notes += (
        f" A sync of 5,000 new records takes {beside:.2f} s with {VIEWS_PER_S} pages viewed a second, {alone:.2f} s"
        f" without, medians of {options.rounds} in turns: {beside / alone:.2f} times; the goal is 1.1."
    )
    results.write("Pages of the console", ("page", "first byte", "longest", "status"), shown, notes)


if __name__ == "__main__":
    main()
