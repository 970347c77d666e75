"""A project that migrates retail exports to a sandbox which has records of others already."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import yaml
from tests.chaos import processes
from tests.chaos.failing import FAILPOINTS, NOTE_VARIABLE
from tests.chaos.killed_syncs import FAILING
from tests.chaos.processes import CROSSDOCK
from tests.chaos.retail_exports import RetailExports
from tests.e2e.project_folder import LISTS, UNPACED, SandboxProcess, balance
from tests.ended_commands import Done
from tests.waiting import eventually

JUDGE = Path(__file__).with_name("retail_judge.py")
WITHIN_S = 1_800.0
Records = dict[str, list[dict[str, Any]]]
MIGRATION = """
customers:
  source: sales
  mode: append
  key: [CustomerID]
  order_by: [InvoiceDate]
  skip: {no_customer: {field: CustomerID, empty: true}}
  resource: customer
  adopt: external_id
  map: {name: {template: "Customer {CustomerID} ({Country})"}}
products:
  source: sales
  mode: append
  key: [StockCode]
  order_by: [InvoiceDate]
  skip:
    cancelled: {field: InvoiceNo, starts_with: "C"}
    no_description: {field: Description, empty: true}
  resource: product
  adopt: {by: sku}
  map: {sku: StockCode, name: Description, active: {const: true}}
invoices:
  source: sales
  mode: append
  key: [InvoiceNo]
  group_by: [InvoiceNo]
  skip:
    cancelled: {field: InvoiceNo, starts_with: "C"}
    no_customer: {field: CustomerID, empty: true}
  resource: invoice
  map:
    customerId: {ref: customer, key: CustomerID}
    currency: {const: GBP}
    items:
      each:
        productId: {ref: product, key: StockCode}
        quantity: {from: Quantity, as: decimal}
        unitPrice: {from: UnitPrice, as: decimal}
