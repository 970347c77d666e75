"""ShipBob as a target: orders, which are written once and can be cancelled until they are shipped.

ShipBob allows changes only to the address of an open shipment. Other changes cancel the order and send it again.
"""

from __future__ import annotations

from typing import Any

from crossdock import Filter
from crossdock.printable import printable
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
from crossdock.values.json_paths import at_path
from crossdock_connectors.threepl.reasons_read_from_refusals import Refusal, explain_refusal
from crossdock_connectors.threepl.shipbob.order_request_models import ShipBobOrder

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
        return explain_refusal(
            super().outcome(resource, answer, expected), answer, refusal, self.resources[resource].name_pointer
        )


def _outcome_of_refused_cancellation(body: Any) -> Outcome | None:
    """Return the refusal of a cancellation that not all shipments took part in, which is an answer of success."""
    status = at_path(body, "status")
    if status not in {"Failure", "PartialSuccess"}:
        return None
    results = at_path(body, "canceled_shipment_results")
    reasons = [at_path(each, "reason") for each in results] if isinstance(results, list) else []
    told = printable("; ".join(each for each in reasons if isinstance(each, str))[:_LONGEST])
    return Outcome("rejected", told or f"ShipBob answered {status}", _REFUSED, reason="rejected")


def refusal(body: Any) -> Refusal | None:
    if not isinstance(body, dict):
        return None
    for member, messages in body.items():
        texts = [text for text in messages if isinstance(text, str)] if isinstance(messages, list) else []
        if texts:
            taken = member == _NAME and any("already exists" in text for text in texts)
            return Refusal(f"{member}: {'; '.join(texts)}", f"/{member.replace('.', '/')}", taken)
    text = body.get("message") or body.get("detail")
    return Refusal(text) if isinstance(text, str) else None
