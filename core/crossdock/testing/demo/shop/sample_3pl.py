"""A made-up 3PL with a plain API: it takes and cancels orders, ships them in parcels, and reports its stock."""

from __future__ import annotations

from typing import Any

from crossdock.testing.demo.shop.json_server import ApiRequest, ApiResponse

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

    def respond(self, call: ApiRequest) -> ApiResponse:
        if call.headers.get("api-key") != self._key:
            return ApiResponse(401, {"message": "the header Api-Key has no valid key"})
        return self._answer(call) or ApiResponse(404, {"message": "not found"})

    def _answer(self, call: ApiRequest) -> ApiResponse | None:
        match call.method, call.path:
            case "GET", "/orders":
                wanted = call.params.get("reference")
                return ApiResponse(
                    200, {"items": [each for each in self.orders if wanted in {None, each["reference"]}]}
                )
            case "POST", "/orders":
                return self._take_order(dict(call.body))
            case "GET" | "DELETE", path if path.startswith("/orders/"):
                return self._show_or_cancel_order(call.method, path.removeprefix("/orders/"))
            case "GET", "/shipments":
                if self._ships_when_asked:
                    self.ship_all_orders()
                return ApiResponse(200, {"items": self.shipments})
            case "GET", "/stock":
                stock = [{"sku": sku, "location": LOCATION, "quantity": units} for sku, units in self._stock.items()]
                return ApiResponse(200, {"items": stock})
        return None

    def _take_order(self, order: dict[str, Any]) -> ApiResponse:
        if any(each["reference"] == order["reference"] for each in self.orders):
            return ApiResponse(409, {"message": "duplicate reference"})
        self._taken += 1
        order["id"] = self._taken
        self.orders.append(order)
        return ApiResponse(201, order)

    def _show_or_cancel_order(self, method: str, number: str) -> ApiResponse | None:
        order = next((each for each in self.orders if str(each["id"]) == number), None)
        if method == "DELETE" and order is not None:
            if order["id"] in self._shipped_order_ids():
                return ApiResponse(409, {"message": "the order is shipped"})
            self.orders.remove(order)
        return None if order is None else ApiResponse(200, order)

    def _shipped_order_ids(self) -> set[int]:
        return {each["order_id"] for each in self.shipments}

    def ship_all_orders(self) -> None:
        """Ship every order: the first item of an order in one parcel, and the rest in another."""
        shipped = self._shipped_order_ids()
        for order in (each for each in self.orders if each["id"] not in shipped):
            first, *rest = order["lines"]
            for lines in filter(None, ([first], rest)):
                self._ship_parcel(order, lines)

    def _ship_parcel(self, order: dict[str, Any], lines: list[dict[str, Any]]) -> None:
        for line in lines:
            self._stock[line["sku"]] -= int(line["quantity"])
        number = f"SP{len(self.shipments) + 1:06}"
        shipment = {"order_id": order["id"], "shop_order": order["shop_order"], "carrier": CARRIER, "number": number}
        self.shipments.append({**shipment, "lines": lines})
