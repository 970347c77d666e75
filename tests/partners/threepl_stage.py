"""A whole flow for tests: exports of a shop in a folder, the platform as a sandbox, and a 3PL that ships the orders.

The shop's customers, products and orders go to the platform, and its orders to the 3PL as well, under the same keys.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.partners.stage import Project

from crossdock.sandbox import SandboxServer
from crossdock.testing.sandbox_syncs import write_private_file
from crossdock.values.clock import Clock

LONG_AGO = 1_300_000_000  # a file written just now would be watched for a while before it is read
_FILES = {"format": {"delimiter": ";"}, "mode": "append"}


def shop(to: str, order: Mapping[str, Any]) -> dict[str, Any]:
    """The connection of the shop.

    Args:
        to: Where its orders go besides the platform.
        order: The map of such an order, of the columns ORDER, CUSTOMER, SKU, UNITS and PRICE of its lines.
    """
    orders = {**_FILES, "files": "ORDERS_*.csv", "key": ["ORDER"], "group_by": ["ORDER"]}
    line = {
        "productId": {"ref": "product", "key": "SKU"},
        "quantity": {"from": "UNITS", "as": "decimal"},
        "unitPrice": {"from": "PRICE", "as": "decimal"},
    }
    platform_order = {
        "customerId": {"ref": "customer", "key": "CUSTOMER"},
        "currency": {"const": "USD"},
        "placedAt": {"const": "2026-03-01T08:00:00Z"},
        "items": {"each": line},
    }
    products = {**_FILES, "files": "PRODUCTS_*.csv", "key": ["SKU"]}
    customers = {**_FILES, "files": "CUSTOMERS_*.csv", "key": ["CUSTOMER"]}
    return {
        "kind": "folder_warehouse",
        "path": "exports",
        "streams": {
            "products": {**products, "resource": "product", "map": {"sku": "SKU", "name": "NAME"}},
            "customers": {**customers, "resource": "customer", "map": {"name": "NAME"}},
            "orders": {**orders, "resource": "order", "map": platform_order},
            "orders_out": {
                **orders,
                "to": to,
                "map": dict(order),
                "deleted": {"field": "STATE", "equals": "cancelled"},
                "on_gone": "delete",
                "gone": {"at_most_percent": 100},
            },
        },
    }


class Stage(Project):
    """A config of the shop and of a 3PL, whose connection is called ``depot``.

    Args:
        secrets: Texts of the settings of *depot* that are secrets, by their name.
    """

    def __init__(
        self,
        folder: Path,
        sandbox: SandboxServer,
        depot: Mapping[str, Any],
        order: Mapping[str, Any],
        secrets: Mapping[str, str],
        clock: Clock,
    ) -> None:
        self.exports = folder / "exports"
        self.exports.mkdir()
        known = {name: write_private_file(folder / name, secret) for name, secret in secrets.items()}
        connections = {"shop": shop("depot.orders", order), "depot": {**depot, **known}}
        super().__init__(folder, sandbox, connections, clock)

    def export(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Write a file of the shop."""
        lines = [columns, *rows]
        path = self.exports / name
        path.write_text("".join(f"{';'.join(map(str, line))}\n" for line in lines), encoding="utf-8")
        os.utime(path, (LONG_AGO, LONG_AGO))

    def export_shop(self, skus: Sequence[str]) -> None:
        self.export("PRODUCTS_1.csv", ["SKU", "NAME"], [(sku, f"Product {sku}") for sku in skus])
        self.export("CUSTOMERS_1.csv", ["CUSTOMER", "NAME"], [("C1", "Ada")])

    def export_orders(
        self, name: str, orders: Mapping[str, Mapping[str, int]], price: str = "9.50", state: str = "open"
    ) -> None:
        """Orders as units by SKU; with the state ``cancelled`` they are cancelled."""
        rows = [
            (order, "C1", sku, units, price, state) for order, lines in orders.items() for sku, units in lines.items()
        ]
        self.export(f"ORDERS_{name}.csv", ["ORDER", "CUSTOMER", "SKU", "UNITS", "PRICE", "STATE"], rows)
