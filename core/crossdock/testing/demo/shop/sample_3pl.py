"""A made-up 3PL with a plain API: it takes and cancels orders, ships them in parcels, and reports its stock."""

from __future__ import annotations

from typing import Any

from crossdock.testing.demo.shop.json_server import Answer, Call

CARRIER, LOCATION = "Sample Parcel", "MAIN"


class Sample3pl:
    """Answers requests with *key*.

    Args:
        stock: Units by SKU.
        ships_when_asked: Whether all orders are shipped when shipments are requested.

    | request | answer |
    |---|---|
    | ``GET /orders``, ``/shipments``, ``/stock`` | ``{"items": [...]}``; orders may be filtered by ``reference`` |
    | ``POST /orders`` | the order; a repeated reference is refused by 409 |
    | ``GET /orders/ID`` | the order |
    | ``DELETE /orders/ID`` | it is cancelled; one that is shipped is refused by 409 |
    """

    def __init__(self, key: str, stock: dict[str, int], *, ships_when_asked: bool) -> None:
        self._key, self._stock, self._ships_when_asked = key, stock, ships_when_asked
        self.orders: list[dict[str, Any]] = []
        self.shipments: list[dict[str, Any]] = []
        self._taken = 0

    def respond(self, call: Call) -> Answer:
        if call.headers.get("api-key") != self._key:
            return Answer(401, {"message": "the header Api-Key has no valid key"})
        return self._answer(call) or Answer(404, {"message": "not found"})

    def _answer(self, call: Call) -> Answer | None:
        match call.method, call.path:
            case "GET", "/orders":
                wanted = call.params.get("reference")
                return Answer(200, {"items": [each for each in self.orders if wanted in {None, each["reference"]}]})
            case "POST", "/orders":
                return self._take(dict(call.body))
            case "GET" | "DELETE", path if path.startswith("/orders/"):
                return self._one(call.method, path.removeprefix("/orders/"))
            case "GET", "/shipments":
                if self._ships_when_asked:
                    self.work()
                return Answer(200, {"items": self.shipments})
            case "GET", "/stock":
                stock = [{"sku": sku, "location": LOCATION, "quantity": units} for sku, units in self._stock.items()]
                return Answer(200, {"items": stock})
        return None

    def _take(self, order: dict[str, Any]) -> Answer:
        if any(each["reference"] == order["reference"] for each in self.orders):
            return Answer(409, {"message": "duplicate reference"})
        self._taken += 1
        order["id"] = self._taken
        self.orders.append(order)
        return Answer(201, order)

    def _one(self, method: str, number: str) -> Answer | None:
        order = next((each for each in self.orders if str(each["id"]) == number), None)
        if method == "DELETE" and order is not None:
            if order["id"] in self._shipped():
                return Answer(409, {"message": "the order is shipped"})
            self.orders.remove(order)
        return None if order is None else Answer(200, order)

    def _shipped(self) -> set[int]:
        return {each["order_id"] for each in self.shipments}

    def work(self) -> None:
        """Ship every order: the first item of an order in one parcel, and the rest in another."""
        shipped = self._shipped()
        for order in (each for each in self.orders if each["id"] not in shipped):
            first, *rest = order["lines"]
            for lines in filter(None, ([first], rest)):
                self._ship(order, lines)

    def _ship(self, order: dict[str, Any], lines: list[dict[str, Any]]) -> None:
        for line in lines:
            self._stock[line["sku"]] -= int(line["quantity"])
        number = f"SP{len(self.shipments) + 1:06}"
        shipment = {"order_id": order["id"], "shop_order": order["shop_order"], "carrier": CARRIER, "number": number}
        self.shipments.append({**shipment, "lines": lines})
