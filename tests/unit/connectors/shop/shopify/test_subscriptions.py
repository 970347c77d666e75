"""Subscriptions to a Shopify shop's webhooks, by its API."""

from __future__ import annotations

import random
import re

import httpx
import pytest
from tests.partners.partner_server import PartnerRequest
from tests.partners.partner_transport import transport
from tests.partners.shopify.access import ALL_SCOPES
from tests.partners.shopify.reading import BASE_URL, CONNECTOR
from tests.partners.shopify.site import Site

from crossdock import Context
from crossdock.errors import RemoteError, UnavailableError
from crossdock.testing import context
from crossdock.webhooks import Subscription
from crossdock_connectors.shop.shopify.webhooks import ShopifySubscriptions, topic_in_header_form, topic_in_schema_form

HOOK = "https://hooks.example/shop"
API = ShopifySubscriptions()


def opened(site: Site, network: httpx.BaseTransport | None = None) -> Context:  # type: ignore[type-arg]  # any settings
    given = {"base_url": BASE_URL, "token": "env:SHOP_TOKEN"}
    return context(CONNECTOR, given, transport=network or transport(site.shop), clock=site.clock)


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "shpat_fake")


def creates(request: PartnerRequest) -> bool:
    return b"mutation webhookSubscriptionCreate" in request.body


def test_subscriptions_are_created_listed_and_removed() -> None:
    """Topics are those of the header, ids are numbers; removing twice is no error."""
    site = Site()
    ctx = opened(site)
    made = [API.create(ctx, topic, HOOK) for topic in ("orders/create", "inventory_levels/update")]
    assert [each.topic for each in made] == ["orders/create", "inventory_levels/update"]
    assert all(each.id.isdecimal() and each.active and each.secret is None for each in made)
    assert list(API.listed(ctx)) == made
    API.remove(ctx, made[0])
    API.remove(ctx, made[0])
    assert list(API.listed(ctx)) == made[1:]


def test_all_pages_are_listed() -> None:
    """More subscriptions than a page has."""
    site = Site()
    ctx = opened(site)
    for number in range(150):
        site.data(
            "mutation c($u: String) { webhookSubscriptionCreate(topic: ORDERS_CREATE, webhookSubscription: {uri: $u})"
            " { userErrors { message } } }",
            u=f"{HOOK}/{number}",
        )
        site.clock.advance(1)
    assert len({each.address for each in API.listed(ctx)}) == 150


@pytest.mark.parametrize("lost", [1, 4, 5])
def test_a_lost_answer_leaves_one_subscription(lost: int) -> None:
    """Shopify refuses the same subscription again; the list shows that it is there."""
    site = Site()
    left = iter(range(lost))
    network = transport(site.shop, lambda request: creates(request) and next(left, None) is not None)
    ctx = opened(site, network)
    made = API.create(ctx, "orders/updated", HOOK)
    assert list(API.listed(ctx)) == [made]


def test_a_missing_scope_is_named() -> None:
    """The error has Shopify's reason, and the scope that the topic needs."""
    site = Site(scopes=ALL_SCOPES - {"read_orders", "read_all_orders"})
    with pytest.raises(RemoteError, match="permission to create or update webhooks with orders/create topic") as error:
        API.create(opened(site), "orders/create", HOOK)
    assert "orders/create needs the scope read_orders: check the scopes of the token" in str(error.value)


def test_an_address_that_shopify_refuses_is_no_matter_of_scopes() -> None:
    """Scopes are named only where they may be the reason."""
    with pytest.raises(RemoteError, match="refused to subscribe to orders/create: Address is invalid") as error:
        API.create(opened(Site()), "orders/create", "http://hooks.example/shop")
    assert "scope" not in str(error.value)


def test_an_unknown_topic_is_refused() -> None:
    """The schema names all topics."""
    with pytest.raises(RemoteError, match="does not exist in 'WebhookSubscriptionTopic'"):
        API.create(opened(Site()), "orders/eaten", HOOK)


def test_a_query_that_is_denied_names_the_scope() -> None:
    """A refusal may be an error of GraphQL too."""
    denied = {"errors": [{"message": "Access denied", "extensions": {"code": "ACCESS_DENIED"}}]}
    listed = {"data": {"webhookSubscriptions": {"nodes": [], "pageInfo": {"hasNextPage": False, "endCursor": None}}}}

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=denied if b"mutation" in request.read() else listed)

    with pytest.raises(RemoteError, match="needs the scope read_inventory"):
        API.create(opened(Site(), httpx.MockTransport(answer)), "inventory_levels/update", HOOK)


def test_personal_data_in_a_refusal_is_masked() -> None:
    """Mail addresses do not reach logs."""
    refused = {"userErrors": [{"field": ["uri"], "message": "ada@example.com may not"}], "webhookSubscription": None}
    listed = {"webhookSubscriptions": {"nodes": [], "pageInfo": {"hasNextPage": False, "endCursor": None}}}
    data = {"data": {"webhookSubscriptionCreate": refused, **listed}}
    ctx = opened(Site(), httpx.MockTransport(lambda _: httpx.Response(200, json=data)))
    with pytest.raises(RemoteError, match=re.escape("refused to subscribe to orders/create: (personal) may not")):
        API.create(ctx, "orders/create", HOOK)


def test_a_subscription_that_cannot_be_removed_is_an_error() -> None:
    """Only one that is not there any more is none."""
    site = Site()
    ctx = opened(site)
    made = API.create(ctx, "orders/create", HOOK)

    def answer(request: httpx.Request) -> httpx.Response:
        if b"webhookSubscriptionDelete" in request.read():
            errors = {"userErrors": [{"field": ["id"], "message": "not now"}]}
            return httpx.Response(200, json={"data": {"webhookSubscriptionDelete": errors}})
        return transport(site.shop).handle_request(request)

    with pytest.raises(RemoteError, match="refused to end a subscription to orders/create: not now"):
        API.remove(opened(site, httpx.MockTransport(answer)), made)


def test_a_shop_that_is_out_of_service_is_no_refusal() -> None:
    """Five failures end the attempt."""
    with pytest.raises(UnavailableError):
        list(API.listed(opened(Site(), httpx.MockTransport(lambda _: httpx.Response(503)))))


@pytest.mark.parametrize(
    "topic",
    [
        "orders/create",
        "orders/partially_fulfilled",
        "inventory_levels/connect",
        "bulk_operations/finish",
        "app/uninstalled",
    ],
)
def test_topics_in_both_forms(topic: str) -> None:
    """What the schema writes in capitals is read back."""
    assert topic_in_header_form(topic_in_schema_form(topic)) == topic


def test_what_is_created_is_delivered() -> None:
    """The fake sends to a subscription that the connector has made."""
    site = Site()
    API.create(opened(site), "products/create", "http://127.0.0.1:9/hook")
    site.variant("CHAIR", "10.00", 1)
    assert [each.topic for each in site.shop.sender.pending] == ["products/create"]
    site.shop.sender.send_until_empty(random.Random(1))
    assert list(API.listed(opened(site))) == list[Subscription]()  # nine attempts failed
