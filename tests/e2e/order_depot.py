"""A folder of orders that crossdock sends to the fake 3PL with a plain API, and an independent account of them."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml
from tests.e2e.project_folder import balance, in_process
from tests.ended_commands import Done
from tests.partners.partner_server import Fault, PartnerRequest, PartnerServer, serving
from tests.partners.plain_3pl import API_KEY, Plain3pl
from tests.partners.plain_3pl_habits import Habits
from tests.plan_and_sync import differences

CONFIG = """
platform: {base_url: "http://127.0.0.1:9", tenant: acme, auth: {kind: api_key, token: env:CROSSDOCK_API_KEY}}
state: sqlite:///state.db
connections:
  plain:
    kind: http_json
    auth: {kind: header, name: Api-Key, value: env:DEPOT_KEY}
    rate: {per_minute: 600000, burst: 10000}
    throttled: [{status: 403, text: too many requests}]
    target:
      retry: {base_s: 0.01, cap_s: 0.05}
      settle_s: 0
      resources:
        orders:
          members:
            owner: {type: text, required: true}
            placed_at: instant
            currency: text
            customer: {type: object, members: {code: text, name: {type: text, personal: true}}}
            lines:
              type: list
              required: true
              members:
                sku: {type: text, required: true, max_length: 20}
                quantity: {type: number, required: true}
                unit_price: number
          name: reference
          create: POST /v1/orders
          update: PATCH /v1/orders/{id}
          delete: POST /v1/orders/{id}/cancel
          deleted: {field: status, equals: Void}
          read: GET /v1/orders/{id}
  wms:
    kind: folder_warehouse
    path: out
    settle_s: 0
    streams:
      orders:
        files: "ORDERS_*.csv"
        mode: snapshot
        key: [ORDER]
        group_by: [ORDER]
        format: {kind: delimited, delimiter: ";", trailer: {prefix: "TRL;", count: 1}}
        to: plain.orders
        on_gone: delete
        gone: {at_most_percent: 100, rows_within_percent: 100}
        map:
          owner: {const: acme}
          placed_at: {from: PLACED, as: instant}
          currency: CURRENCY
          customer: {object: {code: CUST, name: NAME}}
          lines:
            each:
              sku: SKU
              quantity: {from: QTY, as: decimal}
              unit_price: {from: PRICE, as: decimal}
