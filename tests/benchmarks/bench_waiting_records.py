"""Records that wait, were rejected or are gone: the CPU time that each of them costs in a sync with nothing to do.

The senders answer at once (`delta_load`). Each row compares a sync beside few such records with one beside many, so
that the start of a process is left out. ``listed again``: a new file names them all in the same version.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks import results
from tests.benchmarks.bench_small_files import FOLDER, step

SIZES = (2_000, 20_000)
FEW = 10
GOAL_MS = 0.05

STREAMS = """\
      items:
        mode: append
        files: "ITEM_*.csv"
        key: [SKU]
        resource: product
        map: {{sku: SKU, name: SKU}}
      lots:
        mode: {mode}
        files: "LOTS_*.csv"
        key: [LOT]
        resource: inventory_lot
        map: {{productId: {{ref: product, key: SKU}}, lotNumber: LOT, quantity: {{from: QTY, as: decimal}}}}
"""


@dataclass(frozen=True)
class Kind:
    """A kind of records that nothing happens to: how their rows are read, and what is wrong with them."""

    name: str
    mode: str = "append"
    quantity: str = "1"
    is_listed_again: bool = False


KINDS = (
    Kind("wait"),
    Kind("wait, listed again", "snapshot", is_listed_again=True),
    Kind("rejected", quantity="many"),
    Kind("rejected, listed again", "snapshot", "many", is_listed_again=True),
)


def _rows(kind: Kind, number: int) -> Iterator[str]:
    yield "LOT,SKU,QTY\n"
    for each in range(number):
        yield f"L{each:06},P{each:06},{kind.quantity}\n"


def write(folder: Path, kind: Kind, number: int, file: int) -> None:
    """The config, and a file with *number* records of *kind*."""
    (folder / "out").mkdir(parents=True, exist_ok=True)
    (folder / "crossdock.yaml").write_text(FOLDER + STREAMS.format(mode=kind.mode), encoding="utf-8")
    text = "".join(_rows(kind, number))
    (folder / "out" / f"LOTS_2026010{file}.csv").write_text(text, encoding="utf-8")


def idle_cpu_s(kind: Kind, number: int) -> float:
    """The CPU seconds of a sync that finds *number* records of *kind* as they were."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, kind, number, 1)
        step(folder, "init")
        step(folder, "sync", "--json", is_open=True)
        if kind.is_listed_again:
            write(folder, kind, number, 2)
        return step(folder, "sync", "--json", is_open=True).cpu_s


def row(kind: Kind, sizes: Sequence[int]) -> tuple[str, ...]:
    """For each of *sizes* the milliseconds that each record adds to a sync beside few of them."""
    start = idle_cpu_s(kind, FEW)
    return kind.name, *(f"{(idle_cpu_s(kind, size) - start) * 1_000 / (size - FEW):.3f} ms" for size in sizes)


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    sizes = parser.parse_args().sizes
    rows = [row(kind, sizes) for kind in KINDS]
    columns = ("records", *(f"each of {size:,}" for size in sizes))
    notes = f"CPU of a sync with nothing to do, without the start of a process. Goal: at most {GOAL_MS} ms."
    results.write("Records that nothing happens to", columns, rows, notes)


if __name__ == "__main__":
    main()
