"""A migration of lots, bins and products: the memory of each command, and how many requests a reconciliation takes.

90 % of the records are lots, 6 % bins and 4 % products, from three CSV files. Sandbox and commands are processes of
their own. The sandbox's limit is high: how well a limit is used is the subject of other benchmarks.

With ``--answered`` the loads do not wait for the sandbox: their senders answer at once (`delta_load`), and its database
is filled from the state. What reads the platform is the same.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
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
            {
                "code": "BIN",
                "warehouse": {"const": "HAM1"},
                "zone": "ZONE",
                "capacity": {"from": "CAPACITY", **decimal},
            },
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

    def load(self, *command: str, answered: bool) -> tuple[Step, dict[str, Any]]:
        """As `step`, of a command that delivers all records."""
        if not answered:
            return self.step(*command)
        found = self.step(*command, module="tests.benchmarks.delta_load")
        self._fill()
        return found

    def _fill(self) -> None:
        """Give the platform the records that the state has bound."""
        at = "2026-01-01T00:00:00.000000Z"
        times = f'"createdAt":"{at}","updatedAt":"{at}"'
        with closing(sqlite3.connect(self.folder / "state.db")) as state:
            bound = state.execute("SELECT resource, namespace || ':' || key, target_id, payload FROM bindings")
            stored = (
                (
                    target_id, self.sandbox.tenant, resource, name, at, number,
                    f'{{"id":"{target_id}",{times},{payload[1:]}',
                )
                for number, (resource, name, target_id, payload) in enumerate(bound, 1)
            )  # fmt: skip
            with closing(sqlite3.connect(self.folder / "sandbox" / "sandbox.sqlite3")) as platform, platform:
                platform.executemany("INSERT INTO stored VALUES (?, ?, ?, ?, ?, ?, ?)", stored)

    def step(self, *command: str, pages: int = 0, module: str = "crossdock") -> tuple[Step, dict[str, Any]]:
        """Run a command that must succeed; its figures, and what it said as JSON."""
        before, began = self.sandbox.requests(), time.monotonic()
        arguments = ["-C", str(self.path), *command, "--json"]
        with mock.patch.dict(os.environ, {"CROSSDOCK_API_KEY": self.sandbox.api_key}):
            done = measured(module, arguments, cwd=str(self.folder), within_s=WITHIN_S)
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


def plain_sync(folder: Path, records: int, *, answered: bool = False) -> Step:
    """A first sync."""
    with project(folder, Sizes.of(records)) as made:
        step, report = made.load("sync", answered=answered)
        balance(report)
        assert report["requests"] == records, report["requests"]
        return step


def migration(folder: Path, records: int, *, answered: bool = False) -> list[Step]:
    """A load in waves, a second one, the reconciliation, and the plan of an undo."""
    sizes = Sizes.of(records)
    with project(folder, sizes) as made:
        load, document = made.load("migrate", "load", answered=answered)
        assert sum(each["report"]["requests"] for each in document["runs"]) == records
        for each in document["runs"]:
            balance(each["report"])
        again, document = made.step("migrate", "load")
        assert sum(each["report"]["requests"] for each in document["runs"]) == 0
        reconciled, document = made.step("migrate", "reconcile", pages=sizes.pages)
        assert sum(document["compared"].values()) == records
        assert document["differences"] == []
        assert document["requests"] == reconciled.requests <= ceil(REQUESTS_PER_PAGE * sizes.pages)
        undo, document = made.step("migrate", "undo", pages=sizes.pages + 2)  # orders and invoices may name products
        assert document["operations"] == {"delete": records}
    return [load, replace(again, name="migrate load, again"), reconciled, undo]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--answered", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, records, answered = Path(name), given.records, given.answered
        steps = migration(folder / "migration", records, answered=answered)
        steps.insert(0, plain_sync(folder / "sync", records, answered=answered))
    columns = "command", "seconds", f"peak, MB (goal {MEMORY_MB})", "requests", f"per page (goal {REQUESTS_PER_PAGE})"
    notes = f"{records:,} records, {PAGE:,} a page. Seconds are those of a machine that does other work as well."
    if answered:
        notes += " The loads' requests were answered at once, without the sandbox."
    results.write("A migration of lots, bins and products", columns, [each.row for each in steps], notes)


if __name__ == "__main__":
    main()
