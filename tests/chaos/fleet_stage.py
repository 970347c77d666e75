"""A fleet: tenants with a config, a state and exports each, one sandbox, and processes that are killed.

What the platform must hold is computed here from the exports, without crossdock.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import yaml
from tests.e2e.migrated_folder import STREAMS

from crossdock.config.project import project
from crossdock.sandbox import SandboxServer, SandboxSettings
from crossdock.state import StateUrl

CUSTOMERS, PRODUCTS, INVOICES = 2, 2, 4
RECORDS = CUSTOMERS + PRODUCTS + INVOICES
JOB = "nightly"


def settings() -> SandboxSettings:
    """Of a sandbox whose rate limit does not slow down so few records."""
    return SandboxSettings(rate_per_min=600_000, burst=10_000)


class FleetStage:
    """Tenants ``t000``, ``t001`` and so on, whose job is due once, now, and not again for hours.

    Args:
        new_database: Makes the database of a state; None for files.
        fleet: The section ``fleet`` of the base file.
    """

    def __init__(
        self,
        folder: Path,
        platform: SandboxServer,
        number: int,
        new_database: Callable[[], StateUrl] | None = None,
        **fleet: Any,
    ) -> None:
        self.folder, self.platform, self._new_database = folder, platform, new_database
        self.due = (datetime.now(UTC) - timedelta(hours=2)).replace(second=0, microsecond=0)
        self.environment: dict[str, str] = {}
        self.base = folder / "base.yaml"
        database = self.address(new_database()) if new_database else "sqlite:///fleet.db"
        self.configure(fleet={"database": database, "at_once": 4, "per_host": 2, **fleet})
        (folder / "tenants").mkdir()
        self.names = [f"t{each:03}" for each in range(number)]
        for name in self.names:
            self.add(name)

    @staticmethod
    def address(url: StateUrl) -> str:
        return url.set(drivername="postgresql").render_as_string(hide_password=False)

    @property
    def pattern(self) -> str:
        return str(self.folder / "tenants" / "*.yaml")

    def configure(self, **sections: Any) -> None:
        """Write the base file with these sections besides what all tenants have in common."""
        schedule = {"time_zone": "UTC", "at": self.due.strftime("%H:%M"), "catch_up": "latest"}
        common = {
            "platform": {"base_url": self.platform.base_url, "retry": {"attempts": 4, "base_s": 0.01}},
            "jobs": {JOB: {"schedule": schedule}},
        }
        self.base.write_text(yaml.safe_dump(common | sections, sort_keys=False), encoding="utf-8")

    def add(self, name: str, **sections: Any) -> None:
        """Add a tenant with its key, its exports, and a state that has seen its job an hour before it was due."""
        variable = f"KEY_{name.upper()}"
        self.environment[variable] = self.platform.sandbox.new_key(name)
        self._export(name)
        state = self.address(self._new_database()) if self._new_database else f"sqlite:///{name}.db"
        wms = {"kind": "folder_warehouse", "path": f"out/{name}", "settle_s": 0, "streams": STREAMS}
        config = {
            "platform": {"tenant": name, "auth": {"kind": "api_key", "token": f"env:{variable}"}},
            "state": state,
            "connections": {"wms": wms},
        }
        path = self.config(name)
        path.write_text(yaml.safe_dump(config | sections, sort_keys=False), encoding="utf-8")
        loaded = project.load(self.base, path)
        loaded.create_or_upgrade_state()
        with closing(loaded.open_state()) as opened, opened.begin() as tx:
            tx.scheduled_runs.get_or_register_first_seen(JOB, self.due - timedelta(hours=1))

    def config(self, name: str) -> Path:
        return self.folder / "tenants" / f"{name}.yaml"

    def _export(self, name: str) -> None:
        out = self.folder / "out" / name
        out.mkdir(parents=True, exist_ok=True)
        customers = "".join(f"C{n};Customer {n} of {name}\n" for n in range(CUSTOMERS))
        products = "".join(f"P{n};Product {n};1.50\n" for n in range(PRODUCTS))
        lines = "".join(f"{n};C{n % CUSTOMERS};P{n % PRODUCTS};{n + 1};1.50\n" for n in range(INVOICES))
        (out / "CUST1.csv").write_text(f"NO;NAME\n{customers}", encoding="utf-8")
        (out / "PROD1.csv").write_text(f"SKU;NAME;PRICE\n{products}", encoding="utf-8")
        (out / "INV1.csv").write_text(f"NO;CUST;SKU;QTY;PRICE\n{lines}", encoding="utf-8")

    # ---- what happened

    def effects(self) -> list[dict[str, Any]]:
        """Everything that happened at the platform."""
        found: list[dict[str, Any]] = []
        while page := self._page(found[-1]["seq"] if found else 0):
            found += page
        return found

    def _page(self, after: int) -> list[dict[str, Any]]:
        with urlopen(f"{self.platform.base_url}/_sandbox/effects?limit=10000&after={after}") as answer:
            listed: list[dict[str, Any]] = json.load(answer, parse_float=Decimal)["data"]
        return listed

    def delivered(self) -> Mapping[str, Counter[str]]:
        """By tenant: what was created, each record in its canonical form without ids."""
        found: dict[str, Counter[str]] = {name: Counter() for name in self.names}
        names: dict[str, str] = {}  # of records, by id
        for effect in self.effects():
            assert effect["operation"] == "create", effect
            body = effect["body"]
            if effect["resource"] == "invoice":
                lines = [(names[line["productId"]], line["quantity"], str(line["unitPrice"])) for line in body["items"]]
                found[effect["tenant"]][f"invoice {names[body['customerId']]} {sorted(lines)}"] += 1
            elif "externalId" in body:  # the accounts of a new tenant have none
                names[effect["id"]] = body["externalId"]
                found[effect["tenant"]][f"{effect['resource']} {body['externalId']} {body['name']}"] += 1
        return found

    def expected(self, names: list[str] | None = None) -> Mapping[str, Counter[str]]:
        """What `delivered` gives if each run of these tenants was carried out exactly once."""
        found: dict[str, Counter[str]] = {name: Counter() for name in self.names}
        for name in self.names if names is None else names:
            found[name].update(f"customer wms:C{n} Customer {n} of {name}" for n in range(CUSTOMERS))
            found[name].update(f"product wms:P{n} Product {n}" for n in range(PRODUCTS))
            for n in range(INVOICES):
                lines = [(f"wms:P{n % PRODUCTS}", n + 1, "1.5")]
                found[name][f"invoice wms:C{n % CUSTOMERS} {lines}"] += 1
        return found

    def runs(self, name: str) -> list[tuple[str, str]]:
        """The scheduled runs of a tenant in its state: business date and status."""
        with project.load(self.base, self.config(name)).read_state() as tx:
            return [(str(run.business_date), run.status) for run in tx.scheduled_runs.listed(limit=100)]
