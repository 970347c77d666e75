"""Settings of a connection to a Shopify shop, and its credentials: a fixed token, or tokens granted to an app.

Sources: shopify.dev/docs/apps/build/authentication-authorization/client-credentials-grant, and access-tokens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

import httpx
from pydantic import AfterValidator, Field, model_validator

from crossdock import SecretRef
from crossdock.sources import Api, AuthorizationCodeAuth, ClientCredentialsAuth, ConfigPath, HeaderAuth, RateLimit
from crossdock.values.config_base_types import make_pydantic_error_at_key
from crossdock.values.web_address_checks import check_https_or_loopback_address
from crossdock_connectors.shop.settings import ShopSettings
from crossdock_connectors.shop.shopify.queries import VERSION

TOKEN_HEADER = "X-Shopify-Access-Token"  # noqa: S105  a name
AUTHORIZE_PATH, TOKEN_PATH = "/admin/oauth/authorize", "/admin/oauth/access_token"
_REFUSALS: Mapping[str, str] = {
    "app_not_installed": "the app is not installed in this shop: release a version with the scopes that it needs, and"
    " install it from the Dev Dashboard",
    "shop_not_permitted": "the app and the shop belong to different organizations, and Shopify gives client credentials"
    " only within one: create the app in the shop's own organization",
    "application_cannot_be_found": "Shopify knows no app with this client_id",
    "invalid_client": "the client_id or the client_secret is wrong, or the secret was replaced in the Dev Dashboard",
}
_CODE = re.compile(rf"\b({'|'.join(_REFUSALS)})\b")


def reason_for_refused_token(response: httpx.Response) -> str:
    """Return why Shopify granted no token. It says so in JSON, or in a page that begins with ``Oauth error CODE``."""
    found = _CODE.search(response.text)
    return _REFUSALS[found[1]] if found else ""


class ShopifyClientCredentials(ClientCredentialsAuth):
    """Client credentials of an app of the shop's own organization. Its tokens live for a day."""

    header, scheme = TOKEN_HEADER, ""

    def refused(self, response: httpx.Response) -> str:
        return reason_for_refused_token(response)


class ShopifyAuthorization(AuthorizationCodeAuth):
    """Access that a merchant gives to an app of another organization. Its tokens live for an hour."""

    header, scheme = TOKEN_HEADER, ""
    forgives_reuse = True  # a refresh token works until its successor is used

    def refused(self, response: httpx.Response) -> str:
        return reason_for_refused_token(response)


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
    token: SecretRef | None = None
    """An access token of a custom app that was created in the shop's admin until 2025, ``shpat_...``."""
    client_id: SecretRef | None = None
    """The id of an app of the Dev Dashboard, in place of a token."""
    client_secret: SecretRef | None = None
    """The secret of this app."""
    app: Literal["own", "public"] = "own"
    """``own`` belongs to the organization of the shop; to a ``public`` one the merchant gives access, by ``crossdock
    connect``."""
    scopes: tuple[str, ...] = ()
    """The scopes that a public app asks the merchant for; default: those of its released version."""
    redirect_url: Annotated[str, AfterValidator(check_https_or_loopback_address)] | None = None
    """Where the merchant's browser is sent; one of the addresses of a public app. Default: a port of this machine."""
    tokens: ConfigPath | None = None
    """The file of the tokens of a public app; default: in a folder beside the state."""
    currency: Literal["shop", "presentment"] = "shop"
    """The currency of orders and invoices: that of the ``shop``, or the one that the buyer saw (``presentment``)."""
    stock_quantity: Literal["on_hand", "available"] = "on_hand"
    """Which of the shop's quantities the stock is, where it is read and where it is written."""
    bulk: bool = True
    """Whether whole lists, such as those of a first run, are read by bulk operations, which the rate limit does not
    slow down."""
    bulk_timeout_s: Annotated[float, Field(gt=0, le=10 * 86_400)] = 6 * 3_600.0
    """Seconds after which a run does not wait any longer for a bulk operation."""
    file_hosts: tuple[str, ...] = ("storage.googleapis.com",)
    """The hosts from which results of bulk operations are downloaded, besides the shop's own."""

    @model_validator(mode="after")
    def _raise_unless_one_credential(self) -> Self:
        if self.token is not None:
            if self.client_id or self.client_secret or self.app == "public":
                raise make_pydantic_error_at_key(("token",), "cannot be used with client_id and client_secret")
        elif self.client_id is None or self.client_secret is None:
            lacking = "client_secret" if self.client_id else "client_id" if self.client_secret else "token"
            raise make_pydantic_error_at_key(
                (lacking,), "is missing: name a token, or client_id and client_secret of the app"
            )
        return self

    @property
    def credential(self) -> httpx.Auth:
        if self.client_id is None or self.client_secret is None:
            assert self.token is not None
            return HeaderAuth(TOKEN_HEADER, self.token)
        token_url = f"{self.base_url}{TOKEN_PATH}"
        if self.app == "own":
            return ShopifyClientCredentials(token_url, self.client_id, self.client_secret, client_auth="post")
        return ShopifyAuthorization(
            token_url,
            self.client_id,
            self.client_secret,
            authorize_url=f"{self.base_url}{AUTHORIZE_PATH}",
            scopes=(",".join(self.scopes),) if self.scopes else (),
            client_auth="post",
            token_extra={"expiring": "1"},
            pkce=False,
            redirect_url=self.redirect_url,
            tokens=self.tokens,
        )

    def declared_api(self) -> Api:
        return self.api(
            auth=self.credential,
            rate=RATE,
            download_hosts=self.file_hosts,
        )

    @property
    def endpoint(self) -> str:
        return f"/admin/api/{VERSION}/graphql.json"
