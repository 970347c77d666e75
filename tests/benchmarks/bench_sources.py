"""How much of a vendor's rate limit is used, and how many requests are refused, beside dlt's ``rest_api``.

The vendor is a process on loopback that answers after 5 ms and has one reader: after 20 ms, a reader that asks for one
page after the other is no faster than the highest of these rates. All cases run at once, each with a vendor of its own,
since they mostly wait; about three minutes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.benchmarks import results
from tests.benchmarks.bench_delta import environment_with_dlt
from tests.benchmarks.delta_processes import ROOT, TooSlowError, python

HERE = Path(__file__).parent
LIMIT_S = 240.0
COLUMNS = ("vendor", "reader", "pages", "seconds", "used, %", "refused", "refused, %")
NOTES = (
    "Used: of what the bucket permits from the first request to the last one. Goals of crossdock where the vendor "
    "tells its limit: at least 95 % used; at most 1 % refused on the first run and none on the second. Before the "
    "second run the bucket is full again. A reader that failed is shown with what was counted until then."
)


@dataclass(frozen=True)
class Case:
    """A vendor whose bucket fills at *rate* a second; see `tests.benchmarks.sources_server` for *kind*."""

    name: str
    kind: str
    rate: int
    burst: int
    pages: int


CASES = (
    Case("2 requests a second, burst 40, told by a header", "rest", 2, 40, 180),
    Case("40 of cost a second, burst 400, 10 a query, told", "graphql", 40, 400, 320),
    Case("2 requests a second, burst 40, not told", "silent", 2, 40, 300),
    Case("40 requests a second, burst 40, not told", "silent", 40, 40, 2400),
)


def measure(case: Case, folder: Path, dlt: str | None) -> Iterator[tuple[object, ...]]:
    """The rows of one case: crossdock twice, and dlt with a vendor of its own."""
    kept = folder / f"{case.name}.limit"
    with _Server(case) as server:
        for number in (1, 2):
            command = python("-m", "tests.benchmarks.sources_reader", case.kind, server.port, kept)
            yield server.watched(f"crossdock, run {number}", command)
            if number == 1:
                time.sleep(case.burst / case.rate)
    if dlt is not None:
        there = folder / f"dlt {case.name}"
        there.mkdir()
        with _Server(case) as server:
            yield server.watched(
                "dlt rest_api", [dlt, str(HERE / "sources_dlt.py"), case.kind, server.port, str(there)]
            )


class _Server:
    def __init__(self, case: Case) -> None:
        self._case = case

    def __enter__(self) -> Self:
        case = self._case
        command = python("-m", "tests.benchmarks.sources_server", case.kind, case.rate, case.burst, case.pages)
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        assert self._process.stdout is not None
        self.port = self._process.stdout.readline().strip()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate()

    def watched(self, name: str, command: Sequence[str]) -> tuple[object, ...]:
        """The row of a process that reads all pages."""
        try:
            done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=LIMIT_S, check=False)
            told = done.stdout.split()[-1:] if done.returncode == 0 else ["failed"]
        except subprocess.TimeoutExpired:
            told = [f"stopped after {LIMIT_S:.0f} s"]
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/seen") as answer:
            seen = json.load(answer)
        refused, sent = seen["refused"], seen["refused"] + seen["accepted"]
        shares = f"{100 * seen['used']:.1f}", refused, f"{100 * refused / max(1, sent):.1f}"
        return self._case.name, name, *told, f"{seen['seconds']:.1f}", *shares


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--with-dlt", action="store_true", help="let dlt take part, from an environment made for it")
    given = parser.parse_args()
    notes = NOTES
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(len(CASES)) as pool:
        folder, dlt = Path(name), None
        if given.with_dlt:
            try:
                dlt = environment_with_dlt(folder / "dlt")
            except (AssertionError, TooSlowError) as error:
                notes = f"{NOTES} Without dlt: {error}"
        measured = pool.map(lambda case: list(measure(case, folder, dlt)), CASES)
        rows = [row for each in measured for row in each]
    results.write("Reading within a vendor's rate limit", COLUMNS, rows, notes)


if __name__ == "__main__":
    main()
