"""A fake of Extensiv 3PL Warehouse Manager: one 3PL, whose customers have orders, items and stock.

Made of the public pages of 3w.extensiv.com/rels: "auth", "orders/orders", "orders/order", "orders/ordercancel",
"customers/items" and "inventory/stockdetails", and of public clients where these pages have no sample:

- A token is granted for a JSON object with ``grant_type`` and ``user_login``, and the client in HTTP Basic.
- Answers are HAL: lists are in ``_embedded`` under the address of their relation, beside ``totalResults``; a list
  without records is left out.
- ``rql`` has conditions joined by ``;``, ``pgsiz`` and ``pgnum`` count pages from 1; too large a page is refused.
- A change needs ``If-Match`` with the ETag of the version it is made of: without one 428, with another one 412. A PUT
  replaces the order; ``canceler`` needs a reason.
- Times have no zone.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from decimal import Decimal
from itertools import count
from typing import Any

from tests.partners.partner_server import PartnerAnswer, PartnerRequest

from crossdock.testing import ManualClock
from crossdock.values.json_paths import value_at_path_or_missing

CLIENT = "extensiv-client", "extensiv-secret"
CUSTOMER, OTHER = 1, 2
_REL = "http://api.3plCentral.com/rels/"
_MOST = {"orders/order": 1000, "customers/item": 1000, "item": 500}
_CONDITION = re.compile(r"([A-Za-z.]+)(==|=ge=)(.*)")


class Extensiv:
    """A `Partner`.

    Attributes:
        effects: ``order_created``, ``order_replaced`` and ``order_cancelled``, with ``id`` and ``body``.
        orders: By ``orderId``, as the API shows them.
        before_change: Called before a change is carried out.
        tokens: How many were granted.
    """

    def __init__(self, clock: ManualClock) -> None:
        self.clock, self.effects, self.tokens = clock, list[dict[str, Any]](), 0
        self.orders: dict[int, dict[str, Any]] = {}
        self.items: list[dict[str, Any]] = []
        self.stock: list[dict[str, Any]] = []
        self.before_change: Callable[[], None] = lambda: None
        self._versions: dict[int, int] = {}
        self._numbers = count(1001)

    # ---- what the warehouse does

    def receive(self, sku: str, quantity: Decimal) -> None:
        self.items.append({"itemId": next(self._numbers), "sku": sku, "description": f"Item {sku}"})
        shown = {"receiveItemId": next(self._numbers), "itemIdentifier": {"sku": sku}, "onHand": quantity}
        self.stock.append({**shown, "available": quantity, "isOnHold": False, "lotNumber": None})

    def ship(self, order_id: int, *numbers: str) -> None:
        """Close an order with a package for each number."""
        packages = [{"packageId": next(self._numbers), "trackingNumber": number} for number in numbers]
        self._change(order_id, isClosed=True, status=1, packages=packages)
        self.orders[order_id]["routingInfo"] = {"carrier": "UPS"}

    def touch(self, order_id: int) -> None:
        """Work on an order, as by printing its pick ticket."""
        self._change(order_id, pickTicketPrintDate=self._now())

    def cancel(self, order_id: int) -> None:
        self._change(order_id, isClosed=True, status=2)

    def of_another(self, reference: str, customer: int = CUSTOMER) -> int:
        """An order that somebody else has placed."""
        return self._store({"referenceNum": reference, "customerIdentifier": {"id": customer}})

    # ---- its API

    def throttled(self) -> PartnerAnswer:
        return PartnerAnswer(429, {"ErrorCode": "TooManyRequests", "Hint": ""}, {"retry-after": "19"})

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        parts = request.path.split("/")[1:]
        if parts == ["AuthServer", "api", "Token"]:
            return self._token(request)
        if request.headers.get("authorization") != f"Bearer token-{self.tokens}":
            return PartnerAnswer(401, {"Message": "Authorization has been denied for this request."})
        assert request.headers.get("accept") == "application/hal+json"
        return self._authorized(request, parts)

    def _authorized(self, request: PartnerRequest, parts: list[str]) -> PartnerAnswer:
        match [request.method, *parts]:
            case ["GET", "orders"]:
                return self._listed(request, "orders/order", list(self.orders.values()))
            case ["GET", "customers", _, "items"]:
                return self._listed(request, "customers/item", self.items)
            case ["GET", "inventory", "stockdetails"]:
                return self._listed(request, "item", self.stock)
            case ["POST", "orders"]:
                return self._created(request.json())
            case [_, "orders", number, *_] if int(number) in self.orders:
                return self._of_one(request, int(number), parts[2:])
        return PartnerAnswer(404, {"ErrorCode": "NotFound"})

    def _token(self, request: PartnerRequest) -> PartnerAnswer:
        expected = f"Basic {b64encode(':'.join(CLIENT).encode()).decode()}"
        is_json = request.headers.get("content-type", "").startswith("application/json")
        body = request.json() if is_json else {}
        if request.headers.get("authorization") != expected or not body.get("user_login"):
            return PartnerAnswer(400, {"error": "invalid_client"})
        assert body["grant_type"] == "client_credentials"
        self.tokens += 1
        granted = {"access_token": f"token-{self.tokens}", "token_type": "Bearer", "expires_in": 3600}
        return PartnerAnswer(200, {**granted, "refresh_token": None, "scope": None})

    def _listed(self, request: PartnerRequest, rel: str, records: list[dict[str, Any]]) -> PartnerAnswer:
        size, page = int(request.param("pgsiz", "100")), int(request.param("pgnum", "1"))
        if size > _MOST[rel]:
            return PartnerAnswer(400, {"ErrorCode": "ValueOutOfRange", "Hint": "pgsiz"})
        conditions = [each for each in request.param("rql").split(";") if each]
        found = [each for each in records if all(_meets(each, condition) for condition in conditions)]
        if rel == "orders/order":
            found.sort(key=lambda each: (str(each["readOnly"]["lastModifiedDate"]), int(each["readOnly"]["orderId"])))
        shown = found[size * (page - 1) : size * page]
        name = rel if "/" not in rel else f"{_REL}{rel}"
        embedded = {"_embedded": {name: shown}} if shown else {}
        return PartnerAnswer(200, {"totalResults": len(found), **embedded, "_links": {"self": {"href": "/"}}})

    def _created(self, body: dict[str, Any]) -> PartnerAnswer:
        known = {each["sku"] for each in self.items}
        unknown = [each for each in body["orderItems"] if each["itemIdentifier"]["sku"] not in known]
        if unknown or not body.get("referenceNum"):
            return PartnerAnswer(400, {"ErrorCode": "Required", "Hint": "OrderItems[0].ItemIdentifier"})
        number = self._store(body)
        self.effects.append({"kind": "order_created", "id": number, "body": body})
        return self._shown(number, 201)

    def _of_one(self, request: PartnerRequest, number: int, below: list[str]) -> PartnerAnswer:
        if request.method == "GET":
            return self._shown(number)
        self.before_change()
        return self._refusal(request, number) or self._changed(request, number, below)

    def _refusal(self, request: PartnerRequest, number: int) -> PartnerAnswer | None:
        if "if-match" not in request.headers:
            return PartnerAnswer(428, {"ErrorCode": "PreconditionRequired", "Hint": "If-Match"})
        if request.headers["if-match"] != self._etag(number):
            return PartnerAnswer(412, {"ErrorCode": "PreconditionFailed"})
        if self.orders[number]["readOnly"]["isClosed"]:
            return PartnerAnswer(409, {"ErrorCode": "InvalidState", "Hint": "the order is closed"})
        return None

    def _changed(self, request: PartnerRequest, number: int, below: list[str]) -> PartnerAnswer:
        body = request.json()
        if request.method == "POST" and below == ["canceler"]:
            if not body.get("reason"):
                return PartnerAnswer(400, {"ErrorCode": "Required", "Hint": "Reason"})
            self.cancel(number)
            self.effects.append({"kind": "order_cancelled", "id": number, "body": body})
            return PartnerAnswer(204, None, {"etag": self._etag(number)})
        assert [request.method, *below] == ["PUT"]
        self.orders[number] = body | {"readOnly": self.orders[number]["readOnly"]}
        self._change(number)
        self.effects.append({"kind": "order_replaced", "id": number, "body": body})
        return self._shown(number)

    def _shown(self, number: int, status: int = 200) -> PartnerAnswer:
        return PartnerAnswer(status, self.orders[number], {"etag": self._etag(number)})

    def _etag(self, number: int) -> str:
        return f'W/"{number}-{self._versions[number]}"'

    def _store(self, body: dict[str, Any]) -> int:
        number = next(self._numbers)
        about = {"orderId": number, "isClosed": False, "status": 0, "packages": [], "creationDate": self._now()}
        self.orders[number] = {**body, "readOnly": {**about, "customerIdentifier": body["customerIdentifier"]}}
        self._change(number)
        return number

    def _change(self, number: int, **members: Any) -> None:
        self._versions[number] = self._versions.get(number, 0) + 1
        self.orders[number]["readOnly"] |= {**members, "lastModifiedDate": self._now()}

    def _now(self) -> str:
        return self.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]


def _meets(record: dict[str, Any], condition: str) -> bool:
    match = _CONDITION.fullmatch(condition)
    assert match, condition
    found = str(value_at_path_or_missing(record, match[1]))
    return found == match[3] if match[2] == "==" else found >= match[3]
