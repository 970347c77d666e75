"""Orders of the fake WooCommerce shop: lines and sums, changes by requests, statuses, refunds."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.partners.woocommerce.shop import FakeShop
from tests.partners.woocommerce.shop_client import BERLIN, ShopClient
from tests.partners.woocommerce.shop_settings import ShopSettings

from crossdock.testing import ManualClock

SHIPPING = [{"method_id": "flat_rate", "method_title": "Parcel", "total": "4.90"}]


def a_shop(**options: Any) -> tuple[FakeShop, ShopClient, ManualClock]:
    clock = ManualClock(datetime(2026, 7, 1, 10, 0, 0, 250_000, tzinfo=UTC))
    shop = FakeShop(ShopSettings(**options), clock=clock)
    return shop, ShopClient(shop), clock


def test_an_order_has_its_lines_and_their_sums() -> None:
    """Amounts are texts with the shop's decimals, the price of a line is a number, and the address is complete."""
    shop, client, _ = a_shop(coupons={"summer": Decimal(10)})
    tea = shop.catalog.add("Tea", "10.00", sku="0017")
    order = shop.orders.place(
        (tea, 3),
        billing=BERLIN,
        shipping_lines=SHIPPING,
        fee_lines=[{"name": "Gift wrap", "total": "1.00"}],
        coupon_lines=[{"code": "summer"}],
        meta_data=[{"key": "_vat_id", "value": "DE1"}],
    )
    shown = client.get(f"orders/{order.id}")
    (line,), (fee,), (parcel,) = shown["line_items"], shown["fee_lines"], shown["shipping_lines"]
    assert (line["sku"], line["quantity"], line["subtotal"], line["total"], line["total_tax"]) == (
        "0017", 3, "30.00", "27.00", "5.13",
    )  # fmt: skip
    assert (line["price"], line["product_id"], line["variation_id"]) == (9, tea.id, 0)
    assert (fee["total"], fee["total_tax"], parcel["total"], parcel["method_id"]) == (
        "1.00",
        "0.19",
        "4.90",
        "flat_rate",
    )
    assert (shown["discount_total"], shown["discount_tax"]) == ("3.00", "0.57")
    assert [(one["code"], one["discount"]) for one in shown["coupon_lines"]] == [("summer", "3.00")]
    assert (shown["shipping_total"], shown["shipping_tax"], shown["cart_tax"]) == ("4.90", "0.93", "5.32")
    assert [(one["tax_total"], one["shipping_tax_total"]) for one in shown["tax_lines"]] == [("5.32", "0.93")]
    assert (shown["total_tax"], shown["total"], shown["prices_include_tax"]) == ("6.25", "39.15", False)
    assert (shown["number"], shown["customer_id"], shown["status"]) == (str(order.id), 0, "processing")
    assert (shown["billing"]["city"], shown["billing"]["postcode"], shown["billing"]["email"]) == (
        "Berlin", "", "ada@example.com",
    )  # fmt: skip
    assert [(one["key"], one["value"]) for one in shown["meta_data"]] == [("_vat_id", "DE1")]


def test_prices_can_include_the_tax() -> None:
    """Then the lines are without it nevertheless: 10.00 is a line of 8.40 and 1.60 of tax, kept with more decimals."""
    shop, client, _ = a_shop(prices_include_tax=True)
    order = shop.orders.place((shop.catalog.add("Tea", "10.00"), 1))
    shown = client.get(f"orders/{order.id}")
    (line,) = shown["line_items"]
    assert (line["total"], line["total_tax"], shown["total"], shown["prices_include_tax"]) == (
        "8.40",
        "1.60",
        "10.00",
        True,
    )
    assert (line["price"], line["taxes"][0]["total"]) == (Decimal("8.403361"), "1.596639")
    assert client.get(f"orders/{order.id}", dp=4)["line_items"][0]["total"] == "8.4034"


@pytest.mark.parametrize(("decimals", "total"), [(0, "36"), (3, "35.700")])
def test_the_shop_says_how_many_decimals_amounts_have(decimals: int, total: str) -> None:
    """As a shop in yen or in dinars does."""
    shop, client, _ = a_shop(decimals=decimals)
    order = shop.orders.place((shop.catalog.add("Tea", "10"), 3))
    assert client.get(f"orders/{order.id}")["total"] == total


