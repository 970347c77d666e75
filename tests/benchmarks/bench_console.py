"""The pages of the console on a large state and on a large fleet: the time to the first byte of each.

It serves from a process of its own, as users do. Each figure is the median of 20 requests after one that warms it up.
"""

from __future__ import annotations

import argparse
import html
import http.client
import itertools
import os
import re
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.benchmarks import console_states, results, slow_server
from tests.benchmarks.console_states import ITEMS, Sizes
from tests.benchmarks.delta_processes import python

from crossdock.config.project import project
from crossdock.config.project.project import Project
from crossdock.testing.postgres_server import PostgresServer

REPEATS = 20
GOAL_MS = 300
TRIVIAL = "/style.css"
PAGES = (
    "",
    "/runs",
    "/runs?before={middle}",
    "/runs?job=nightly&status=degraded",
    "/runs?date={day}",
    "/runs?manual=1",
    "/runs/calendar",
    "/runs/calendar?until={day}",
    "/runs/{last}",
    "/runs/{last}?show=data",
    "/runs/{middle}",
    "/runs/{last}/delivered",
    "/runs/{middle}/delivered?after",
    "/runs/{middle}/delivered?stream=wms.items&operation=update",
    "/month/{month}",
    "/records",
    "/records?q={key}",
    "/records?q=prd_0000001",
    "/records?q={file}:7",
    "/records?q={file}&in=messages",
    "/records?q=gateway",
    "/records?q=nothing+has+this",
    "/records/rejected",
    "/records/rejected?after",
    "/records/rejected?reason=bad_value",
    "/records/rejected?reason=bad_value&by=file",
    "/records/rejected?file={file}",
    "/records/rejected?key={rejected}",
    "/records/rejected?text=number",
    "/records/rejected?text=nothing+has+this",
    "/records/dropped",
    "/records/waiting",
    "/records/waiting?after",
    "/records/waiting?group",
    "/records/in-doubt",
    "/records/in-doubt?after",
    "/records/in-doubt?stream=wms.items",
    "/records/in-doubt?text=nothing+has+this",
    "/records/overdue",
    "/records/overdue?batch=PRODUCTS_1.csv",
    "/records/pending",
    "/records/handed-over",
    "/records/unverified",
    "/records/unverified?after",
    "/records/inbox",
    "/records/inbox?after",
    "/record?stream=wms.items&key={key}",
    "/record?stream=wms.items&key={key}&show=data",
    "/record?resource=product&key={key}",
    "/record?stream=wms.items&key={rejected}",
    "/record?stream=wms.orders&key=O0000001",
    "/record?resource=customer&namespace=wms&key=C1",
    "/approvals",
    "/files",
    "/files?before",
    "/files?name={file}",
    "/connections",
    "/migration",
    "/migration/sign-off",
    "/settings",
    "/settings/schedule",
    "/audit",
    "/audit?before=500",
    "/audit?person=ada",
    "/audit?action=records+drop&since={day}",
    "/commands",
    "/commands/{command}",
    "/do/sync",
    "/do/start-job?job=nightly",
    "/do/pause-job?job=nightly",
    "/do/undo?run={last}",
    "/do/replay",
    "/do/replay?reason=bad_value&stream=wms.items",
    "/do/replay?file={file}",
    "/do/drop?stream=wms.items",
    "/do/resolve?stream=wms.items",
    "/do/approve?stream=wms.items&number=1000",
    "/do/load",
)
"""Below the address of a tenant. A parameter without a value is taken from a link on the page without it."""


@dataclass(frozen=True)
class Server:
    """The process of a console, and its host and port."""

    pid: int
    netloc: str

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Figure:
    """The times to the first byte of one page, and the CPU time of the server for each request."""

    page: str
    times_ms: Sequence[float]
    cpu_ms: float

    @property
    def median(self) -> float:
        return statistics.median(self.times_ms)

    @property
    def cells(self) -> tuple[str, ...]:
        return f"{self.median:.0f}", f"{min(self.times_ms):.0f}", f"{self.cpu_ms:.0f}"


@contextmanager
def served(*arguments: str | Path) -> Iterator[Server]:
    """Serve the console from a process of its own."""
    command = [*python("-m", "crossdock"), *map(str, arguments), "--address", "0"]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://(\S+)", process.stdout.readline())
            assert found, "the console did not start"
            yield Server(process.pid, found[1])
        finally:
            process.terminate()


def first_byte_ms(netloc: str, path: str) -> tuple[float, int, str]:
    """Return the time from the request to the first byte of the answer, its status and its text."""
    connection = http.client.HTTPConnection(netloc, timeout=60)
    connection.connect()
    began = time.perf_counter()
    connection.request("GET", path)
    answer = connection.getresponse()
    lasted = (time.perf_counter() - began) * 1000
    text = answer.read().decode()
    connection.close()
    return lasted, answer.status, text


