"""Reading mainframe files by a copybook: rows a second of CPU time, and the memory that it takes."""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.benchmarks import results

from crossdock.reading.formats.fixed_width_files import read_fixed_width_rows
from crossdock.reading.formats.fixed_width_layout import FixedWidthFormat

GOAL = 100_000  # rows a second
COPYBOOK = """\
       01  ITEM-RECORD.
           05  SKU              PIC X(10).
           05  DESCR            PIC X(30).
           05  QTY              PIC S9(7)      COMP-3.
           05  PRICE            PIC S9(7)V99   COMP-3.
           05  ON-HAND          PIC S9(9)      COMP.
           05  BIN-NO           PIC 9(4)       COMP.
           05  RATE             PIC S9(3)V9(4).
           05  SINCE            PIC 9(8).
           05  FILLER           PIC X(10).
           05  BINS             PIC 9(2).
           05  BIN              OCCURS 0 TO 4 TIMES DEPENDING ON BINS.
               10  BIN-CODE     PIC X(6).
               10  BIN-QTY      PIC S9(5)      COMP-3.
"""
LINE_ENDS = {"fixed length, full tables": "none", "RDW, counted tables": "rdw"}


def layout(folder: Path, line_end: str) -> FixedWidthFormat:
    """The layout of `COPYBOOK`, which it writes to *folder*."""
    (folder / "ITEM.cpy").write_text(COPYBOOK)
    copybook: dict[str, Any] = {"file": str(folder / "ITEM.cpy"), "tables": "full" if line_end == "none" else "counted"}
    return FixedWidthFormat.model_validate(
        {"kind": "fixed_width", "encoding": "cp037", "line_end": line_end, "copybook": copybook}
    )


def write(path: Path, rows: int, line_end: str) -> None:
    """Write *rows* records, of at most four elements each."""
    unused = bytes.fromhex("404040404040" + "00000C") * 4
    with path.open("wb") as file:
        for row in range(rows):
            bins, price = row % 5, (row * 7919) % 199_999 - 99_999
            sign = "D" if price < 0 else "C"
            head = f"{row:010d}{f'Thing {row}':30}".encode("cp037")
            head += bytes.fromhex(f"{row % 1000:07d}C{abs(price):09d}{sign}") + row.to_bytes(4, "big")
            head += (row % 9999).to_bytes(2, "big") + f"{row % 999:06d}".encode("cp037") + b"\xd5"
            head += f"20261101{'':10}{bins:02d}".encode("cp037")
            table = b"".join(f"B{place:05d}".encode("cp037") + bytes.fromhex("00012C") for place in range(bins))
            data = head + (table + unused[len(table) :] if line_end == "none" else table)
            file.write(data if line_end == "none" else (len(data) + 4).to_bytes(2, "big") + b"\0\0" + data)


def measure(path: Path, rows: int, form: FixedWidthFormat) -> float:
    """Seconds of CPU time to read *path*, of which the number of rows is checked."""
    began = time.process_time()
    found = sum(frame.height for frame in read_fixed_width_rows(path, form, name=path.name))
    assert found == rows, f"{found} rows instead of {rows}"
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    table: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case, line_end in LINE_ENDS.items():
            for rows in (given.rows, 5 * given.rows):
                path = folder / f"{len(table)}.dat"
                write(path, rows, line_end)
                form = layout(folder, line_end)
                best = min(measure(path, rows, form) for _ in range(given.runs))
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
                table.append((case, f"{rows:,}", f"{best:.2f}", f"{rows / best:,.0f}", f"{GOAL:,}", f"{peak:,} MiB"))
    columns = ("file", "rows", "seconds of CPU time", "rows a second", "goal", "peak memory so far")
    note = f"The best of {given.runs} runs; 17 columns: packed, binary, zoned and text."
    results.write("Files by a copybook", columns, table, note)


if __name__ == "__main__":
    main()
