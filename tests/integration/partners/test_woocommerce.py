"""The fake WooCommerce shop: orders with their lines and sums, refunds, notes, customers, deletions."""

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
    assert client.refused("GET", f"orders/{order.id}/refunds/1")[0] == 404
    assert tea.stock == 4


def test_a_refund_of_everything_ends_the_order() -> None:
    """Its status is then ``refunded``; more than was paid is refused."""
    shop, client, _ = a_shop()
    order = shop.orders.place((shop.catalog.add("Tea", "10.00"), 1))
    assert client.refused("POST", f"orders/{order.id}/refunds", {"amount": "12"})[0] == 500
    client.write("POST", f"orders/{order.id}/refunds", {"amount": "11.90", "api_refund": False})
    assert client.get(f"orders/{order.id}")["status"] == "refunded"
    assert [effect["kind"] for effect in shop.effects] == ["refund_created"]


def test_notes_do_not_change_an_order() -> None:
    """They are listed latest first, and ``date_modified`` stays."""
    shop, client, clock = a_shop()
    order = shop.orders.place((shop.catalog.add("Tea", "1"), 1))
    clock.advance(60)
    first = client.write("POST", f"orders/{order.id}/notes", {"note": "packed"})
    client.write("POST", f"orders/{order.id}/notes", {"note": "sent", "customer_note": True})
    assert [(one["note"], one["customer_note"]) for one in client.get(f"orders/{order.id}/notes")] == [
        ("sent", True),
        ("packed", False),
    ]
    assert client.get(f"orders/{order.id}/notes/{first['id']}") == first
    assert first["date_created"] == "2026-07-01T12:01:00"
    assert client.get(f"orders/{order.id}")["date_modified_gmt"] == "2026-07-01T10:00:00"
    assert client.refused("POST", f"orders/{order.id}/notes", {}) == (400, "rest_missing_callback_param")


def test_a_parcel_is_tracked_by_the_extension() -> None:
    """A carrier that the shop knows gives the link, another has its own; the item can be read and deleted."""
    shop, client, clock = a_shop()
    order = shop.orders.place((shop.catalog.add("Tea", "1"), 1))
    clock.advance(60)
    place, body = (
        f"tracking:orders/{order.id}/shipment-trackings",
        {"tracking_provider": "DHL", "tracking_number": "0017"},
    )
    made = client.write("POST", place, body)
    assert (made["tracking_link"], made["date_shipped"]) == ("https://dhl.example/?id=0017", "2026-07-01")
    assert client.get(f"{place}/{made['tracking_id']}") == made
    own = {"custom_tracking_provider": "Bike", "custom_tracking_link": "https://b.example/%1$s", "tracking_number": "7"}
    other = client.write("POST", place, own)
    assert (other["tracking_provider"], other["tracking_link"]) == ("Bike", "https://b.example/7")
    assert client.get(place) == [made, other]
    assert client.get(f"orders/{order.id}")["date_modified_gmt"] == "2026-07-01T10:01:00"
    assert client.write("DELETE", f"{place}/{made['tracking_id']}") == made
    assert client.refused("GET", f"{place}/{made['tracking_id']}")[0] == 404
    assert client.refused("POST", place, {"tracking_provider": "DHL"}) == (400, "rest_missing_callback_param")
    assert [effect["kind"] for effect in shop.effects] == ["tracking_created", "tracking_created", "tracking_deleted"]
    assert client.get("tracking:shipment-trackings/providers")["Global"]["DHL"]


def test_a_shop_without_the_extension_has_no_tracking() -> None:
    """Its addresses are unknown."""
    shop, client, _ = a_shop(tracking=None)
    order = shop.orders.place((shop.catalog.add("Tea", "1"), 1))
    assert client.refused("GET", f"tracking:orders/{order.id}/shipment-trackings") == (404, "rest_no_route")


def test_the_trash_hides_a_record_and_keeps_it() -> None:
    """A trashed order or product is on no list but that of the trash, and is found by its id; a second time is 410."""
    shop, client, _ = a_shop()
    tea = shop.catalog.add("Tea", "1")
    order = shop.orders.place((tea, 1))
    for path, record in (("orders", order), ("products", tea)):
        assert client.write("DELETE", f"{path}/{record.id}")["status"] in {"processing", "publish"}
        assert (client.ids(path), client.ids(path, status="any"), client.ids(path, status="trash")) == (
            [],
            [],
            [record.id],
        )
        assert client.get(f"{path}/{record.id}")["status"] == "trash"
        assert client.refused("DELETE", f"{path}/{record.id}") == (410, "woocommerce_rest_already_trashed")
    assert [effect["kind"] for effect in shop.effects] == ["order_trashed", "product_trashed"]


def test_a_deleted_record_leaves_no_trace() -> None:
    """With ``force`` it is gone: 404 for reads and deletions, 400 for updates, and it is on no list."""
    shop, client, _ = a_shop()
    order = shop.orders.place((shop.catalog.add("Tea", "1"), 1))
    client.write("DELETE", f"orders/{order.id}", force="true")
    assert (client.ids("orders"), client.ids("orders", status="trash")) == ([], [])
    assert client.refused("GET", f"orders/{order.id}") == (404, "woocommerce_rest_shop_order_invalid_id")
    assert client.refused("DELETE", f"orders/{order.id}") == (404, "woocommerce_rest_shop_order_invalid_id")
    assert client.refused("PUT", f"orders/{order.id}", {}) == (400, "woocommerce_rest_shop_order_invalid_id")
    assert client.refused("GET", f"orders/{order.id}/notes")[0] == 404


