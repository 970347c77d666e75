"""Customers and accounts that go from their snapshots, and orders of two connections that name customers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import yaml
from tests.e2e.folder_project import FolderProject
from tests.e2e.project_folder import LISTS
from tests.e2e.warehouse import ask
from tests.plan_and_sync import differences

from crossdock.sandbox import SandboxServer

Orders = Mapping[str, str]
"""The customer of each order."""
Accounts = Mapping[str, str]
"""The parent of each account; empty for none."""
_GONE = {"at_most": 1_000, "at_most_percent": 100}


def snapshot(files: str, resource: str, mapping: dict[str, Any]) -> dict[str, Any]:
    layout = {"kind": "delimited", "delimiter": ";", "trailer": {"prefix": "TRL;", "count": 1}}
    shared = {"mode": "snapshot", "key": ["NO"], "on_gone": "delete", "gone": dict(_GONE)}
    return {**shared, "files": files, "format": layout, "resource": resource, "map": mapping}


def order_map(namespace: str | None) -> dict[str, Any]:
    customer = {"ref": "customer", "key": "CUST"} | ({"namespace": namespace} if namespace else {})
    item = {
        "productId": {"ref": "product", "key": "SKU", "namespace": "wms"},
        "quantity": {"from": "QTY", "as": "decimal"},
    }
    price = {"unitPrice": {"from": "QTY", "as": "decimal"}}
    placed = {"placedAt": {"const": "2026-01-01T00:00:00Z"}}
    return {"customerId": customer, "currency": {"const": "EUR"}, "items": {"each": item | price}, **placed}


class GoneCustomers(FolderProject):
    """Each night every snapshot is written anew."""

    def __init__(self, folder: Path, platform: SandboxServer) -> None:
        (folder / "out").mkdir(parents=True)
        account = {"code": "NO", "name": "NO", "type": {"const": "asset"}}
        streams = {
            "customers": snapshot("CUST*.csv", "customer", {"name": "NO"}),
            "products": snapshot("PROD*.csv", "product", {"sku": "NO", "name": "NO"}),
            "accounts": snapshot(
                "ACC*.csv", "ledger_account", account | {"parentId": {"ref": "ledger_account", "key": "PARENT"}}
            ),
            "orders": snapshot("ORD*.csv", "order", order_map(None)) | {"group_by": ["NO"]},
        }
        folder_of = {"kind": "folder_warehouse", "path": "out", "settle_s": 0}
        shop = {"orders": snapshot("SHOP*.csv", "order", order_map("wms")) | {"group_by": ["NO"]}}
        super().__init__(
            folder, platform, {"wms": {**folder_of, "streams": streams}, "shop": {**folder_of, "streams": shop}}
        )
        self._nights = count(1)
        self.write_night((), {}, {}, {})
        done = self.run("init")
        assert done.exit_code == 0, done.stderr

    def write_night(self, customers: Iterable[str], orders: Orders, shop: Orders, accounts: Accounts) -> None:
        """What the systems export tonight."""
        night = f"{next(self._nights):03d}"
        self._write(f"CUST{night}.csv", "NO", [*customers, "C-any"])
        self._write(f"PROD{night}.csv", "NO", ["P1"])
        self._write(f"ACC{night}.csv", "NO;PARENT", [f"{name};{parent}" for name, parent in accounts.items()] + ["0;"])
        for prefix, each in (("ORD", orders), ("SHOP", shop)):
            rows = [f"{name};{customer};P1;1" for name, customer in each.items()] + ["any;C-any;P1;1"]
            self._write(f"{prefix}{night}.csv", "NO;CUST;SKU;QTY", rows)

    def _write(self, name: str, header: str, rows: list[str]) -> None:
        """A column that is not mapped differs each night: a snapshot that was there before would be refused."""
        lines = [f"{header};NIGHT", *(f"{row};{name}" for row in rows), f"TRL;{len(rows)}", ""]
        self.write(name, "\n".join(lines))

    def set_gone(self, **more: Any) -> None:
        config = yaml.safe_load(self.config.read_text(encoding="utf-8"))
        config["connections"]["wms"]["streams"]["customers"]["gone"] = {**_GONE, **more}
        self.config.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")

    def night(self, exit_code: int | None = None) -> dict[str, Any]:
        """A sync that does what the plan before it said."""
        plan = self.run("plan", "--json")
        assert plan.exit_code == 0, plan.stderr
        done = self.run("sync", "--json")
        assert done.exit_code == exit_code or exit_code is None, f"{done.exit_code} {done.stderr}{done.stdout}"
        assert differences(plan.document, done.document) == []
        return done.document

    def stored(self) -> dict[str, dict[str, dict[str, Any]]]:
        """What the platform has, by resource and external id."""
        headers = {"authorization": f"Bearer {self.platform.api_key}", "x-tenant-slug": self.platform.tenant}
        netloc, found = self.platform.base_url.removeprefix("http://"), dict[str, dict[str, dict[str, Any]]]()
        for resource in ("customer", "order", "ledger_account"):
            path = {"ledger_account": "/api/v1/finance/ledger-accounts", **LISTS}[resource]
            page = json.loads(ask(netloc, "GET", f"{path}?limit=1000", headers=headers).body)["data"]
            found[resource] = {each["externalId"]: each for each in page}
        return found

    def dangling(self) -> list[str]:
        """The records whose customer or parent the platform does not have."""
        stored = self.stored()
        ids = {each["id"] for group in stored.values() for each in group.values()}
        return sorted(
            name
            for group in stored.values()
            for name, each in group.items()
            if any(each.get(member) not in {None, *ids} for member in ("customerId", "parentId"))
        )

    def kept(self) -> dict[str, str]:
        """Why records are kept that are gone from their source."""
        listed = json.loads(self.run("records", "list", "--json").stdout)
        return {each["key"]: each["why"] for each in listed}


def random_nights(folder: Path, platform: SandboxServer, nights: int, seed: int) -> None:
    """Whatever comes and goes, nothing dangles, the plan says what the sync does, and what is unreferenced goes."""
    random, project = Random(seed), GoneCustomers(folder, platform)
    customers = [f"C{n}" for n in range(8)]
    for _ in range(nights):
        there = [each for each in customers if random.random() < 0.6]
        orders = {f"O{n}": random.choice(customers) for n in range(6) if random.random() < 0.6}
        shop = {f"S{n}": random.choice(customers) for n in range(6) if random.random() < 0.6}
        numbers = [str(n) for n in range(1, 6) if random.random() < 0.7]
        accounts = {each: random.choice(["", *(other for other in numbers if other < each)]) for each in numbers}
        project.write_night(there, orders, shop, accounts)
        project.night()
        assert project.dangling() == [], f"seed {seed}"
        stored = project.stored()
        used = {each["customerId"] for each in stored["order"].values()}
        surplus = {f"wms:{each}" for each in customers if each not in there} & stored["customer"].keys()
        assert all(stored["customer"][each]["id"] in used for each in surplus), f"seed {seed}: kept without a reason"
        assert {f"wms:{each}" for each in there} <= stored["customer"].keys()