def test_half_a_cent_is_rounded_away_from_zero() -> None:
    """As PHP rounds: 19 % of 1.50 are 0.285, shown as 0.29."""
    shop, client, _ = a_shop()
    order = shop.orders.place((shop.catalog.add("Tea", "1.50"), 1))
    assert client.get(f"orders/{order.id}")["total_tax"] == "0.29"


PRICES = st.decimals("0.01", "999.99", places=2)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(PRICES, st.integers(1, 9)), min_size=1, max_size=5),
    st.sampled_from([0, 10, 33, 100]),
    st.booleans(),
)
def test_the_sums_of_an_order_are_those_of_its_lines(
    items: list[tuple[Decimal, int]], percent: int, including: bool
) -> None:
    """Whatever is bought: the total is the sum of shown lines and taxes, and the discount what the lines lost."""
    shop, client, _ = a_shop(prices_include_tax=including, coupons={"off": Decimal(percent)})
    bought = [(shop.catalog.add("Tea", str(price)), units) for price, units in items]
    order = shop.orders.place(*bought, shipping_lines=SHIPPING, coupon_lines=[{"code": "off"}])
    shown = client.get(f"orders/{order.id}")
    lines = [*shown["line_items"], *shown["shipping_lines"]]
    assert Decimal(shown["total"]) == sum(Decimal(line["total"]) + Decimal(line["total_tax"]) for line in lines)
    lost = sum(Decimal(line["subtotal"]) - Decimal(line["total"]) for line in shown["line_items"])
    assert Decimal(shown["discount_total"]) == lost == Decimal(shown["coupon_lines"][0]["discount"])


def test_an_order_is_created_and_changed_by_requests() -> None:
    """The effects log has each body as it was sent; PUT and POST change alike; a new quantity leaves the amounts."""
    shop, client, clock = a_shop()
    tea = shop.catalog.add("Tea", "10.00", sku="0017")
    body = {"line_items": [{"sku": "0017", "quantity": 2}], "set_paid": True, "billing": BERLIN}
    made = client.write("POST", "orders", body)
    assert (made["status"], made["created_via"], made["total"]) == ("processing", "rest-api", "23.80")
    clock.advance(60)
    change = {"status": "completed", "line_items": [{"id": made["line_items"][0]["id"], "quantity": 3}]}
    changed = client.write("PUT", f"orders/{made['id']}", change)
    assert (changed["line_items"][0]["quantity"], changed["line_items"][0]["total"]) == (3, "20.00")
    assert changed["date_completed_gmt"] == changed["date_modified_gmt"] == "2026-07-01T10:01:00"
    more = {"line_items": [{"id": made["line_items"][0]["id"], "quantity": 0}, {"product_id": tea.id}]}
    assert [line["quantity"] for line in client.write("POST", f"orders/{made['id']}", more)["line_items"]] == [1]
    assert shop.effects == [
        {"kind": "order_created", "id": made["id"], "body": body},
        {"kind": "order_updated", "id": made["id"], "body": change},
        {"kind": "order_updated", "id": made["id"], "body": more},
    ]


def test_every_save_is_a_change() -> None:
    """An update that changes nothing changes ``date_modified``, so it comes back to whoever asks for changes."""
    shop, client, clock = a_shop()
    order = shop.orders.place((shop.catalog.add("Tea", "1"), 1))
    before = client.get(f"orders/{order.id}")["date_modified_gmt"]
    clock.advance(1)
    after = client.write("PUT", f"orders/{order.id}", {"customer_note": ""})["date_modified_gmt"]
    assert (before, after) == ("2026-07-01T10:00:00", "2026-07-01T10:00:01")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"status": "sent"}, "rest_invalid_param"),
        ({"customer_id": 9}, "woocommerce_rest_invalid_customer_id"),
        ({"line_items": [{"quantity": 1}]}, "woocommerce_rest_required_product_reference"),
        ({"line_items": [{"product_id": 9}]}, "order_item_product_invalid_product_id"),
        ({"line_items": [{"id": 9, "quantity": 1}]}, "woocommerce_rest_invalid_item_id"),
        ({"shipping_lines": [{"total": "1"}]}, "woocommerce_rest_invalid_shipping_item"),
        ({"fee_lines": [{"name": "x", "total": "much"}]}, "rest_invalid_param"),
        ({"coupon_lines": [{"code": "winter"}]}, "woocommerce_rest_invalid_coupon"),
    ],
)
def test_a_wrong_order_is_refused(body: dict[str, Any], code: str) -> None:
    """With WordPress's shape of an error, and nothing is changed."""
    shop, client, clock = a_shop()
    order = shop.orders.place((shop.catalog.add("Tea", "1"), 1))
    before = client.get(f"orders/{order.id}")
    clock.advance(1)
    assert client.refused("PUT", f"orders/{order.id}", body) == (400, code)
    assert client.refused("POST", "orders", body) == (400, code)
    assert (client.get("orders"), shop.effects) == ([before], [])


