"""A small migration: customers, products and invoices of a folder of exports, in three waves, to a sandbox."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, Self

import yaml
from tests.e2e.folder_project import FolderProject, table
from tests.e2e.project_folder import LISTS, balance
from tests.e2e.warehouse import ask
from tests.ended_commands import Done

from crossdock.sandbox import SandboxServer

WAVES = {
    "customers": {"streams": ["wms.customers"]},
    "products": {"streams": ["wms.products"]},
    "invoices": {"streams": ["wms.invoices"]},
}
STREAMS = {
    "customers": table("CUST*.csv", ["NO"], resource="customer", map={"name": "NAME"}),
    "products": table(
        "PROD*.csv",
        ["SKU"],
        resource="product",
        map={"sku": "SKU", "name": "NAME", "unitPrice": {"from": "PRICE", "as": "decimal"}},
    ),
    "invoices": table(
        "INV*.csv",
        ["NO"],
        group_by=["NO"],
        resource="invoice",
        map={
            "customerId": {"ref": "customer", "key": "CUST"},
            "currency": {"const": "EUR"},
            "items": {
                "each": {
                    "productId": {"ref": "product", "key": "SKU"},
                    "quantity": {"from": "QTY", "as": "decimal"},
                    "unitPrice": {"from": "PRICE", "as": "decimal"},
                }
            },
        },
    ),
}


class MigratedFolder(FolderProject):
    """A project with the waves `WAVE_COLUMNS`; commands run in this process."""

    def __init__(self, folder: Path, platform: SandboxServer) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "out").mkdir()
        super().__init__(
            folder,
            platform,
            {"wms": {"kind": "folder_warehouse", "path": "out", "settle_s": 0, "streams": dict(STREAMS)}},
        )
        self.configure(migration={"name": "acme", "waves": WAVES})
        done = self.run("init")
        assert done.exit_code == 0, done.stderr

    def copied(self, folder: Path) -> Self:
        """The same project in another folder, as it is now; both have the same platform."""
        shutil.copytree(self.folder, folder)
        made = copy(self)
        made.folder, made.config = folder, folder / self.config.name
        return made

    def configure(self, **sections: Any) -> None:
        """Set whole sections of the config; members of ``platform`` are added."""
        config = yaml.safe_load(self.config.read_text(encoding="utf-8"))
        config["platform"] |= sections.pop("platform", {})
        self.config.write_text(yaml.safe_dump(config | sections, sort_keys=False), encoding="utf-8")

    def waves(self, *, hours: Sequence[Mapping[str, Any]] = (), **gates: Mapping[str, Any]) -> None:
        """Give waves these gates, and the day these hours."""
        waves = {name: {**wave, "gate": dict(gates.get(name, {}))} for name, wave in WAVES.items()}
        self.configure(migration={"name": "acme", "waves": waves, "hours": [dict(each) for each in hours]})

    def fill(self, customers: int = 3, products: int = 3, invoices: int = 6) -> None:
        """Exports of so many records; each invoice refers to some customer and product."""
        self.write("CUST1.csv", "NO;NAME\n" + "".join(f"C{n};Customer {n}\n" for n in range(customers)))
        self.write("PROD1.csv", "SKU;NAME;PRICE\n" + "".join(f"P{n};Product {n};1.50\n" for n in range(products)))
        lines = (f"{n};C{n % customers};P{n % products};{n + 1};1.50\n" for n in range(invoices))
        self.write("INV1.csv", "NO;CUST;SKU;QTY;PRICE\n" + "".join(lines))

    def migrate(self, *arguments: str) -> Done:
        done = self.run("migrate", *arguments)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def load(self, *arguments: str, exit_code: int = 0) -> dict[str, Any]:
        """A load that ends with *exit_code*; the tallies of its runs balance."""
        done = self.migrate("load", "--json", *arguments)
        assert done.exit_code == exit_code, f"{done.exit_code}: {done.stderr}{done.stdout}"
        for each in done.document["runs"]:
            balance(each["report"])
        return done.document

    def status(self) -> dict[str, Any]:
        done = self.migrate("status", "--json")
        assert done.exit_code == 0, done.stderr
        return done.document

    def states(self) -> dict[str, tuple[str, str | None]]:
        """By wave: its state, and its gate's."""
        return {w["wave"]: (w["state"], w["gate"] and w["gate"]["state"]) for w in self.status()["waves"]}

    def created(self) -> list[str]:
        """The resource of each create, in order."""
        assert {each["operation"] for each in self.effects()} <= {"create"}
        return [each["resource"] for each in self.effects()]

    def stored(self) -> dict[str, list[dict[str, Any]]]:
        """What the platform has, by resource."""
        headers = {"authorization": f"Bearer {self.platform.api_key}", "x-tenant-slug": self.platform.tenant}
        netloc, found = self.platform.base_url.removeprefix("http://"), dict[str, list[dict[str, Any]]]()
        for resource, path in LISTS.items():
            found[resource] = json.loads(ask(netloc, "GET", f"{path}?limit=1000", headers=headers).body)["data"]
        return found
