"""Stock of WooCommerce's products and variations, changed by the difference to the quantity looked up just before.

A sale since the look-up is preserved, while setting a quantity would undo it. Source: ``inventory_delta`` in
``WC_REST_Products_V2_Controller`` and ``WC_REST_Product_Variations_V2_Controller`` of woocommerce/woocommerce.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from urllib.parse import quote

from crossdock import RecordError
from crossdock.targets import Outcome
from crossdock.values.json_access import JsonElement
from crossdock_connectors.record_mapping_in_code import objects_in_list
from crossdock_connectors.shop.woocommerce.lists_and_records_by_id import API

FIELDS = "id,sku,parent_id,manage_stock,stock_quantity"


def raise_if_sku_cannot_be_looked_up(parts: Sequence[str]) -> None:
    """Raise RecordError if a SKU cannot be looked up: WooCommerce treats commas as separators of SKUs."""
    if len(parts) != 1 or not parts[0].strip():
        raise RecordError("invalid_draft", "the key must be the SKU")
    if "," in parts[0]:
        raise RecordError("invalid_draft", "WooCommerce looks up no SKU with a comma")


def stock_path(target_id: str) -> str:
    """Return the path of a product, or of a variation, whose id begins with its product's."""
    parent, number = (quote(part, safe="") for part in target_id.rpartition("-")[::2])
    return f"{API}/products/{parent}/variations/{number}" if parent else f"{API}/products/{number}"


def outcome_of_sku_look_up(products: Any, sku: str) -> Outcome:
    if not isinstance(products, list):
        return Outcome("unavailable", "answered a look-up without a list", 200)
    same = [
        product.value for product in objects_in_list(JsonElement(products, ""), "") if product.at("/sku", str) == sku
    ]
    if len(same) > 1:
        message = f"the shop has {len(same)} products with the SKU {sku}"
        return Outcome("rejected", message, 200, reason="conflict", pointer="/sku")
    if not same:
        return Outcome("absent", status=200)
    return outcome_of_found_product(same[0])


def outcome_of_id_look_up(product: Any, target_id: str) -> Outcome:
    number = product.get("id") if isinstance(product, dict) else None
    return outcome_of_found_product(product if str(number) == target_id.rpartition("-")[2] else None)


def outcome_of_found_product(product: Any) -> Outcome:
    number = product.get("id") if isinstance(product, dict) else None
    if not isinstance(number, int):
        return Outcome("unavailable", "answered a look-up with a different record", 200)
    parent, managed, held = (product.get(name) for name in ("parent_id", "manage_stock", "stock_quantity"))
    if managed == "parent":
        message = "this variation has no stock of its own: write that of its product"
        return Outcome("rejected", message, 200, reason="rejected", pointer="/sku")
    if managed is not True or held is None:
        message = "the shop does not manage the stock of this product"
        return Outcome("rejected", message, 200, reason="rejected", pointer="/sku")
    quantity = _whole_units_or_none(held)
    if quantity is None:
        message = "the shop has a part of a unit in stock; crossdock writes whole units"
        return Outcome("rejected", message, 200, reason="rejected", pointer="/quantity")
    target_id = f"{parent}-{number}" if isinstance(parent, int) and parent else str(number)
    return Outcome("found", status=200, target_id=target_id, held={"quantity": quantity})


def _whole_units_or_none(held: Any) -> int | None:
    """Return whole units; some extensions have them as text, and parts of units. None if there is a part."""
    try:
        number = Decimal(held)
    except (ArithmeticError, TypeError, ValueError):
        return None
    return int(number) if number.is_finite() and number == number.to_integral_value() else None
