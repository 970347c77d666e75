"""Many small files in a folder, with one new record each: the CPU time of a sync for each file, however many there are.

The senders answer at once (`delta_load`), so that reading, comparing, planning and the state are what is measured. The
second sync finds nothing new among the same files, and the third one more file.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks import results
from tests.benchmarks.delta_processes import python, run

SIZES = (500, 2_000, 8_000, 20_000)
WITHIN_S = 3_600.0
GOAL_MS = 3.0
BEGAN = 1_772_000_000  # when the first file was written; the others follow second by second

FOLDER = """\
platform: {base_url: "http://127.0.0.1:1", tenant: acme, auth: {kind: api_key, token: env:BENCH_KEY}}
state: sqlite:///state.db
connections:
  wms:
    kind: folder_warehouse
    path: out
    settle_s: 0
    streams:
"""
"""A config up to its streams, which read files of a folder."""

CONFIG = (
    FOLDER
    + """\
      products:
        mode: append
        files: "PROD_*.csv"
        key: [SKU]
        resource: product
        map: {sku: SKU, name: NAME, unitPrice: {from: PRICE, as: decimal}, currency: {const: EUR}}
"""
)


@dataclass(frozen=True)
class Step:
    """A command: how many records it created, and its CPU seconds."""

    created: int
    cpu_s: float


def write(folder: Path, numbers: range) -> None:
    """A file for each number, each changed one second after the one before."""
    (folder / "out").mkdir(parents=True, exist_ok=True)
    (folder / "crossdock.yaml").write_text(CONFIG, encoding="utf-8")
    for number in numbers:
        path = folder / "out" / f"PROD_{number:06}.csv"
        path.write_text(f"SKU,NAME,PRICE\nP{number:06},Product {number},{number % 90}.50\n", encoding="utf-8")
        os.utime(path, (BEGAN + number, BEGAN + number))


def command(folder: Path, *arguments: str) -> list[str]:
    """A command of crossdock about *folder*, without a platform."""
    return python("-m", "tests.benchmarks.delta_load", "-C", folder / "crossdock.yaml", *arguments)


def step(folder: Path, *arguments: str, is_open: bool = False) -> Step:
    """Run a command to its end; it leaves records that wait or are rejected if it *is_open*."""
    spent = run(command(folder, *arguments), limit_s=WITHIN_S, exit_code=int(is_open))
    return Step(created(spent.told), spent.cpu_s)


def created(told: str) -> int:
    """How many records a command has created."""
    return int(told.partition('"created": ')[2].partition(",")[0].strip(" }\n") or 0)


def measure(folder: Path, files: int) -> tuple[Step, Step, Step, Step]:
    """The creation of the state, the sync of all files, that of no new file, and that of one more."""
    write(folder, range(files))
    first = step(folder, "init"), step(folder, "sync", "--json"), step(folder, "sync", "--json")
    write(folder, range(files, files + 1))
    return *first, step(folder, "sync", "--json")


def row(files: int, steps: Sequence[Step]) -> tuple[str, ...]:
    start, first, none, more = (each.cpu_s for each in steps)
    each_ms = (first - start) * 1_000 / files
    return f"{files:,}", f"{first:.1f} s", f"{each_ms:.2f} ms", f"{none:.2f} s", f"{more:.2f} s"


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    rows = []
    for files in parser.parse_args().sizes:
        with tempfile.TemporaryDirectory() as folder:
            steps = measure(Path(folder), files)
            assert [each.created for each in steps] == [0, files, 0, 1]
            rows.append(row(files, steps))
    columns = ("files of one row", "CPU of the first sync", "for each file", "of a sync without a new file", "with one")
    notes = f"Without the start of a process. Goal: at most {GOAL_MS:.0f} ms for each of 20,000 files."
    results.write("Many small files", columns, rows, notes)


if __name__ == "__main__":
    main()
