"""A migration of lots, bins and products: the memory of each command, and how many requests a reconciliation takes.

90 % of the records are lots, 6 % bins and 4 % products, from three CSV files. Sandbox and commands are processes of
their own. The sandbox's limit is high: how well a limit is used is the subject of other benchmarks.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import tempfile
import time
from collections.abc import Iterable
from contextlib import contextmanager
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any
from unittest import mock

import yaml
from tests.benchmarks import results
from tests.e2e.project_folder import UNPACED, SandboxProcess, balance
from tests.memory import measured

RECORDS = 1_000_000
MEMORY_MB = 600
REQUESTS_PER_PAGE = 1.05
PAGE = 1_000
WITHIN_S = 3 * 3_600.0


@dataclass(frozen=True)
class Step:
    """What one command took.

    Attributes:
        requests: That the sandbox counted.
        pages: Of the records that the command reads at the platform.
    """

    name: str
    seconds: float
    peak_mb: int
    requests: int
    pages: int = 0

    @property
    def row(self) -> tuple[str, ...]:
        per_page = f"{self.requests / self.pages:.3f}" if self.pages else ""
        return self.name, f"{self.seconds:.0f}", f"{self.peak_mb}", f"{self.requests:,}", per_page


@dataclass(frozen=True)
class Sizes:
    """How many records of each kind."""

    products: int
    bins: int
    lots: int

    @classmethod
    def of(cls, records: int) -> Sizes:
        products, bins = max(1, records * 4 // 100), max(1, records * 6 // 100)
        return cls(products, bins, records - products - bins)

    @property
    def pages(self) -> int:
        return sum(ceil(each / PAGE) for each in (self.products, self.bins, self.lots))


def write(folder: Path, sizes: Sizes) -> None:
    """The three files."""
    _write(
        folder / "products.csv",
        "SKU NAME PRICE",
        ((f"P{n:07}", f"Product {n}", f"{n % 900}.95") for n in range(sizes.products)),
    )
    _write(
        folder / "bins.csv", "BIN ZONE CAPACITY", ((f"B{n:07}", f"Z{n % 40}", n % 500 + 1) for n in range(sizes.bins))
    )
    lots = (
        (
            f"L{n:09}",
            f"P{n * 7 % sizes.products:07}",
            f"B{n * 11 % sizes.bins:07}",
            n % 1_000 + 1,
            f"2027{n % 12 + 1:02}15",
        )
        for n in range(sizes.lots)
    )
    _write(folder / "lots.csv", "LOTNO SKU BIN QTY EXPIRY", lots)


def _write(path: Path, header: str, rows: Iterable[Iterable[object]]) -> None:
    with path.open("w", newline="") as out:
        writer = csv.writer(out, delimiter=";", lineterminator="\n")
        writer.writerow(header.split())
        writer.writerows(rows)


def config(folder: Path, sandbox: SandboxProcess) -> Path:
    """A config that loads the files in three waves."""
    decimal, date = {"as": "decimal"}, {"as": "date", "format": "%Y%m%d"}
    streams = {
        "products": _stream(
            "products.csv", "SKU", "product",
            {"sku": "SKU", "name": "NAME", "unitPrice": {"from": "PRICE", **decimal}, "currency": {"const": "EUR"}},
        ),
        "bins": _stream(
            "bins.csv", "BIN", "warehouse_bin",
            {"code": "BIN", "warehouse": {"const": "HAM1"}, "zone": "ZONE", "capacity": {"from": "CAPACITY", **decimal}},
        ),
        "lots": _stream(
            "lots.csv", "LOTNO", "inventory_lot",
            {
                "productId": {"ref": "product", "key": "SKU"},
                "lotNumber": "LOTNO",
                "binId": {"ref": "warehouse_bin", "key": "BIN"},
                "quantity": {"from": "QTY", **decimal},
                "expiresOn": {"from": "EXPIRY", **date},
            },
        ),
    }  # fmt: skip
    document = {
        "platform": {
            "base_url": sandbox.base_url,
            "tenant": sandbox.tenant,
            "auth": {"kind": "api_key", "token": "env:CROSSDOCK_API_KEY"},
            "rate": {"per_minute": UNPACED.per_minute, "burst": UNPACED.burst},
        },
        "state": f"sqlite:///{folder / 'state.db'}",
        "connections": {
            "wms": {"kind": "folder_warehouse", "path": str(folder / "exports"), "settle_s": 0, "streams": streams}
        },
        "migration": {"waves": {name: {"streams": [f"wms.{name}"]} for name in streams}},
    }
    path = folder / "crossdock.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


def _stream(file: str, key: str, resource: str, mapped: dict[str, Any]) -> dict[str, Any]:
    form = {"kind": "delimited", "delimiter": ";"}
    return {"files": file, "format": form, "mode": "snapshot", "key": [key], "resource": resource, "map": mapped}


@dataclass(frozen=True)
class Project:
    """An empty platform and a project beside it."""

    folder: Path
    path: Path
    sandbox: SandboxProcess

    def step(self, *command: str, pages: int = 0) -> tuple[Step, dict[str, Any]]:
        """Run a command that must succeed; its figures, and what it said as JSON."""
        before, began = self.sandbox.requests(), time.monotonic()
        arguments = ["-C", str(self.path), *command, "--json"]
        with mock.patch.dict(os.environ, {"CROSSDOCK_API_KEY": self.sandbox.api_key}):
            done = measured("crossdock", arguments, cwd=str(self.folder), within_s=WITHIN_S)
        assert done.code == 0, f"{done.err[-3_000:]}{done.out[-3_000:]}"
        seconds, requests = time.monotonic() - began, self.sandbox.requests() - before
        return Step(" ".join(command), seconds, done.peak_mb, requests, pages), json.loads(done.out)


@contextmanager
def project(folder: Path, sizes: Sizes) -> Iterator[Project]:
    (folder / "exports").mkdir(parents=True)
    write(folder / "exports", sizes)
    with SandboxProcess(folder / "sandbox", UNPACED) as sandbox:
        made = Project(folder, config(folder, sandbox), sandbox)
        made.step("init")
        yield made


def plain_sync(folder: Path, records: int) -> Step:
    """A first sync."""
    with project(folder, Sizes.of(records)) as made:
        step, report = made.step("sync")
        balance(report)
        assert report["requests"] == records, report["requests"]
        return step


def migration(folder: Path, records: int) -> list[Step]:
    """A load in waves, a second one, the reconciliation, and the plan of an undo."""
    sizes = Sizes.of(records)
    with project(folder, sizes) as made:
        load, document = made.step("migrate", "load")
        assert sum(each["report"]["requests"] for each in document["runs"]) == records
        for each in document["runs"]:
            balance(each["report"])
        again, document = made.step("migrate", "load")
        assert sum(each["report"]["requests"] for each in document["runs"]) == 0
        reconciled, document = made.step("migrate", "reconcile", pages=sizes.pages)
        assert sum(document["compared"].values()) == records
        assert document["differences"] == []
        assert document["requests"] == reconciled.requests <= ceil(REQUESTS_PER_PAGE * sizes.pages)
        undo, document = made.step("migrate", "undo", pages=sizes.pages)
        assert document["operations"] == {"delete": records}
    return [load, replace(again, name="migrate load, again"), reconciled, undo]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=RECORDS)
    records = parser.parse_args().records
    with tempfile.TemporaryDirectory() as folder:
        steps = [plain_sync(Path(folder, "sync"), records), *migration(Path(folder, "migration"), records)]
    columns = "command", "seconds", f"peak, MB (goal {MEMORY_MB})", "requests", f"per page (goal {REQUESTS_PER_PAGE})"
    notes = f"{PAGE:,} records a page. Seconds are those of a machine that does other work as well."
    results.write(f"A migration of {records:,} lots, bins and products", columns, [each.row for each in steps], notes)


if __name__ == "__main__":
    main()