def measure(server: Server, paths: Sequence[str], repeats: int = REPEATS) -> Iterator[Figure]:
    """Request each page *repeats* times, after once that warms it up."""
    for path in paths:
        address = _completed(server, path)
        first_byte_ms(server.netloc, address)
        before = server.cpu_s()
        found = [first_byte_ms(server.netloc, address) for _ in range(repeats)]
        cpu_ms = (server.cpu_s() - before) * 1000 / repeats
        assert {status for _, status, _ in found} <= {200, 303}, (address, found[0])
        yield Figure(path, [lasted for lasted, _, _ in found], cpu_ms)


def _completed(server: Server, path: str) -> str:
    """Take the value of a parameter without one from a link of the page."""
    page, _, query = path.partition("?")
    if not query or "=" in query:
        return path
    links = re.findall(r'href="([^"]+)"', first_byte_ms(server.netloc, page)[2])
    return next(html.unescape(each) for each in links if f"{query}=" in each and page in each)


def pages(sizes: Sizes, command: str) -> list[str]:
    values = {
        "last": sizes.dates,
        "middle": sizes.dates // 2,
        "day": f"{console_states.night(sizes.dates // 2):%Y-%m-%d}",
        "month": f"{console_states.night(0):%Y-%m}",
        "key": "P0000001",
        "rejected": f"P{sizes.bindings + 7:07}",
        "file": "ITEM_7_1.csv",
        "command": command,
    }
    return [f"/t/big{page}".format_map(values) for page in PAGES]


# ---- runs beside the pages

VIEWS_PER_S = 20
_LONGEST_RUN_S = 300.0


@dataclass(frozen=True)
class Delay:
    """The seconds of runs of a scheduler that deliver as many new records, without and with pages viewed, in turns."""

    alone: Sequence[float]
    beside: Sequence[float]

    @property
    def cells(self) -> tuple[str, ...]:
        least, median = (
            (figure(self.alone), figure(self.beside)) for figure in (min, statistics.median)
        )  # fmt: skip
        return (
            f"{median[0]:.2f} s", f"{median[1]:.2f} s", f"{median[1] / median[0]:.2f}", f"{least[1] / least[0]:.2f}",
        )  # fmt: skip


def delay(config: Path, paths: Sequence[str], records: int, rounds: int, *, hosted: bool) -> Delay:
    """View the pages of a console that the scheduler serves, or of one that runs beside it."""
    alone, beside, loaded, numbers = list[float](), list[float](), project.load(config), itertools.count()
    with scheduler(config, hosted=hosted) as netloc:
        _delivered(loaded, next(numbers), records)
        for _ in range(rounds):
            alone.append(_delivered(loaded, next(numbers), records))
            with views(netloc, paths):
                beside.append(_delivered(loaded, next(numbers), records))
    return Delay(alone, beside)


@contextmanager
def scheduler(config: Path, *, hosted: bool) -> Iterator[str]:
    """Run the jobs from a process of their own, which may say nothing of locks; yield the console's host and port."""
    command = [*python("-m", "crossdock", "-C", config, "schedule"), *(["--console", "0"] if hosted else [])]
    with tempfile.TemporaryFile("w+") as log, ExitStack() as stack:
        environment = os.environ | {"CROSSDOCK_API_KEY": "k"}
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            netloc = "" if hosted else stack.enter_context(served("-C", config, "console")).netloc
            while hosted and not (found := re.search(r"http://(127[\d.:]+)", _told(log))):
                assert process.poll() is None, _told(log)
                time.sleep(0.1)
            yield found[1] if hosted and found else netloc
        finally:
            process.terminate()
            process.wait()
        assert "locked" not in _told(log), _told(log)


def _told(log: IO[str]) -> str:
    log.seek(0)
    return log.read()


def _delivered(loaded: Project, number: int, records: int) -> float:
    """Write a file of new records; return the seconds of the run that has delivered them."""
    name = f"ITEM_N{os.getpid()}_{time.time_ns()}_{number}.csv"
    lines = [f"{name}-{each},{each}.50\n" for each in range(records)]
    new = loaded.path.parent / "new"
    new.write_text("SKU,PRICE\n" + "".join(lines), encoding="utf-8")
    new.rename(loaded.path.parent / "out" / name)
    deadline = time.monotonic() + _LONGEST_RUN_S
    while time.monotonic() < deadline:
        time.sleep(0.2)
        with loaded.read_state() as tx:
            for run in tx.runs.listed(limit=3):
                files = [each["name"] for each in (run.tally or {}).get(ITEMS, {}).get("files", [])]
                if name in files and run.duration is not None:
                    assert run.status != "failed", run
                    return run.duration.total_seconds()
    raise AssertionError(f"{name} was not delivered")


