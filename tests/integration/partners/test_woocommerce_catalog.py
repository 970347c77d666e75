"""Products of the fake WooCommerce shop: variations, prices, stock without compare-and-set, batches."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.partners.woocommerce.shop import FakeShop
from tests.partners.woocommerce.shop_client import ShopClient

from crossdock.testing import ManualClock


def a_shop() -> tuple[FakeShop, ShopClient, ManualClock]:
    clock = ManualClock(datetime(2026, 7, 1, 10, tzinfo=UTC))
    shop = FakeShop(clock=clock)
    return shop, ShopClient(shop), clock


def test_variations_are_below_their_product() -> None:
    """They have SKUs and prices of their own, are on no list of products, and are found by SKU and by id there."""
    shop, client, _ = a_shop()
    shirt = shop.catalog.add("Shirt", type="variable", sku="S")
    red = shop.catalog.add(
        "Shirt - red", "12.5", shirt, sku="S-R", attributes=[{"id": 1, "name": "Colour", "option": "red"}]
    )
    blue = shop.catalog.add("Shirt - blue", "9.00", shirt, sku="S-B")
    (shown,) = client.get("products")
    assert (shown["variations"], shown["price"], shown["type"]) == ([red.id, blue.id], "9.00", "variable")
    variations = client.get(f"products/{shirt.id}/variations", orderby="id", order="asc")
    assert [(each["sku"], each["price"], each["parent_id"]) for each in variations] == [
        ("S-R", "12.5", shirt.id),
        ("S-B", "9.00", shirt.id),
    ]
    assert client.ids("products", sku="S-R") == [red.id]
    assert client.get(f"products/{red.id}")["type"] == "variation"
    order = shop.orders.place((red, 1))
    (line,) = client.get(f"orders/{order.id}")["line_items"]
    assert (line["product_id"], line["variation_id"], line["parent_name"]) == (shirt.id, red.id, "Shirt")
    assert client.refused("GET", "products/9/variations") == (404, "woocommerce_rest_product_invalid_id")
    assert client.refused("GET", f"products/{shirt.id}/variations/{shirt.id}")[1].startswith(
        "woocommerce_rest_product_v"
    )


def test_a_changed_variation_changes_its_product() -> None:
    """So that a filter on products finds it; a deleted one does too."""
    shop, client, clock = a_shop()
    shirt = shop.catalog.add("Shirt", type="variable")
    red = client.write("POST", f"products/{shirt.id}/variations", {"regular_price": "12.00", "sku": "S-R"})
    for method, body, params in (("PUT", {"regular_price": "13.00"}, {}), ("DELETE", None, {"force": "true"})):
        clock.advance(60)
        client.write(method, f"products/{shirt.id}/variations/{red['id']}", body, **params)
        assert client.get(f"products/{shirt.id}")["date_modified_gmt"] == clock.now().replace(tzinfo=None).isoformat()
    assert client.refused("GET", f"products/{red['id']}")[0] == 404
    kinds = ["variation_created", "variation_updated", "variation_deleted"]
    assert [effect["kind"] for effect in shop.effects] == kinds
    blue = shop.catalog.add("Shirt - blue", "1", shirt)
    client.write("DELETE", f"products/{shirt.id}/variations/{blue.id}")
    assert (client.get(f"products/{shirt.id}")["variations"], client.ids(f"products/{shirt.id}/variations")) == ([], [])
    client.write("DELETE", f"products/{shirt.id}", force="true")
    assert shop.catalog.products == {}


def test_prices_are_texts_as_they_were_entered() -> None:
    """Without padding, and empty for none; a sale price is the price."""
    shop, client, _ = a_shop()
    tea, free = shop.catalog.add("Tea", "9.5", sale_price="8"), shop.catalog.add("Gift")
    shown = client.get(f"products/{tea.id}")
    assert (shown["regular_price"], shown["sale_price"], shown["price"], shown["on_sale"]) == ("9.5", "8", "8", True)
    assert client.get(f"products/{free.id}")["price"] == ""
    assert client.refused("PUT", f"products/{tea.id}", {"regular_price": "cheap"}) == (400, "rest_invalid_param")


def test_stock_is_set_without_comparison() -> None:
    """The last write wins over what was sold meanwhile; a delta does not."""
    shop, client, _ = a_shop()
    tea = shop.catalog.add("Tea", "1", manage_stock=True, stock_quantity=10)
    shop.meanwhile(lambda request: request.method == "PUT", lambda: shop.orders.place((tea, 3)))
    assert client.write("PUT", f"products/{tea.id}", {"stock_quantity": 12})["stock_quantity"] == 12
    shop.meanwhile(lambda request: request.method == "PUT", lambda: shop.orders.place((tea, 3)))
    assert client.write("PUT", f"products/{tea.id}", {"inventory_delta": 2})["stock_quantity"] == 11


def test_a_quantity_without_managed_stock_is_ignored() -> None:
    """Without an error: the answer has null. Only ``manage_stock`` makes it count."""
    shop, client, _ = a_shop()
    tea = shop.catalog.add("Tea", "1")
    shown = client.write("PUT", f"products/{tea.id}", {"stock_quantity": 5})
    assert (shown["stock_quantity"], shown["manage_stock"], shown["stock_status"]) == (None, False, "instock")
    assert client.write("PUT", f"products/{tea.id}", {"manage_stock": True, "stock_quantity": 5})["stock_quantity"] == 5
    assert client.refused("PUT", f"products/{tea.id}", {"stock_quantity": "5"}) == (400, "rest_invalid_param")


def test_a_variation_may_have_the_stock_of_its_product() -> None:
    """``manage_stock`` is then the text "parent", and an order takes from there."""
    shop, client, _ = a_shop()
    shirt = shop.catalog.add("Shirt", manage_stock=True, stock_quantity=4, type="variable", backorders="notify")
    red = shop.catalog.add("Shirt - red", "12.00", shirt)
    shop.orders.place((red, 5))
    shown = client.get(f"products/{shirt.id}/variations/{red.id}")
    assert (shown["manage_stock"], shown["stock_quantity"], shown["stock_status"]) == ("parent", -1, "onbackorder")
    shirt.members["backorders"] = "no"
    assert client.get(f"products/{shirt.id}")["stock_status"] == "outofstock"


STEPS = ("pending", "on-hold", "processing", "completed", "cancelled", "refunded", "failed")


@settings(max_examples=40)
@given(st.lists(st.sampled_from(STEPS), max_size=8))
def test_an_order_takes_its_units_once(steps: list[str]) -> None:
    """Whatever statuses it passes: one that is in work or done holds its units, a cancelled or pending one none."""
    shop, client, _ = a_shop()
    tea = shop.catalog.add("Tea", "1", manage_stock=True, stock_quantity=10)
    order = shop.orders.place((tea, 2), status="pending")
    held = 0
    for status in steps:
        shop.orders.edit(order, {"status": status})
        held = (
            2 if status in {"processing", "completed", "on-hold"} else 0 if status in {"cancelled", "pending"} else held
        )
        assert client.get(f"products/{tea.id}")["stock_quantity"] == 10 - held


def test_a_changed_order_takes_what_it_lacks() -> None:
    """More units of a line, and those of a removed one; what a refund returned is not taken again."""
    shop, client, _ = a_shop()
    tea = shop.catalog.add("Tea", "1", manage_stock=True, stock_quantity=10)
    order = shop.orders.place((tea, 2))
    line = {"id": order.lines[0].id}
    client.write("PUT", f"orders/{order.id}", {"line_items": [{**line, "quantity": 5}]})
    assert tea.stock == 5
    shop.orders.refund(order, "1.00", units={line["id"]: 2})
    client.write("PUT", f"orders/{order.id}", {"customer_note": "x"})
    assert tea.stock == 7
    client.write("PUT", f"orders/{order.id}", {"line_items": [{**line, "quantity": 0}]})
    assert tea.stock == 10


def test_a_sku_is_used_once() -> None:
    """Of products and variations together; the refusal names the other one. A trashed product keeps its SKU."""
    shop, client, _ = a_shop()
    tea = shop.catalog.add("Tea", "1", sku="0017")
    assert client.refused("POST", "products", {"name": "Other", "sku": "0017"}) == (400, "product_invalid_sku")
    assert client.write("PUT", f"products/{tea.id}", {"sku": "0017"})["sku"] == "0017"
    shop.catalog.trash(tea)
    answer = client.ask("POST", "products", {"name": "Other", "sku": "0017"})
    assert answer.json()["data"] == {"status": 400, "resource_id": tea.id, "unique_sku": "0017-1"}
    assert client.refused("POST", "products", {"status": "sold"}) == (400, "rest_invalid_param")
    assert client.refused("POST", "products", {"id": tea.id}) == (400, "woocommerce_rest_product_exists")


def test_a_batch_answers_for_each_of_its_records() -> None:
    """A refusal stands in the place of its record, the status is 200, and the others are carried out."""
    shop, client, _ = a_shop()
    tea, jam, old = (shop.catalog.add(name, "1", sku=name, manage_stock=True) for name in ("Tea", "Jam", "Old"))
    sent: dict[str, Any] = {
        "create": [{"name": "New", "sku": "New"}, {"name": "Again", "sku": "Tea"}],
        "update": [
            {"id": tea.id, "stock_quantity": 7},
            {"id": 9, "stock_quantity": 7},
            {"id": jam.id, "stock_quantity": "x"},
        ],
        "delete": [old.id, 8],
    }
    told = client.write("POST", "products/batch", sent)
    codes = {
        name: [one["error"]["code"] if "error" in one else one["id"] for one in told[name]]
        for name in ("update", "delete")
    }
    assert codes == {
        "update": [tea.id, "woocommerce_rest_product_invalid_id", "rest_invalid_param"],
        "delete": [old.id, "woocommerce_rest_product_invalid_id"],
    }
    created, refused = told["create"]
    assert (created["sku"], refused["id"], refused["error"]["data"]["status"]) == ("New", 0, 400)
    assert told["update"][1]["error"]["data"] == {"status": 400}
    assert (told["update"][1]["id"], told["delete"][1]["id"], tea.stock) == (9, 8, 7)
    assert client.refused("GET", f"products/{old.id}")[0] == 404
    kinds = ["product_created", "product_updated", "product_deleted"]
    assert [effect["kind"] for effect in shop.effects] == kinds


@pytest.mark.parametrize("path", ["orders", "products", "customers"])
def test_a_batch_has_at_most_a_hundred_records(path: str) -> None:
    """More are refused as a whole by 413."""
    shop, client, _ = a_shop()
    code = "woocommerce_rest_request_entity_too_large"
    assert client.refused("POST", f"{path}/batch", {"delete": [1] * 60, "update": [{"id": 1}] * 41}) == (413, code)
    assert "update" in client.write("PUT", f"{path}/batch", {"update": [{"id": 1}] * 100})
    assert shop.effects == []


def test_meta_data_are_changed_by_key_or_id() -> None:
    """A known key gets another value and keeps its id, null removes one, and values may be of any type."""
    shop, client, _ = a_shop()
    tea = shop.catalog.add(
        "Tea", "1", meta_data=[{"key": "bin", "value": "A-01"}, {"key": "eans", "value": ["1", "2"]}]
    )
    first, second = client.get(f"products/{tea.id}")["meta_data"]
    changes = [
        {"key": "bin", "value": "A-02"},
        {"id": second["id"], "key": "eans", "value": None},
        {"key": "n", "value": 1},
    ]
    changed = client.write("PUT", f"products/{tea.id}", {"meta_data": changes})["meta_data"]
    assert [(one["key"], one["value"]) for one in changed] == [("bin", "A-02"), ("n", 1)]
    assert changed[0]["id"] == first["id"]
