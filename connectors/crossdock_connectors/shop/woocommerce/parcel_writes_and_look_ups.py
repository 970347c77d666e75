"""Parcels as tracking items of WooCommerce's extension Shipment Tracking.

Source: woocommerce.com/document/shipment-tracking. It has no idempotency keys and accepts a number twice, so the items
of the order are looked up first, and again after an ambiguous answer: a parcel is there if its number is. It counts as
absent only if every item can be read: one that is not an object, or has no number or id, is a `RecordError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crossdock.targets import Outcome, key_parts_of
from crossdock.values.json_access import JsonElement
from crossdock.values.json_paths import json_value_as_column_text
from crossdock_connectors.record_mapping_in_code import objects_in_list

_TRACKING = "/wp-json/wc-shipment-tracking/v3"


def tracking_path(order: str) -> str:
    return f"{_TRACKING}/orders/{order}/shipment-trackings"


def order_id_in_target_id(target_id: str) -> str:
    """Return the order's id, the first part of *target_id*: an item's own id is valid only within its order."""
    return target_id.partition("-")[0]


def tracking_item_body(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a new item. A carrier with a tracking address is a custom one."""
    body = {"tracking_number": payload["number"], "date_shipped": payload.get("date")}
    if payload.get("url") is None:
        body["tracking_provider"] = payload["carrier"]
    else:
        body |= {"custom_tracking_provider": payload["carrier"], "custom_tracking_link": payload["url"]}
    return {name: str(value) for name, value in body.items() if value is not None}


def outcome_of_parcel_creation(item: Any, status: int, name: str) -> Outcome:
    order, number = key_parts_of(name)
    target_id = _target_id_of_tracking_item(item, order)
    if target_id is None or json_value_as_column_text(item.get("tracking_number")) != number:
        return Outcome("in_doubt", "answered success without the tracking item, or with another one", status)
    return Outcome("delivered", status=status, target_id=target_id)


def outcome_of_parcel_look_up(items: Any, name: str | None, target_id: str | None) -> Outcome:
    """Return what a look-up of the order's items shows about the parcel *name*, or about *target_id*."""
    order, _, number = (name or "").partition("|")
    order = order_id_in_target_id(target_id) if target_id is not None else order
    if not order.isdecimal():
        return Outcome("absent", status=200)
    if not isinstance(items, list):
        return Outcome("unavailable", "answered a look-up without a list", 200)
    for item in objects_in_list(JsonElement(items, ""), ""):
        if target_id is None and _tracking_number_of_item(item) != key_parts_of(number)[0]:
            continue
        own = f"{order}-{item.at('/tracking_id', str)}"
        if target_id in {None, own}:
            return Outcome("found", status=200, target_id=own, held={})
    return Outcome("absent", status=200, held={})


def _tracking_number_of_item(item: JsonElement) -> str:
    """Return the number of a tracking item, which may be empty. A plugin may have written it as a number."""
    return "" if item.value.get("tracking_number") == "" else item.identifier("/tracking_number")


def _target_id_of_tracking_item(item: Any, order: str) -> str | None:
    found_id = item.get("tracking_id") if isinstance(item, dict) else None
    return f"{order}-{found_id}" if isinstance(found_id, str) and found_id else None
