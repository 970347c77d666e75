"""The way of orders from the platform to a warehouse and back, over a real ``sshd``, in several kinds of files."""

from __future__ import annotations

import json
import os
from collections import Counter
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import yaml
from tests.chaos import processes
from tests.e2e.project_folder import LISTS, UNPACED, SandboxProcess
from tests.ended_commands import Done
from tests.partners.order_depot import Kind, Lines, OrderDepot

from crossdock.testing.openssh_server import OpenSshServer

CONFIG = Path(__file__).parents[2] / "configs/warehouse_exchange.yaml"
ARTICLES = [f"ART-{number:02}" for number in range(20)]
_ACTION = {"from": "operation", "table": {"create": "NEW", "update": "CHANGE", "delete": "CANCEL"}}
_CODE = {"from": "operation", "table": {"create": "A", "update": "C", "delete": "D"}}
_QUANTITY = {"from": "line.quantity", "as": "decimal", "decimals": 3, "fill": "0"}
CONTENTS: dict[Kind, dict[str, Any] | None] = {
    "csv": None,  # that of the config
    "fixed": {
        "kind": "fixed_width",
        "length": 60,
        "rows": [
            {
                "columns": {
                    "type": {"at": 1, "length": 1, "template": "O"},
                    "order": {"at": 2, "length": 40, "template": "{external_id}"},
                    "action": {"at": 42, "length": 1, **_CODE},
                }
            },
            {
                "each": "lines",
                "columns": {
                    "type": {"at": 1, "length": 1, "template": "L"},
                    "sku": {"at": 2, "length": 20, "template": "{line.sku}"},
                    "quantity": {"at": 22, "length": 9, **_QUANTITY},
                },
            },
        ],
        "trailer": [
            {
                "columns": {
                    "type": {"at": 1, "length": 1, "template": "T"},
                    "orders": {"at": 2, "length": 6, "from": "records", "as": "integer", "fill": "0"},
                    "units": {"at": 8, "length": 12, "sum": "lines.quantity", "decimals": 3, "fill": "0"},
                }
            }
        ],
    },
    "xml": {
        "kind": "xml",
        "record": "/Orders/Order",
        "rows": [
            {
                "columns": {
                    "@action": _ACTION,
                    "Number": "{external_id}",
                    "Lines/Line": {"each": "lines", "columns": {"Sku": "{line.sku}", "Quantity": "{line.quantity}"}},
                }
            }
        ],
    },
    "x12": {
        "kind": "x12",
        "set": "940",
        "sender": "ACME",
        "receiver": "DEPOT",
        "rows": [  # the standard has 22 characters for the number of an order, and ids of the platform have more
            ["W05", {"from": "operation", "table": {"create": "N", "update": "R", "delete": "F"}}, "{external_id}"],
            {
                "each": "lines",
                "rows": [
                    ["LX", "{line_number}"],
                    ["W01", {"from": "line.quantity", "as": "decimal"}, "EA", "", "VN", "{line.sku}"],
                ],
            },
            ["W76", {"sum": "lines.quantity"}],
        ],
    },
}
ACKNOWLEDGED_997 = {
    "files": "out/ack_*.edi",
    "required": False,
    "format": {"kind": "x12", "layout": "x12/997"},
    "mode": "append",
    "key": ["interchange", "group", "set_control"],
    "to": "wms.acknowledgements",
    "map": {
        "number": "group",
        "control": "set_control",
        "accepted": {"from": "status", "table": {"A": True, "E": True, "R": False}},
        "reason": {"from": "error", "empty": "null"},
    },
}


class Stage:
    """A platform with orders, a warehouse behind ``sshd``, and the config between them."""

    def __init__(self, stack: ExitStack, folder: Path, kind: Kind, per_file: int) -> None:
        self.folder, self.kind = folder, kind
        self.depot = OrderDepot(folder / "depot", kind)
        self.platform = stack.enter_context(SandboxProcess(folder / "sandbox", UNPACED))
        server = stack.enter_context(OpenSshServer(self.depot.folder))
        (folder / "key").touch(0o600)
        (folder / "key").write_text(server.client_key)
        self._configure(server, per_file)
        self.environment = {**os.environ, "CROSSDOCK_API_KEY": self.platform.api_key}
        done = self.run("init")
        assert done.exit_code == 0, done.stderr

    def run(self, *arguments: str) -> Done:
        command = ["-m", "crossdock", "-C", str(self.folder / "crossdock.yaml"), *arguments]
        return processes.finish(command, self.environment, within_s=1_800)

    def sync(self, exit_code: int = 0) -> dict[str, Any]:
        done = self.run("sync", "--json")
        if done.exit_code != exit_code:
            raise AssertionError(f"{done.exit_code}: {done.stderr}{self.run('records', 'list').stdout[:3000]}")
        assert done.document["balanced"]
        return done.document

    def write(self, resource: str, body: dict[str, Any], record: str = "") -> str:
        """Create a record of the platform, or change one, and return its id."""
        if record:
            self.platform.patch(f"{LISTS[resource]}/{record}", body)
            return record
        return str(self.platform.create(LISTS[resource], body)["id"])

    def _configure(self, server: OpenSshServer, per_file: int) -> None:
        document = yaml.safe_load(CONFIG.read_text())
        document["platform"] |= {"base_url": self.platform.base_url, "tenant": self.platform.tenant}
        document["state"] = "sqlite:///state.db"
        wms = document["connections"]["wms"]
        del wms["path"]
        wms |= {"kind": "sftp_warehouse", "host": server.host, "port": server.port, "user": server.user}
        wms |= {"host_key": server.fingerprint, "private_key": f"file:{self.folder / 'key'}", "settle_s": 0}
        resource = wms["target"]["resources"]["orders"]
        resource["records_per_file"] = per_file
        if (content := CONTENTS[self.kind]) is not None:
            resource["content"], resource["file"] = content, "ord_{at:%Y%m%d}_{number:6}.dat"
        if self.kind == "x12":
            wms["streams"]["acknowledgements"] = ACKNOWLEDGED_997
        (self.folder / "crossdock.yaml").write_text(yaml.safe_dump(document, sort_keys=False))


