"""WooCommerce's webhooks: signatures, the ping, and the records that each topic is about.

The bodies have the form of the records of ``wc/v3``, as ``WC_Webhook::build_payload`` sends them.
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
from crossdock_connectors.shop.woocommerce import CONNECTOR
from crossdock_connectors.shop.woocommerce.webhooks import SCHEME

BASE = {"base_url": "https://shop.example", "consumer_key": "env:KEY", "consumer_secret": "env:SECRET"}
MEMBERS = ("id", "customer_id", "type", "sku", "billing", "email", "code")
TOPICS = declared(CONNECTOR, settings_of(CONNECTOR, BASE)).topics
CHOICES: list[dict[str, Any]] = [{}, {"product_key": "sku"}, {"product_namespace": "erp"}, {"invoices": "never"}]


def of(topic: str, body: Any, **settings: Any) -> list[tuple[str, ...]]:
    return hints_of(CONNECTOR, settings_of(CONNECTOR, BASE, **settings), topic, body)


@pytest.mark.parametrize("topic", [topic for topic in TOPICS if topic.startswith("order.")])
def test_an_order_is_an_order_and_an_invoice(topic: str) -> None:
    """A refund has no topic of its own."""
    body = {"id": 727, "status": "processing", "customer_id": 26, "billing": {"email": "a@b.example"}, "refunds": []}
    assert of(topic, body) == [("orders", "727"), ("invoices", "727")]
    assert of(topic, body, invoices="never") == [("orders", "727")]


def test_an_order_of_a_guest_is_its_guest_too() -> None:
    """The order stands for its guest, who comes first."""
    body = {"id": 727, "customer_id": 0, "billing": {"email": "a@b.example"}}
    assert of("order.created", body) == [("customers", "order-727"), ("orders", "727"), ("invoices", "727")]


@pytest.mark.parametrize("number", [727, "727"], ids=["number", "text"])
def test_a_deleted_order_is_its_id_alone(number: int | str) -> None:
    """As the shop sends it: a number, or its text."""
    assert of("order.deleted", {"id": number}) == [("orders", "727"), ("invoices", "727")]


@pytest.mark.parametrize("topic", ["customer.created", "customer.updated"])
def test_customers_are_named_by_their_number(topic: str) -> None:
    """Accounts only."""
    assert of(topic, {"id": 25, "email": "a@b.example"}) == [("customers", "25")]


@pytest.mark.parametrize("topic", [topic for topic in TOPICS if topic.startswith("product.")])
def test_a_product_is_a_product_and_its_stock(topic: str) -> None:
    """The key of stock is always the id."""
    body = {"id": 794, "type": "simple", "sku": "LAMP", "manage_stock": True}
    assert of(topic, body) == [("products", "794"), ("stock", "794")]
    assert of(topic, body, product_key="sku") == [("products", "LAMP"), ("stock", "794")]
    assert of(topic, {**body, "sku": ""}, product_key="sku") == [("stock", "794")]
    assert of(topic, body, product_namespace="erp") == [("stock", "794")]


def test_a_variation_has_webhooks_of_its_own() -> None:
    """In the form of a product, with the SKU that it inherits or has."""
    body = {"id": 732, "type": "variation", "parent_id": 22, "sku": "LAMP-S", "manage_stock": "parent"}
    assert of("product.updated", body, product_key="sku") == [("products", "LAMP-S"), ("stock", "732")]


def test_a_variable_product_stands_for_its_variations() -> None:
    """Its own id or SKU is enough to fetch them."""
    body = {"id": 22, "type": "variable", "sku": "LAMP", "manage_stock": False, "variations": [732, 733]}
    assert of("product.updated", body) == [("products", "22"), ("stock", "22")]
    assert of("product.updated", body, product_key="sku") == [("products", "LAMP"), ("stock", "22")]


@pytest.mark.parametrize("topic", ["coupon.created", "product.deleted", "customer.deleted", "action.wc_x", ""])
def test_other_topics_give_nothing(topic: str) -> None:
    """Whatever their bodies have."""
    assert of(topic, {"id": 7, "action": "x", "arg": 7}) == []


def test_an_error_in_place_of_a_record_is_a_record_error() -> None:
    """The shop sends it if the user of the webhook may not read the record."""
    with pytest.raises(RecordError, match="/id: is missing"):
        of("order.updated", {"code": "woocommerce_rest_cannot_view", "message": "x", "data": {"status": 401}})


@given(bodies(MEMBERS), st.sampled_from([*TOPICS, "product.deleted", "coupon.updated"]), st.sampled_from(CHOICES))
def test_any_body_gives_hints_or_a_record_error(body: Any, topic: str, choice: dict[str, Any]) -> None:
    """Hints name streams of the connection, by whole keys."""
    judge(CONNECTOR, settings_of(CONNECTOR, BASE, **choice), topic, body)


def test_signatures_are_as_woocommerce_makes_them() -> None:
    """As ``WC_Webhook::generate_signature``: HMAC-SHA256 of the body in base64; the delivery id is none."""
    body, secret = b'{"id":727}', "hush & <shh>"
    mac = base64.b64encode(hmac.new(secret.encode(), body, hashlib.sha256).digest()).decode()
    sent = {"X-WC-Webhook-Topic": "order.deleted", "X-WC-Webhook-Signature": mac, "X-WC-Webhook-Delivery-ID": "1"}
    assert WebhookVerifier(SCHEME, [secret]).verify(body, sent).id is None
    assert signed_headers(SCHEME, secret, body) == {"X-WC-Webhook-Signature": mac}


def test_rfc_4231_s_published_example_is_accepted() -> None:
    """Test case 2 of the RFC: the key, the data and their HMAC-SHA256."""
    mac = bytes.fromhex("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
    sent = {"X-WC-Webhook-Signature": base64.b64encode(mac).decode()}
    WebhookVerifier(SCHEME, ["Jefe"]).verify(b"what do ya want for nothing?", sent)


@pytest.mark.parametrize(
    ("body", "is_ping"),
    [(b"webhook_id=12", True), (b"webhook_id=", False), (b"webhook_id=12&a=b", False), (b'{"id":1}', False)],
)
def test_the_form_that_tests_the_address_is_known(body: bytes, is_ping: bool) -> None:
    """As ``WC_Webhook::deliver_ping`` sends it, unsigned."""
    assert declared(CONNECTOR, settings_of(CONNECTOR, BASE)).is_ping(body) is is_ping


def test_without_the_section_nothing_is_accepted() -> None:
    """By default."""
    assert CONNECTOR.webhooks is not None
    assert CONNECTOR.webhooks(settings_of(CONNECTOR, BASE, webhooks=None)) is None
