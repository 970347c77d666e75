"""A WooCommerce shop as a target: parcels, statuses of orders, and stock.

Each record is looked up before it is written, and again after an answer that leaves in doubt whether it was, so nothing
is written twice. Orders themselves are not created.
"""

from __future__ import annotations

import datetime as dt
from typing import Any
from urllib.parse import quote, urlencode

from crossdock import RecordError
from crossdock.resources import Code, ResourceModel, Text
from crossdock.targets import (
    Answer,
    ApiTarget,
    EndpointProfile,
    ExpectedRecord,
    Outcome,
    Request,
    TargetResource,
    Update,
    body_of,
    key_parts_of,
)
from crossdock.values.json_paths import value_at_path_or_missing
from crossdock_connectors.record_mapping_in_code import unreadable_look_up_outcome
from crossdock_connectors.shop.woocommerce import parcel_writes_and_look_ups, stock_writes_and_look_ups
from crossdock_connectors.shop.woocommerce.lists_and_records_by_id import API
from crossdock_connectors.shop.written_back_record_models import StockLevel


class Parcel(ResourceModel):
    """A parcel of an order. The order and the tracking number are its key."""

    carrier: Code
    url: Text | None = None
    """Where the parcel is tracked; by default where the shop's extension knows that this carrier does."""
    date: dt.date | None = None
    """When it was shipped; by default today."""


class OrderStatus(ResourceModel):
    """The status of an order, as the shop calls it. The order's id is its key."""

    status: Code


_EACH_TIME = EndpointProfile(look_up=True, looks_up_first=frozenset({"create", "update"}))
_RESOURCES = {
    "fulfillments": TargetResource(
        "fulfillments",
        Parcel,
        write_once=True,
        deletes=False,
        endpoint=EndpointProfile(look_up=True, looks_up_first=frozenset({"create"})),
        name_limit=200,
    ),
    "order_status": TargetResource("order_status", OrderStatus, deletes=False, endpoint=_EACH_TIME, name_limit=200),
    "stock": TargetResource("stock", StockLevel, deletes=False, endpoint=_EACH_TIME, name_limit=200),
}
_PING = f"{API}/orders?per_page=1&_fields=id"