def orders_go_and_come_back(folder: Path, kind: Kind, orders: int, seed: int) -> Counter[str]:
    """Each order arrives once, changes and cancellations in order; what is shipped and the stock come back equal."""
    random = Random(f"days {seed}")
    with ExitStack() as stack:
        stage = Stage(stack, folder, kind, per_file=max(5, orders // 8))
        depot = stage.depot
        customer = stage.write("customer", {"externalId": "shop:1", "name": "Ann"})
        products = {
            sku: stage.write("product", {"externalId": f"erp:{sku}", "sku": sku, "name": sku}) for sku in ARTICLES
        }
        placed = dict[str, Lines]()
        for number in range(orders):
            lines = {sku: Decimal(random.randint(2, 40)) for sku in random.sample(ARTICLES, random.randint(1, 4))}
            placed[stage.write("order", _order(number, customer, lines, products))] = lines
        expected = {order: [("NEW", lines)] for order, lines in placed.items()}
        depot.refuses = set(random.sample(sorted(placed), 3))
        refused = set(depot.refuses)
        stage.sync()
        files = depot.take()
        assert depot.orders() == expected
        depot.acknowledge()
        stage.sync(1)
        assert {each["why"].partition(":")[0] for each in _open(stage)} == {"rejected"}
        stage.run("records", "replay", "erp.orders_out")
        files += depot.take()
        depot.acknowledge()
        stage.sync()
        assert depot.orders() == expected

        changed = random.sample(sorted(placed.keys() - refused), max(2, orders // 20))
        cancelled = set(changed[: len(changed) // 2])
        for order in changed:
            if order in cancelled:
                stage.write("order", {"status": "cancelled"}, order)
                expected[order].append(("CANCEL", placed[order]))
            else:
                placed[order] = {sku: qty + 1 for sku, qty in placed[order].items()}
                items = _items(placed[order], products)
                stage.write("order", {"items": items}, order)
                expected[order].append(("CHANGE", placed[order]))
        stage.sync()
        files += depot.take()
        assert depot.orders() == expected, "changes and cancellations"
        depot.acknowledge()
        stage.sync()

        shipped = {order: lines for order, lines in placed.items() if order not in cancelled}
        first = {order: {sku: Decimal(1) for sku in lines} for order, lines in shipped.items()}
        codes = [depot.ship(first, "PARTIAL")]
        stage.sync()
        rest = {order: {sku: qty - 1 for sku, qty in lines.items()} for order, lines in shipped.items()}
        codes.append(depot.ship(rest, "COMPLETE"))
        stock = {sku: Decimal(random.randint(0, 500)) for sku in ARTICLES}
        depot.stock(stock)
        stage.sync()
        assert not depot.take(), "something came back to the warehouse"
        held = {each["id"]: each for each in stage.platform.stored("order")}
        for order in shipped:
            assert held[order]["status"] == "shipped", order
            tracking = {each["number"] for each in held[order]["tracking"]}
            assert tracking == {each[order] for each in codes}, order
        assert all(held[order]["status"] == "cancelled" for order in cancelled)
        lots = {each["lotNumber"]: Decimal(str(each["quantity"])) for each in stage.platform.stored("inventory_lot")}
        assert lots == {f"{sku}/A": qty for sku, qty in stock.items()}
        assert not _open(stage)
        return Counter(orders=len(placed), files=files, versions=len(depot.book), shipments=2 * len(shipped))


def _open(stage: Stage) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(stage.run("records", "list", "--limit", "1000", "--json").stdout)
    return found


def _order(number: int, customer: str, lines: Lines, products: dict[str, str]) -> dict[str, Any]:
    address = {"name": "Ann", "line1": "1 Harbour Street", "city": "Port", "country": "DE"}
    about = {"externalId": f"shop:{number}", "customerId": customer, "currency": "EUR", "status": "released"}
    return about | {"placedAt": "2026-01-05T08:15:00Z", "items": _items(lines, products), "shippingAddress": address}


def _items(lines: Lines, products: dict[str, str]) -> list[dict[str, Any]]:
    return [{"productId": products[sku], "quantity": int(qty), "unitPrice": 10} for sku, qty in lines.items()]
