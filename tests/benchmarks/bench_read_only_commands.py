"""Commands that only read the state, after small and large loads: their CPU time beside that of two imports.

The senders answer at once (`delta_load`). A tenth of the records is rejected. Each command runs in its own process,
as users' do, as does ``import polars, sqlalchemy``; its figure is the least of three.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.benchmarks import results
from tests.benchmarks.bench_small_files import FOLDER, step
from tests.benchmarks.delta_processes import IMPORTS, python, run

SIZES = (1_000, 100_000)
REPEATS = 3
NIGHTS = 5
COMMANDS = (
    ("--help",),
    ("runs",),
    ("show",),
    ("records", "list"),
    ("records", "show", "wms.items", "P000000"),
    ("trace", "P000001"),
    ("jobs", "list"),
    ("approve",),
    ("config", "show"),
)

CONFIG = (
    FOLDER
    + """\
      items:
        mode: append
        files: "ITEM_*.csv"
        key: [SKU]
        resource: product
        map: {sku: SKU, name: SKU, unitPrice: {from: PRICE, as: decimal}, currency: {const: EUR}}
jobs:
  nightly: {streams: [wms.items], schedule: {cron: "15 2 * * *", time_zone: Europe/Berlin}}
"""
)


def _rows(night: int, number: int) -> Iterator[str]:
    yield "SKU,PRICE\n"
    for each in range(night, number, NIGHTS):
        yield f"P{each:06},{'much' if each % 10 == 0 else each}\n"


def load(folder: Path, records: int) -> None:
    """A state in which *records* were read, in several runs."""
    (folder / "out").mkdir()
    (folder / "crossdock.yaml").write_text(CONFIG, encoding="utf-8")
    step(folder, "init")
    for night in range(NIGHTS):
        (folder / "out" / f"ITEM_{night}.csv").write_text("".join(_rows(night, records)), encoding="utf-8")
        step(folder, "sync", is_open=True)


def command(folder: Path, *arguments: str) -> list[str]:
    """A command of crossdock about *folder*."""
    return python("-m", "crossdock", "-C", folder / "crossdock.yaml", *arguments)


def measure(records: int, commands: Sequence[Sequence[str]] = COMMANDS) -> list[float]:
    """The CPU seconds of the two imports, and of each of *commands*: the least of some processes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        load(folder, records)
        processes = [IMPORTS, *(command(folder, *each) for each in commands)]
        return [min(run(process).cpu_s for _ in range(REPEATS)) for process in processes]


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    sizes = parser.parse_args().sizes
    names = ["import polars, sqlalchemy", *(" ".join(("crossdock", *command)) for command in COMMANDS)]
    found = [measure(size) for size in sizes]
    rows = [(name, *(f"{each:.2f} s" for each in figures)) for name, *figures in zip(names, *found, strict=True)]
    columns = ("process", *(f"{size:,} records" for size in sizes))
    results.write("Commands that only read", columns, rows, "CPU of a process, the least of three.")


if __name__ == "__main__":
    main()
