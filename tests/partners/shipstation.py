"""A fake of ShipStation's API V1: orders by their ``orderKey``, and the labels that the warehouse buys.

Made of the public pages "ShipStation API V1 Requirements", "Create/Update Order", "List Orders" and "List Shipments" of
docs.shipstation.com (apis/shipstation-v1) and www.shipstation.com/docs/api:

- Basic authentication with key and secret; 40 requests a minute, told by ``X-Rate-Limit-Limit``, ``-Remaining`` and
  ``-Reset``, the seconds until the next window; a 429 has no ``Retry-After``.
- Times are those of the Pacific coast, without a zone, in requests and answers.
- ``POST /orders/createorder`` creates the order of an unknown ``orderKey`` and replaces that of a known one; members
  that are left out are cleared. Orders that are shipped or cancelled are refused.
- Lists have ``page``, ``pages`` and ``total``, and at most 500 records on a page.
- Shipments are the labels that were made in ShipStation, with no time of change; items only on request.
"""

from __future__ import annotations

from base64 import b64encode
from datetime import datetime
from itertools import count
from typing import Any
from zoneinfo import ZoneInfo

from tests.partners.partner_server import PartnerAnswer, PartnerRequest

from crossdock.testing import ManualClock

USER, PASSWORD = "shipstation-key", "shipstation-secret"
RESET_S = 23
_PACIFIC = ZoneInfo("America/Los_Angeles")
_REQUIRED = ("orderNumber", "orderDate", "orderStatus", "billTo", "shipTo")
_LOCKED = {"shipped", "cancelled"}


class ShipStation:
    """A `Partner`.

    Attributes:
        effects: ``order_created`` and ``order_updated``, with ``id`` and ``body``.
        orders: By ``orderId``, as the API shows them.
        page_size: Most records on a page.
    """

    def __init__(self, clock: ManualClock) -> None:
        self.clock, self.effects, self.page_size = clock, list[dict[str, Any]](), 500
        self.orders: dict[int, dict[str, Any]] = {}
        self.shipments: list[dict[str, Any]] = []
        self._numbers = count(90_001)

    # ---- what the warehouse does

    def ship(self, order_id: int, tracking: str, *, whole: bool = True) -> int:
        """Buy a label; the number of the shipment."""
        order = self.orders[order_id]
        if whole:
            order["orderStatus"] = "shipped"
        order["modifyDate"] = self._now()
        about = {"orderId": order_id, "orderKey": order["orderKey"], "orderNumber": order["orderNumber"]}
        shown = {"shipmentId": next(self._numbers), **about, "createDate": self._now(), "carrierCode": "ups"}
        self.shipments.append({**shown, "trackingNumber": tracking, "voided": False, "shipmentItems": None})
        return int(shown["shipmentId"])

    def void(self, shipment_id: int) -> None:
        """Void a label, which changes no time that is listed."""
        next(each for each in self.shipments if each["shipmentId"] == shipment_id)["voided"] = True

    def cancel(self, order_id: int) -> None:
        self.orders[order_id] |= {"orderStatus": "cancelled", "modifyDate": self._now()}

    def of_others(self, order_key: str) -> int:
        """An order that another shop has placed."""
        return self._stored({"orderKey": order_key, "orderNumber": "77", "orderStatus": "awaiting_shipment"})

    # ---- its API

    def throttled(self) -> PartnerAnswer:
        headers = {"x-rate-limit-limit": "40", "x-rate-limit-remaining": "0", "x-rate-limit-reset": str(RESET_S)}
        return PartnerAnswer(429, {"message": "Too Many Requests"}, headers)

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        expected = f"Basic {b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}"
        if request.headers.get("authorization") != expected:
            return PartnerAnswer(401, {"Message": "Authorization has been denied for this request."})
        match [request.method, *request.path.split("/")[1:]]:
            case ["POST", "orders", "createorder"]:
                return self._written(request.json())
            case ["GET", "orders", number] if number.isdecimal() and int(number) in self.orders:
                return PartnerAnswer(200, self.orders[int(number)])
            case ["GET", "orders"]:
                return self._page(request, "orders", list(self.orders.values()), "modifyDate")
            case ["GET", "shipments"]:
                return self._page(request, "shipments", self.shipments, "createDate")
        return PartnerAnswer(404, {"Message": "Not Found"})

    def _written(self, body: dict[str, Any]) -> PartnerAnswer:
        missing = {f"apiOrder.{name}": [f"{name} is required"] for name in _REQUIRED if not body.get(name)}
        try:
            datetime.strptime(body.get("orderDate", ""), "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007  it has no zone
        except ValueError:
            missing["apiOrder.orderDate"] = ["must be a time without a zone"]
        if missing:
            return PartnerAnswer(400, {"Message": "The request is invalid.", "ModelState": missing})
        known = next((each for each in self.orders.values() if each["orderKey"] == body.get("orderKey")), None)
        if known is not None and known["orderStatus"] in _LOCKED:
            return PartnerAnswer(400, {"Message": f"An order that is {known['orderStatus']} may not be updated."})
        number = self._stored(body, None if known is None else known["orderId"])
        kind = "order_created" if known is None else "order_updated"
        self.effects.append({"kind": kind, "id": number, "body": body})
        return PartnerAnswer(200, self.orders[number])

    def _stored(self, body: dict[str, Any], number: int | None = None) -> int:
        number = next(self._numbers) if number is None else number
        created = self.orders.get(number, {}).get("createDate", self._now())
        self.orders[number] = {**body, "orderId": number, "createDate": created, "modifyDate": self._now()}
        return number

    def _page(self, request: PartnerRequest, name: str, records: list[dict[str, Any]], time: str) -> PartnerAnswer:
        since = request.param(f"{time}Start")
        asked = since and f"{datetime.strptime(since, '%Y-%m-%d %H:%M:%S'):%Y-%m-%dT%H:%M:%S}"  # noqa: DTZ007
        assert request.param("sortBy").casefold() == time.casefold()
        found = sorted((each for each in records if each[time] >= asked), key=lambda each: str(each[time]))
        size, page = min(int(request.param("pageSize", "100")), self.page_size), int(request.param("page", "1"))
        shown = found[size * (page - 1) : size * page]
        pages = -(-len(found) // size)
        return PartnerAnswer(200, {name: shown, "total": len(found), "page": page, "pages": pages})

    def _now(self) -> str:
        local = self.clock.now().astimezone(_PACIFIC)
        return f"{local:%Y-%m-%dT%H:%M:%S}.{local.microsecond:06}0"
