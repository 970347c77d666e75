"""Reading fixed-width files strictly: rows a second, and next to lines that polars only splits."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
from tests.benchmarks import results

from crossdock.reading.formats.fixed_width_files import read_fixed_width_rows
from crossdock.reading.formats.fixed_width_layout import FixedWidthFormat

GOAL = 500_000  # rows a second
PLAIN: dict[str, Any] = {
    "SKU": {"at": 1, "length": 10},
    "NAME": {"at": 11, "length": 30},
    "QTY": {"at": 41, "length": 8, "decimals": 0, "sign": "trailing"},
    "PRICE": {"at": 49, "length": 9, "decimals": 2, "sign": "overpunch"},
    "BIN": {"at": 58, "length": 8},
    "DAY": {"at": 66, "length": 8},
}
TYPES: dict[str, Any] = {
    "header": {"code": "H", "columns": {"ORDER": {"at": 2, "length": 9}}, "length": 80},
    "line": {
        "code": "L",
        "parent": "header",
        "columns": {name: {**each, "at": each["at"] + 1} for name, each in PLAIN.items()},
    },
    "trailer": {
        "code": "T",
        "once": "last",
        "columns": {
            "LINES": {"at": 2, "length": 9, "decimals": 0},
            "TOTAL": {"at": 11, "length": 18, "decimals": 2, "sign": "trailing"},
        },
        "counts": {"LINES": ["line"]},
        "sums": {"TOTAL": "line.PRICE"},
    },
}
LAYOUTS = {
    "one type": {"kind": "fixed_width", "columns": PLAIN, "length": 80},
    "header, line and trailer, with count and sum": {
        "kind": "fixed_width", "record_type": {"length": 1}, "record_types": TYPES, "records": "line", "length": 81,
    },
}  # fmt: skip
_MARKS = "{ABCDEFGHI", "}JKLMNOPQR"


def write(path: Path, rows: int, *, typed: bool) -> None:
    """Write *rows* lines; with *typed*, an order's header before each four, and a trailer."""
    total, first = 0, "L" if typed else ""
    with path.open("w") as file:
        for row in range(rows):
            price = (row * 7919) % 199_999 - 99_999
            total += price
            digits = f"{abs(price):09d}"
            digits = digits[:-1] + _MARKS[price < 0][int(digits[-1])]
            if typed and row % 4 == 0:
                file.write(f"H{row:09d}".ljust(80) + "\n")
            text = f"{row:010d}{f'Thing {row}':30}{row % 1000:7d}{'+- '[row % 3]}{digits}{f'B{row % 999}':8}20261101"
            file.write(f"{first}{text:80}\n")
        if typed:
            file.write(f"T{rows:09d}{abs(total):017d}{'-' if total < 0 else ' '}".ljust(81) + "\n")


def measure(path: Path, rows: int, layout: dict[str, Any]) -> float:
    """Seconds to read *path*, of which the number of rows is checked."""
    form = FixedWidthFormat.model_validate(layout)
    return _timed(lambda: sum(frame.height for frame in read_fixed_width_rows(path, form, name=path.name)), rows)


def _timed(read: Callable[[], int], rows: int) -> float:
    began = time.perf_counter()
    found = read()
    assert found == rows, f"{found} rows instead of {rows}"
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    table: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, layout in LAYOUTS.items():
            path = Path(folder, f"{len(table)}.txt")
            write(path, given.rows, typed="record_types" in layout)
            split = pl.scan_csv(path, has_header=False, infer_schema=False, separator="\x01", quote_char=None)
            lines = split.select(pl.len()).collect().item()
            only_lines = min(_timed(lambda: split.collect().height, lines) for _ in range(given.runs))  # noqa: B023  called at once
            best = min(measure(path, given.rows, layout) for _ in range(given.runs))
            table.append(
                (name, f"{given.rows:,}", f"{best:.2f}", f"{given.rows / best:,.0f}", f"{GOAL:,}", f"{only_lines:.2f}")
            )
    columns = ("file", "rows", "seconds", "rows a second", "goal", "seconds to split lines, polars")
    results.write(
        "Fixed-width files", columns, table, f"The best of {given.runs} runs; 80 characters a line, 6 columns."
    )


if __name__ == "__main__":
    main()
