"""Stock as Shopify's inventory quantities, which are set if they have not changed since the look-up just before.

Source: shopify.dev/docs/api/admin-graphql/2026-10/mutations/inventorySetQuantities. The directive ``@idempotent`` is
required as of version 2026-04. A part of a look-up that is missing is a `RecordError`, and null too unless it answers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from crossdock.targets import Outcome
from crossdock.values.json_access import JsonElement
from crossdock.values.json_paths import MISSING
from crossdock_connectors.record_mapping_in_code import objects_in_list, required_text_or_null
from crossdock_connectors.shop.shopify.requests_and_complete_lists import number_in_gid_or_empty

_LEVEL = (
    'inventoryLevel(locationId: $location) { isActive quantities(names: ["available", "on_hand"]) { name quantity } }'
)
LOOK_UP_SKU = f"""query stockOfSku($found: String!, $location: ID!) {{
  inventoryItems(first: 10, query: $found) {{ nodes {{ id sku {_LEVEL} }} pageInfo {{ hasNextPage }} }}
}}"""
LOOK_UP_ITEM = f"""query stockOfItem($item: ID!, $location: ID!) {{
  inventoryItem(id: $item) {{ id sku {_LEVEL} }}
}}"""
SET = """mutation inventorySetQuantities($input: InventorySetQuantitiesInput!, $key: String!) {
  inventorySetQuantities(input: $input) @idempotent(key: $key) {
    inventoryAdjustmentGroup { id } userErrors { field message code }
  }
}"""


def item_gid(number: str) -> str:
    return f"gid://shopify/InventoryItem/{number}"


def location_gid(number: str) -> str:
    return f"gid://shopify/Location/{number}"


def sku_search(sku: str) -> str:
    """Return the search for a SKU. It may find others, too, since Shopify ignores case."""
    return f"sku:{json.dumps(sku)}"


def outcome_of_sku_look_up(found: Any, sku: str, location: str, quantity_name: str) -> Outcome:
    """Return the stock of the one item with *sku* in the connection *found*."""
    read = JsonElement(found, "/data/inventoryItems")
    if read.at("/pageInfo/hasNextPage", bool):
        message = f"the shop finds more than 10 items for the SKU {sku}, which are not all read"
        return Outcome("rejected", message, 200, reason="conflict", pointer="/sku")
    same = [item.value for item in objects_in_list(read, "/nodes") if required_text_or_null(item, "sku") == sku]
    if len(same) > 1:
        message = f"the shop has {len(same)} variants with the SKU {sku}"
        return Outcome("rejected", message, 200, reason="conflict", pointer="/sku")
    if not same:
        return Outcome("rejected", f"the shop has no variant with the SKU {sku}", 200, reason="missing", pointer="/sku")
    return outcome_of_found_item(same[0], location, quantity_name)


def outcome_of_id_look_up(item: Any, target_id: str, quantity_name: str) -> Outcome:
    number, _, location = target_id.partition("-")
    if item is not None and number_in_gid_or_empty(JsonElement(item, "/data/inventoryItem").at("/id", str)) != number:
        return Outcome("unavailable", "answered a look-up with a different record", 200)
    return outcome_of_found_item(item, location, quantity_name)


def outcome_of_found_item(item: Any, location: str, quantity_name: str) -> Outcome:
    if item is None:
        return Outcome("rejected", "the shop no longer has this variant", 200, reason="missing")
    read = JsonElement(item, "/data/inventoryItem")
    level = item.get("inventoryLevel", MISSING)
    if level is None or not read.at("/inventoryLevel/isActive", bool):
        message = f"is not stocked at the location {location} of the shop"
        return Outcome("rejected", message, 200, reason="missing", pointer="/location")
    quantities = objects_in_list(read, "/inventoryLevel/quantities")
    held = {each.at("/name", str): each.at("/quantity", int) for each in quantities}
    if quantity_name not in held:
        return Outcome("in_doubt", f"the answer has no quantity {quantity_name}", 200)
    target_id = f"{number_in_gid_or_empty(read.at('/id', str))}-{location}"
    return Outcome("found", status=200, target_id=target_id, held={"quantity": held[quantity_name]})


def set_quantity_input(target_id: str, quantity: int, before: Mapping[str, Any], quantity_name: str) -> dict[str, Any]:
    """Return the input of `SET`: *quantity*, if the shop still has the quantity of *before*."""
    item, _, location = target_id.partition("-")
    row = {
        "inventoryItemId": item_gid(item),
        "locationId": location_gid(location),
        "quantity": quantity,
        "changeFromQuantity": before.get("quantity"),
    }
    return {"name": quantity_name, "reason": "correction", "quantities": [row]}
