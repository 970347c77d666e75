"""The fake WooCommerce shop sends webhooks as WooCommerce does."""

from __future__ import annotations

import base64
import hashlib
import hmac
import random
from collections.abc import Iterator
from typing import Any

import pytest
from tests.partners.woocommerce.shop import FakeShop
from tests.partners.woocommerce.shop_client import ShopClient
from tests.unit.sandbox.webhook_receiver import Receiver

from crossdock.values import exact_json

SECRET = "s3cret"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


def subscribed(shop: FakeShop, receiver: Receiver, *topics: str) -> None:
    """Create webhooks by the API, and send their pings."""
    for topic in topics:
        body = {"topic": topic, "delivery_url": receiver.url, "secret": SECRET}
        ShopClient(shop).write("POST", "webhooks", body)
    shop.sender.send_until_empty(random.Random(1))
    receiver.received.clear()


def delivered(shop: FakeShop, receiver: Receiver) -> list[tuple[str, Any]]:
    """Topic and body of each webhook that has arrived since the last call."""
    receiver.received.clear()
    shop.sender.send_until_empty(random.Random(1))
    return [(each.headers["x-wc-webhook-topic"], exact_json.loads(each.body)) for each in receiver.received]


def test_an_order_from_its_placing_to_the_trash(receiver: Receiver) -> None:
    """Bodies are those of the REST API; of a trashed order only the id is told, and of its end nothing."""
    shop = FakeShop()
    subscribed(shop, receiver, "order.created", "order.updated", "order.deleted")
    order = shop.orders.place((shop.catalog.add("Lamp", "9.50", sku="LAMP"), 2))
    [(topic, body)] = delivered(shop, receiver)
    assert topic == "order.created"
    assert body == ShopClient(shop).get(f"orders/{order.id}")
    shop.orders.edit(order, {"status": "completed"})
    [(topic, body)] = delivered(shop, receiver)
    assert (topic, body["status"]) == ("order.updated", "completed")
    shop.orders.refund(order, "1.00")
    assert [(topic, len(body["refunds"])) for topic, body in delivered(shop, receiver)] == [("order.updated", 1)]
    shop.orders.trash(order)
    assert delivered(shop, receiver) == [("order.deleted", {"id": order.id})]
    shop.orders.delete(order)
    assert delivered(shop, receiver) == []


def test_what_the_api_writes_is_told_too(receiver: Receiver) -> None:
    """A status and a parcel that an integration writes come back as webhooks."""
    shop = FakeShop()
    order = shop.orders.place((shop.catalog.add("Lamp", "9.50"), 1))
    subscribed(shop, receiver, "order.updated")
    client = ShopClient(shop)
    client.write("PUT", f"orders/{order.id}", {"status": "completed"})
    client.write("POST", f"tracking:orders/{order.id}/shipment-trackings", {"tracking_number": "17"})
    assert [topic for topic, _ in delivered(shop, receiver)] == ["order.updated"] * 2


def test_products_variations_and_customers(receiver: Receiver) -> None:
    """A variation is a product; stock that an order takes is a change of the product."""
    shop = FakeShop()
    topics = [f"{name}.{event}" for name in ("product", "customer") for event in ("created", "updated", "deleted")]
    subscribed(shop, receiver, *topics)
    shirt = shop.catalog.add("Shirt", type="variable")
    size = shop.catalog.add("Shirt S", "5.00", parent=shirt, sku="S", manage_stock=True, stock_quantity=4)
    assert [(topic, body["id"]) for topic, body in delivered(shop, receiver)] == [
        ("product.created", shirt.id),
        ("product.created", size.id),
        ("product.updated", shirt.id),
    ]
    shop.orders.place((size, 1))
    [(_, body), _] = delivered(shop, receiver)
    assert (body["id"], body["parent_id"], body["stock_quantity"]) == (size.id, shirt.id, 3)
    shop.catalog.trash(shirt)
    assert delivered(shop, receiver) == [("product.deleted", {"id": shirt.id})]
    ada = shop.customers.create({"email": "ada@example.com"})
    shop.customers.change(ada, {"first_name": "Ada"})
    shop.delete_customer(ada)
    assert [topic for topic, _ in delivered(shop, receiver)] == [
        "customer.created",
        "customer.updated",
        "customer.deleted",
    ]


