"""Parcels as Shopify's fulfillments: the shipped units of fulfillment orders.

Source: shopify.dev/docs/api/admin-graphql/2026-10/mutations/fulfillmentCreate. The mutation knows no idempotency keys,
so the order is looked up first, and again after an ambiguous answer: a parcel is there if its number is. It counts
as absent only if the answer has every part that could name it: a part that is missing or null is a `RecordError`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from crossdock import RecordError
from crossdock.targets import Outcome
from crossdock.values.json_access import JsonElement
from crossdock.values.json_paths import value_at_path_or_missing
from crossdock_connectors.record_mapping_in_code import objects_in_list, required_text_or_null
from crossdock_connectors.shop.shopify.requests_and_complete_lists import number_in_gid_or_empty

_MOST = 100  # fulfillments of an order that are read
_PARCELS = 20  # tracking numbers of a fulfillment that are read
LOOK_UP = f"""query shipments($id: ID!) {{
  order(id: $id) {{
    id
    fulfillments(first: {_MOST}) {{ id status trackingInfo(first: {_PARCELS}) {{ number }} }}
    fulfillmentOrders(first: 20) {{ nodes {{
      id status assignedLocation {{ location {{ id }} }}
      lineItems(first: 100) {{ nodes {{ id sku remainingQuantity }} pageInfo {{ hasNextPage }} }}
    }} pageInfo {{ hasNextPage }} }}
  }}
}}"""
CREATE = """mutation fulfillmentCreate($fulfillment: FulfillmentInput!) {
  fulfillmentCreate(fulfillment: $fulfillment) { fulfillment { id } userErrors { field message } }
}"""
_OPEN = frozenset({"OPEN", "IN_PROGRESS"})
_ENDED = frozenset({"CANCELLED", "ERROR", "FAILURE"})
_TAKEN = ("unfulfillable", "quantity", "remaining")
"""Texts of refusals that show that somebody else has shipped, moved or held units since the look-up."""


def outcome_of_order_look_up(order: Any, order_id: str, number: str) -> Outcome:
    """Return what the look-up of an order shows about the parcel with this number."""
    if order is None:
        return Outcome("rejected", f"the shop has no order {order_id}", 200, reason="missing")
    read = JsonElement(order, "/data/order")
    parcels = [(each, _tracking_numbers_of_fulfillment(each)) for each in objects_in_list(read, "/fulfillments")]
    for shipment, numbers in parcels:
        if number in numbers and shipment.at("/status", str) not in _ENDED:
            return Outcome("found", status=200, target_id=number_in_gid_or_empty(shipment.at("/id", str)), held={})
    if cut := _what_exceeds_look_up_limits(read, [numbers for _, numbers in parcels]):
        return Outcome("rejected", f"the order has more than {cut}, which are not all read", 200)
    to_ship = objects_in_list(read, "/fulfillmentOrders/nodes")
    for one in to_ship:
        _raise_if_fulfillment_order_incomplete(one)
    return Outcome("absent", status=200, held={"fulfillmentOrders": [one.value for one in to_ship]})


def _tracking_numbers_of_fulfillment(shipment: JsonElement) -> list[str | None]:
    return [required_text_or_null(parcel, "number") for parcel in objects_in_list(shipment, "/trackingInfo")]


def _raise_if_fulfillment_order_incomplete(one: JsonElement) -> None:
    """Raise RecordError if something of a fulfillment order is missing of which the request is made."""
    one.at("/id", str)
    one.at("/status", str)
    for line in objects_in_list(one, "/lineItems/nodes"):
        line.at("/id", str)
        line.at("/remainingQuantity", int)
        required_text_or_null(line, "sku")


def _what_exceeds_look_up_limits(order: JsonElement, numbers: list[list[str | None]]) -> str | None:
    """Return what the shop has beyond the limits of the look-up, where the parcel or its units may be."""
    if len(numbers) >= _MOST:
        return f"{_MOST - 1} fulfillments"
    if any(len(each) >= _PARCELS for each in numbers):
        return f"{_PARCELS - 1} tracking numbers in a fulfillment"
    if order.at("/fulfillmentOrders/pageInfo/hasNextPage", bool):
        return "20 fulfillment orders"
    if any(
        one.at("/lineItems/pageInfo/hasNextPage", bool) for one in objects_in_list(order, "/fulfillmentOrders/nodes")
    ):
        return "100 lines in a fulfillment order"
    return None


def fulfillment_input(payload: Mapping[str, Any], held: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input of `CREATE`.

    Raises:
        RecordError: If no location of the shop has as many units left to ship, or several do and no items are named.
    """
    tracking = {"number": payload["number"], "company": payload.get("carrier"), "url": payload.get("url")}
    return {
        "lineItemsByFulfillmentOrder": _units_at_one_location(payload.get("items"), held),
        "trackingInfo": {name: value for name, value in tracking.items() if value is not None},
        "notifyCustomer": payload.get("notify", False),
    }


def changed_outcome_if_units_taken(outcome: Outcome) -> Outcome:
    is_taken = outcome.kind == "rejected" and any(text in outcome.message.casefold() for text in _TAKEN)
    return Outcome("changed", outcome.message, outcome.status) if is_taken else outcome


def _units_at_one_location(items: Any, held: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the units of fulfillment orders in the parcel, all at one location as Shopify requires."""
    by_location: dict[Any, list[Any]] = {}
    for one in held["fulfillmentOrders"]:
        if one.get("status") in _OPEN:
            by_location.setdefault(value_at_path_or_missing(one, "assignedLocation.location.id"), []).append(one)
    found = [_parcel_units_from_orders(items, orders) for orders in by_location.values()]
    possible = [chosen for chosen in found if chosen is not None]
    if not items and len(possible) > 1:
        message = f"the order has units left to ship at {len(possible)} locations: name the items of the parcel"
        raise RecordError("conflict", message, pointer="/items")
    if possible:
        return possible[0]
    wanted = ", ".join(f"{item['quantity']} of {item['sku']}" for item in items) if items else "any units"
    message = f"the shop has not {wanted} left to ship at one location: shipped by others, cancelled, held or refunded"
    raise RecordError("conflict", message, pointer="/items")


def _parcel_units_from_orders(items: Any, orders: list[Any]) -> list[dict[str, Any]] | None:
    """Do the same as `_units_at_one_location` for these fulfillment orders; None if they have too few units."""
    missing: dict[str, int] | None = None
    if items:
        missing = {}
        for item in items:
            missing[item["sku"]] = missing.get(item["sku"], 0) + item["quantity"]
    groups = []
    for one in orders:
        lines = [{"id": gid, "quantity": units} for gid, units in _take_units_of_fulfillment_order(one, missing)]
        if lines:
            groups.append({"fulfillmentOrderId": one["id"], "fulfillmentOrderLineItems": lines})
    return groups if groups and not any((missing or {}).values()) else None


def _take_units_of_fulfillment_order(
    one: Mapping[str, Any], missing: dict[str, int] | None
) -> Iterator[tuple[str, int]]:
    for line in one["lineItems"]["nodes"]:
        units = line["remainingQuantity"]
        if missing is not None:
            units = min(units, missing.get(line.get("sku") or "", 0))
            if units:
                missing[line["sku"]] -= units
        if units > 0:
            yield line["id"], units
