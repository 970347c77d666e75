"""Long-lived states: many nights on a manual clock, with what retention removes and without.

The short forms are in `tests.nightly.test_years`, the long ones in `tests.long.test_years`. What is right happens
at the sandbox (``/_sandbox/effects``).
"""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import create_engine, func, select
from tests.chaos.checks import SEED
from tests.e2e.project_folder import GIVEN
from tests.e2e.warehouse import ask
from tests.integration.scheduler.scheduled_runs_race import Inline

from crossdock.config.project import project
from crossdock.config.project.project import Project
from crossdock.runs import dry_run, sync_and_replay
from crossdock.runs.plan_result import PlanListener
from crossdock.sandbox import SandboxServer
from crossdock.services.observability.health_and_metrics import Metrics
from crossdock.services.scheduler.monitored_scheduler import MonitoredScheduler
from crossdock.services.scheduler.scheduler import WorkerPool
from crossdock.state import StateUrl, purge_and_compaction
from crossdock.state.db import schema
from crossdock.state.retention import PurgeTimes
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.run_progress_and_messages import SilentProgress

BEGIN = datetime(2026, 1, 1, 1, tzinfo=UTC)
DUE = BEGIN.replace(hour=2, minute=30)
NIGHT = timedelta(days=1)
_TENANTS = count(1)
INPUT = ("input", "files", "more_files", "newest_file")  # a purged state knows fewer files by name

CONFIG = """\
platform:
  base_url: {base_url}
  tenant: {tenant}
  auth: {{kind: api_key, token: env:CROSSDOCK_API_KEY}}
  idempotency: {{kept_s: 3600}}
  max_clock_skew_s: null
  in_flight: 4
state: {state}
spool: {tenant}.spool
retention: {retention}
connections:
  wms:
    kind: folder_warehouse
    path: {exports}
    settle_s: 0
    streams:
      customers:
        mode: append
        files: "CUST_*"
        format: {{kind: delimited, delimiter: ";"}}
        key: [CUSTNO]
        resource: customer
        map: {{name: {{template: "{words}{{NAME}}"}}}}
      products:
        mode: snapshot
        files: "PROD_*"
        format: {{kind: delimited, delimiter: ";", trailer: {{prefix: "END;", count: 1}}}}
        key: [SKU]
        on_gone: delete
        gone: {{at_most: 50, at_most_percent: 70}}
        resource: product
        map: {{sku: SKU, name: NAME, unitPrice: {{from: PRICE, as: decimal}}}}
      invoices:
        mode: append
        files: "INV_*"
        format: {{kind: delimited, delimiter: ";"}}
        key: [INVNO]
        group_by: [INVNO]
        resource: invoice
        map:
          customerId: {{ref: customer, key: CUSTNO}}
          currency: {{const: EUR}}
          items:
            each:
              productId: {{ref: product, key: SKU}}
              quantity: {{from: QTY, as: decimal}}
              unitPrice: {{from: QTY, as: decimal}}
jobs:
  nightly: {{schedule: {{time_zone: UTC, at: "02:30", days: [mon, tue, wed, thu, fri, sat, sun], catch_up: all}}}}
"""


