"""OAuth 1.0a without a token, HMAC-SHA256, as WooCommerce accepts it over plain http.

Sources: RFC 5849 section 3.4, and the section "Authentication" of woocommerce.github.io/woocommerce-rest-api-docs.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import b64encode
from collections.abc import Generator
from urllib.parse import quote

import httpx

from crossdock import SecretRef
from crossdock.sources import TimedAuth

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
        made = signature(request.method, str(request.url.copy_with(query=None)), signed, self._secret.reveal())
        request.url = request.url.copy_with(params=[*signed, (f"{_PREFIX}signature", made)])
        yield request


def signature(method: str, address: str, params: list[tuple[str, str]], secret: str) -> str:
    pairs = "&".join(
        f"{name}={value}" for name, value in sorted((_encoded(name), _encoded(value)) for name, value in params)
    )
    text = "&".join((method, _encoded(address), _encoded(pairs)))
    return b64encode(hmac.new(f"{_encoded(secret)}&".encode(), text.encode(), hashlib.sha256).digest()).decode()


def _encoded(text: str) -> str:
    return quote(text, safe="~")
