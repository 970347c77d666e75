"""Backups of one state, taken at many moments of many nights, are restored in turn while the source goes on.

Whatever the state has forgotten, a sync after the restoring brings both targets to what the source says: nothing is
missing, stale or left over, no invoice is there twice, and none names a customer that was deleted. Some files of
invoices are archived, so that no sync reads them again. The short form is in `tests.chaos.test_restored_states`, the
long one in `tests.long.test_restored_states`.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, Literal

import httpx
import yaml
from sqlalchemy import Engine, create_engine, delete, insert, select, text
from tests.e2e.order_depot import CONFIG, HEADERS, LOOK_UP
from tests.e2e.project_folder import LISTS, balance, in_process
from tests.ended_commands import Done
from tests.partners.partner_server import PartnerRequest, PartnerServer, serving
from tests.partners.plain_3pl import API_KEY, Plain3pl

from crossdock.sandbox import SandboxServer
from crossdock.state.db import schema

Way = Literal["declared", "undeclared", "whole folder"]
WAYS: tuple[Way, ...] = ("declared", "undeclared", "whole folder")
NAMES, PRICES = ("Bolt", "Nut", "Washer"), ("1.50", "0.25", "9.99")
SOLD = ("P0", "P1", "P2")  # on invoices, and never removed
TABLES = schema.metadata.sorted_tables

Rows = Mapping[str, Mapping[str, str]]


def _table(files: str, key: str, resource: str, columns: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "mode": "append",
        "files": files,
        "format": {"kind": "delimited", "delimiter": ";"},
        "key": [key],
        "resource": resource,
        "map": columns,
        **more,
    }


_COUNTED = {"kind": "delimited", "delimiter": ";", "trailer": {"prefix": "TRL;", "count": 1}}
_REMOVED = {"mode": "snapshot", "format": _COUNTED, "on_gone": "delete", "gone": {"at_most_percent": 100}}
STREAMS: Mapping[str, Any] = {
    "customers": _table("CUST_*", "NO", "customer", {"name": "NAME"}, **_REMOVED),
    "products": _table("PROD_*", "SKU", "product", {"sku": "SKU", "name": "NAME"}, **_REMOVED),
    "prices": _table(
        "COST_*", "SKU", "product", {"unitPrice": {"from": "PRICE", "as": "decimal"}, "currency": {"const": "EUR"}},
        contributes=["unitPrice", "currency"],
    ),
    "invoices": _table(
        "INV_*", "NO", "invoice",
        {"customerId": {"ref": "customer", "key": "CUST"}, "currency": {"const": "EUR"},
         "items": {"each": {"productId": {"ref": "product", "key": "SKU"}, "quantity": {"from": "QTY", "as": "decimal"},
                            "unitPrice": {"from": "PRICE", "as": "decimal"}}}},
        group_by=["NO"],
    ),
}  # fmt: skip


@dataclass(slots=True)
class Source:
    """What the source says, and what changed in it since the last export.

    Attributes:
        gone: The customers that it no longer lists, with their last names.
        archives: Whether the invoices of this night are archived once they were delivered.
    """

    random: Random
    customers: dict[str, str] = field(default_factory=dict)
    gone: dict[str, str] = field(default_factory=dict)
    products: dict[str, str] = field(default_factory=dict)
    prices: dict[str, str] = field(default_factory=dict)
    invoices: dict[str, tuple[str, str, str, str]] = field(default_factory=dict)
    orders: dict[str, str] = field(default_factory=dict)
    new: dict[str, set[str]] = field(default_factory=dict)
    numbers: int = 0
    archives: bool = False

    def night(self) -> None:
        """Creates, changes there and back, removals, and records that come back."""
        chance, self.new = self.random, {"COST": set(), "INV": set()}
        for key in chance.sample(sorted(self.customers), k=max(0, min(2, len(self.customers) - 2))):
            self.gone[key] = self.customers.pop(key)
        self._customer(f"C{len(self.customers) + len(self.gone)}")
        for key in chance.sample(sorted(self.gone), k=min(1, len(self.gone))):
            if chance.random() < 0.3:
                self._customer(key)
        for key in chance.sample(sorted(self.customers), k=min(3, len(self.customers))):
            self._customer(key)
        for sku in SOLD if not self.products else chance.sample([f"P{n}" for n in range(12)], k=4):
            if sku in self.products and sku not in SOLD and chance.random() < 0.5:
                del self.products[sku], self.prices[sku]
            else:
                is_back = sku not in self.products
                self.products[sku] = chance.choice(NAMES)
                if is_back or chance.random() < 0.7:
                    self.prices[sku] = chance.choice(PRICES)
                    self.new["COST"].add(sku)
        self.archives = chance.random() < 0.6
        for _ in range(2):
            self.numbers += 1
            customer, sku = chance.choice(sorted(self.customers)), chance.choice(SOLD)
            # Customers buy the same again, so that invoices with the same content are different ones. One like an
            # archived invoice that the state has forgotten would be taken for it.
            quantity = str(10 + self.numbers) if self.archives else chance.choice("12")
            self.invoices[f"I{self.numbers}"] = (customer, sku, quantity, chance.choice(PRICES))
            self.new["INV"].add(f"I{self.numbers}")
        self.orders[f"SO-{self.numbers:04}"] = chance.choice("123")
        for key in chance.sample(sorted(self.orders), k=min(2, len(self.orders))):
            if len(self.orders) > 2 and chance.random() < 0.4:
                del self.orders[key]
            else:
                self.orders[key] = chance.choice("123")

    def _customer(self, key: str) -> None:
        self.customers[key] = self.random.choice(NAMES)
        self.gone.pop(key, None)

    def held_customers(self) -> dict[str, str]:
        """Those that it lists, and those that its invoices name."""
        named = {customer for customer, *_ in self.invoices.values()}
        return self.customers | {key: name for key, name in self.gone.items() if key in named}

    def files(self) -> dict[str, str]:
        """The files of this night; their names lack a number."""
        changed = {name: sorted(keys) for name, keys in self.new.items()}
        of_invoice = {key: ";".join(self.invoices[key]) for key in changed["INV"]}
        return {
            "CUST": _file("NO;NAME", (f"{key};{name}" for key, name in sorted(self.customers.items())), counted=True),
            "PROD": _file("SKU;NAME", (f"{sku};{name}" for sku, name in sorted(self.products.items())), counted=True),
            "COST": _file("SKU;PRICE", (f"{sku};{self.prices[sku]}" for sku in changed["COST"])),
            "INV": _file("NO;CUST;SKU;QTY;PRICE", (f"{key};{row}" for key, row in of_invoice.items())),
            "ORDERS": _file(
                "ORDER;CUST;NAME;PLACED;CURRENCY;SKU;QTY;PRICE",
                (f"{key};7;Ada;2026-11-20T08:15:00Z;EUR;0017;{quantity};9.50" for key, quantity in self.orders.items()),
                counted=True,
            ),
        }


def _file(header: str, rows: Iterator[str], *, counted: bool = False) -> str:
    lines = list(rows)
    return "\n".join([header, *lines, *([f"TRL;{len(lines)}"] if counted else [])]) + "\n"


@dataclass(frozen=True, slots=True)
class Backup:
    """All rows of a state by table, and the folder beside it; as both were at one moment."""

    name: str
    rows: Mapping[str, list[dict[str, Any]]]
    folder: Path


class Site:
    """A folder with a config, a state, and two targets."""

    def __init__(
        self, folder: Path, platform: SandboxServer, partner: Plain3pl, url: str, state: str, *, looks_up: bool
    ) -> None:
        self.folder, self._platform, self.partner, self._state_url = folder, platform, partner, state
        partner.warehouse.add_product("acme", "0017")
        config = yaml.safe_load(CONFIG)
        config["platform"] |= {"base_url": platform.base_url, "tenant": platform.tenant, "in_flight": 4}
        config["platform"]["lookup"] = {"enabled": looks_up}
        config["state"] = state
        config["spool"] = "spool"
        plain = config["connections"]["plain"]
        plain["base_url"] = url
        plain["target"]["resources"]["orders"] |= HEADERS | {"look_up": LOOK_UP}
        wms = config["connections"]["wms"]
        wms["streams"] = {**STREAMS, "orders": wms["streams"]["orders"]}
        self._config = folder / "crossdock.yaml"
        self._config.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
        self._exports, self.warned, self.forgotten = 0, False, set[str]()
        self._to_archive = list[Path]()
        assert self.run("init").exit_code == 0

    def run(self, *arguments: str) -> Done:
        secrets = {"CROSSDOCK_API_KEY": self._platform.api_key, "DEPOT_KEY": API_KEY}
        return in_process(self._config, *arguments, environment=secrets)

    def export(self, source: Source) -> None:
        self._exports += 1
        (self.folder / "out").mkdir(exist_ok=True)
        for name, content in source.files().items():
            if content.count("\n") > 1:
                path = self.folder / "out" / f"{name}_{self._exports:04}.csv"
                path.write_text(content, encoding="utf-8")
                os.utime(path, (1_790_000_000 + self._exports * 60,) * 2)
                if name == "INV" and source.archives:
                    self._to_archive.append(path)

    def sync(self, most: int = 1) -> None:
        """A sync, again until nothing is open, *most* times; the price of a product that is gone since may wait."""
        for _ in range(most):
            done = self.run("sync", "--json")
            assert done.exit_code in {0, 1}, f"{done.exit_code}\n{done.stderr}{done.stdout}"
            balance(done.document)
            self.warned = self.warned or "no source lists any more" in done.stderr
            rejected = json.loads(self.run("records", "list", "--json", "--state", "rejected").stdout)
            if all(each["why"].startswith("referenced_by") for each in rejected) and not any(
                number for state, number in done.document["open"].items() if state not in {"waiting", "rejected"}
            ):
                return
        raise AssertionError(f"{done.document['open']}\n{self.run('records', 'list').stdout}")

    def archive(self) -> None:
        """Move files of invoices, which were delivered, to where no sync reads them."""
        while self._to_archive:
            self._to_archive.pop().unlink()

    # ---- backups

    @contextmanager
    def _engine(self) -> Iterator[Engine]:
        engine = create_engine(
            self._state_url.replace("sqlite:///", f"sqlite:///{self.folder}/").replace("ql://", "ql+psycopg://")
        )
        yield engine
        engine.dispose()

    def backup(self, name: str) -> Backup:
        """The state as it is now, also in the middle of a run."""
        kept, beside = self.folder / "backups" / name, self.folder / "spool.keys"
        kept.mkdir(parents=True)
        if beside.exists():
            shutil.copytree(beside, kept, dirs_exist_ok=True)
        with self._engine() as engine, engine.connect() as connection:
            if engine.dialect.name == "postgresql":
                connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
            found = {table.name: connection.execute(select(table)).mappings().all() for table in TABLES}
        return Backup(name, {table: [dict(row) for row in rows] for table, rows in found.items()}, kept)

    def restore(self, backup: Backup, *, whole: bool) -> None:
        """Put the state back, and with *whole* the folder beside it."""
        known = {f"wms:{each['key']}" for each in backup.rows["bindings"] if each["target"] == "plain"}
        orders = self.partner.warehouse.tables["orders"].values()
        self.forgotten |= {each.members["reference"] for each in orders} - known
        with self._engine() as engine, engine.begin() as connection:
            for table in reversed(TABLES):
                connection.execute(delete(table))
            for table in TABLES:
                if backup.rows[table.name]:
                    connection.execute(insert(table), backup.rows[table.name])
        if whole:
            shutil.rmtree(self.folder / "spool.keys", ignore_errors=True)
            shutil.copytree(backup.folder, self.folder / "spool.keys")

    # ---- what the targets hold

    def effects(self) -> int:
        with self._client() as client:
            found = client.get("/_sandbox/effects", params={"limit": 10_000}).json()["data"]
        return len(found) + len(self.partner.effects)

    @contextmanager
    def _client(self) -> Iterator[httpx.Client]:
        headers = {"authorization": f"Bearer {self._platform.api_key}", "x-tenant-slug": self._platform.tenant}
        with httpx.Client(base_url=self._platform.base_url, headers=headers, trust_env=False, timeout=60) as client:
            yield client

    def judge(self, source: Source) -> None:
        """Assert that both targets hold what *source* says, and nothing else."""
        with self._client() as client:
            customers, products, invoices = (_records(client, name) for name in ("customer", "product", "invoice"))
        _same(
            ((each["externalId"], each["name"]) for each in customers),
            ((f"wms:{key}", name) for key, name in source.held_customers().items()),
        )
        _same(
            ((each["externalId"], each["name"], str(each.get("unitPrice"))) for each in products),
            ((f"wms:{sku}", name, str(_number(source.prices[sku]))) for sku, name in source.products.items()),
        )
        names = {each["id"]: each["externalId"].partition(":")[2] for each in (*customers, *products)}
        sold = (
            (names[each["customerId"]], names[line["productId"]], str(line["quantity"]), str(line["unitPrice"]))
            for each in invoices
            for line in each["items"]
        )
        _same(sold, ((*row[:3], str(_number(row[3]))) for row in source.invoices.values()))
        orders = [each.members for each in self.partner.warehouse.tables["orders"].values()]
        held = (
            (each["reference"], str(each["lines"][0]["quantity"])) for each in orders if each["status"] != "cancelled"
        )
        wanted = Counter((f"wms:{key}", quantity) for key, quantity in source.orders.items())
        found = list(held)
        if self.warned:  # that some can only be seen in a list of all orders of the partner
            wanted.update(each for each in found if each[0] in self.forgotten - {name for name, _ in wanted})
        _same(found, wanted.elements())


def _same(held: Iterable[tuple[str, ...]], wanted: Iterable[tuple[str, ...]]) -> None:
    found, expected = Counter(held), Counter(wanted)
    assert found == expected, f"missing: {dict(expected - found)}; too many: {dict(found - expected)}"


def _number(text: str) -> Decimal:
    return Decimal(text).normalize()


def _records(client: httpx.Client, resource: str) -> list[dict[str, Any]]:
    found, cursor = [], None
    while True:
        params = {"limit": 1000} | ({"cursor": cursor} if cursor else {})
        page = httpx.Response.json(client.get(LISTS[resource], params=params), parse_float=_number)
        found += page["data"]
        if not (cursor := page.get("nextCursor")):
            return found


def run_trial(
    folder: Path,
    platform: SandboxServer,
    state: str,
    *,
    seed: int,
    nights: int,
    restores: int,
    ways: tuple[Way, ...] = WAYS,
    looks_up: bool = True,
) -> Counter[str]:
    """Take a backup before, in the middle of and after each of *nights*, then restore *restores* of them in turn.

    Args:
        looks_up: Whether records of the platform can be looked up by their names.

    Returns:
        How often which way of restoring was tried, and how many operations the backups had forgotten.
    """
    chance, tried = Random(seed), Counter[str]()
    partner = Plain3pl()
    arriving: list[Callable[[], None]] = []

    def listen(_: PartnerRequest) -> bool:
        while arriving:
            arriving.pop()()
        return False

    with serving(PartnerServer(partner, chosen=listen)) as server:
        site, source = Site(folder, platform, partner, server.url, state, looks_up=looks_up), Source(Random(seed))
        backups = list[Backup]()
        for night in range(nights):
            source.night()
            site.export(source)
            arriving.append(lambda: backups.append(site.backup(f"{len(backups)}-amid")))  # at the night's first order
            site.sync(2)
            site.archive()
            arriving.clear()
            backups.append(site.backup(f"{len(backups)}-after-{night}"))
        site.judge(source)
        often = restores // len(backups) + 1  # a night without an order has one backup only
        chosen = chance.sample(backups * often, k=restores)
        for number, backup in enumerate(chosen):
            way = ways[number % len(ways)]
            before = site.effects()
            site.restore(backup, whole=way == "whole folder")
            if chance.random() < 0.7:
                source.night()
                site.export(source)
            if way != "declared" and backup is not backups[-1]:
                stopped = site.run("sync")
                assert stopped.exit_code == 4, (
                    f"{backup.name} {way}: {stopped.exit_code}\n{stopped.stderr}{stopped.stdout}"
                )
                assert "crossdock state restored" in stopped.stderr
                assert site.effects() == before, f"{backup.name} {way}: something was sent"
            declared = site.run("state", "restored")
            assert declared.exit_code == 0, declared.stderr
            site.sync(3)
            site.archive()
            try:
                site.judge(source)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, {backup.name}, {way}: {error}") from error
            tried[way] += 1
    return tried
