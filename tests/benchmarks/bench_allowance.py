"""The allowance against a server with a strict bucket of 10,000 a minute and a burst of 2,000.

Server and clients are separate processes, one case at a time; about fifteen minutes. The same promises on simulated
time are in `tests/unit/pacing`. The comparison needs ``pip install aiolimiter httpx pyrate-limiter``.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from pathlib import Path

from tests.benchmarks import results
from tests.benchmarks.allowance_cases import CASES
from tests.benchmarks.allowance_server import Size

QUICK = ("known", "burst", "hidden", "shared")
COLUMNS = ("case", "goal", "result", "met", "seconds", "cores that others used")
NOTES = (
    "Ratio: from the first request to the last answer, as the server saw them, over (N - B) / r. The latency is the "
    "sandbox's fault `slow`, after the token was taken. Between the two runs without headers the bucket fills in "
    "real time. Others: 100 tasks with an httpx client each."
)


def rows_of(name: str, size: Size, *, quick: bool) -> list[tuple[object, ...]]:
    """The rows of one case, with the number of cores that other programs used."""
    began, busy_s, own_s = time.monotonic(), _busy_s(), _own_s()
    rows = []
    for row in CASES[name](size, quick=quick):
        print(row.case, row.result, sep=": ", file=sys.stderr)
        rows.append(row)
    others = (_busy_s() - busy_s - _own_s() + own_s) / (time.monotonic() - began)
    return [row.cells(max(0.0, others)) for row in rows]


def _busy_s() -> float:
    """CPU seconds of the whole machine since it started."""
    user, nice, system, _, _, *interrupts = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:9])
    return sum((user, nice, system, *interrupts)) / os.sysconf("SC_CLK_TCK")


def _own_s() -> float:
    """CPU seconds of this process and of its ended children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, epilog="Only a complete run is written to RESULTS.md.")
    parser.add_argument("--quick", action="store_true", help="a subset, in less than three minutes")
    parser.add_argument("--case", choices=CASES, action="append", help="only this case; repeatable")
    given = parser.parse_args()
    names = given.case or (QUICK if given.quick else list(CASES))
    rows = [row for name in names for row in rows_of(name, Size(), quick=given.quick)]
    size = Size()
    title = f"Allowance, {size.per_minute:,} requests a minute, burst {size.burst:,}"
    if names == list(CASES) and not given.quick:
        results.write(title, COLUMNS, rows, NOTES)
    else:
        print(*(f"| {' | '.join(map(str, row))} |" for row in [COLUMNS, ["---"] * len(COLUMNS), *rows]), sep="\n")


if __name__ == "__main__":
    main()
