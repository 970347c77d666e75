"""Settings of a connection to a Shopify shop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from crossdock import SecretRef
from crossdock.sources import Api, HeaderAuth, RateLimit
from crossdock_connectors.shop.settings import ShopSettings
from crossdock_connectors.shop.shopify.queries import VERSION

RATE = RateLimit(per_minute=1_200, burst=40)
"""Shopify limits the cost of queries and not their number; this bounds the requests beside that."""


class ShopifySettings(ShopSettings):
    """One Shopify shop, read and written by its Admin API (GraphQL)."""

    known_statuses: ClassVar[Mapping[str, str]] = {
        "UNFULFILLED": "open",
        "OPEN": "open",
        "SCHEDULED": "open",
        "PENDING_FULFILLMENT": "processing",
        "IN_PROGRESS": "processing",
        "ON_HOLD": "on_hold",
        "REQUEST_DECLINED": "on_hold",
        "PARTIALLY_FULFILLED": "partially_shipped",
        "FULFILLED": "shipped",
        "FULFILLMENT_NOT_REQUIRED": "closed",
        "RESTOCKED": "cancelled",
        "CANCELLED": "cancelled",
    }

    kind: Literal["shopify"]
    token: SecretRef
    """An access token of a custom app, ``shpat_...``."""
    currency: Literal["shop", "presentment"] = "shop"
    """The currency of orders and invoices: the shop's, or the one that the buyer saw."""
    stock_quantity: Literal["on_hand", "available"] = "on_hand"
    """Which of the shop's quantities the stock is, where it is read and where it is written."""
    bulk: bool = True
    """Whether whole lists, such as those of a first run, are read by bulk operations, which the rate limit does not
    slow down."""
    bulk_timeout_s: Annotated[float, Field(gt=0, le=10 * 86_400)] = 6 * 3_600.0
    """Seconds after which a run does not wait any longer for a bulk operation."""
    file_hosts: tuple[str, ...] = ("storage.googleapis.com",)
    """The hosts from which results of bulk operations are downloaded, besides the shop's own."""

    def declared_api(self) -> Api:
        return self.api(
            auth=HeaderAuth("X-Shopify-Access-Token", self.token),
            rate=RATE,
            download_hosts=self.file_hosts,
        )

    @property
    def endpoint(self) -> str:
        return f"/admin/api/{VERSION}/graphql.json"