@contextmanager
def views(netloc: str, paths: Sequence[str]) -> Iterator[None]:
    """View `VIEWS_PER_S` pages a second from several threads during the block; none may be an error."""
    over, statuses = threading.Event(), list[int]()

    def view(first: int) -> None:
        for path in itertools.cycle([*paths[first:], *paths[:first]]):
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
    assert {*statuses} <= {200, 303}, statuses


# ---- the tables


@contextmanager
def database(kind: str) -> Iterator[str]:
    """Yield the address of a new state."""
    if kind == "SQLite":
        yield console_states.SQLITE
        return
    with PostgresServer() as server:
        yield server.create_database()


def measured_pages(config: Path, sizes: Sizes, repeats: int = REPEATS) -> list[Figure]:
    with served("-C", config, "console") as server:
        paths = pages(sizes, console_states.start_command(config))
        return list(measure(server, (TRIVIAL, *paths), repeats))


def first_views_of_a_fleet(place: Path, times: int) -> Iterator[float]:
    """Yield the time to the first byte of the start page of a console that was just started."""
    for _ in range(times):
        with served("console", "--fleet", place) as server:
            yield first_byte_ms(server.netloc, "/")[0]


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--divided", type=int, default=1, help="sizes of all but the dates")
    parser.add_argument("--tenants", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--records", type=int, default=2_000, help="of a run")
    parser.add_argument("--databases", nargs="+", default=["SQLite", "PostgreSQL"])
    options = parser.parse_args()
    sizes, found, delays = Sizes().divided(options.divided), dict[str, list[Figure]](), list[tuple[str, ...]]()
    with tempfile.TemporaryDirectory() as name, slow_server.running(20) as port:
        os.environ["XDG_STATE_HOME"] = name  # where runs note the states that they know
        for kind in options.databases:
            with database(kind) as state:
                folder = Path(name) / kind
                config = console_states.make(folder, "big", sizes, base_url=f"http://127.0.0.1:{port}", state=state)
                found[kind] = measured_pages(config, sizes)
                if options.rounds:
                    console_states.prepare_runs(config, state)
                for hosted in (False, True) if options.rounds else ():
                    measured = delay(config, _viewed(sizes), options.records, options.rounds, hosted=hosted)
                    delays.append((kind, "schedule --console" if hosted else "console", *measured.cells))
        place = console_states.tenants(Path(name) / "fleet", options.tenants)
        _write_pages(found)
        if delays:
            results.write(
                "Runs beside the pages of the console",
                ("state", "served by", "run alone", f"with {VIEWS_PER_S} views a second", "ratio", "of the least"),
                delays,
                f"Seconds of a run with {options.records:,} new records, medians of {options.rounds} in turns."
                " The goal is a ratio of 1.1.",
            )
        _write_fleet(place, options.tenants)


def _write_pages(found: Mapping[str, Sequence[Figure]]) -> None:
    columns = ("page", *(f"{kind}: {what}" for kind in found for what in ("median", "least", "CPU")))
    pages_of = zip(*found.values(), strict=True)
    rows = [(f"`{each[0].page}`", *(cell for figure in each for cell in figure.cells)) for each in pages_of]
    above = sum(figure.median > GOAL_MS for figures in found.values() for figure in figures)
    notes = f"Milliseconds to the first byte, of {REPEATS}; CPU of the server's process."
    results.write(
        "Pages of the console", columns, rows, f"{notes} The goal is {GOAL_MS} ms; {above} medians are above."
    )


def _write_fleet(place: Path, number: int) -> None:
    firsts = list(first_views_of_a_fleet(place, REPEATS))
    with served("console", "--fleet", place) as server:
        figures = list(measure(server, (TRIVIAL, "/", "/?page=2", "/?show=degraded", "/t/t0")))
    first = ("first view of `/`", f"{statistics.median(firsts):.0f}", f"{min(firsts):.0f}", "")
    rows = [first, *((f"`{each.page}`", *each.cells) for each in figures)]
    results.write(f"Pages of the console of {number} tenants", ("page", "median", "least", "CPU"), rows)


def _viewed(sizes: Sizes) -> list[str]:
    """Return the addresses of pages that there are also without open records."""
    left_out = r"[?&]\w+(&|$)|/commands/|/do/|wms.orders|resource=customer"
    return [each for each in pages(sizes, "") if not re.search(left_out, each)]


if __name__ == "__main__":
    main()
