"""An order as Amazon accepts it: ``createFulfillmentOrder`` of ``fulfillmentOutbound_2020-07-01.json``.

The model lacks ``sellerFulfillmentOrderId``, which is the external id, and members for India and Japan only (cash on
delivery, payment and delivery preferences). Lengths and enumerations are the document's.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from crossdock.resources import Country, Currency, Instant, Personal, ResourceModel, Text, Units
from crossdock.values import exact_json

MAX_LINES = 100
_Comment = Annotated[Text, Field(max_length=750)]
_Remark = Annotated[Text, Field(max_length=250)]
_Gift = Annotated[Text, Field(max_length=512)]
_OrderNumber = Annotated[str, Field(min_length=1, max_length=40)]
_Key = Annotated[str, Field(min_length=1, max_length=50)]


def _exact_amount_text(value: object) -> object:
    """Convert a `Decimal` or integer to the exact text that Amazon requires. A text is not changed."""
    if isinstance(value, Decimal | int) and not isinstance(value, bool):
        return exact_json.decimal_text(Decimal(value))
    return value


_Amount = Annotated[
    str,
    BeforeValidator(_exact_amount_text),
    Field(pattern=r"^\d+(\.\d+)?$"),
    WithJsonSchema({"type": ["string", "number"]}),
]


class AmazonMoney(ResourceModel):
    currency_code: Currency
    value: _Amount


class AmazonAddress(ResourceModel):
    name: Personal
    address_line1: Personal
    address_line2: Personal | None = None
    address_line3: Personal | None = None
    city: Personal | None = None
    district_or_county: Personal | None = None
    state_or_region: Personal | None = None
    postal_code: Personal
    country_code: Country
    phone: Personal | None = None


class AmazonLine(ResourceModel):
    seller_sku: _Key
    seller_fulfillment_order_item_id: _Key
    """Unique in the order."""
    quantity: Units
    gift_message: _Gift | None = None
    displayable_comment: _Remark | None = None
    fulfillment_network_sku: _Key | None = None
    per_unit_declared_value: AmazonMoney | None = None
    per_unit_price: AmazonMoney | None = None
    per_unit_tax: AmazonMoney | None = None


class DeliveryWindow(ResourceModel):
    start_date: Instant
    end_date: Instant


class FeatureConstraint(ResourceModel):
    feature_name: Text
    feature_fulfillment_policy: Literal["Required", "NotRequired"]


class AmazonFulfillmentOrder(ResourceModel):
    """An order to fulfill."""

    displayable_order_id: _OrderNumber
    displayable_order_date: Instant
    displayable_order_comment: _Comment
    shipping_speed_category: Literal["Standard", "Expedited", "Priority", "ScheduledDelivery"]
    destination_address: AmazonAddress
    items: Annotated[tuple[AmazonLine, ...], Field(min_length=1, max_length=MAX_LINES)]
    delivery_window: DeliveryWindow | None = None
    fulfillment_action: Literal["Ship", "Hold"] | None = None
    fulfillment_policy: Literal["FillOrKill", "FillAll", "FillAllAvailable"] | None = None
    ship_from_country_code: Country | None = None
    notification_emails: tuple[Annotated[Text, Field(max_length=64)], ...] | None = Field(
        default=None, json_schema_extra={"x-personal": True}
    )
    feature_constraints: tuple[FeatureConstraint, ...] | None = None