@dataclass
class Site:
    """One tenant of a platform with a state of its own; several may read the same exports."""

    folder: Path
    platform: SandboxServer
    exports: Path
    setenv: Callable[[str, str], None]
    state: str = ""
    retention: str = "off"
    clock: ManualClock = field(default_factory=lambda: ManualClock(BEGIN))
    tenant: str = field(default_factory=lambda: f"years{next(_TENANTS)}")
    _seen: int = 0
    _names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._key = self.platform.sandbox.new_key(self.tenant)
        self.loaded = self.configure()
        self.loaded.create_or_upgrade_state()

    def configure(self, words: str = "") -> Project:
        """The config with another mapping of customers, whose names begin with *words*."""
        facts = {"base_url": self.platform.base_url, "tenant": self.tenant, "exports": self.exports}
        path = self.folder / f"{self.tenant}.yaml"
        state = self.state or f"sqlite:///{self.tenant}.db"
        path.write_text(CONFIG.format(**facts, state=state, retention=self.retention, words=words))
        self.loaded = project.load(path)
        return self.loaded

    def sync(self) -> dict[str, Any]:
        """Run all streams; their accounts."""
        self.setenv("CROSSDOCK_API_KEY", self._key)
        report = sync_and_replay.sync(
            self.loaded, [], clock=self.clock, progress=SilentProgress(), interrupt=threading.Event()
        )
        assert report.balanced
        accounts = {name: account | dict.fromkeys(INPUT) for name, account in report.accounts().items()}
        return {"exit": report.exit_code, "errors": sorted(report.errors), **accounts}

    def plan(self) -> tuple[Counter[str], set[str]]:
        """What a sync would do, and which streams it would refuse."""
        ignore = [lambda _: None] * 6
        planned = dry_run.plan_sync(self.loaded, [], PlanListener(*ignore), clock=self.clock, progress=SilentProgress())
        return Counter(planned.operations), set(planned.errors)

    def serve(self) -> None:
        """Let the scheduler look when the next night is due and some hours later."""
        self.setenv("CROSSDOCK_API_KEY", self._key)
        interrupt, metrics, workers = threading.Event(), Metrics(self.clock), WorkerPool(Inline())
        facts: dict[str, Any] = {"notifier": None, "trace": lambda _: None, "workers": workers}
        with closing(MonitoredScheduler(self.loaded, self.clock, interrupt, metrics, **facts)) as service:
            for _ in range(2):
                service.report_ended_and_start_due()
                service.apply_retention()
                self.clock.advance(timedelta(hours=2).total_seconds())
        self.clock.advance((NIGHT - (self.clock.now() - DUE) % NIGHT).total_seconds())

    def effects(self) -> Counter[str]:
        """What happened since the last call, with our names in place of the platform's ids."""
        found: Counter[str] = Counter()
        netloc = urlsplit(self.platform.base_url).netloc
        while page := json.loads(ask(netloc, "GET", f"/_sandbox/effects?limit=10000&after={self._seen}").body)["data"]:
            self._seen = int(page[-1]["seq"])
            for effect in (each for each in page if each["tenant"] == self.tenant):
                body = {name: value for name, value in (effect["body"] or {}).items() if name not in GIVEN}
                self._names.setdefault(effect["id"], body.get("externalId", "an invoice"))
                told = json.dumps([effect["operation"], effect["resource"], self._names[effect["id"]], body])
                for target_id, name in self._names.items():
                    told = told.replace(f'"{target_id}"', f'"{name}"')
                found[told] += 1
        return found

    def purge(self) -> int:
        """Remove all that has ended, however young, as far as the platform's keys allow; how many rows that was."""
        now = self.clock.now()
        with self.loaded.open_state_exclusively() as state:
            purged, is_whole = purge_and_compaction.purge_in_batches(
                state, PurgeTimes.from_age(now, timedelta(), keys_kept_s=3600), batches=10_000
            )
        assert is_whole
        return sum(getattr(purged, name) for name in purged.__struct_fields__)


class Exports:
    """A warehouse's files, which change at random: new ones, repeated ones, older ones, bad ones, and none."""

    def __init__(self, folder: Path, random: Random) -> None:
        self._folder, self._random = folder, random
        self._stock = {f"P{number}": number for number in range(8)}
        self._customers, self._invoices = 3, 0
        self._written: dict[str, list[str]] = {"CUST": [], "PROD": [], "INV": []}
        self.done: Counter[str] = Counter()

    def night(self, at: datetime) -> None:
        for kind in self._written:
            ways = ("new", "new", "repeated", "none", "gone")
            way = self._random.choice((*ways, "new", "repeated", "stale") if kind == "PROD" else ways)
            way = "new" if not self._written[kind] else way
            self.done[way] += 1
            if way == "new":
                content = {"CUST": self._new_customers, "PROD": self._new_stock, "INV": self._new_invoices}[kind]()
                self._written[kind].append(content)
                self._write(f"{kind}_{at:%Y-%m-%d}", content, at)
            elif way == "repeated":  # the bytes of an earlier night, however long ago, as a file of tonight
                early = self._written[kind][:-3] or self._written[kind]
                self._write(f"{kind}_{at:%Y-%m-%d}", self._random.choice(early), at)
            elif way == "stale":
                self._write(f"{kind}_2020-01-01", self._random.choice(self._written[kind]), at)
                (self._folder / f"{kind}_{at:%Y-%m-%d}").unlink(missing_ok=True)
            elif way == "gone":
                for path in self._folder.glob(f"{kind}_*"):
                    if self._random.random() < 0.7:
                        path.unlink()

    def _write(self, name: str, content: str, at: datetime) -> None:
        path = self._folder / name
        path.write_text(content)
        written = (at - timedelta(hours=1)).timestamp()
        os.utime(path, (written, written))

    def _new_customers(self) -> str:
        self._customers += self._random.randrange(2)
        numbers = [number for number in range(self._customers) if self._random.random() < 0.6]
        rows = [f"C{number};{self._random.choice(('Amsel', 'Meise', 'Star'))}" for number in numbers]
        bad = ["C99;" + "x" * 999, ";Nobody"] if self._random.random() < 0.3 else []
        return "\n".join(["CUSTNO;NAME", *rows, *bad, ""])

    def _new_stock(self) -> str:
        for _ in range(self._random.randrange(3)):
            self._stock[f"P{self._random.randrange(14)}"] = self._random.randrange(9)
        if len(self._stock) > 4 and self._random.random() < 0.5:
            del self._stock[self._random.choice(sorted(self._stock))]
        rows = [f"{sku};Thing;{price}.50" for sku, price in self._stock.items()]
        return "\n".join(["SKU;NAME;PRICE", *rows, f"END;{len(rows)}", ""])

    def _new_invoices(self) -> str:
        again = [self._random.randrange(self._invoices)] if self._invoices and self._random.random() < 0.3 else []
        numbers = [*again, *range(self._invoices, self._invoices + 2)]
        self._invoices += 2
        customers = [self._random.randrange(self._customers + 2) for _ in numbers]  # some come later, or never
        sku = self._random.choice(sorted(self._stock))
        rows = [f"{number};C{of};{sku};{number + 1}" for number, of in zip(numbers, customers, strict=True)]
        return "\n".join(["INVNO;CUSTNO;SKU;QTY", *rows, ""])


