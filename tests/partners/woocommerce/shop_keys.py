"""Who asks the fake WooCommerce shop: keys of its REST API, over HTTPS with Basic, over HTTP with OAuth 1.0a.

Source: ``WC_REST_Authentication`` in github.com/woocommerce/woocommerce, and the section "Authentication" of
woocommerce.github.io/woocommerce-rest-api-docs. Without usable keys a request is anonymous, and anonymous ones are
refused by 401 as well, with another code.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal
from urllib.parse import quote

from tests.partners.partner_server import PartnerRequest
from tests.partners.woocommerce.shop_errors import RefusedError
from tests.partners.woocommerce.shop_queries import php_parameters
from tests.partners.woocommerce.shop_settings import ShopSettings

from crossdock.values.clock import Clock

_OAUTH = ("oauth_consumer_key", "oauth_timestamp", "oauth_nonce", "oauth_signature", "oauth_signature_method")
_HASHES = {"HMAC-SHA1": hashlib.sha1, "HMAC-SHA256": hashlib.sha256}
_VALID = timedelta(minutes=15)
_READING = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A pair of keys. *manages* says whether their user may manage the shop; other users are refused by 403."""

    consumer_key: str = "ck_fake"
    consumer_secret: str = "cs_fake"
    permissions: Literal["read", "write", "read_write"] = "read_write"
    manages: bool = True


class Access:
    """The keys of one shop, and the nonces that they have used."""

    def __init__(self, keys: Iterable[ApiKey], clock: Clock, settings: ShopSettings) -> None:
        self._keys = {key.consumer_key: key for key in keys}
        self._clock, self._settings = clock, settings
        self._nonces: dict[str, dict[str, float]] = {}

    def check(self, request: PartnerRequest, site: str) -> ApiKey:
        """The keys that *request* may use.

        Args:
            site: The address that WordPress has for itself; OAuth signs it.

        Raises:
            RefusedError: 401 for wrong or no keys, or keys without the permission; 403 for a user without the right.
        """
        key = (self._basic(request) if site.startswith("https:") else None) or self._oauth(request, site)
        reading = request.method in _READING
        if key is None or not key.manages:
            action = (
                ("view", "you cannot list resources.")
                if reading
                else ("create", "you are not allowed to create resources.")
            )
            raise RefusedError(403 if key else 401, f"woocommerce_rest_cannot_{action[0]}", f"Sorry, {action[1]}")
        needed = "read" if reading else "write"
        if needed not in key.permissions:
            raise _unauthenticated(f"The API key provided does not have {needed} permissions.")
        return key

    def _basic(self, request: PartnerRequest) -> ApiKey | None:
        name, secret = "", ""
        if self._settings.query_keys:
            name, secret = request.param("consumer_key"), request.param("consumer_secret")
        scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
        if not name and scheme.lower() == "basic":
            try:
                name, _, secret = base64.b64decode(encoded, validate=True).decode().partition(":")
            except (binascii.Error, UnicodeDecodeError):
                return None
        key = self._keys.get(name)
        if key and not hmac.compare_digest(key.consumer_secret.encode(), secret.encode()):
            raise _unauthenticated("Consumer secret is invalid.")
        return key

    def _oauth(self, request: PartnerRequest, site: str) -> ApiKey | None:
        asked = php_parameters(request.params)
        missing = [name for name in _OAUTH if not asked.get(name)]
        if len(missing) == len(_OAUTH):
            return None
        if missing:
            plural = "s" if len(missing) > 1 else ""
            message = f"Missing OAuth parameter{plural} {', '.join(missing)}"
            raise RefusedError(401, "woocommerce_rest_authentication_missing_parameter", message)
        key = self._keys.get(asked["oauth_consumer_key"])
        if key is None:
            raise _unauthenticated("Consumer key is invalid.")
        signature = asked.pop("oauth_signature").replace(" ", "+")
        if asked["oauth_signature_method"] not in _HASHES:
            raise _unauthenticated("Invalid signature - signature method is invalid.")
        if not hmac.compare_digest(_signature(key, request, site, asked).encode(), signature.encode()):
            raise _unauthenticated("Invalid signature - provided signature does not match.")
        self._check_nonce(key, asked["oauth_timestamp"], asked["oauth_nonce"])
        return key

    def _check_nonce(self, key: ApiKey, timestamp: str, nonce: str) -> None:
        now = self._clock.now().timestamp()
        if not timestamp.isdecimal() or abs(int(timestamp) - now) > _VALID.total_seconds():
            raise _unauthenticated("Invalid timestamp.")
        used = self._nonces.setdefault(key.consumer_key, {})
        if nonce in used:
            raise _unauthenticated("Invalid nonce - nonce has already been used.")
        used[nonce] = now


def _signature(key: ApiKey, request: PartnerRequest, site: str, asked: Mapping[str, str]) -> str:
    """RFC 5849 without a token. A list is signed as PHP has it: ``status[]=a&status[]=b`` as ``status[0]=a`` etc."""
    pairs = [f"{_encoded(name)}={_encoded(asked[name])}" for name in sorted(asked)]
    base = "&".join((request.method, _encoded(site + request.path), _encoded("&".join(pairs))))
    made = hmac.new(f"{key.consumer_secret}&".encode(), base.encode(), _HASHES[asked["oauth_signature_method"]])
    return base64.b64encode(made.digest()).decode()


def _encoded(text: str) -> str:
    return quote(text, safe="~")


def _unauthenticated(message: str) -> RefusedError:
    return RefusedError(401, "woocommerce_rest_authentication_error", message)
