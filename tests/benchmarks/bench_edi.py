"""Reading EDI files, 945 and DESADV: segments a second by the CPU time of the process."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from pydantic import TypeAdapter
from tests.benchmarks import results

from crossdock.reading.formats.file_formats import FileFormat, read_rows

GOAL = 50_000  # segments a second
ITEMS = 10  # of each set
KINDS = {"945": {"kind": "x12", "layout": "x12/945"}, "DESADV": {"kind": "edifact", "layout": "edifact/DESADV"}}


def write(path: Path, segments: int, *, kind: str) -> int:
    """Write about *segments* segments in one interchange; return the number of items."""
    with path.open("w") as file:
        sets = 0
        for body in _bodies(segments, kind):
            if not sets:
                file.write(_BEGINS[kind])
            sets += 1
            file.write(_of_set(kind, sets, body))
        end = f"GE*{sets}*1~\nIEA*1*000000001~\n" if kind == "945" else f"UNZ+{sets}+1'\n"
        file.write(end)
    return sets * ITEMS


_ISA = f"ISA*00*{'':10}*00*{'':10}*ZZ*{'WAREHOUSE':15}*ZZ*{'SHOP':15}*261101*0800*U*00401*000000001*0*P*>~\n"
_BEGINS = {
    "945": f"{_ISA}GS*SW*WAREHOUSE*SHOP*20261101*0800*1*X*004010~\n",
    "DESADV": "UNA:+.? '\nUNB+UNOC:3+4000001000005:14+4000002000004:14+261101:0800+1'\n",
}


def _bodies(segments: int, kind: str) -> Iterator[list[str]]:
    number = 0
    while segments > 0:
        number += 1
        body = _x12(number) if kind == "945" else _edifact(number)
        segments -= len(body) + 2
        yield body


def _of_set(kind: str, number: int, body: list[str]) -> str:
    if kind == "945":
        return "~\n".join([f"ST*945*{number:04}", *body, f"SE*{len(body) + 2}*{number:04}", ""])
    return "'\n".join([f"UNH+{number}+DESADV:D:96A:UN", *body, f"UNT+{len(body) + 2}+{number}", ""])


def _x12(number: int) -> list[str]:
    head = [f"W06*F*ORD-{number}*20261101*SHP-{number}**PO-{number}", "N1*ST*Bolt and Nut*92*0017", "N3*Main St 1"]
    items = (
        (
            f"LX*{line}",
            f"MAN*GM*{number:016}{line:04}",
            f"N9*2I*1Z{number}{line}",
            f"W12*CC*10*10*0*EA**VN*SKU-{line}*L{line}",
        )
        for line in range(1, ITEMS + 1)
    )
    return [*head, "W27*M*UPSN*UPS Ground", *(segment for item in items for segment in item), "W03*100*22*LB"]


def _edifact(number: int) -> list[str]:
    head = [
        f"BGM+351+DES-{number}+9",
        "DTM+137:20261101:102",
        f"RFF+ON:ORD-{number}",
        "NAD+DP+4000003000003::9",
        "CPS+1",
    ]
    items = (
        (
            f"CPS+{line + 1}+1",
            f"GIN+BJ+{number:014}{line:04}",
            f"LIN+{line}++{4000001000000 + line}:EN",
            "QTY+12:10:PCE",
        )
        for line in range(1, ITEMS + 1)
    )
    return [*head, *(segment for item in items for segment in item)]


def measure(path: Path, rows: int, kind: str) -> float:
    """Seconds of CPU to read *path*, of which the number of rows is checked."""
    layout: FileFormat = TypeAdapter(FileFormat).validate_python(KINDS[kind])
    began = time.process_time()
    found = sum(frame.height for frame in read_rows(path, layout, name=path.name))
    assert found == rows, f"{found} rows instead of {rows}"
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--segments", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    table: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            path = Path(folder, f"{kind}.edi")
            rows = write(path, given.segments, kind=kind)
            best = min(measure(path, rows, kind) for _ in range(given.runs))
            speed = f"{given.segments / best:,.0f}"
            table.append((kind, f"{given.segments:,}", f"{rows:,}", f"{best:.2f}", speed, f"{GOAL:,}"))
    columns = ("file", "segments", "rows", "seconds of CPU", "segments a second", "goal")
    results.write("EDI files", columns, table, f"The best of {given.runs} runs; {ITEMS} items a set, ready layouts.")


if __name__ == "__main__":
    main()
