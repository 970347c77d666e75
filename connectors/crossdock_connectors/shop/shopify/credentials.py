"""The credentials of a Shopify app: a fixed token, or tokens that Shopify grants to its client id and secret.

Sources: shopify.dev/docs/apps/build/authentication-authorization/client-credentials-grant, and access-tokens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import httpx

from crossdock.sources import AuthorizationCodeAuth, ClientCredentialsAuth

HEADER = "X-Shopify-Access-Token"
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


def refusal_reason(response: httpx.Response) -> str:
    """Return why Shopify granted no token. It says so in JSON, or in a page that begins with ``Oauth error CODE``."""
    found = _CODE.search(response.text)
    return _REFUSALS[found[1]] if found else ""


class ShopifyClientCredentials(ClientCredentialsAuth):
    """Client credentials of an app of the shop's own organization. Its tokens live for a day."""

    header, scheme = HEADER, ""

    def refused(self, response: httpx.Response) -> str:
        return refusal_reason(response)


class ShopifyAuthorization(AuthorizationCodeAuth):
    """Access that a merchant gives to an app of another organization. Its tokens live for an hour."""

    header, scheme = HEADER, ""
    forgives_reuse = True  # a refresh token works until its successor is used

    def refused(self, response: httpx.Response) -> str:
        return refusal_reason(response)
