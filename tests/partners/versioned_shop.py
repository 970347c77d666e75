"""A fake shop with a plain API: customers, products, orders and invoices, whose versions count their changes."""

from __future__ import annotations

import threading
from typing import Any

from tests.partners.partner_server import PartnerAnswer, PartnerRequest

from crossdock.values import exact_json

_MEMBERS: dict[str, dict[str, Any]] = {
    "customers": {"name": "name"},
    "products": {"sku": "sku", "name": "name"},
    "orders": {
        "customerId": {"ref": "customer", "key": "customer"},
        "currency": "currency",
        "placedAt": "placed",
        "status": "status",
        "items": {
            "of": "items",
            "each": {
                "productId": {"ref": "product", "key": "product"},
                "quantity": {"from": "quantity", "as": "decimal"},
                "unitPrice": {"from": "price", "as": "decimal"},
            },
        },
    },
}
_INVOICE = {name: _MEMBERS["orders"][name] for name in ("customerId", "currency", "items")}
STREAMS = ("customers", "products", "orders", "invoices")


class VersionedShop:
    """Answers ``/STREAM`` with all records and ``/STREAM/ID`` with one.

    Attributes:
        effects: Always empty: nothing is written to the shop.
        records: Of each stream, by id.
        fetched: How often each path of one record was asked for.
        failing: Paths that are answered 503.
    """

    def __init__(self) -> None:
        self.effects: list[dict[str, Any]] = []
        self.records: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in STREAMS}
        self.fetched: dict[str, int] = {}
        self.failing: set[str] = set()
        self._lock = threading.Lock()

    def put(self, stream: str, key: str, **members: Any) -> None:
        """Create or change a record; its version becomes one higher."""
        with self._lock:
            before = self.records[stream].get(key, {"version": 0})
            self.records[stream][key] = before | {"id": key, "version": before["version"] + 1} | members

    def put_customer(self, key: str) -> None:
        """Create or change a customer, whose name tells the version."""
        version = self.records["customers"].get(key, {"version": 0})["version"] + 1
        self.put("customers", key, name=f"{key} version {version}")

    def put_product(self, key: str) -> None:
        self.put("products", key, sku=key, name=f"Part {key}")

    def put_order(self, key: str, customer: str, product: str) -> None:
        """Create or change an order of one line, whose status tells the version."""
        version = self.records["orders"].get(key, {"version": 0})["version"] + 1
        self.put("orders", key, **_sale(customer, product), placed="2026-07-01T00:00:00Z", status=f"version-{version}")

    def put_invoice(self, key: str, customer: str, product: str, price: str) -> None:
        """Create an invoice of one line; the platform does not let it change."""
        self.put("invoices", key, **_sale(customer, product, price))

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        stream, _, key = request.path.removeprefix("/").partition("/")
        if request.path in self.failing:
            return PartnerAnswer(503, {"message": "try again later"})
        if not key:
            return PartnerAnswer(200, {"items": list(self.records[stream].values())})
        self.fetched[request.path] = self.fetched.get(request.path, 0) + 1
        found = self.records[stream].get(key)
        return PartnerAnswer(404) if found is None else PartnerAnswer(200, found)

    def throttled(self) -> PartnerAnswer:
        return PartnerAnswer(429)


def _sale(customer: str, product: str, price: str = "1.50") -> dict[str, Any]:
    return {
        "customer": customer,
        "currency": "EUR",
        "items": [{"product": product, "quantity": 1, "price": exact_json.loads(price)}],
    }


def connection(url: str, secrets: list[str]) -> dict[str, Any]:
    """The connection of the shop at *url*, as in a config file.

    Args:
        secrets: References to those that sign its webhooks.
    """
    resources = dict(zip(STREAMS, ("customer", "product", "order", "invoice"), strict=True))
    return {
        "kind": "http_json",
        "base_url": url,
        "pagination": {"kind": "single_page"},
        "rate": {"per_minute": 600_000, "burst": 100_000},
        "streams": {name: _stream(name, resource) for name, resource in resources.items()},
        "webhooks": {
            "secrets": secrets,
            "topic_member": "/type",
            "hints": [{"stream": name, "key": "/data/id", "topics": [f"{name}.changed"]} for name in STREAMS],
        },
    }


def _stream(name: str, resource: str) -> dict[str, Any]:
    return {
        "path": f"/{name}",
        "records": "items",
        "mode": "incremental",
        "key": ["id"],
        "order_by": [{"column": "version", "as": "integer"}],
        "resource": resource,
        "fetch": {"path": f"/{name}/{{id}}"},
        "map": _MEMBERS.get(name, _INVOICE),
    }
