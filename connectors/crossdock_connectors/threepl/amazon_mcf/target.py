"""Amazon as a target: fulfillment orders, which are written once and can be cancelled until they are picked.

Amazon answers a create with an empty body: the order's id is its external id. Only an order on hold could be changed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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
from crossdock_connectors.threepl.amazon_mcf.order_request_models import AmazonFulfillmentOrder
from crossdock_connectors.threepl.amazon_mcf.streams import ORDERS
from crossdock_connectors.threepl.reasons_read_from_refusals import Refusal, explain_refusal
from crossdock_connectors.threepl.record_values import normalized_status

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
        return explain_refusal(outcome, answer, refusal, self.resources[resource].name_pointer)

    def found(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        """Do the same as for any target, but an order that ships nothing is absent if it is looked up by its id."""
        outcome = super().found(resource, answer, _expected_with_id_from_name(expected))
        status = outcome.held.get("fulfillmentOrderStatus") if outcome.held is not None else None
        ships_nothing = expected.target_id is not None and normalized_status(str(status)) in _SHIPPING_NOTHING
        return Outcome("absent", status=200) if ships_nothing else outcome


def _expected_with_id_from_name(expected: ExpectedRecord) -> ExpectedRecord:
    return replace(expected, target_id=expected.target_id or expected.name)


def refusal(body: Any) -> Refusal | None:
    """Read an ``ErrorList``. Only the message shows that an external id is taken."""
    errors = body.get("errors") if isinstance(body, dict) else None
    first = errors[0] if isinstance(errors, list) and errors else None
    if not isinstance(first, dict) or not isinstance(first.get("message"), str):
        return None
    message, details = first["message"], first.get("details")
    text = f"{message} {details}" if isinstance(details, str) and details else message
    return Refusal(text, None, "already exists" in message)
