"""Settings of a connection to a WooCommerce shop, and OAuth 1.0a without a token, which it accepts over plain http.

Sources: RFC 5849 section 3.4, and the section "Authentication" of woocommerce.github.io/woocommerce-rest-api-docs.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import b64encode
from collections.abc import Generator, Mapping
from typing import Annotated, ClassVar, Literal
from urllib.parse import quote, urlsplit

import httpx
from pydantic import Field

from crossdock import SecretRef
from crossdock.resources import Currency
from crossdock.sources import Api, BasicAuth, TimedAuth
from crossdock_connectors.shop.settings import ShopSettings

_PREFIX = "oauth_"


class OAuth1Auth(TimedAuth):
    """Signs each request in its query, with its own time and nonce."""

    def __init__(self, key: SecretRef, secret: SecretRef) -> None:
        self._key, self._secret = key, secret

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        own = [(name, value) for name, value in request.url.params.multi_items() if not name.startswith(_PREFIX)]
        signed = [
            *own,
            (f"{_PREFIX}consumer_key", self._key.reveal()),
            (f"{_PREFIX}nonce", secrets.token_hex(16)),
            (f"{_PREFIX}signature_method", "HMAC-SHA256"),
            (f"{_PREFIX}timestamp", str(int(self.clock.now().timestamp()))),
        ]
        made = oauth_signature(request.method, str(request.url.copy_with(query=None)), signed, self._secret.reveal())
        request.url = request.url.copy_with(params=[*signed, (f"{_PREFIX}signature", made)])
        yield request


def oauth_signature(method: str, address: str, params: list[tuple[str, str]], secret: str) -> str:
    pairs = "&".join(
        f"{name}={value}"
        for name, value in sorted((_percent_encoded(name), _percent_encoded(value)) for name, value in params)
    )
    text = "&".join((method, _percent_encoded(address), _percent_encoded(pairs)))
    return b64encode(hmac.new(f"{_percent_encoded(secret)}&".encode(), text.encode(), hashlib.sha256).digest()).decode()


def _percent_encoded(text: str) -> str:
    return quote(text, safe="~")


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