def test_statuses_of_extensions_are_known_while_the_extension_is() -> None:
    """An order in a status that is no longer registered is on no list, and is found by its id."""
    shop, client, _ = a_shop(custom_statuses=("awaiting-pickup",))
    tea = shop.catalog.add("Tea", "1")
    first, second = shop.orders.place((tea, 1), status="awaiting-pickup"), shop.orders.place((tea, 1))
    assert client.ids("orders", status="awaiting-pickup") == [first.id]
    shop.orders.set_unregistered_status(second, "in-transit")
    assert client.ids("orders", status="any") == [first.id]
    assert client.get(f"orders/{second.id}")["status"] == "in-transit"
    assert client.refused("GET", "orders", status="in-transit") == (400, "rest_invalid_param")


def test_a_refund_is_no_change_of_the_total() -> None:
    """It is listed with a negative total, has a positive amount of its own, and changes ``date_modified``."""
    shop, client, clock = a_shop()
    tea = shop.catalog.add("Tea", "10.00", manage_stock=True, stock_quantity=5)
    order = shop.orders.place((tea, 2))
    clock.advance(60)
    shop.orders.refund(order, "5.00", "broken", {order.lines[0].id: 1})
    shown = client.get(f"orders/{order.id}")
    assert (shown["total"], shown["status"], shown["date_modified_gmt"]) == (
        "23.80",
        "processing",
        "2026-07-01T10:01:00",
    )
    assert [(one["reason"], one["total"]) for one in shown["refunds"]] == [("broken", "-5.00")]
    (refund,) = client.get(f"orders/{order.id}/refunds")
    assert (refund["amount"], refund["line_items"][0]["quantity"]) == ("5.00", -1)
    assert refund["line_items"][0]["meta_data"][0]["value"] == str(order.lines[0].id)
    assert client.get(f"orders/{order.id}/refunds/{refund['id']}") == refund
    assert client.get("refunds", include=refund["id"]) == [refund | {"parent_id": order.id}]
    assert client.refused("GET", f"orders/{order.id}/refunds/1")[0] == 404
    assert tea.stock == 4


def test_a_refund_of_everything_ends_the_order() -> None:
    """Its status is then ``refunded``; more than was paid is refused."""
    shop, client, _ = a_shop()
    order = shop.orders.place((shop.catalog.add("Tea", "10.00"), 1))
    assert client.refused("POST", f"orders/{order.id}/refunds", {"amount": "12", "api_refund": False})[0] == 500
    assert client.refused("POST", f"orders/{order.id}/refunds", {"amount": "1"})[0] == 500  # no payment to return
    client.write("POST", f"orders/{order.id}/refunds", {"amount": "11.90", "api_refund": False})
    assert client.get(f"orders/{order.id}")["status"] == "refunded"
    assert [effect["kind"] for effect in shop.effects] == ["refund_created"]


def test_the_status_refunded_returns_what_remains() -> None:
    """WooCommerce makes a refund of the rest itself, which returns no units."""
    shop, client, _ = a_shop()
    tea = shop.catalog.add("Tea", "10.00", manage_stock=True, stock_quantity=5)
    order = shop.orders.place((tea, 1), payment_method="bacs")
    client.write("POST", f"orders/{order.id}/refunds", {"amount": "1.90"})
    shown = client.write("PUT", f"orders/{order.id}", {"status": "refunded"})
    assert [(one["reason"], one["total"]) for one in shown["refunds"]] == [
        ("Order fully refunded.", "-10.00"),
        ("", "-1.90"),
    ]
    assert (shown["status"], tea.stock) == ("refunded", 4)
