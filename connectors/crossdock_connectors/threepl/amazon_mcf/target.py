"""Amazon as a target: fulfillment orders, which are written once and can be cancelled until they are picked.

Amazon answers a create with an empty body: the order's id is its external id. Only an order on hold could be changed.
An order is that of ``createFulfillmentOrder`` of ``fulfillmentOutbound_2020-07-01.json``, with its lengths and
enumerations, but without the external id and members for India and Japan only (cash on delivery, payment and delivery
preferences).
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from crossdock.resources import Country, Currency, Instant, Personal, ResourceModel, Text, Units
from crossdock.targets import (
    Answer,
    ApiTarget,
    EndpointProfile,
    ExpectedRecord,
    Outcome,
    RecordShape,
    Request,
    TargetResource,
)
from crossdock.values import exact_json
from crossdock_connectors.threepl.amazon_mcf.streams import ORDERS
from crossdock_connectors.threepl.record_values import normalized_status
from crossdock_connectors.threepl.refusal_reasons import Refusal, rejection_with_reason_from_answer

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


_NAME = "sellerFulfillmentOrderId"
_SHIPPING_NOTHING = frozenset({"cancelled", "invalid", "unfulfillable"})
MAX_NAME = 40  # characters, by Amazon's document
_RESOURCES = {
    "orders": TargetResource(
        "orders",
        AmazonFulfillmentOrder,
        write_once=True,
        # a second cancellation would be refused, so a look-up decides about one in doubt
        endpoint=EndpointProfile(idempotent=True, look_up=True, rules={"delete": "verify"}),
        shape=RecordShape(id=f"/{_NAME}", record="/payload/fulfillmentOrder"),
        name_member=_NAME,
        path=ORDERS,
        name_limit=MAX_NAME,
    )
}


class AmazonTarget(ApiTarget):
    """The orders of one seller in one marketplace. A ``sellerFulfillmentOrderId`` is accepted once."""

    resources = _RESOURCES

    def __init__(self, marketplace: str) -> None:
        self._marketplace = marketplace

    def payload(self, resource: str, namespace: str, key: str, members: dict[str, Any]) -> dict[str, Any]:
        return super().payload(resource, namespace, key, {"marketplaceId": self._marketplace, **members})

    def delete(self, resource: str, target_id: str) -> Request:
        return Request("PUT", f"{self.record_path(resource, target_id)}/cancel")

    def look_up(self, resource: str, name: str | None, target_id: str | None) -> Request:
        return super().look_up(resource, None, target_id or name)

    def outcome(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        outcome = super().outcome(resource, answer, _expected_with_id_from_name(expected))
        return rejection_with_reason_from_answer(
            outcome, answer, read_refusal_in_body, self.resources[resource].name_pointer
        )

    def found(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        """Do the same as for any target, but an order that ships nothing is absent if it is looked up by its id."""
        outcome = super().found(resource, answer, _expected_with_id_from_name(expected))
        status = outcome.held.get("fulfillmentOrderStatus") if outcome.held is not None else None
        ships_nothing = expected.target_id is not None and normalized_status(str(status)) in _SHIPPING_NOTHING
        return Outcome("absent", status=200) if ships_nothing else outcome


def _expected_with_id_from_name(expected: ExpectedRecord) -> ExpectedRecord:
    return replace(expected, target_id=expected.target_id or expected.name)


def read_refusal_in_body(body: Any) -> Refusal | None:
    """Read an ``ErrorList``. Only the message shows that an external id is taken."""
    errors = body.get("errors") if isinstance(body, dict) else None
    first = errors[0] if isinstance(errors, list) and errors else None
    if not isinstance(first, dict) or not isinstance(first.get("message"), str):
        return None
    message, details = first["message"], first.get("details")
    text = f"{message} {details}" if isinstance(details, str) and details else message
    return Refusal(text, None, "already exists" in message)