class WooCommerceTarget(ApiTarget):
    """The REST API ``wc/v3``, and for parcels that of the extension Shipment Tracking."""

    resources = _RESOURCES
    in_flight = 4

    # ---- names: the record key, which says all that a look-up needs

    def check_key(self, resource: str, namespace: str, key: str) -> None:
        super().check_key(resource, namespace, key)
        parts = key_parts_of(key)
        match resource:
            case "fulfillments":
                if len(parts) != 2 or not parts[0].isdecimal():
                    message = "the key must be the id of the shop's order and the tracking number, in this order"
                    raise RecordError("invalid_draft", message)
            case "order_status":
                if len(parts) != 1 or not parts[0].isdecimal():
                    raise RecordError("invalid_draft", "the key must be the id of the shop's order")
            case _:
                stock_writes_and_look_ups.raise_if_sku_cannot_be_looked_up(parts)

    def name_of(self, resource: str, namespace: str, key: str) -> str:  # noqa: ARG002
        return key

    def payload(self, resource: str, namespace: str, key: str, members: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        if resource != "fulfillments":
            return members
        order, number = key_parts_of(key)
        return {"order": order, "number": number, **members}

    # ---- requests

    def create_from(self, resource: str, payload: dict[str, Any], held: Any) -> Request:  # noqa: ARG002
        if resource == "stock":
            raise RecordError("missing", "the shop has no product with this SKU", pointer="/sku")
        assert resource == "fulfillments"  # an order is there, or the look-up says why it is not
        return Request.json(
            "POST",
            parcel_writes_and_look_ups.tracking_path(payload["order"]),
            parcel_writes_and_look_ups.tracking_item_body(payload),
        )

    def update(self, resource: str, target_id: str, update: Update) -> Request:
        if resource == "order_status":
            return Request.json("PUT", _order_path(target_id), update.changes)
        delta = int(update.after["quantity"]) - int(update.before["quantity"])
        return Request.json("PUT", stock_writes_and_look_ups.stock_path(target_id), {"inventory_delta": delta})

    def look_up(self, resource: str, name: str | None, target_id: str | None) -> Request:
        match resource:
            case "fulfillments":
                order = (
                    parcel_writes_and_look_ups.order_id_in_target_id(target_id)
                    if target_id is not None
                    else key_parts_of(name or "")[0]
                )
                return (
                    Request("GET", parcel_writes_and_look_ups.tracking_path(order))
                    if order.isdecimal()
                    else self.ping(resource)
                )
            case "order_status":
                order = name or ""
                if target_id is None and not order.isdecimal():
                    return self.ping(resource)
                return Request("GET", _order_path(target_id or order))
        if target_id is not None:
            return Request("GET", stock_writes_and_look_ups.stock_path(target_id))
        asked = {"sku": key_parts_of(name or "")[0], "status": "any", "_fields": stock_writes_and_look_ups.FIELDS}
        return Request("GET", f"{API}/products?{urlencode(asked)}")

    def ping(self, resource: str) -> Request:  # noqa: ARG002
        return Request("GET", _PING)

    # ---- answers

    def outcome(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        if missing := _missing_record_outcome(answer):
            return missing
        if resource == "fulfillments" and 200 <= answer.status < 300:
            return parcel_writes_and_look_ups.outcome_of_parcel_creation(
                body_of(answer), answer.status, expected.name or ""
            )
        if 200 <= answer.status < 300:
            return _outcome_of_success_answer(body_of(answer), answer.status, expected)
        return super().outcome(resource, answer, expected)

    def found(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:
        if missing := _missing_record_outcome(answer):
            return missing
        if answer.status != 200:
            return _failed_look_up_outcome(super().outcome(resource, answer, expected))
        try:
            return _outcome_of_look_up(resource, body_of(answer), expected)
        except RecordError as error:
            return unreadable_look_up_outcome(error)

    def advice(self, resource: str, status: int | None) -> str:
        match status:
            case 401 | 403:
                return f"check {self.place}.consumer_key: it needs the permissions read and write, of a shop manager"
            case 404 if resource == "fulfillments":
                return f"check {self.place}.base_url, and that the shop has the extension Shipment Tracking"
            case 404:
                return f"check {self.place}.base_url"
        return f"check {self.place}"


def _outcome_of_look_up(resource: str, body: Any, expected: ExpectedRecord) -> Outcome:
    match resource:
        case "fulfillments":
            return parcel_writes_and_look_ups.outcome_of_parcel_look_up(body, expected.name, expected.target_id)
        case "order_status":
            return _outcome_of_status_look_up(body, expected.target_id or expected.name)
    if expected.target_id is not None:
        return stock_writes_and_look_ups.outcome_of_id_look_up(body, expected.target_id)
    return stock_writes_and_look_ups.outcome_of_sku_look_up(body, key_parts_of(expected.name or "")[0])


def _order_path(order: str) -> str:
    return f"{API}/orders/{quote(order, safe='')}"


def _missing_record_outcome(answer: Answer) -> Outcome | None:
    """Return the rejection of a record that the shop does not have. Other answers of 404 concern all records."""
    if answer.status in {400, 404} and error_code_in_answer(answer).endswith("_invalid_id"):
        return Outcome("rejected", "the shop has no such order or product", 200, reason="missing")
    return None


def _failed_look_up_outcome(outcome: Outcome) -> Outcome:
    """Return the outcome of a look-up without a list: a look-up leaves nothing in doubt."""
    return (
        outcome
        if outcome.kind in {"throttled", "unauthorized", "rejected"}
        else Outcome("unavailable", outcome.message, outcome.status, outcome.retry_after_s)
    )


def _outcome_of_success_answer(body: Any, status: int, expected: ExpectedRecord) -> Outcome:
    target_id = expected.target_id or ""
    if not isinstance(body, dict) or str(body.get("id")) != target_id.rpartition("-")[2]:
        return Outcome("in_doubt", "answered success for another record, or with a broken body", status)
    return Outcome("delivered", status=status, target_id=target_id)


def _outcome_of_status_look_up(body: Any, order: str | None) -> Outcome:
    if not (order or "").isdecimal():
        return Outcome("absent", status=200)
    if not isinstance(body, dict) or str(body.get("id")) != order or not isinstance(body.get("status"), str):
        return Outcome("unavailable", "answered a look-up with a different record", 200)
    if body["status"] == "trash":
        return Outcome("rejected", "the order is in the shop's trash", 200, reason="missing")
    return Outcome("found", status=200, target_id=order, held={"status": body["status"]})


def error_code_in_answer(answer: Answer) -> str:
    found = value_at_path_or_missing(body_of(answer), "code")
    return found if isinstance(found, str) else ""
