"""The fake WooCommerce shop: notes and parcels of orders, the trash, deletions, customers, webhooks."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.partners.woocommerce.shop import FakeShop
from tests.partners.woocommerce.shop_client import BERLIN, ShopClient
from tests.partners.woocommerce.shop_settings import ShopSettings

from crossdock.testing import ManualClock

PARCEL = {"method_id": "flat_rate", "method_title": "Parcel", "total": "4.90"}


def a_shop(**options: Any) -> tuple[FakeShop, ShopClient, ManualClock]:
    clock = ManualClock(datetime(2026, 7, 1, 10, 0, 0, 250_000, tzinfo=UTC))
    shop = FakeShop(ShopSettings(**options), clock=clock)
    return shop, ShopClient(shop), clock


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
    order = shop.orders.place((shop.catalog.add("Tea", "9.99"), 3), billing=BERLIN, shipping_lines=[PARCEL])
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
