"""The fake Shopify shop sends webhooks as Shopify documents it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from tests.partners.shopify.access import ALL_SCOPES
from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.site import Site
from tests.unit.sandbox.webhook_receiver import Receiver

CREATE = """mutation c($topic: WebhookSubscriptionTopic!, $uri: String) {
  webhookSubscriptionCreate(topic: $topic, webhookSubscription: {uri: $uri}) {
    webhookSubscription { id topic uri format legacyResourceId createdAt } userErrors { field message }
  }
}"""
LIST = """query l($topics: [WebhookSubscriptionTopic!], $uri: String) {
  webhookSubscriptions(first: 10, topics: $topics, uri: $uri) { nodes { topic } }
}"""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


def subscribed(site: Site, receiver: Receiver, *topics: str) -> None:
    for topic in topics:
        assert refusal(site, topic, receiver.url) is None


def refusal(site: Site, topic: str, uri: str) -> str | None:
    """The message of the user error; None without one."""
    payload = site.data(CREATE, topic=topic, uri=uri)["webhookSubscriptionCreate"]
    return payload["userErrors"][0]["message"] if payload["userErrors"] else None


def delivered(site: Site, receiver: Receiver) -> list[tuple[str, Any]]:
    """Topic and body of each webhook that has arrived since the last call."""
    receiver.received.clear()
    site.shop.sender.send_until_empty(random.Random(1))
    return [(each.headers["x-shopify-topic"], json.loads(each.body)) for each in receiver.received]


def test_an_order_from_its_placing_to_its_deletion(receiver: Receiver) -> None:
    """Bodies have the form of the REST API: numbers as ids, amounts as texts, the state at the time of the change."""
    site = Site()
    subscribed(site, receiver, "ORDERS_CREATE", "ORDERS_UPDATED", "ORDERS_DELETE")
    buyer = site.shop.customers.add("zoë@example.com")
    order = site.shop.orders.place(Line(site.lamp, 2), customer=buyer, shipping=Decimal("4.90"))
    created, updated = delivered(site, receiver)
    assert [created[0], updated[0]] == ["orders/create", "orders/updated"]
    body = updated[1]
    assert (body["id"], body["admin_graphql_api_id"]) == (order.legacy_resource_id, order.id)
    assert body["created_at"].endswith("+01:00")
    assert (body["total_price"], body["currency"], body["financial_status"]) == ("104.70", "EUR", "paid")
    assert (body["customer"]["id"], body["customer"]["email"]) == (buyer.legacy_resource_id, "zoë@example.com")
    assert [(each["sku"], each["quantity"]) for each in body["line_items"]] == [("LAMP", 2)]
    assert body["fulfillment_status"] is None
    site.shop.shipments.ship(order.fulfillment_orders[0], company="DHL", number="17")
    [(_, shipped)] = delivered(site, receiver)
    assert shipped["fulfillment_status"] == "fulfilled"
    assert shipped["fulfillments"][0]["tracking_number"] == "17"
    number = order.legacy_resource_id
    site.shop.orders.delete(order)
    assert delivered(site, receiver) == [("orders/delete", {"id": number})]


def test_every_kind_of_record_has_its_topics(receiver: Receiver) -> None:
    """Each change leads to the topics that are subscribed, and to no others."""
    site = Site()
    names = [
        "CUSTOMERS_UPDATE", "FULFILLMENTS_CREATE", "INVENTORY_ITEMS_UPDATE", "INVENTORY_LEVELS_CONNECT",
        "INVENTORY_LEVELS_DISCONNECT", "INVENTORY_LEVELS_UPDATE", "LOCATIONS_CREATE", "PRODUCTS_DELETE",
        "PRODUCTS_UPDATE", "REFUNDS_CREATE",
    ]  # fmt: skip
    subscribed(site, receiver, *names)
    shop = site.shop

    def topics() -> set[str]:
        return {topic for topic, _ in delivered(site, receiver)}

    chair = site.variant("CHAIR", "10.00", 3)
    assert topics() == {"products/update", "inventory_levels/connect", "inventory_levels/update"}
    shop.catalog.change(chair, sku="CHAIR-2")
    assert topics() == {"products/update", "inventory_items/update"}
    order = shop.orders.place(Line(chair), customer=shop.customers.add("a@example.com"))
    assert topics() == {"customers/update", "inventory_levels/update"}
    shop.shipments.ship(order.fulfillment_orders[0])
    shop.orders.refund(order, {"CHAIR-2": 1})
    assert topics() == {"fulfillments/create", "refunds/create", "inventory_levels/update"}
    shop.catalog.add_location("Hamburg")
    assert topics() == {"locations/create"}
    shop.catalog.delete_product(chair.product)
    assert topics() == {"products/delete", "products/update", "inventory_levels/disconnect"}


def test_a_stock_level_has_no_id_of_its_own(receiver: Receiver) -> None:
    """It is named by its item and location."""
    site = Site()
    subscribed(site, receiver, "INVENTORY_LEVELS_UPDATE")
    site.shop.catalog.stock(site.lamp, site.berlin, 7)
    [(_, body)] = delivered(site, receiver)
    item = site.lamp.inventory_item.legacy_resource_id
    assert (body["inventory_item_id"], body["location_id"]) == (item, site.berlin.legacy_resource_id)
    assert body["available"] == 7
    assert "id" not in body


def test_the_signature_is_that_of_the_raw_body(receiver: Receiver) -> None:
    """Base64 of HMAC-SHA256 with the app's client secret; every documented header is there."""
    site = Site(client_secret="hush")
    subscribed(site, receiver, "CUSTOMERS_CREATE")
    site.shop.customers.add("zoë@example.com")
    delivered(site, receiver)
    [sent] = receiver.received
    expected = base64.b64encode(hmac.new(b"hush", sent.body, hashlib.sha256).digest()).decode()
    assert sent.headers["x-shopify-hmac-sha256"] == expected
    assert "zoë".encode() in sent.body
    assert sent.headers["x-shopify-api-version"] == "2026-10"
    names = ("shop-domain", "webhook-id", "event-id", "triggered-at")
    assert all(sent.headers[f"x-shopify-{name}"] for name in names)


