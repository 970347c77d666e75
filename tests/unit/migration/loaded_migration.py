"""A state in which a migration of two waves is loaded, frozen and reconciled, so that it can be signed off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml
from msgspec import structs
from tests.report_page import AT
from tests.unit.state.samples import SCOPE, binding

from crossdock.config.project import project
from crossdock.config.project.project import Project
from crossdock.migration.sign_off import SignOffObstacle, sign_off_obstacles
from crossdock.migration.sign_off_report import Document, Signature, sign_off_report
from crossdock.migration.waves import WaveStatus, wave_status, waves_numbered_in_config_order
from crossdock.pacing.token_bucket import Forecast
from crossdock.runs.plan_result import PlanResult
from crossdock.state import Migration, RunResult, Scope, State, Transaction
from crossdock.state.tables.inputs_of_streams import FileFacts
from crossdock.values.run_states_and_tally import Tally

NAME = "acme"
SOURCES = {"wms.customers": "c0" * 32, "wms.products": "d0" * 32}
NO_REQUESTS = Forecast(0, None, None, None)
LATER = AT + timedelta(hours=2)


def loaded_project(folder: Path) -> Project:
    stream = {"mode": "append", "format": {"kind": "delimited", "delimiter": ";"}, "key": ["NO"]}
    streams = {
        "customers": stream | {"files": "CUST*.csv", "resource": "customer", "map": {"name": "NAME"}},
        "products": stream | {"files": "PROD*.csv", "resource": "product", "map": {"sku": "NO", "name": "NAME"}},
    }
    config = {
        "platform": {"base_url": "http://127.0.0.1:9", "tenant": "acme", "auth": {"kind": "api_key", "token": "env:X"}},
        "state": "sqlite:///state.db",
        "connections": {"wms": {"kind": "folder_warehouse", "path": "out", "streams": streams}},
        "migration": {
            "name": NAME,
            "waves": {
                "customers": {"streams": ["wms.customers"], "gate": {"rejected_at_most": 9}},
                "products": {"streams": ["wms.products"], "gate": {"rejected_at_most_percent": 0.5}},
            },
        },
    }
    path = folder / "crossdock.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return project.load(path)


def reconciliation(**changes: Any) -> dict[str, Any]:
    side = {"records": 2, "quantity": Decimal("21.5"), "amounts": {"EUR": Decimal("31.50")}}
    totals = {"source": side, "state": side, "platform": side, "differing": ["cus_of_somebody EUR"]}
    facts = {
        "at": LATER.isoformat(),
        "compared": {"product": 2},
        "differences": [],
        "totals": {"product": totals},
        "kept": {},
        "sources": {name: f"{digest[:-1]}1" for name, digest in SOURCES.items()},
    }
    return facts | changes


def freeze(**changes: Any) -> dict[str, Any]:
    at = (LATER - timedelta(minutes=1)).isoformat()
    return {"at": at, "since": at, "waited_s": 600, "sources": SOURCES} | changes


@dataclass
class LoadedMigration:
    """What is in the state; *now* is what the sources have."""

    project: Project
    state: State
    now: PlanResult = field(default_factory=lambda: PlanResult(NO_REQUESTS, sources=dict(SOURCES)))
    migration_id: int = 0

    def fill(self) -> None:
        """Load both waves, freeze and reconcile."""
        with self.state.begin() as tx:
            self.migration_id = tx.migrations.begin(NAME, at=AT, by="ann@host")
            for wave in ("customers", "products"):
                self.run(tx, wave)
            tx.bindings.put(SCOPE, [binding(1), binding(2)], run_id=1, at=AT)
            tx.intake.accept("wms.products", "v1", [FileFacts("f.csv", "ab" * 32, 90, AT, "1")], at=AT)
            tx.intake.accept("wms.products", "v2", [FileFacts("f.csv", "ab" * 32, 90, AT, "1")], at=LATER)
            tx.migrations.store_freeze_check(self.migration_id, freeze())
            tx.migrations.store_reconciliation(self.migration_id, reconciliation())

    def run(self, tx: Transaction, wave: str, *, status: str = "done") -> int:
        run = tx.runs.start(business_date="2026-03-29", at=AT)
        tx.migrations.add_run(self.migration_id, run, "load", wave)
        tally = Tally(rows_read=2, rows_in_records=2)
        tally.count("read", 2)
        tally.count("created", 2)
        tx.runs.finish(
            run,
            RunResult(status, requests=2, tally={f"wms.{wave}": tally.as_json()}, duration_ms=3_600_000),
            at=AT + timedelta(hours=1),
        )
        return run

    def migration(self, tx: Transaction) -> Migration:
        found = tx.migrations.current()
        assert found is not None
        return found

    def waves(self, tx: Transaction) -> list[WaveStatus]:
        return [
            wave_status(tx, self.project, self.migration(tx), wave)
            for wave in waves_numbered_in_config_order(self.project)
        ]

    def obstacles(self) -> Sequence[SignOffObstacle]:
        with self.state.begin_read_only() as tx:
            scopes: dict[str, Scope] = self.project.scope_by_stream
            return list(sign_off_obstacles(tx, self.migration(tx), self.waves(tx), scopes, self.now))

    def report(self, accepted: str | None = None, **changes: Any) -> Document:
        with self.state.begin_read_only() as tx:
            migration = structs.replace(self.migration(tx), **changes)
            signature = Signature("bob", LATER, accepted)
            return sign_off_report(tx, self.project, migration, self.waves(tx), self.now.sources, signature)
