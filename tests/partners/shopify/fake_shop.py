"""A fake of a Shopify shop with state: its Admin API (GraphQL), version 2026-10, as one app sees it.

GraphQL is executed by graphql-core over a part of Shopify's own schema. Facts are from shopify.dev, read in 2026, and
from the published schema; each module names its own. Where they leave something open:

- What an order's refund, edit or fulfillment changes is the order's time of change, except for a hold of a fulfillment
  order. A change of stock is that of the inventory level only, and no list of levels of the whole shop exists.
- Cursors expire only if a test says so; Shopify promises nothing.
- Bodies of the HTTP errors 423, 430 and 502 are ours.

Left out: REST, ``last`` and ``before``, the limit of 25,000 nodes in a list, bulk mutations, returns,
drafts, duties, metafields, several apps.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from itertools import count
from typing import Any, Literal
from zoneinfo import ZoneInfo

from tests.partners.partner_server import PartnerAnswer, PartnerRequest
from tests.partners.shopify import app_tokens
from tests.partners.shopify.access import ALL_SCOPES, granted
from tests.partners.shopify.bulk import FILES, BulkOperations
from tests.partners.shopify.cost import STANDARD, Bucket, Plan
from tests.partners.shopify.execution import Asking, Result, answer, throttled
from tests.partners.shopify.idempotency import IdempotencyKeys
from tests.partners.shopify.lists import Cursors
from tests.partners.shopify.merchant import Catalog, Customers
from tests.partners.shopify.order_desk import OrderDesk
from tests.partners.shopify.records import Records
from tests.partners.shopify.roots import root
from tests.partners.shopify.schema import VERSION
from tests.partners.shopify.shipments import Shipments
from tests.partners.shopify.stock_writes import StockWrites
from tests.partners.shopify.webhooks import Webhooks

PATH = f"/admin/api/{VERSION}/graphql.json"
Interruption = Literal["frozen", "locked", "rejected", "html", "too_many", "internal_error", "internal_error_after"]
"""``frozen``: the shop has not paid. ``locked``: it may have been hacked, or asked too much. ``rejected``: the request
looked malicious. ``html``: an error page of a server in front of Shopify. ``too_many``: a throttle of a resource.
``internal_error``: inside 200, and nothing was carried out; ``internal_error_after``: it was.
Source: shopify.dev/docs/api/usage/response-codes."""
_HTML = b"<!DOCTYPE html><html><head><title>Something went wrong</title></head><body>502</body></html>"
_INTERRUPTED: Mapping[str, PartnerAnswer] = {
    "frozen": PartnerAnswer(402, {"errors": "Unavailable Shop"}),
    "locked": PartnerAnswer(423, {"errors": "Locked"}),
    "rejected": PartnerAnswer(430, {"errors": "Shopify Security Rejection"}),
    "html": PartnerAnswer(502, _HTML, {"content-type": "text/html; charset=utf-8"}),
    "too_many": PartnerAnswer(429, {"errors": "Too many requests"}, {"retry-after": "2.0"}),
}


class FakeShopify:
    """The fake; a `Partner` of `PartnerServer`. Change the shop while no request is on its way.

    Args:
        now: Says the time; aware.
        client_secret: Of the app; signs webhooks.
        scopes: What the app may do.
        cursor_life: After which cursors are refused.
        bulk_takes: How long a bulk operation runs.
        bulk_limit: How many run at a time.

    Attributes:
        app: The tokens that the app is granted.
        catalog, customers, orders, shipments: What a test does with the shop.
        sender: Sends the webhooks.
        bulk: The bulk operations, with faults to plan.
        failing: Fields that fail with an internal error, while the rest of the answer is there.
        effects: Each mutation that was carried out, oldest first.
    """

    def __init__(
        self,
        now: Callable[[], datetime],
        *,
        token: str = "shpat_fake",
        client_secret: str = "shpss_fake",
        scopes: frozenset[str] = ALL_SCOPES,
        currency: str = "EUR",
        zone: str = "Europe/Berlin",
        plan: Plan = STANDARD,
        cursor_life: timedelta | None = None,
        bulk_takes: timedelta = timedelta(seconds=10),
        bulk_limit: int = 5,
    ) -> None:
        self.token, self.scopes = token, scopes
        self.app = app_tokens.AppTokens(now, client_secret=client_secret)
        self.records = Records(now)
        self.effects = self.records.effects
        self.catalog = Catalog(self.records)
        self.customers = Customers(self.records, currency)
        self.orders = OrderDesk(self.records, currency)
        self.shipments = Shipments(self.records)
        self._webhooks = Webhooks(self.records, client_secret, ZoneInfo(zone))
        self.sender = self._webhooks.sender
        self.bucket, self.keys = Bucket(plan, now), IdempotencyKeys(now)
        self.bulk = BulkOperations(self.records, self._asking, bulk_takes, bulk_limit)
        self.failing: frozenset[str] = frozenset()
        self._interruptions, self._asked = deque[Interruption](), count(1)
        self._cursors, self._zone = Cursors(cursor_life), zone
        self._root = self._resolvers(currency)
        self.bulk.root = self._root

    def interrupt(self, *kinds: Interruption) -> None:
        """Let the next requests be answered so, one each."""
        self._interruptions.extend(kinds)

    def throttled(self) -> PartnerAnswer:
        """The answer to a query for which the bucket has too few points."""
        self.bucket.empty()
        return _json(throttled(self.bucket, 10))

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        if request.method == "GET" and request.path.startswith(FILES):
            return self.bulk.file(request)
        headers = {"x-request-id": f"00000000-0000-4000-8000-{next(self._asked):012}", "x-shopify-api-version": VERSION}
        given = self._answer(request)
        return PartnerAnswer(given.status, given.body, {**headers, **given.headers})

    def _answer(self, request: PartnerRequest) -> PartnerAnswer:
        interruption = self._interruptions.popleft() if self._interruptions else None
        if interruption and (interrupted := _INTERRUPTED.get(interruption)):
            return interrupted
        if (request.method, request.path) != ("POST", PATH):
            is_for_token = (request.method, request.path) == ("POST", app_tokens.PATH)
            return self.app.answer(request) if is_for_token else PartnerAnswer(404, {"errors": "Not Found"})
        sent = request.headers.get("x-shopify-access-token", "")
        if sent != self.token and not self.app.accepts(sent):
            message = "[API] Invalid API key or access token (unrecognized login or wrong password)"
            return PartnerAnswer(401, {"errors": message})
        body = _sent(request)
        if body is None:
            return PartnerAnswer(400, {"errors": {"query": "Required parameter missing or invalid"}})
        if interruption == "internal_error":
            return _internal_error()
        self.bulk.proceed(request.headers.get("host", "files.example"))
        result = self._execute(body)
        return _internal_error() if interruption == "internal_error_after" else _answered(result)

    def _execute(self, body: Mapping[str, Any]) -> Result:
        variables, name = body.get("variables") or {}, body.get("operationName")
        return answer(body["query"], variables, name, self._root, self._asking(), self.bucket)

    def _asking(self) -> Asking:
        return Asking(self.records, self._cursors, granted(self.scopes), ZoneInfo(self._zone), failing=self.failing)

    def _resolvers(self, currency: str) -> dict[str, Any]:
        shop = {
            "id": "gid://shopify/Shop/1",
            "name": "Lampen & Stühle",
            "email": "shop@example.com",
            "contactEmail": "shop@example.com",
            "myshopifyDomain": "lampen.myshopify.com",
            "currencyCode": currency,
            "enabledPresentmentCurrencies": [currency, "USD", "JPY"],
            "ianaTimezone": self._zone,
            "taxesIncluded": True,
            "taxShipping": True,
            "createdAt": self.records.now(),
            "updatedAt": self.records.now(),
        }
        stock = StockWrites(self.records, self.keys)
        return {
            **root(shop),
            "fulfillmentCreate": self.shipments.create,
            "inventorySetQuantities": stock.set,
            "inventoryAdjustQuantities": stock.adjust,
            "bulkOperationRunQuery": self.bulk.run,
            "bulkOperationCancel": self.bulk.cancel,
            "webhookSubscriptionCreate": self._webhooks.create,
            "webhookSubscriptionDelete": self._webhooks.delete,
        }


def _sent(request: PartnerRequest) -> dict[str, Any] | None:
    """The body of a request; None if it is none."""
    try:
        body = json.loads(request.body)
    except ValueError:
        return None
    if not isinstance(body, dict) or not isinstance(body.get("query"), str):
        return None
    return body if isinstance(body.get("variables") or {}, dict) else None


def _answered(result: Result) -> PartnerAnswer:
    """The answer, with a header if the query uses what is deprecated."""
    reason = "https://shopify.dev/api/usage/versioning#deprecation-practices"
    return _json(result.body, {"x-shopify-api-deprecated-reason": reason} if result.deprecated else {})


def _json(body: Mapping[str, Any], headers: Mapping[str, str] = {}) -> PartnerAnswer:
    return PartnerAnswer(200, json.dumps(body, ensure_ascii=False).encode(), headers)


def _internal_error() -> PartnerAnswer:
    message = "Internal error. Looks like something went wrong on our end.\n(include this in support requests)."
    return _json({"errors": [{"message": message, "extensions": {"code": "INTERNAL_SERVER_ERROR"}}]})