def test_a_retry_has_the_same_id_and_two_addresses_the_same_event(receiver: Receiver) -> None:
    """The webhook id names a delivery, the event id what happened."""
    site = Site()
    subscribed(site, receiver, "CUSTOMERS_CREATE")
    assert refusal(site, "CUSTOMERS_CREATE", f"{receiver.url}/2") is None
    receiver.answer = lambda _: 503 if len(receiver.received) <= 2 else 200
    site.shop.customers.add("a@example.com")
    delivered(site, receiver)
    ids = [each.headers["x-shopify-webhook-id"] for each in receiver.received]
    assert len(ids) == 4
    assert len(set(ids)) == 2
    assert len({each.headers["x-shopify-event-id"] for each in receiver.received}) == 1


def test_a_subscription_whose_webhooks_fail_is_removed(receiver: Receiver) -> None:
    """After nine attempts; others stay."""
    site = Site()
    subscribed(site, receiver, "CUSTOMERS_CREATE", "PRODUCTS_CREATE")
    receiver.answer = lambda _: 500
    site.shop.customers.add("a@example.com")
    assert len(delivered(site, receiver)) == 9
    assert [each["topic"] for each in site.data(LIST)["webhookSubscriptions"]["nodes"]] == ["PRODUCTS_CREATE"]


def test_subscriptions_are_found_by_topic_and_address(receiver: Receiver) -> None:
    """Both arguments narrow the list."""
    site = Site()
    subscribed(site, receiver, "ORDERS_CREATE", "PRODUCTS_CREATE")
    assert len(site.data(LIST, uri=receiver.url)["webhookSubscriptions"]["nodes"]) == 2
    assert len(site.data(LIST, topics=["ORDERS_CREATE"])["webhookSubscriptions"]["nodes"]) == 1
    assert site.data(LIST, uri="https://other.example")["webhookSubscriptions"]["nodes"] == []


def test_what_shopify_refuses() -> None:
    """A second subscription, an address that is not https, a topic without its scope, a deletion of nothing."""
    site, address = Site(scopes=ALL_SCOPES - {"read_fulfillments"}), "https://hooks.example/shop"
    assert refusal(site, "ORDERS_CREATE", address) is None
    assert refusal(site, "ORDERS_CREATE", address) == "Address for this topic has already been taken"
    assert refusal(site, "ORDERS_CREATE", f"{address}/2") is None
    assert refusal(site, "ORDERS_CREATE", "http://hooks.example/shop") == "Address is invalid"
    assert "fulfillments/create" in str(refusal(site, "FULFILLMENTS_CREATE", address))
    gone = (
        'mutation { webhookSubscriptionDelete(id: "gid://shopify/WebhookSubscription/1") { userErrors { message } } }'
    )
    assert site.data(gone)["webhookSubscriptionDelete"]["userErrors"] == [
        {"message": "Webhook subscription does not exist"}
    ]
