"""The two lists of the fake of Amazon, page by page: fulfillment orders and inventory summaries."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tests.partners.amazon_orders import Order
from tests.partners.amazon_seller import Seller
from tests.partners.amazon_wire import instant, invalid
from tests.partners.partner_server import PartnerRequest

DEFAULT_ORDERS_SINCE = timedelta(hours=36)
"""How far listAllFulfillmentOrders looks back without a date: the documented default of the earlier service, MWS."""
OLDEST_START = timedelta(days=548)  # "no earlier than 18 months"
MAX_SKUS = 50
TOKEN_LIFE = timedelta(seconds=30)
"""How long the token of an inventory page is valid, by the document. Those of orders do not expire."""


@dataclass(frozen=True, slots=True)
class _Position:
    """Where a list continues: after the last key of the page before."""

    seller_id: str
    filters: tuple[str, ...]
    after: tuple[Any, ...]
    issued: datetime


class Lists:
    """Pages of at most *page_size* entries, in the order of their keys, and the tokens that continue them.

    A token belongs to one seller and is case-sensitive. It is Base64 with characters that mean something else in a
    query, so it has to be percent-encoded.
    """

    def __init__(self, clock: Callable[[], datetime], page_size: int, *, upper: bool) -> None:
        self._clock, self._page_size, self._upper = clock, page_size, upper
        self._positions: dict[str, _Position] = {}

    def orders(self, seller: Seller, request: PartnerRequest) -> dict[str, Any]:
        """``listAllFulfillmentOrders``: orders whose status changed at or after ``queryStartDate``, in this order.

        An order whose status changes between two pages is on a later page again. With a token, the date is ignored.
        """
        _only(request, "queryStartDate", "nextToken")
        after: tuple[Any, ...] = ()
        if token := request.param("nextToken"):
            position = self._position(seller, token, "orders")
            since, after = instant(position.filters[1]), position.after
        elif text := request.param("queryStartDate"):
            since = _instant(text, "queryStartDate")
        else:
            since = self._clock() - DEFAULT_ORDERS_SINCE
        found = {_order_key(order): order for order in seller.orders.values() if order.updated >= since}
        keys, token = self._page(seller, found, ("orders", since.isoformat()), after)
        payload: dict[str, Any] = {"fulfillmentOrders": [found[key].summary(upper=self._upper) for key in keys]}
        return {"payload": {**payload, "nextToken": token} if token else payload}

    def inventory(self, seller: Seller, request: PartnerRequest) -> dict[str, Any]:
        """``getInventorySummaries``: the seller's SKUs, sorted; with ``startDateTime`` those that changed after it."""
        _only(
            request, "details", "granularityType", "granularityId", "startDateTime", "sellerSkus", "sellerSku",
            "nextToken", "marketplaceIds",
        )  # fmt: skip
        details = self._inventory_details(seller, request)
        start, skus = request.param("startDateTime"), _skus(request)
        since = _instant(start, "startDateTime") if start else None
        if since and since < self._clock() - OLDEST_START:
            raise invalid("Query startDateTime cannot be earlier than 18 months.")
        wanted = {
            (sku,): stock
            for sku, stock in seller.stock.items()
            if (stock.updated > since if since else not skus or sku in skus)
        }
        filters = ("inventory", start, *([] if start else skus))
        token = request.param("nextToken")
        after = self._position(seller, token, *filters).after if token else ()
        keys, token = self._page(seller, wanted, filters, after)
        granularity = {"granularityType": "Marketplace", "granularityId": seller.marketplace_id}
        summaries = [wanted[key].summary(details=details) for key in keys]
        answer: dict[str, Any] = {"payload": {"granularity": granularity, "inventorySummaries": summaries}}
        return {**answer, "pagination": {"nextToken": token}} if token else answer

    def _page(
        self, seller: Seller, found: Mapping[tuple[Any, ...], Any], filters: tuple[str, ...], after: tuple[Any, ...]
    ) -> tuple[list[tuple[Any, ...]], str]:
        keys = sorted(key for key in found if not after or key > after)
        page = keys[: self._page_size]
        if len(page) == len(keys):
            return page, ""
        digest = hashlib.sha256(str(len(self._positions)).encode()).digest()
        token = base64.b64encode(digest).decode("ascii")  # ends in "=", like real ones
        self._positions[token] = _Position(seller.seller_id, filters, page[-1], self._clock())
        return page, token

    def _position(self, seller: Seller, token: str, *filters: str) -> _Position:
        position = self._positions.get(token)
        if (
            position is None
            or position.seller_id != seller.seller_id
            or position.filters[: len(filters)] != filters
            or (filters[0] == "inventory" and self._clock() > position.issued + TOKEN_LIFE)
        ):
            raise invalid("Next token is invalid or expired")
        return position

    @staticmethod
    def _inventory_details(seller: Seller, request: PartnerRequest) -> bool:
        details, marketplaces = request.param("details", "false"), _values(request, "marketplaceIds")
        if details not in {"true", "false"}:
            raise invalid("Query parameter [details] value is not a boolean.")
        if request.param("granularityType") != "Marketplace":
            raise invalid("Query parameter [granularityType] value is not Marketplace.")
        if len(marketplaces) != 1 or {*marketplaces, request.param("granularityId")} != {seller.marketplace_id}:
            raise invalid("Query parameters [marketplaceIds] and [granularityId] are not the seller's marketplace.")
        return details == "true"


def _order_key(order: Order) -> tuple[datetime, str]:
    return order.updated, order.key


def _values(request: PartnerRequest, name: str) -> list[str]:
    """A list in a query: separated by commas (Swagger 2.0's default), or repeated."""
    return [value for text in request.params.get(name, []) for value in text.split(",")]


def _skus(request: PartnerRequest) -> list[str]:
    skus = _values(request, "sellerSkus")
    if len(skus) > MAX_SKUS:
        raise invalid(f"Query parameter [sellerSkus] has more than {MAX_SKUS} values.")
    return sorted(skus or request.params.get("sellerSku", []))


def _instant(text: str, name: str) -> datetime:
    try:
        return instant(text)
    except ValueError:
        raise invalid(f"Query parameter [{name}] value is not a valid ISO date-time object.") from None


def _only(request: PartnerRequest, *names: str) -> None:
    if unknown := set(request.params) - set(names):
        raise invalid(f"Query parameters {sorted(unknown)} are unknown.")