def test_a_duplicate_is_another_order() -> None:
    """It has the same lines, customer and amounts, and a new id."""
    shop, client, _ = a_shop()
    order = shop.orders.place((shop.catalog.add("Tea", "9.99"), 3), billing=BERLIN, shipping_lines=SHIPPING)
    copy = shop.orders.duplicate(order)
    first, second = client.get(f"orders/{order.id}"), client.get(f"orders/{copy.id}")
    assert (first["total"], first["billing"]) == (second["total"], second["billing"])
    assert (first["id"] != second["id"], second["status"]) == (True, "pending")


def test_a_customer_may_never_have_been_changed() -> None:
    """Whom WordPress registered has null as ``date_modified`` until WooCommerce saves the record."""
    shop, client, clock = a_shop()
    ada = shop.customers.add("ada@example.com", first_name="Ada")
    shown = client.get(f"customers/{ada.id}")
    assert (shown["date_modified"], shown["date_modified_gmt"]) == (None, None)
    assert (shown["date_created"], shown["date_created_gmt"]) == ("2026-07-01T12:00:00", "2026-07-01T10:00:00")
    clock.advance(5)
    client.write("PUT", f"customers/{ada.id}", {"billing": {"city": "Bonn"}})
    changed = client.get(f"customers/{ada.id}")
    assert (changed["date_modified_gmt"], changed["billing"]["city"]) == ("2026-07-01T10:00:05", "Bonn")


def test_lists_of_customers_have_one_role() -> None:
    """Others are listed with ``role``, one is found by ``email``, and times filter nothing."""
    shop, client, _ = a_shop()
    ada, bob = shop.customers.add("ada@example.com"), shop.customers.add("bob@example.com", role="subscriber")
    assert client.ids("customers") == [ada.id]
    assert client.ids("customers", role="all", orderby="id") == [ada.id, bob.id]
    assert client.ids("customers", role="all", email="bob@example.com") == [bob.id]
    assert client.ids("customers", modified_after="2030-01-01T00:00:00") == [ada.id]


def test_a_deleted_customer_becomes_a_guest() -> None:
    """Without ``force`` it is refused; afterwards the orders have the customer 0, and are changed."""
    shop, client, clock = a_shop()
    ada = shop.customers.add("ada@example.com")
    order = shop.orders.place((shop.catalog.add("Tea", "1"), 1), customer_id=ada.id)
    assert client.ids("orders", customer=ada.id) == [order.id]
    clock.advance(60)
    assert client.refused("DELETE", f"customers/{ada.id}") == (501, "woocommerce_rest_trash_not_supported")
    client.write("DELETE", f"customers/{ada.id}", force="true")
    shown = client.get(f"orders/{order.id}")
    assert (shown["customer_id"], shown["date_modified_gmt"]) == (0, "2026-07-01T10:01:00")
    assert client.refused("GET", f"customers/{ada.id}")[0] == 404


def test_a_customer_is_created_once_per_address() -> None:
    """A second one with the same e-mail address is refused, and one without an address."""
    shop, client, _ = a_shop()
    made = client.write("POST", "customers", {"email": "ada@example.com", "first_name": "Ada"})
    assert (made["username"], made["role"], made["date_modified_gmt"]) == ("ada", "customer", "2026-07-01T10:00:00")
    assert client.refused("POST", "customers", {"email": "ada@example.com"})[1] == "registration-error-email-exists"
    assert client.refused("POST", "customers", {})[1] == "registration-error-invalid-email"
    assert [effect["kind"] for effect in shop.effects] == ["customer_created"]


def test_webhooks_are_registered() -> None:
    """With a topic and an address; the secret is never shown."""
    _, client, _ = a_shop()
    body = {"topic": "order.updated", "delivery_url": "https://in.example/hook", "secret": "s3"}
    made = client.write("POST", "webhooks", body)
    assert (made["resource"], made["event"], made["status"], "secret" in made) == ("order", "updated", "active", False)
    assert client.write("PUT", f"webhooks/{made['id']}", {"status": "paused"})["status"] == "paused"
    assert client.ids("webhooks") == [made["id"]]
    assert client.refused("DELETE", f"webhooks/{made['id']}")[0] == 501
    client.write("DELETE", f"webhooks/{made['id']}", force="true")
    assert client.ids("webhooks") == []
    assert client.refused("POST", "webhooks", {"topic": "order"})[0] == 400
    assert client.refused("POST", "webhooks", {**body, "delivery_url": "in.example"})[0] == 400


def test_what_the_api_does_not_have_is_no_route() -> None:
    """Unknown addresses and methods are 404, as WordPress answers them; a body that is no JSON is 400."""
    shop, client, _ = a_shop()
    order = shop.orders.place((shop.catalog.add("Tea", "1"), 1))
    for method, path in (
        ("GET", "coupons"),
        ("GET", "orders/x"),
        ("PATCH", "orders"),
        ("DELETE", f"orders/{order.id}/notes"),
        ("DELETE", f"orders/{order.id}/refunds"),
        ("GET", "tracking:orders"),
    ):
        assert client.refused(method, path) == (404, "rest_no_route")
    answer = client._http.post(f"{shop.site}/wp-json/wc/v3/orders", content=b"{")
    assert (answer.status_code, answer.json()["code"]) == (400, "rest_invalid_json")
    assert client._http.get(f"{shop.site}/").status_code == 404
