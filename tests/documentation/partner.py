"""The shop and the help desk that pages name: fixed lists of orders, products and items."""

from __future__ import annotations

from typing import Any

from tests.partners.partner_server import PartnerAnswer, PartnerRequest

ORDERS = [
    {"id": 1000 + number, "number": f"SO-{number}", "customer_id": 12, "currency": "EUR", "loyalty_card": "L-77",
     "created_at": "2026-11-20T10:00:00Z", "updated_at": "2026-11-20T10:00:00Z",
     "lines": [{"sku": "0017", "quantity": 2, "price": "9.50"}]}
    for number in range(1, 21)
]  # fmt: skip
PRODUCTS = [{"id": 1, "sku": "0017", "title": "Desk lamp", "price": "24.90"}]
ITEMS = [{"id": number, "sku": f"DESK-{number}", "title": f"Item {number}"} for number in (17, 18)]


class Partner:
    """Answers ``/orders``, ``/products``, ``/items`` and the same with an id."""

    def __init__(self) -> None:
        self.effects: list[dict[str, Any]] = []

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        lists: dict[str, list[dict[str, Any]]] = {"orders": ORDERS, "items": ITEMS, "products": PRODUCTS}
        name, _, key = request.path.removeprefix("/").partition("/")
        if name not in lists:
            return PartnerAnswer(404)
        if not key:
            return PartnerAnswer(200, {name: lists[name]})
        found = [each for each in lists[name] if str(each["id"]) == key]
        return PartnerAnswer(200, {name.removesuffix("s"): found[0]}) if found else PartnerAnswer(404)

    def throttled(self) -> PartnerAnswer:
        return PartnerAnswer(429)