"""
HEADER = ("ORDER", "CUST", "NAME", "PLACED", "CURRENCY", "SKU", "QTY", "PRICE")
LOOK_UP: Mapping[str, Any] = {
    "path": "/v1/orders",
    "params": {"owner": "acme", "reference": "{name}"},
    "records": "items",
}
HEADERS = {"idempotency_header": "Idempotency-Key"}
REPEATED = {"look_up": LOOK_UP, "repeated": {"status": 422, "text": "duplicate_reference"}}
FAILED: Mapping[str, Any] = {
    "when": {"field": "Success", "equals": "false"},
    "statuses": {"not_found": 404, "too_late": 409, "changed_meanwhile": 412},
}

Line = tuple[str, str, str]  # SKU, quantity, price


def some_orders(number: int) -> dict[str, list[Line]]:
    """Orders by key, of one to three lines."""
    lines = [("0017", "2", "9.50"), ("0018", "1.25", "0.3333"), ("0017", "7", "123456789012.10")]
    return {f"SO-{each:03}": lines[: 1 + each % 3] for each in range(number)}


class Depot:
    """A 3PL at work, and the project that sends orders to it.

    Args:
        resource: Further settings of the resource.
        target: Further settings of the target.
    """

    def __init__(
        self, folder: Path, server: PartnerServer, resource: Mapping[str, Any], target: Mapping[str, Any]
    ) -> None:
        self.folder, self.server, self.exports = folder, server, 0
        assert isinstance(server.partner, Plain3pl)
        self.partner = server.partner
        for sku in ("0017", "0018"):
            self.partner.warehouse.add_product("acme", sku)
        self.config: dict[str, Any] = yaml.safe_load(CONFIG)
        self.plain["base_url"] = server.url
        self.plain["target"].update(target)
        self.plain["target"]["resources"]["orders"].update(resource)
        (folder / "out").mkdir(exist_ok=True)
        self.configure()

    @property
    def plain(self) -> dict[str, Any]:
        section: dict[str, Any] = self.config["connections"]["plain"]
        return section

    def configure(self) -> None:
        (self.folder / "c.yaml").write_text(yaml.safe_dump(self.config, sort_keys=False))

    def export(self, orders: Mapping[str, list[Line]]) -> None:
        """Write the orders to a new file, which is old enough to be whole."""
        self.exports += 1
        path = self.folder / "out" / f"ORDERS_{self.exports:03}.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file, delimiter=";", lineterminator="\n")
            writer.writerow(HEADER)
            for key, lines in orders.items():
                for line in lines:
                    writer.writerow((key, "C-1", "Ann Example", "2026-01-01T00:00:00Z", "EUR", *line))
            file.write(f"TRL;{sum(map(len, orders.values()))}\n")
        os.utime(path, (1_600_000_000 + self.exports, 1_600_000_000 + self.exports))

    # ---- commands

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "CROSSDOCK_API_KEY": "unused", "DEPOT_KEY": API_KEY}

    def run(self, *arguments: str) -> Done:
        """Run a command in this process."""
        done = in_process(self.folder / "c.yaml", *arguments, environment=self.environment)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def init(self) -> None:
        done = self.run("init")
        assert done.exit_code == 0, done.stderr

    def plan(self) -> dict[str, Any]:
        return self.run("plan", "--json").document

    def sync(self, exit_code: int = 0) -> dict[str, Any]:
        """A sync whose tally balances."""
        done = self.run("sync", "--json")
        assert done.exit_code == exit_code, f"{done.stderr}{done.stdout}"
        balance(done.document)
        return done.document

    def planned_sync(self, *, looked_up: bool = False) -> dict[str, Any]:
        """A sync that does what a plan before it says."""
        planned, report = self.plan(), self.sync()
        assert differences(planned, report, looked_up=looked_up) == []
        return report

    # ---- the account

    def created(self) -> Counter[str]:
        """How often an order was created, by its reference."""
        return Counter(each["body"]["reference"] for each in self.partner.effects if each["kind"] == "order_created")

    def held(self) -> Counter[str]:
        """The bodies of the orders that are not cancelled, as a multiset: creates and merge patches of the effects."""
        bodies: dict[str, Any] = {}
        for effect in self.partner.effects:
            match effect["kind"]:
                case "order_created":
                    bodies[effect["id"]] = effect["body"]
                case "order_patched":
                    bodies[effect["id"]] = bodies[effect["id"]] | effect["body"]
                case "order_replaced":
                    bodies[effect["id"]] = effect["body"]
                case "order_cancelled":
                    del bodies[effect["id"]]
        return Counter(map(_canonical, bodies.values()))


def expected(orders: Mapping[str, Iterable[Line]]) -> Counter[str]:
    """What the 3PL must hold, computed with the standard library alone."""
    return Counter(
        _canonical(
            {
                "owner": "acme",
                "reference": f"wms:{key}",
                "placed_at": "2026-01-01T00:00:00Z",
                "currency": "EUR",
                "customer": {"code": "C-1", "name": "Ann Example"},
                "lines": [
                    {"sku": sku, "quantity": Decimal(quantity), "unit_price": Decimal(price)}
                    for sku, quantity, price in lines
                ],
            }
        )
        for key, lines in orders.items()
    )


def _canonical(body: Any) -> str:
    return json.dumps(body, sort_keys=True, default=lambda number: f"{number.normalize():f}").replace('"', "")


@contextmanager
def depot(
    folder: Path,
    habits: Habits | None = None,
    resource: Mapping[str, Any] = HEADERS,
    *,
    target: Mapping[str, Any] = {},
    faults: Mapping[Fault, float] = {},
    seed: int = 1,
    begin: bool = True,
) -> Iterator[Depot]:
    """A depot whose writes have faults.

    Args:
        seed: Of the faults.
        begin: Create the state.
    """
    server = PartnerServer(Plain3pl(habits), faults, seed, chosen=_writes)
    with serving(server):
        made = Depot(folder, server, resource, target)
        if begin:
            made.init()
        yield made


def _writes(request: PartnerRequest) -> bool:
    return request.method != "GET"
