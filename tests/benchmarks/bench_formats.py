"""Reading XML, JSON, Parquet and Arrow: rows a second of CPU time, next to a plain parser, and memory."""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import TypeAdapter
from tests.benchmarks import results
from tests.memory import measured

from crossdock.reading.formats.file_formats import FileFormat, read_rows

_XML = {
    "kind": "xml", "record": "/Items/Item", "count": "/Items/@count",
    "columns": {
        "ID": "@id", "SKU": "Sku", "NAME": "Name", "QTY": "Qty", "PRICE": "Price", "CITY": "Address/City",
    },
}  # fmt: skip


def _object(row: int) -> dict[str, Any]:
    return {
        "id": row, "sku": f"SKU-{row:07}", "name": f"Bolt & nut {row}", "qty": row % 17, "price": row % 99 + 0.5,
        "address": {"city": f"Town {row % 7}"},
    }  # fmt: skip


def _write_xml(path: Path, rows: int) -> None:
    with path.open("w") as file:
        file.write(f'<?xml version="1.0"?>\n<Items count="{rows}">\n')
        for row in range(rows):
            file.write(
                f'<Item id="{row}"><Sku>SKU-{row:07}</Sku><Name>Bolt &amp; nut {row}</Name><Qty>{row % 17}</Qty>'
                f"<Price>{row % 99}.50</Price><Address><City>Town {row % 7}</City></Address></Item>\n"
            )
        file.write("</Items>\n")


def _write_document(path: Path, rows: int) -> None:
    with path.open("w") as file:
        file.write('{"data": {"items": [')
        for row in range(rows):
            file.write(f"{',' if row else ''}\n{json.dumps(_object(row))}")
        file.write("]}}\n")


def _write_lines(path: Path, rows: int) -> None:
    with path.open("w") as file:
        file.writelines(f"{json.dumps(_object(row))}\n" for row in range(rows))


def _table(rows: int) -> pl.DataFrame:
    row = pl.int_range(rows)
    town = pl.struct(city=pl.format("Town {}", row % 7))
    return pl.select(
        id=row, sku=pl.format("SKU-{}", row.cast(pl.String).str.zfill(7)), name=pl.format("Bolt & nut {}", row),
        qty=row % 17, price=(row % 99 + pl.lit("0.50").cast(pl.Decimal(12, 2))), address=town,
    )  # fmt: skip


def _write_parquet(path: Path, rows: int) -> None:
    _table(rows).unnest("address").write_parquet(path)


def _write_parquet_objects(path: Path, rows: int) -> None:
    _table(rows).write_parquet(path)


def _write_arrow(path: Path, rows: int) -> None:
    _table(rows).unnest("address").write_ipc(path, compression="zstd")


def _plain_parquet(path: Path) -> int:
    return pl.read_parquet(path).height


def _plain_arrow(path: Path) -> int:
    return pl.read_ipc(path).height


def _plain_xml(path: Path) -> int:
    return sum(element.tag == "Item" for _, element in ET.iterparse(path, events=("end",)))


def _plain_document(path: Path) -> int:
    return len(json.loads(path.read_bytes())["data"]["items"])


def _plain_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(isinstance(json.loads(line), dict) for line in file)


@dataclass(frozen=True)
class Case:
    layout: dict[str, Any]
    write: Callable[[Path, int], None]
    plain: Callable[[Path], int]
    goal: int | None  # rows a second


CASES = {
    "XML": Case(_XML, _write_xml, _plain_xml, 100_000),
    "JSON document": Case({"kind": "json", "records": "data.items"}, _write_document, _plain_document, None),
    "JSON Lines": Case({"kind": "json_lines"}, _write_lines, _plain_lines, 300_000),
    "Parquet": Case({"kind": "parquet"}, _write_parquet, _plain_parquet, None),
    "Parquet as objects": Case({"kind": "parquet", "objects": True}, _write_parquet_objects, _plain_parquet, None),
    "Arrow": Case({"kind": "arrow"}, _write_arrow, _plain_arrow, None),
}


def read(path: Path, name: str) -> int:
    """The number of rows of a file of the case *name*."""
    form = TypeAdapter[FileFormat](FileFormat).validate_python(CASES[name].layout)
    return sum(frame.height for frame in read_rows(path, form, name=path.name, batch_rows=10_000))


def cpu_s(read_file: Callable[[], int], rows: int) -> float:
    """Seconds of CPU time for a file, with those of its own processes; the number of its rows is checked."""
    began = _used_s()
    found = read_file()
    assert found == rows, f"{found} rows instead of {rows}"
    return _used_s() - began


def _used_s() -> float:
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def peak_mb(path: Path, name: str) -> int:
    """The most memory of the process that reads, or of the one that it starts."""
    done = measured("tests.benchmarks.bench_formats", ["--read", str(path), name], cwd=str(Path.cwd()))
    return max(done.peak_mb, int(done.out.split()[1]) >> 10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--read", nargs=2, metavar=("FILE", "CASE"), help="only read a file, to measure its memory")
    given = parser.parse_args()
    if given.read:
        rows = read(Path(given.read[0]), given.read[1])
        sys.stdout.write(f"{rows} {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss}\n")
        return
    table: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, case in CASES.items():
            path, tenfold = Path(folder, "file"), Path(folder, "tenfold")
            case.write(path, given.rows)
            case.write(tenfold, given.rows * 10)
            best = min(cpu_s(lambda: read(path, name), given.rows) for _ in range(given.runs))  # noqa: B023  called at once
            plain = min(cpu_s(lambda: case.plain(path), given.rows) for _ in range(given.runs))  # noqa: B023  called at once
            goal = "" if case.goal is None else f"{case.goal:,}"
            memory = f"{peak_mb(path, name)}, {peak_mb(tenfold, name)}"
            ten = given.rows * 10 / cpu_s(lambda: read(tenfold, name), given.rows * 10)  # noqa: B023  called at once
            speeds = f"{given.rows / best:,.0f}", f"{ten:,.0f}", goal, f"{given.rows / plain:,.0f}"
            table.append((name, f"{given.rows:,}", *speeds, memory))
    columns = (
        "file",
        "rows",
        "rows a second",
        "and of ten times the rows",
        "goal",
        "rows a second, plain parser",
        "peak MB, and of ten times the rows",
    )
    notes = f"The best of {given.runs} runs, by CPU time; 6 values a row. Plain: `iterparse`, `json.loads`, polars."
    results.write("Files of XML, JSON, Parquet and Arrow", columns, table, notes)


if __name__ == "__main__":
    main()
