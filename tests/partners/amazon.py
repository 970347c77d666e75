"""A fake of Amazon's Selling Partner API with state: Multi-Channel Fulfillment, FBA inventory and the login.

Facts are from Amazon's own API documents ``fulfillmentOutbound_2020-07-01.json`` and ``fbaInventory.json``; where they
are silent, from what Amazon answered to others, in issues of github.com/amzn that are named where they matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from urllib.parse import unquote
from uuid import UUID

from tests.partners.amazon_access import LIMITS, Buckets, Limit, Login, denied
from tests.partners.amazon_lists import Lists
from tests.partners.amazon_requests import CreateBody, UpdateBody, accepted
from tests.partners.amazon_seller import Seller
from tests.partners.amazon_wire import RefusedError, invalid
from tests.partners.partner_server import PartnerAnswer, PartnerRequest

OUTBOUND = "/fba/outbound/2020-07-01"
INVENTORY = "/fba/inventory/v1/summaries"
LOGIN = "/auth/o2/token"
PAGE_SIZE = 50
"""Entries of a page: of orders by the documentation of MWS, of SKUs by issue 2312 of amzn/selling-partner-api-docs."""
_LIMIT_HEADER_AT = (200, 400, 404)  # the documents name the header for these answers only, not for 403 and 429


class FakeAmazon:
    """Amazon as its sellers see it. Register each with `seller`, and let its warehouse work with the seller's methods.

    Args:
        clock: The present instant, aware. It dates everything, and fills the token buckets.
        token_life: How long an access token is valid.
        limits: The usage plan of each operation.
        upper: Show the statuses of orders in upper case, as the examples in Amazon's documents do, and not as in
            their enumerations.
    """

    def __init__(
        self,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        *,
        client_id: str = "amzn1.application-oa2-client.fake",
        client_secret: str = "amzn1.oa2-cs.v1.fake",
        token_life: timedelta = timedelta(hours=1),
        limits: Mapping[str, Limit] = LIMITS,
        page_size: int = PAGE_SIZE,
        upper: bool = False,
    ) -> None:
        self.effects: list[dict[str, Any]] = []
        self.client_id, self.client_secret = client_id, client_secret
        self._clock, self._upper, self._numbers, self._asked = clock, upper, count(1), 0
        self._login = Login(clock, client_id, client_secret, token_life)
        self._buckets = Buckets(clock, limits)
        self._lists = Lists(clock, page_size, upper=upper)

    def seller(self, seller_id: str, marketplace_id: str = "ATVPDKIKX0DER") -> Seller:
        """A new seller, without stock and orders, in one marketplace (by default that of the United States)."""
        seller = Seller(seller_id, marketplace_id, self._clock, self.effects, self._numbers)
        self._login.add(seller)
        return seller

    def throttled(self) -> PartnerAnswer:
        """429 without the header of the limit, and without Retry-After, as Amazon does."""
        refused = RefusedError(429, "QuotaExceeded", "You exceeded your quota for the requested resource.")
        return self._sealed(PartnerAnswer(429, refused.body()))

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        if (request.method, request.path) == ("POST", LOGIN):
            return self._login.answer(request)
        operation, key = operation_of(request.method, request.path)
        try:
            seller = self._login.seller(request)
            if not operation:
                raise denied()
            if not self._buckets.take(seller.seller_id, operation):
                return self.throttled()
            answer = PartnerAnswer(200, self._carry_out(operation, key, seller, request))
        except RefusedError as refused:
            answer = PartnerAnswer(refused.status, refused.body())
        return self._sealed(answer, operation)

    def _carry_out(self, operation: str, key: str, seller: Seller, request: PartnerRequest) -> dict[str, Any]:
        match operation:
            case "listAllFulfillmentOrders":
                return self._lists.orders(seller, request)
            case "getInventorySummaries":
                return self._lists.inventory(seller, request)
            case "getFulfillmentOrder":
                return {"payload": seller.order(key).json(upper=self._upper)}
            case "getPackageTrackingDetails":
                return {"payload": seller.tracking(_package_number(request))}
            case "createFulfillmentOrder":
                seller.create(accepted(CreateBody, _json(request)))
            case "updateFulfillmentOrder":
                seller.update(key, accepted(UpdateBody, _json(request)))
            case "cancelFulfillmentOrder":
                seller.cancel(key)
        return {}

    def _sealed(self, answer: PartnerAnswer, operation: str = "") -> PartnerAnswer:
        self._asked += 1
        headers = {"x-amzn-RequestId": str(UUID(int=self._asked))}
        if answer.status in _LIMIT_HEADER_AT:
            headers["x-amzn-RateLimit-Limit"] = f"{self._buckets.limits[operation].per_second}.0"
        return PartnerAnswer(answer.status, answer.body, headers)


_ORDERS = f"{OUTBOUND}/fulfillmentOrders"
_OPERATIONS = {
    ("GET", INVENTORY): "getInventorySummaries",
    ("GET", f"{OUTBOUND}/tracking"): "getPackageTrackingDetails",
    ("GET", _ORDERS): "listAllFulfillmentOrders",
    ("POST", _ORDERS): "createFulfillmentOrder",
    ("GET", f"{_ORDERS}/*"): "getFulfillmentOrder",
    ("PUT", f"{_ORDERS}/*"): "updateFulfillmentOrder",
    ("PUT", f"{_ORDERS}/*/cancel"): "cancelFulfillmentOrder",
}


def operation_of(method: str, path: str) -> tuple[str, str]:
    """The operation that a request asks for, and the ``sellerFulfillmentOrderId`` in its path; empty without."""
    key, *rest = path.removeprefix(f"{_ORDERS}/").split("/") if path.startswith(f"{_ORDERS}/") else ("",)
    place = "/".join((_ORDERS, "*", *rest)) if key else path
    return _OPERATIONS.get((method, place), ""), unquote(key)


def _json(request: PartnerRequest) -> Any:
    try:
        return request.json()
    except ValueError:
        raise invalid("The request body is not JSON.") from None


def _package_number(request: PartnerRequest) -> int:
    text = request.param("packageNumber")
    if not text.isascii() or not text.isdigit():
        raise invalid(f"Value {text} for parameter packageNumber is invalid. Reason: InvalidValue.")
    return int(text)
