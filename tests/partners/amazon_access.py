"""Who may ask the fake of Amazon, and how often: Login with Amazon, and a token bucket per seller and operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from urllib.parse import parse_qs

from tests.partners.amazon_seller import Seller
from tests.partners.amazon_wire import RefusedError
from tests.partners.partner_server import PartnerAnswer, PartnerRequest


class Login:
    """Login with Amazon: a seller's refresh token gives access tokens that live for a while.

    Answers and errors are those of RFC 6749, sections 5.1 and 5.2, as
    developer.amazon.com/docs/login-with-amazon describes them.
    """

    def __init__(self, clock: Callable[[], datetime], client_id: str, client_secret: str, life: timedelta) -> None:
        self.life = life
        self._clock, self._client = clock, (client_id, client_secret)
        self._grants: dict[str, Seller] = {}
        self._issued: dict[str, tuple[Seller, datetime]] = {}

    def add(self, seller: Seller) -> None:
        """Let *seller* log in."""
        self._grants[seller.refresh_token] = seller

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        """``POST /auth/o2/token`` with a form of ``grant_type=refresh_token``."""
        form = {name: values[0] for name, values in parse_qs(request.body.decode("latin-1")).items()}
        if missing := {"grant_type", "client_id", "client_secret", "refresh_token"} - set(form):
            return _login_error(400, "invalid_request", f"The request is missing {', '.join(sorted(missing))}")
        if form["grant_type"] != "refresh_token":
            return _login_error(400, "unsupported_grant_type", "The authorization grant type is not supported")
        if (form["client_id"], form["client_secret"]) != self._client:
            return _login_error(401, "invalid_client", "Client authentication failed")
        if (seller := self._grants.get(form["refresh_token"])) is None:
            return _login_error(400, "invalid_grant", "The request has an invalid grant parameter : refresh_token")
        token = f"Atza|{seller.seller_id}-{len(self._issued) + 1}"
        self._issued[token] = (seller, self._clock() + self.life)
        seconds = int(self.life.total_seconds())
        body = {
            "access_token": token,
            "token_type": "bearer",
            "expires_in": seconds,
            "refresh_token": seller.refresh_token,
        }
        return PartnerAnswer(200, body, {"cache-control": "no-store"})

    def seller(self, request: PartnerRequest) -> Seller:
        """The seller whose access token *request* has.

        Raises:
            RefusedError: If it has none, an unknown or an expired one. The details are Amazon's own words
                (github.com/amzn/selling-partner-api-models, issues 945 and 230).
        """
        token = request.headers.get("x-amz-access-token")
        if not token:
            raise denied("Access token is missing in the request header.")
        if token not in self._issued:
            raise denied("The access token you provided is revoked, malformed or invalid.")
        seller, end = self._issued[token]
        if self._clock() >= end:
            raise denied("The access token you provided has expired.")
        return seller


def _login_error(status: int, error: str, description: str) -> PartnerAnswer:
    return PartnerAnswer(status, {"error": error, "error_description": description})


def denied(details: str = "") -> RefusedError:
    """Amazon's refusal of access."""
    return RefusedError(403, "Unauthorized", "Access to requested resource is denied.", details)


class Limit(NamedTuple):
    """A usage plan: requests per second, and the most at once."""

    per_second: int
    burst: int


LIMITS: Mapping[str, Limit] = {
    "createFulfillmentOrder": Limit(2, 30),
    "listAllFulfillmentOrders": Limit(2, 30),
    "getFulfillmentOrder": Limit(2, 30),
    "updateFulfillmentOrder": Limit(2, 30),
    "cancelFulfillmentOrder": Limit(2, 30),
    "getPackageTrackingDetails": Limit(2, 30),
    "getInventorySummaries": Limit(2, 2),
}
"""Amazon's default usage plans by operation, from the tables in its API documents."""


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled: datetime


class Buckets:
    """A token bucket per seller and operation, full at first."""

    def __init__(self, clock: Callable[[], datetime], limits: Mapping[str, Limit]) -> None:
        self._clock, self.limits = clock, limits
        self._buckets: dict[tuple[str, str], _Bucket] = {}

    def take(self, seller_id: str, operation: str) -> bool:
        """Take a token; False, and nothing is taken, if there is none."""
        limit, now = self.limits[operation], self._clock()
        bucket = self._buckets.setdefault((seller_id, operation), _Bucket(limit.burst, now))
        passed = (now - bucket.filled).total_seconds()
        bucket.tokens, bucket.filled = min(limit.burst, bucket.tokens + passed * limit.per_second), now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True