def purging_changes_nothing(
    folder: Path, platform: SandboxServer, setenv: Callable[[str, str], None], *, scheduled_runs: int, seed: int = SEED
) -> Counter[str]:
    """A state that loses after every night all that it may lose does what one does that keeps everything.

    Returns:
        What the exports were, and how many rows were removed.
    """
    random = Random(seed)
    exports = folder / "exports"
    exports.mkdir()
    kept, purged = (Site(folder, platform, exports, setenv) for _ in range(2))
    warehouse, removed, happened = Exports(exports, random), 0, 0
    for number in range(scheduled_runs):
        if random.random() < 0.1:  # back and forth between two mappings
            words = random.choice(("", "Mr "))
            kept.configure(words)
            purged.configure(words)
        warehouse.night(kept.clock.now())
        if number % 3 == 2:
            assert purged.plan() == kept.plan(), f"night {number} of seed {seed}"
        one, other = kept.sync(), purged.sync()
        assert other == one, f"night {number} of seed {seed}"
        expected = kept.effects()
        found = purged.effects()
        assert found == expected, f"night {number} of seed {seed}: {found - expected} and not {expected - found}"
        happened += expected.total()
        removed += purged.purge()
        for site in (kept, purged):
            site.clock.advance((NIGHT - (site.clock.now() - BEGIN) % NIGHT).total_seconds())
    assert happened > scheduled_runs
    assert removed > scheduled_runs, "nothing was removed"
    return warehouse.done + Counter(removed=removed, effects=happened)


def counted(url: StateUrl) -> dict[str, int]:
    """The rows of each table."""
    engine = create_engine(url)
    with engine.connect() as connection:
        rows = {t.name: connection.execute(select(func.count()).select_from(t)).scalar_one() for t in _tables()}
    engine.dispose()
    return rows


def _tables() -> Iterator[Any]:
    return iter(schema.metadata.sorted_tables)


def a_state_stays_small(
    folder: Path,
    platform: SandboxServer,
    setenv: Callable[[str, str], None],
    *,
    scheduled_runs: int,
    state: str = "",
    retention_days: int = 90,
) -> tuple[dict[str, int], dict[str, int], int, int]:
    """After twice as many scheduled nights no table has more rows, and a SQLite file is no larger.

    Each night changes the same records, so nothing but the nights themselves could make it grow.

    Returns:
        Rows of each table after half of the nights and after all, and the bytes of the state then.
    """
    exports = folder / "exports"
    exports.mkdir()
    site = Site(folder, platform, exports, setenv, state, f"{retention_days}d")
    halves = []
    for _ in range(2):
        for _ in range(scheduled_runs // 2):
            _same_night(exports, site.clock.now())
            site.serve()
        with closing(site.loaded.open_state(read_only=True)) as opened, opened.begin_read_only() as tx:
            size = tx.state_size.total_size()
        halves.append((counted(site.loaded.state_url), size))
    (half, half_size), (whole, whole_size) = halves
    with site.loaded.read_state() as tx:
        assert {night.status for night in tx.scheduled_runs.listed(limit=scheduled_runs)} == {"degraded"}
    assert site.effects().total() >= scheduled_runs
    grown = {name: (half[name], rows) for name, rows in whole.items() if abs(rows - half[name]) > 2}
    assert not grown, grown
    at_most = 1.1 * half_size + (64 << 10)
    assert whole_size <= at_most or site.loaded.state_url.drivername != "sqlite", (half_size, whole_size)
    for name in ("runs", "scheduled_runs", "snapshots", "taken_files"):
        assert whole[name] <= 2 * retention_days + 20, (name, whole[name])
    return half, whole, half_size, whole_size


def _same_night(folder: Path, at: datetime) -> None:
    """An export of every kind for tonight alone, in which some of the same few records have changed."""
    for path in folder.iterdir():
        path.unlink()
    night = (at - BEGIN).days
    changed = night % 5
    customers = [f"C{number};Amsel {night if number == changed else 0}" for number in range(5)]
    products = [f"P{number};Thing;{night if number == changed else 0}.5" for number in range(5)]
    contents = {
        "CUST": ["CUSTNO;NAME", *customers, f"X{night % 2};{'x' * 999}", ""],
        "PROD": ["SKU;NAME;PRICE", *products, f"END;{len(products)}", ""],
        "INV": ["INVNO;CUSTNO;SKU;QTY", f"1;C1;P1;{1 + night % 2}", ""],
    }
    for kind, lines in contents.items():
        path = folder / f"{kind}_{at:%Y-%m-%d}"
        path.write_text("\n".join(lines))
        written = (at - timedelta(hours=1)).timestamp()
        os.utime(path, (written, written))
