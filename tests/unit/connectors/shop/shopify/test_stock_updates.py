"""What look-ups of stock say, and the input by which a quantity is set."""

from __future__ import annotations

from typing import Any

import pytest

from crossdock import RecordError
from crossdock_connectors.shop.shopify.stock_writes_and_look_ups import (
    outcome_of_found_item,
    outcome_of_sku_look_up,
    set_quantity_input,
    sku_search,
)


def listed(*items: Any, more: bool = False) -> dict[str, Any]:
    return {"nodes": list(items), "pageInfo": {"hasNextPage": more}}


def item(sku: str = "LAMP", number: int = 7, **level: Any) -> dict[str, Any]:
    quantities = [{"name": "available", "quantity": 3}, {"name": "on_hand", "quantity": 5}]
    shown = {"isActive": True, "quantities": quantities, **level}
    return {"id": f"gid://shopify/InventoryItem/{number}", "sku": sku, "inventoryLevel": shown}


@pytest.mark.parametrize(("name", "quantity"), [("on_hand", 5), ("available", 3)])
def test_the_quantity_that_the_settings_name_is_found(name: str, quantity: int) -> None:
    """The id has the item and the location, by which it is looked up from then on."""
    found = outcome_of_sku_look_up(listed(item("lamp", 8), {**item(number=9), "sku": None}, item()), "LAMP", "42", name)
    assert (found.kind, found.target_id, found.held) == ("found", "7-42", {"quantity": quantity})
    assert outcome_of_found_item(item(), "42", name) == found


@pytest.mark.parametrize(
    ("items", "reason", "message"),
    [
        ([], "missing", "the shop has no variant with the SKU LAMP"),
        ([item("lamp")], "missing", "the shop has no variant with the SKU LAMP"),
        ([item(), item(number=8)], "conflict", "the shop has 2 variants with the SKU LAMP"),
    ],
)
def test_a_sku_must_be_that_of_one_variant(items: list[Any], reason: str, message: str) -> None:
    """Shopify's search ignores case, and nothing of the shop forbids a SKU twice."""
    found = outcome_of_sku_look_up(listed(*items), "LAMP", "42", "on_hand")
    assert (found.kind, found.reason, found.pointer, found.message) == ("rejected", reason, "/sku", message)


def test_a_search_that_is_cut_shows_no_variant() -> None:
    """The variant, or another one with its SKU, may be among those that are not read."""
    found = outcome_of_sku_look_up(listed(item(), more=True), "LAMP", "42", "on_hand")
    assert (found.kind, found.reason, found.pointer) == ("rejected", "conflict", "/sku")


@pytest.mark.parametrize("shown", [{"inventoryLevel": None}, {"inventoryLevel": {"isActive": False}}])
def test_a_product_that_is_not_stocked_there_is_rejected(shown: dict[str, Any]) -> None:
    """Shopify would carry out nothing, and tell no error."""
    found = outcome_of_found_item({"id": "gid://shopify/InventoryItem/7", **shown}, "42", "on_hand")
    assert (found.kind, found.reason, found.pointer) == ("rejected", "missing", "/location")


def test_what_is_not_told_is_not_guessed() -> None:
    """A deleted item is missing; an answer without the quantity decides nothing."""
    assert (
        outcome_of_found_item(None, "42", "on_hand").kind,
        outcome_of_found_item(None, "42", "on_hand").reason,
    ) == (
        "rejected",
        "missing",
    )
    assert outcome_of_found_item(item(quantities=[]), "42", "on_hand").kind == "in_doubt"
    for quantities in (None, [{"name": "on_hand", "quantity": None}], ["odd"]):
        with pytest.raises(RecordError):
            outcome_of_found_item(item(quantities=quantities), "42", "on_hand")


@pytest.mark.parametrize(
    "found",
    [
        None,
        {"nodes": None, "pageInfo": {"hasNextPage": False}},
        {"nodes": [], "pageInfo": None},
        listed(None),
        listed({"id": "gid://shopify/InventoryItem/7"}),
        listed({"id": "gid://shopify/InventoryItem/7", "sku": "LAMP"}),
        listed(item(isActive=None)),
    ],
)
def test_a_part_that_is_null_or_missing_is_not_a_missing_variant(found: Any) -> None:
    """The shop may have the variant, and the quantity may be counted at the location."""
    with pytest.raises(RecordError):
        outcome_of_sku_look_up(found, "LAMP", "42", "on_hand")


def test_a_quantity_replaces_the_one_that_was_found() -> None:
    """Of an unknown one Shopify is told that any will do."""
    (row,) = set_quantity_input("7-42", 9, {"quantity": 5}, "on_hand")["quantities"]
    assert row == {
        "inventoryItemId": "gid://shopify/InventoryItem/7",
        "locationId": "gid://shopify/Location/42",
        "quantity": 9,
        "changeFromQuantity": 5,
    }
    assert set_quantity_input("7-42", 9, {}, "on_hand")["quantities"][0]["changeFromQuantity"] is None


def test_a_sku_with_quotes_is_searched_as_it_is() -> None:
    """It cannot end the search and begin another one."""
    assert sku_search('A" OR sku:"B') == 'sku:"A\\" OR sku:\\"B"'
