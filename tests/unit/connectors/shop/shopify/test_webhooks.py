"""Shopify's webhooks: signatures, topics, and the records that each is about.

The bodies have the form of the sample payloads in shopify.dev/docs/api/webhooks.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.connectors.webhook_judge import bodies, declared, hints_of, judge, settings_of

from crossdock.errors import RecordError
from crossdock.webhooks import WebhookVerifier, signed_headers
from crossdock_connectors.shop.shopify import CONNECTOR
from crossdock_connectors.shop.shopify.webhooks import SCHEMES, TOPICS

BASE = {"base_url": "https://lamps.myshopify.com", "token": "env:TOKEN"}
MEMBERS = (
    "id", "order_id", "order_edit", "customer", "email", "test", "variants", "variant_gids", "sku", "inventory_item_id",
    "location_id", "admin_graphql_api_id", "admin_graphql_api_customer_kept_id", "query_variables",
    "admin_graphql_api_customer_deleted_id",
)  # fmt: skip
ORDER = 820982911946154508
EVERY_TOPIC = [*TOPICS, "orders/paid", "orders/edited", "products/delete", "shop/update", "Product", "Order", ""]
CHOICES: list[dict[str, Any]] = [
    {}, {"product_key": "sku"}, {"product_namespace": "erp", "product_key": "sku"}, {"invoices": "never"},
    {"refunds": "reject"}, {"test_orders": True}, {"locations": {"7": "BER"}},
]  # fmt: skip


def of(topic: str, body: Any, **settings: Any) -> list[tuple[str, ...]]:
    return hints_of(CONNECTOR, settings_of(CONNECTOR, BASE, **settings), topic, body)


def variant(number: int, sku: str | None) -> dict[str, Any]:
    return {"id": number, "product_id": 788032119674292922, "sku": sku, "inventory_item_id": None, "price": "19.99"}


PRODUCT = {
    "id": 788032119674292922,
    "title": "Lamp",
    "variants": [variant(642667041472713922, "LAMP-S"), variant(757650484644203962, None)],
    "variant_gids": [
        {"admin_graphql_api_id": "gid://shopify/ProductVariant/757650484644203962", "updated_at": "2026-01-01T00:00Z"}
    ],
}
LEVEL = {"inventory_item_id": 271878346596884015, "location_id": 655441491, "available": 4}
KEPT = {
    "admin_graphql_api_customer_kept_id": "gid://shopify/Customer/1",
    "admin_graphql_api_customer_deleted_id": "gid://shopify/Customer/2",
    "status": "completed",
}


@pytest.mark.parametrize("topic", [topic for topic in TOPICS if topic.startswith("orders/")])
def test_an_order_is_an_order_and_an_invoice(topic: str) -> None:
    """The customer account of an order has webhooks of its own."""
    body = {"id": ORDER, "email": "a@b.example", "test": False, "customer": {"id": 115310627314723954}}
    assert of(topic, body) == [("orders", str(ORDER)), ("invoices", str(ORDER))]
    assert of(topic, body, invoices="never") == [("orders", str(ORDER))]


@pytest.mark.parametrize("body", [{"id": ORDER, "customer": None}, {"id": ORDER}])
def test_an_order_without_an_account_is_its_guest_too(body: dict[str, Any]) -> None:
    """The order stands for its guest, who comes first; a deleted order does not say whether it had one."""
    guest = ("customers", f"order-{ORDER}")
    order = [("orders", str(ORDER)), ("invoices", str(ORDER))]
    assert of("orders/create", body) == [guest, *order]
    assert of("orders/delete", body) == order


def test_test_orders_are_no_records() -> None:
    """Unless the settings read them."""
    body = {"id": ORDER, "test": True, "customer": {"id": 1}}
    assert of("orders/create", body) == []
    assert of("orders/create", body, test_orders=True) == [("orders", str(ORDER)), ("invoices", str(ORDER))]


def test_an_edited_order_is_named_inside_of_the_edit() -> None:
    """The edit has an id of its own."""
    body = {"order_edit": {"id": 1, "app_id": None, "order_id": ORDER}}
    assert of("orders/edited", body, invoices="never") == [("orders", str(ORDER))]


def test_a_refund_is_its_order_its_invoice_and_its_credit_note() -> None:
    """There is no credit note where refunds are rejected."""
    body = {"id": 890088186047892319, "order_id": ORDER, "refund_line_items": []}
    order = [("orders", str(ORDER)), ("invoices", str(ORDER))]
    assert of("refunds/create", body) == [*order, ("invoices", "credit-note-890088186047892319")]
    assert of("refunds/create", body, refunds="reject") == order
    assert of("refunds/create", body, invoices="never") == order[:1]


@pytest.mark.parametrize("topic", ["fulfillments/create", "fulfillments/update"])
def test_a_fulfillment_is_its_order(topic: str) -> None:
    """Its own id is no record key."""
    body = {"id": 123456, "order_id": ORDER, "status": "success", "tracking_number": "1Z"}
    assert of(topic, body, invoices="never") == [("orders", str(ORDER))]


@pytest.mark.parametrize("topic", [topic for topic in TOPICS if topic.startswith("customers/")])
def test_customers_are_named_by_their_number(topic: str) -> None:
    """Of merged customers both, since one is gone."""
    merged = topic == "customers/merge"
    wanted = [("customers", "1"), ("customers", "2")] if merged else [("customers", "1")]
    assert of(topic, KEPT if merged else {"id": 1, "email": "a@b.example"}) == wanted


@pytest.mark.parametrize("topic", ["products/create", "products/update"])
def test_a_product_is_its_variants(topic: str) -> None:
    """By id or SKU, as the key of products is; none if another connection writes the products."""
    small, large = "642667041472713922", "757650484644203962"
    assert of(topic, PRODUCT) == [("products", small), ("products", large), ("products", large)]
    assert of(topic, PRODUCT, product_key="sku") == [("products", "LAMP-S")]
    assert of(topic, PRODUCT, product_key="sku", product_namespace="erp") == []
    assert of("products/delete", {"id": 788032119674292922}) == []


@pytest.mark.parametrize("topic", [topic for topic in TOPICS if topic.startswith("inventory_levels/")])
def test_an_inventory_level_is_a_lot(topic: str) -> None:
    """Unless its location is left out."""
    assert of(topic, LEVEL) == [("stock", "271878346596884015-655441491")]
    assert of(topic, LEVEL, locations={"655441491": "BER"}) == [("stock", "271878346596884015-655441491")]
    assert of(topic, LEVEL, locations={"7": "BER"}) == []


def test_a_delivery_of_events_names_records_by_global_ids() -> None:
    """Its topic is a type, and other types are no records of ours."""
    body = {
        "topic": "Product",
        "action": "update",
        "query_variables": {
            "productId": "gid://shopify/Product/123",
            "variantsId": "gid://shopify/ProductVariant/456",
            "count": 3,
        },
    }
    assert of("Product", body) == [("products", "456")]
    assert of("Product", body, product_key="sku") == []
    order = {"topic": "Order", "query_variables": {"orderId": "gid://shopify/Order/7"}}
    assert of("Order", order) == [("orders", "7"), ("invoices", "7")]
    customer = {"query_variables": {"customerId": "gid://shopify/Customer/8"}}
    assert of("Customer", customer) == [("customers", "8")]


@pytest.mark.parametrize("topic", ["app/uninstalled", "customers/data_request", "customers/redact", "shop/redact"])
def test_other_topics_give_nothing(topic: str) -> None:
    """Whatever their bodies have."""
    assert of(topic, {"id": 7, "shop_id": 954889, "customer": {"id": 7}}) == []


def test_an_id_that_is_missing_is_named() -> None:
    """The error has the place, not the body."""
    with pytest.raises(RecordError, match=r"/variants/1/id"):
        of("products/update", {"variants": [{"id": 1}, {"title": "secret name"}]})
    with pytest.raises(RecordError, match=r"/admin_graphql_api_customer_kept_id: is no global id"):
        of("customers/merge", {**KEPT, "admin_graphql_api_customer_kept_id": "gid://shopify/Customer/"})


@given(bodies(MEMBERS), st.sampled_from(EVERY_TOPIC), st.sampled_from(CHOICES))
def test_any_body_gives_hints_or_a_record_error(body: Any, topic: str, choice: dict[str, Any]) -> None:
    """Hints name streams of the connection, by whole keys."""
    judge(CONNECTOR, settings_of(CONNECTOR, BASE, **choice), topic, body)


@pytest.mark.parametrize(("scheme", "start"), [*zip(SCHEMES, ("X-Shopify-", "Shopify-"), strict=True)])
def test_signatures_are_as_shopify_makes_them(scheme: Any, start: str) -> None:
    """HMAC-SHA256 of the raw body in base64, with the client secret; with the old one for an hour after a change."""
    body, secret = '{"id":1,"note":"Grüße"}'.encode(), "hush & <shh>"
    mac = base64.b64encode(hmac.new(secret.encode(), body, hashlib.sha256).digest()).decode()
    sent = {f"{start}Hmac-Sha256": mac, f"{start}Webhook-Id": "b54557e4", f"{start}Topic": "orders/create"}
    assert WebhookVerifier(scheme, ["new", secret]).verify(body, sent).id == "b54557e4"
    made = signed_headers(scheme, secret, body, delivery_id="b54557e4")
    assert {name.lower(): value for name, value in made.items()}[f"{start}Hmac-Sha256".lower()] == mac


def test_the_declaration_is_that_of_the_settings() -> None:
    """Without the section nothing is accepted; topics of records that are not read are not subscribed to."""
    settings = settings_of(CONNECTOR, BASE, product_key="sku", product_namespace="erp")
    found = declared(CONNECTOR, settings)
    assert [secret.reference for secret in found.secrets] == ["env:WEBHOOK_SECRET"]
    assert found.topic_headers == ("X-Shopify-Topic", "Shopify-Topic")
    assert set(TOPICS) - set(found.topics) == {"products/create", "products/update"}
    assert not found.is_ping(b"webhook_id=1")
    assert CONNECTOR.webhooks is not None
    assert CONNECTOR.webhooks(settings_of(CONNECTOR, BASE, webhooks=None)) is None
