"""Settings of a connection to ShipBob."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from crossdock import ConfigModel, SecretRef
from crossdock.resources import Code
from crossdock.sources import Api, BaseUrl, BearerAuth, Name, RateLimit
from crossdock.values.config_base_types import make_pydantic_error_at_key
from crossdock.webhooks import WebhookSettings
from crossdock_connectors.threepl.settings import ThreePlSettings

StockState = Literal["fulfillable", "committed", "awaiting"]
SHORT = "FulfilledShort"
"""Our name for ``Fulfilled`` with fewer units than ordered; ShipBob has none."""
RATE = RateLimit(per_minute=140, burst=10)
"""ShipBob allows 150 requests in any minute: a full bucket and what flows into it in a minute together."""


class Bills(ConfigModel):
    """How ShipBob's bills become invoices."""

    customer: Annotated[str, Field(min_length=1)]
    """The key of the customer who is billed."""
    customer_namespace: Name
    """The namespace of this key."""
    products: Annotated[Mapping[str, str], Field(min_length=1)]
    """The key of a product by ShipBob's fee, its ``transaction_fee``; a bill with another fee is a dead letter."""
    product_namespace: Name
    """The namespace of the products."""


class ShipBobSettings(ThreePlSettings):
    """One merchant's sales channel at ShipBob."""

    known_statuses: ClassVar[Mapping[str, str]] = {
        "Processing": "processing",
        "Exception": "exception",
        "ImportReview": "exception",
        "PartiallyFulfilled": "partially_shipped",
        "Fulfilled": "shipped",
        SHORT: "shipped_short",
        "Cancelled": "cancelled",
    }

    kind: Literal["shipbob"]
    base_url: BaseUrl = "https://api.shipbob.com/2026-01"
    """The base URL of the API, with its version."""
    token: SecretRef
    """A personal access token."""
    owner: Annotated[str, Field(min_length=1)]
    """The merchant, ShipBob's ``user_id``: records of others in the same account are left out. It is part of every
    key; ``crossdock check`` lists those that the token sees."""
    channel: Annotated[int, Field(ge=1)]
    """The sales channel to which orders are sent, and whose orders are read."""
    stock_states: Mapping[StockState, Code] = {"fulfillable": "available", "committed": "reserved"}
    """The platform's lot status by ShipBob's state: each state of a lot is a lot of its own."""
    stock_leaves: Literal["quantity", "movement", "nothing"] = "quantity"
    """How units that are shipped leave the platform's stock: ``quantity``, by the quantities of the stream ``stock``;
    ``movement``, by a movement of the received lot to the bin OUTBOUND; ``nothing`` if another system does it."""
    receipts: Literal["lot", "movement", "nothing"] = "nothing"
    """What a completed receiving order becomes: ``lot``, a new lot of each of its lots; ``movement``, a movement of
    lots that another connection has announced; ``nothing``, as with ``stock_leaves: quantity``."""
    announced_lots: Name | None = None
    """For ``receipts: movement``: the namespace of the announced lots, whose key is the SKU and the lot number."""
    bills: Bills | None = None
    """Make invoices of ShipBob's bills. Default: do not read them."""
    webhooks: WebhookSettings | None = None
    """The webhooks that ShipBob sends; by default none are accepted."""

    @model_validator(mode="after")
    def _raise_if_stock_and_receipts_contradict(self) -> Self:
        if self.stock_leaves == "quantity" and self.receipts != "nothing":
            raise make_pydantic_error_at_key(
                ("receipts",), "must be nothing: with stock_leaves: quantity, the stream stock has them"
            )
        if self.stock_leaves == "movement" and self.receipts != "lot":
            raise make_pydantic_error_at_key(
                ("receipts",), "must be lot: with stock_leaves: movement, units leave the received lots"
            )
        if (self.receipts == "movement") is not (self.announced_lots is not None):
            raise make_pydantic_error_at_key(("announced_lots",), "belongs to receipts: movement, which needs it")
        return self

    def declared_api(self) -> Api:
        return self.api(auth=BearerAuth(self.token), rate=RATE)
