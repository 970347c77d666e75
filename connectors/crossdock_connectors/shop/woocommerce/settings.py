"""Settings of a connection to a WooCommerce shop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field

from crossdock import SecretRef
from crossdock.resources import Currency
from crossdock.sources import Api, BasicAuth
from crossdock_connectors.shop.settings import ShopSettings
from crossdock_connectors.shop.woocommerce.oauth_signing import OAuth1Auth

CurrencyCode = Annotated[str, Field(min_length=1, max_length=20)]
"""A currency as WooCommerce or an extension names it."""


class WooCommerceSettings(ShopSettings):
    """One WooCommerce shop, read and written by its REST API ``wc/v3``."""

    known_statuses: ClassVar[Mapping[str, str]] = {
        "checkout-draft": "draft",
        "pending": "open",
        "failed": "open",
        "processing": "processing",
        "on-hold": "on_hold",
        "completed": "shipped",
        "refunded": "closed",
        "cancelled": "cancelled",
        "trash": "cancelled",
    }

    kind: Literal["woocommerce"]
    consumer_key: SecretRef
    """A key of the REST API, ``ck_...``, of a user who may manage the shop."""
    consumer_secret: SecretRef
    """Its secret, ``cs_...``."""
    price_currency: Currency | None = None
    """The currency of the products' prices, which the API does not tell; by default products have no price."""
    currencies: Mapping[CurrencyCode, Currency] = {}
    """The currency of ISO 4217 of orders in another one that has the same worth, such as ``GGP: GBP``. WooCommerce has
    currencies that the standard, and so the platform, has not."""
    page_size: Annotated[int, Field(ge=2, le=100)] | None = None
    """The most records that are requested at a time; by default 100, as many as WooCommerce permits."""

    def declared_api(self) -> Api:
        """Return the API with Basic over HTTPS. Over plain http, WooCommerce accepts only OAuth 1.0a."""
        is_plain = urlsplit(self.base_url).scheme == "http"
        kind = OAuth1Auth if is_plain else BasicAuth
        return self.api(auth=kind(self.consumer_key, self.consumer_secret))