"""
KILLING = ("batch_read", "intents_added", "committed", "sent", "settle_written", "settled", "stream_finished")


@dataclass
class RetailStage:
    """The project in *folder*, and its platform.

    Attributes:
        others: Ids of records of others; they are left out when the migration is judged.
        happened: What was done, for the report.
        options: Of each load.
    """

    folder: Path
    sandbox: SandboxProcess
    exports: RetailExports
    random: Random
    others: set[str] = field(default_factory=set)
    happened: Counter[str] = field(default_factory=Counter)
    options: tuple[str, ...] = ()

    def begin(self) -> None:
        """Write the config and create the state."""
        streams = yaml.safe_load(MIGRATION)
        sales = {
            "files": "*.csv.gz",
            "order": "any",  # an invoice is in one file, and the rows of the others say which is the newest
            "format": {"kind": "delimited", "delimiter": ","},
            "columns": {"CustomerID": {"strip_suffix": ".0"}},
        }
        document = {
            "platform": {
                "base_url": self.sandbox.base_url,
                "tenant": self.sandbox.tenant,
                "auth": {"kind": "api_key", "token": "env:CROSSDOCK_API_KEY"},
                "rate": {"per_minute": UNPACED.per_minute, "burst": UNPACED.burst},
            },
            "state": f"sqlite:///{self.state}",
            "connections": {
                "shop": {
                    "kind": "folder_warehouse",
                    "path": str(self.exports.folder),
                    "settle_s": 0,
                    "sources": {"sales": sales},
                    "streams": streams,
                }
            },
            "migration": {"name": "retail", "waves": {name: {"streams": [f"shop.{name}"]} for name in streams}},
        }
        (self.folder / "c.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
        self.run("init")

    @property
    def state(self) -> Path:
        return self.folder / "state.db"

    # ---- commands

    def command(self, *arguments: str, program: tuple[str, ...] = CROSSDOCK) -> Done:
        command = [*program, "-C", str(self.folder / "c.yaml"), *arguments]
        return processes.finish(command, self._environment(), WITHIN_S)

    def run(self, *arguments: str, exit_codes: frozenset[int] = frozenset({0})) -> Done:
        """Run a command that must end with one of these exit codes."""
        done = self.command(*arguments)
        said = f"{' '.join(arguments)}: exit {done.exit_code}\n{done.stderr[-4_000:]}{done.stdout[-4_000:]}"
        assert done.exit_code in exit_codes, said
        return done

    def _environment(self) -> dict[str, str]:
        key = {"CROSSDOCK_API_KEY": self.sandbox.api_key, NOTE_VARIABLE: str(self.folder / "note")}
        return {**os.environ, **key}

    def load(self, exit_codes: frozenset[int] = frozenset({0})) -> int:
        """A load that is not killed, and delivers everything unless it may end otherwise; returns its requests."""
        done = self.run("migrate", "load", "--json", *self.options, exit_codes=exit_codes)
        for each in done.document["runs"]:
            balance(each["report"])
        return sum(each["report"]["requests"] for each in done.document["runs"])

    def reconciled(self, *options: str) -> dict[str, Any]:
        """What a reconciliation finds, completely."""
        arguments = ("migrate", "reconcile", "--json", "--limit", "1000000", *options)
        return self.run(*arguments, exit_codes=frozenset({0, 1})).document

    # ---- kills

    def struck(self) -> None:
        """A load that is killed at a failpoint, if it comes by."""
        name = self.random.choice(KILLING)
        point = f"{name}:{self.random.randint(1, 3)}:{self.random.choice(FAILPOINTS[name].sides)}"
        done = self.command("migrate", "load", *self.options, program=("-P", FAILING, point))
        self._ended(done.exit_code, done.stderr)

    def killed(self, effects: int) -> None:
        """A load that is killed from outside once there are so many effects."""
        out = self.folder / "out"
        command = [*CROSSDOCK, "-C", str(self.folder / "c.yaml"), "migrate", "load", *self.options]
        process = processes.start(command, self._environment(), out, out)
        eventually(lambda: process.exitcode is not None or self.sandbox.has_effects(effects), WITHIN_S)
        process.kill()
        process.join()
        assert process.exitcode is not None
        self._ended(process.exitcode, out.read_text())

    def _ended(self, exit_code: int, said: str) -> None:
        is_killed = exit_code == -signal.SIGKILL
        assert is_killed or exit_code == 0, f"exit {exit_code}: {said[-4_000:]}"
        self.happened["kills" if is_killed else "ended before the kill"] += 1
        self.sandbox.settle()

    def kill(self, times: int, effects: int) -> None:
        """Kill *times* loads: half of them from outside at random places of so many effects, the others soon after."""
        before = len(self.sandbox.effects())
        for point in sorted(self.random.sample(range(1, effects * 9 // 10), -(-times // 2))):
            self.killed(before + point)
            if self.happened["kills"] < times:
                self.struck()
        assert self.happened["kills"] == times, f"{dict(self.happened)} of {times} planned"

    # ---- the platform and the state

    def records(self) -> Records:
        """All records of the platform, of all resources, as it lists them."""
        return {name: sorted(self.sandbox.stored(name), key=lambda each: each["id"]) for name in LISTS}

    def judge(self) -> None:
        """The judge finds what the files say, besides the records of others."""
        dump = self.folder / "dump.json"
        document = {"records": self.records(), "others": sorted(self.others)}
        dump.write_text(json.dumps(document, default=str))  # numbers as text, so that they stay exact
        command = [sys.executable, "-I", str(JUDGE), str(self.exports.folder), str(dump)]
        judged = subprocess.run(command, capture_output=True, text=True, check=False)
        assert judged.returncode == 0, f"{judged.stdout[:4_000]}{judged.stderr[-3_000:]}"

    def sql(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Read or damage the state."""
        with closing(sqlite3.connect(self.state)) as database, database:
            return database.execute(statement, values).fetchall()

    def ids(self, resource: str) -> dict[str, str]:
        """The platform's ids of what the state knows, by key."""
        query = "SELECT key, target_id FROM bindings WHERE resource = ? AND deleted_at IS NULL"
        return dict(self.sql(query, resource))


@contextmanager
def opened(folder: Path, seed: int) -> Iterator[RetailStage]:
    """A project whose exports are still to be served, and its platform without records."""
    folder.mkdir(exist_ok=True)
    with SandboxProcess(folder / "sandbox", UNPACED) as sandbox:
        yield RetailStage(folder, sandbox, RetailExports(folder / "exports"), Random(seed))
