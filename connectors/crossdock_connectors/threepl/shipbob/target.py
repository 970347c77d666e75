"""ShipBob as a target: orders, which are written once and can be cancelled until they are shipped.

ShipBob allows changes only to the address of an open shipment. Other changes cancel the order and send it again.
An order is that of ``POST /2026-01/order`` (developer.shipbob.com), without the external id.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from crossdock import Filter
from crossdock.printable import printable
from crossdock.resources import Code, Country, Exact, Instant, Personal, ResourceModel, Text, Units
from crossdock.targets import (
    Answer,
    ApiTarget,
    EndpointProfile,
    ExpectedRecord,
    Outcome,
    RecordShape,
    Request,
    TargetResource,
    body_of,
)
from crossdock.values.json_paths import value_at_path_or_missing
from crossdock_connectors.threepl.refusal_reasons import Refusal, rejection_with_reason_from_answer


class _Member(ResourceModel):
    model_config = ConfigDict(alias_generator=None)


class ShipBobAddress(_Member):
    address1: Personal
    address2: Personal | None = None
    company_name: Personal | None = None
    city: Personal
    state: Personal | None = None
    country: Country
    zip_code: Personal | None = None


class Recipient(_Member):
    name: Personal
    address: ShipBobAddress
    email: Personal | None = None
    phone_number: Personal | None = None


class OrderedProduct(_Member):
    """A line. A product that ShipBob does not know is created if it has a name."""

    reference_id: Code
    """The SKU at ShipBob."""
    quantity: Units
    name: Text | None = None
    sku: Code | None = None
    unit_price: Exact | None = None
    external_line_id: int | None = None
    quantity_unit_of_measure_code: Literal["EA", "INP", "CS", "PL"] | None = None
    upc: Code | None = None
    gtin: Code | None = None


class Financials(_Member):
    total_price: Exact | None = None


class Tag(_Member):
    name: Text
    value: Text


class RetailerProgramData(_Member):
    """Of orders to retailers."""

    purchase_order_number: Code
    retailer_program_type: Code
    customer_ticket_number: Code | None = None
    delivery_date: Instant | None = None
    department: Code | None = None
    doNotShipBeforeDate: Instant | None = None  # noqa: N815  ShipBob's spelling
    mark_for_store: Code | None = None
    shipByDate: Instant | None = None  # noqa: N815  ShipBob's spelling


class ShippingTerms(_Member):
    carrier_type: Literal["Parcel", "Freight"]
    payment_term: Literal["Collect", "ThirdParty", "Prepaid", "MerchantResponsible"]


class ShipBobOrder(_Member):
    """An order to ship."""

    recipient: Recipient
    products: Annotated[tuple[OrderedProduct, ...], Field(min_length=1)]
    shipping_method: Code
    type: Literal["DTC", "DropShip", "B2B"] = "DTC"
    order_number: Code | None = None
    purchase_date: Instant | None = None
    location_id: int | None = None
    financials: Financials | None = None
    gift_message: Annotated[Text, Field(max_length=500)] | None = None
    origin_platform_program: Text | None = None
    sales_channel: Text | None = None
    retailer_program_data: RetailerProgramData | None = None
    shipping_terms: ShippingTerms | None = None
    tags: tuple[Tag, ...] | None = None


_NAME = "reference_id"
_REFUSED = 422
_LONGEST = 2_000  # characters of a message
_RESOURCES = {
    "orders": TargetResource(
        "orders",
        ShipBobOrder,
        write_once=True,
        # a second cancellation would be refused, so a look-up decides about one in doubt
        endpoint=EndpointProfile(idempotent=True, look_up=True, rules={"delete": "verify"}),
        shape=RecordShape(listed=""),
        name_member=_NAME,
        path="/order",
        look_up_filter="ReferenceIds",
        deleted=Filter(field="status", equals="Cancelled"),
        name_limit=300,
    )
}


class ShipBobTarget(ApiTarget):
    """The orders of one sales channel. A ``reference_id`` is accepted once in a channel."""

    resources = _RESOURCES

    def __init__(self, channel: int) -> None:
        self._channel = str(channel)
        self.account_at_address = f"channel {channel}"

    def headers(self, resource: str, idempotency_key: str | None, if_match: str | None) -> dict[str, str]:
        return {**super().headers(resource, idempotency_key, if_match), "shipbob_channel_id": self._channel}

    def delete(self, resource: str, target_id: str) -> Request:
        return Request("POST", f"{self.record_path(resource, target_id)}:cancel")

    def outcome(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        is_cancellation = expected.target_id is not None  # orders are never changed
        if (
            is_cancellation
            and 200 <= answer.status < 300
            and (left := _outcome_of_refused_cancellation(body_of(answer)))
        ):
            return left
        return rejection_with_reason_from_answer(
            super().outcome(resource, answer, expected),
            answer,
            read_refusal_in_body,
            self.resources[resource].name_pointer,
        )


def _outcome_of_refused_cancellation(body: Any) -> Outcome | None:
    """Return the refusal of a cancellation that not all shipments took part in, which is an answer of success."""
    status = value_at_path_or_missing(body, "status")
    if status not in {"Failure", "PartialSuccess"}:
        return None
    results = value_at_path_or_missing(body, "canceled_shipment_results")
    reasons = [value_at_path_or_missing(each, "reason") for each in results] if isinstance(results, list) else []
    told = printable("; ".join(each for each in reasons if isinstance(each, str))[:_LONGEST])
    return Outcome("rejected", told or f"ShipBob answered {status}", _REFUSED, reason="rejected")


def read_refusal_in_body(body: Any) -> Refusal | None:
    if not isinstance(body, dict):
        return None
    for member, messages in body.items():
        texts = [text for text in messages if isinstance(text, str)] if isinstance(messages, list) else []
        if texts:
            taken = member == _NAME and any("already exists" in text for text in texts)
            return Refusal(f"{member}: {'; '.join(texts)}", f"/{member.replace('.', '/')}", taken)
    text = body.get("message") or body.get("detail")
    return Refusal(text) if isinstance(text, str) else None
