"""Requests and answers of OAuth 2.0 token endpoints (RFC 6749), for the platform and for the APIs of connectors."""

from __future__ import annotations

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from decimal import Decimal
from hashlib import sha256
from typing import Any, Literal
from urllib.parse import quote_plus

from crossdock.values import exact_json

ClientAuth = Literal["basic", "post"]
ERROR_CODES = frozenset({
    "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type",
    "invalid_scope",  # RFC 6749 section 5.2
    "invalid_target",  # RFC 8707
})  # fmt: skip
_PASSING_STATUSES = frozenset({408, 421, 425, 429})
_PASSING_CODES = frozenset({"server_error", "temporarily_unavailable", "slow_down"})
DEFAULT_LIFE_S = 300.0  # of a token without expires_in
MAX_LIFE_S = 86_400.0
_SECONDS = re.compile(r"[0-9]{1,12}")


def client_authentication_fields_and_headers(
    client_id: str, secret: str, how: ClientAuth
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the form fields and headers by which a client authenticates (section 2.3.1)."""
    if how == "post":
        return {"client_id": client_id, "client_secret": secret}, {}
    pair = f"{quote_plus(client_id)}:{quote_plus(secret)}"
    return {}, {"authorization": f"Basic {b64encode(pair.encode()).decode()}"}


def pkce_challenge(verifier: str) -> str:
    """Return what is told of *verifier* before it is shown (RFC 7636 section 4.2, S256)."""
    return urlsafe_b64encode(sha256(verifier.encode()).digest()).decode().rstrip("=")


def json_object_or_empty(body: bytes) -> Mapping[str, Any]:
    try:
        document = exact_json.loads(body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def is_valid_access_token(value: object) -> bool:
    return isinstance(value, str) and bool(value) and value.isascii() and value.isprintable() and " " not in value


def is_valid_refresh_token(value: object) -> bool:
    """Return whether *value* is one; it may have spaces, since it is never sent in a header (RFC 6749, A.17)."""
    return isinstance(value, str) and bool(value) and value.isascii() and value.isprintable()


def oauth_error_code(members: Mapping[str, Any]) -> str:
    """Return the code of an error, or an empty text. Some vendors have an object there."""
    code = members.get("error")
    return code if isinstance(code, str) else ""


def is_temporary_failure(status: int, members: Mapping[str, Any]) -> bool:
    """Return whether an answer without a token says nothing about the credentials, so that a later one may have it."""
    return status in _PASSING_STATUSES or status >= 500 or oauth_error_code(members) in _PASSING_CODES


def token_refusal_text(status: int, code: object) -> str:
    """Return why a token was refused. An error code that no standard lists could contain a secret and is left out."""
    is_known = isinstance(code, str) and code in ERROR_CODES
    return f"{code} (HTTP {status})" if is_known else f"HTTP {status}"


def token_life_s(expires_in: object) -> float:
    """Return how many seconds a token lives. An invalid value counts as missing, since a 401 replaces the token."""
    if isinstance(expires_in, str) and _SECONDS.fullmatch(expires_in):
        expires_in = int(expires_in)
    if isinstance(expires_in, bool) or not isinstance(expires_in, int | Decimal) or expires_in <= 0:
        return DEFAULT_LIFE_S
    return float(min(expires_in, Decimal(MAX_LIFE_S)))
