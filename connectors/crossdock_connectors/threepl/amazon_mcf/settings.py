"""Settings of a connection to Amazon Multi-Channel Fulfillment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from crossdock import SecretRef
from crossdock.resources import Code
from crossdock.sources import Api, BaseUrl, RateLimit, RefreshTokenAuth
from crossdock.values.web_address_checks import check_address_without_query
from crossdock_connectors.threepl.settings import ThreePlSettings

StockState = Literal["fulfillable", "reserved", "researching", "unfulfillable"]
RATE = RateLimit(per_minute=120, burst=2)
"""Amazon has a token bucket for each operation. All that are used here have two requests per second and a burst of 30,
except the inventory with a burst of 2. All requests of a connection keep to the lowest limit.
"""


class LoginWithAmazon(RefreshTokenAuth):
    """Login with Amazon. Its tokens have a header of their own, and Amazon answers 403 to an expired one."""

    header, scheme = "x-amz-access-token", ""
    expired_statuses = frozenset({403})


class AmazonMcfSettings(ThreePlSettings):
    """One seller in one marketplace of Amazon."""

    known_statuses: ClassVar[Mapping[str, str]] = {
        "New": "received",
        "Received": "received",
        "Planning": "processing",
        "Processing": "processing",
        "Complete": "shipped",
        "CompletePartialled": "shipped_short",
        "Unfulfillable": "unfulfillable",
        "Invalid": "invalid",
        "Cancelled": "cancelled",
    }

    kind: Literal["amazon_mcf"]
    base_url: BaseUrl = "https://sellingpartnerapi-na.amazon.com"
    """The endpoint of the region: ``-na`` for America, ``-eu`` for Europe, ``-fe`` for the Far East."""
    token_url: Annotated[str, AfterValidator(check_address_without_query)] = "https://api.amazon.com/auth/o2/token"  # noqa: S105  an address
    """Where Login with Amazon grants access tokens."""
    refresh_token: SecretRef
    """The seller's grant. Others' records are not visible with it."""
    client_id: SecretRef
    """The id of the application."""
    client_secret: SecretRef
    """The secret of the application."""
    marketplace: Annotated[str, Field(min_length=1)]
    """The id of the marketplace, such as ATVPDKIKX0DER for the United States. It is part of every key."""
    stock_states: Mapping[StockState, Code] = {
        "fulfillable": "available",
        "reserved": "reserved",
        "researching": "hold",
        "unfulfillable": "damaged",
    }
    """The platform's lot status by Amazon's state: each state of a SKU is a lot of its own."""

    def declared_api(self) -> Api:
        # Refresh tokens are reusable: Amazon's are valid until they are withdrawn.
        auth = LoginWithAmazon(self.token_url, self.refresh_token, self.client_id, self.client_secret, reusable=True)
        return self.api(auth=auth, rate=RATE)