def test_the_signature_is_that_of_the_raw_body(receiver: Receiver) -> None:
    """Base64 of HMAC-SHA256 with the secret as text; PHP writes slashes in JSON with a backslash."""
    shop = FakeShop()
    subscribed(shop, receiver, "product.created")
    shop.catalog.add("Lamp", description="a/b")
    delivered(shop, receiver)
    [sent] = receiver.received
    assert rb"a\/b" in sent.body
    expected = base64.b64encode(hmac.new(SECRET.encode(), sent.body, hashlib.sha256).digest()).decode()
    assert sent.headers["x-wc-webhook-signature"] == expected
    names = ("source", "resource", "event", "id", "delivery-id")
    assert [sent.headers[f"x-wc-webhook-{name}"] for name in names[:3]] == [f"{shop.site}/", "product", "created"]
    assert all(sent.headers[f"x-wc-webhook-{name}"] for name in names[3:])


def test_two_deliveries_of_one_second_have_the_same_id(receiver: Receiver) -> None:
    """WooCommerce makes the delivery id of the webhook's id and the second: it does not tell deliveries apart."""
    shop = FakeShop()
    subscribed(shop, receiver, "product.created")
    shop.catalog.add("Lamp")
    shop.catalog.add("Chair")
    delivered(shop, receiver)
    assert len({each.headers["x-wc-webhook-delivery-id"] for each in receiver.received}) == 1
    assert len({each.body for each in receiver.received}) == 2


def test_a_new_webhook_is_pinged(receiver: Receiver) -> None:
    """A form without a signature."""
    shop = FakeShop()
    made = ShopClient(shop).write(
        "POST", "webhooks", {"topic": "order.created", "delivery_url": receiver.url, "secret": SECRET}
    )
    shop.sender.send_until_empty(random.Random(1))
    [ping] = receiver.received
    assert ping.body == f"webhook_id={made['id']}".encode()
    assert ping.headers["content-type"] == "application/x-www-form-urlencoded"
    assert not [name for name in ping.headers if name.startswith("x-wc-")]


@pytest.mark.parametrize(("failures", "status"), [(6, "active"), (7, "disabled")])
def test_failures_in_a_row_disable_a_webhook(receiver: Receiver, failures: int, status: str) -> None:
    """Nothing is sent twice; the seventh failure in a row is the last."""
    shop = FakeShop()
    subscribed(shop, receiver, "product.created")
    receiver.answer = lambda _: 500
    for number in range(failures):
        shop.catalog.add(f"Lamp {number}")
        assert len(delivered(shop, receiver)) == 1
    [webhook] = ShopClient(shop).get("webhooks")
    assert webhook["status"] == status
    receiver.answer = lambda _: 200
    shop.catalog.add("Chair")
    assert len(delivered(shop, receiver)) == (status == "active")


def test_a_paused_or_deleted_webhook_gets_nothing(receiver: Receiver) -> None:
    """Changes meanwhile are not sent later."""
    shop = FakeShop()
    subscribed(shop, receiver, "product.created")
    client = ShopClient(shop)
    [number] = client.ids("webhooks")
    client.write("PUT", f"webhooks/{number}", {"status": "paused"})
    shop.catalog.add("Lamp")
    client.write("PUT", f"webhooks/{number}", {"status": "active"})
    assert delivered(shop, receiver) == []
    shop.catalog.add("Chair")
    client.write("DELETE", f"webhooks/{number}", force="true")
    assert delivered(shop, receiver) == []
