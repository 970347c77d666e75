from __future__ import annotations

from datetime import timedelta

import httpx
import pytest
from tests.partners.partner_server import PartnerServer, serving
from tests.partners.shopify.access import ALL_SCOPES
from tests.partners.shopify.fake_shop import PATH, FakeShopify, Interruption
from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.site import Site

from crossdock.testing.manual_clock import ManualClock

SHOP = "{ shop { name currencyCode ianaTimezone } }"
ORDER = "query ($id: ID!) { order(id: $id) { name customer { id } } }"


@pytest.fixture(name="site")
def _site() -> Site:
    return Site()


def test_the_shop_and_the_scopes_are_told(site: Site) -> None:
    """The shop tells its currency and time zone, the app's installation its scopes."""
    assert site.data(SHOP)["shop"] == {
        "name": "Lampen & Stühle",
        "currencyCode": "EUR",
        "ianaTimezone": "Europe/Berlin",
    }
    scopes = site.data("{ currentAppInstallation { accessScopes { handle } } }")
    handles = {one["handle"] for one in scopes["currentAppInstallation"]["accessScopes"]}
    assert {"read_orders", "write_inventory", "read_inventory"} <= handles


def test_it_answers_on_loopback() -> None:
    """Served, it answers with the version and the id of the request in its headers."""
    shop = FakeShopify(ManualClock().now)
    headers = {"x-shopify-access-token": shop.token}
    with serving(PartnerServer(shop)) as server, httpx.Client(base_url=server.url, trust_env=False) as client:
        answer = client.post(PATH, json={"query": SHOP}, headers=headers)
    assert answer.json()["data"]["shop"]["currencyCode"] == "EUR"
    assert (answer.headers["x-shopify-api-version"], bool(answer.headers["x-request-id"])) == ("2026-10", True)


@pytest.mark.parametrize("token", ["", "shpat_other"])
def test_a_wrong_token_is_refused(site: Site, token: str) -> None:
    """Without the app's token nothing is answered; the error is a text, not a list."""
    site.client.headers["x-shopify-access-token"] = token
    answer = site.post(SHOP)
    message = "[API] Invalid API key or access token (unrecognized login or wrong password)"
    assert (answer.status_code, answer.json()) == (401, {"errors": message})


@pytest.mark.parametrize(
    ("kind", "status", "content"),
    [
        ("frozen", 402, b'{"errors":"Unavailable Shop"}'),
        ("locked", 423, b"Locked"),
        ("rejected", 430, b"Security Rejection"),
        ("html", 502, b"<html>"),
        ("too_many", 429, b"Too many"),
    ],
)
def test_a_shop_can_be_out_of_reach(site: Site, kind: Interruption, status: int, content: bytes) -> None:
    """Each interruption is answered once; then the shop is back."""
    site.shop.interrupt(kind)
    answer = site.post(SHOP)
    assert answer.status_code == status
    assert content in answer.content
    assert site.data(SHOP)


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"{", 400),
        (b"[]", 400),
        (b'{"query": 1}', 400),
        (b'{"query": "{ shop { name } }", "variables": [1]}', 400),
        (b'{"query": "{ shop { name } }"}', 200),
    ],
)
def test_a_body_without_a_query_is_refused(site: Site, content: bytes, status: int) -> None:
    """A body that is no JSON object with a query is an error of HTTP."""
    assert site.client.post(PATH, content=content).status_code == status


def test_another_version_or_path_does_not_exist(site: Site) -> None:
    """Only the pinned version is served."""
    answer = site.client.post(PATH.replace("2026-10", "2024-01"), json={"query": SHOP})
    assert (answer.status_code, answer.json()) == (404, {"errors": "Not Found"})


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("{ shop { colour } }", "Cannot query field 'colour'"),
        ("{ shop", "Syntax Error"),
        ("query ($id: ID!) { order(id: $id) { id } }", "Variable '$id'"),
    ],
)
def test_an_invalid_query_is_an_error_inside_200(site: Site, query: str, message: str) -> None:
    """A query that the schema does not know is answered with errors and without data, and costs nothing."""
    before = site.shop.bucket.available()
    body = site.ask(query)
    assert body["errors"][0]["message"].startswith(message)
    assert "data" not in body
    assert site.shop.bucket.available() == before


@pytest.mark.parametrize(
    ("scope", "query", "field"),
    [
        ("read_orders", "{ orders(first: 1) { nodes { id } } }", "orders"),
        ("read_customers", "{ customers(first: 1) { nodes { id } } }", "customers"),
        ("read_products", "{ products(first: 1) { nodes { id } } }", "products"),
    ],
)
def test_a_scope_is_needed(scope: str, query: str, field: str) -> None:
    """Without the scope, the list is refused with the scope that is needed."""
    site = Site(scopes=ALL_SCOPES - {scope, "write_inventory"})
    body = site.ask(query)
    [error] = body["errors"]
    assert error["message"] == f"Access denied for {field} field. Required access: `{scope}` access scope."
    assert (error["extensions"]["code"], error["path"], body["data"]) == ("ACCESS_DENIED", [field], None)


def test_a_field_without_access_is_null_in_partial_data() -> None:
    """A nested field that the app must not see is null, with an error beside the data."""
    site = Site(scopes=ALL_SCOPES - {"read_customers"})
    order = site.shop.orders.place(Line(site.lamp), customer=site.shop.customers.add("a@example.com"))
    body = site.ask(ORDER, id=order.id)
    assert body["data"]["order"] == {"name": "#1001", "customer": None}
    assert [(one["path"], one["extensions"]["code"]) for one in body["errors"]] == [
        (["order", "customer"], "ACCESS_DENIED")
    ]


def test_a_field_can_fail_alone(site: Site) -> None:
    """A field with an internal error is null; the rest of the answer is there."""
    order = site.shop.orders.place(Line(site.lamp), customer=site.shop.customers.add("a@example.com"))
    site.shop.failing = frozenset({"customer"})
    body = site.ask(ORDER, id=order.id)
    assert body["data"]["order"] == {"name": "#1001", "customer": None}
    assert body["errors"][0]["extensions"]["code"] == "INTERNAL_SERVER_ERROR"


def test_old_orders_need_a_scope() -> None:
    """Without read_all_orders, an order of more than sixty days is in no list, and is null by its id."""
    site = Site(scopes=ALL_SCOPES - {"read_all_orders"})
    old = site.shop.orders.place(Line(site.lamp), age=timedelta(days=60))
    site.shop.orders.place(Line(site.lamp), age=timedelta(days=59, hours=23))
    assert site.changed() == ["#1002"]
    assert site.data(ORDER, id=old.id)["order"] is None
    site.shop.scopes = ALL_SCOPES
    assert site.changed() == ["#1001", "#1002"]


def test_fulfillment_orders_need_the_scope_of_their_location() -> None:
    """Those of a fulfillment service are seen with the scope for third parties only."""
    site = Site(scopes=ALL_SCOPES - {"write_third_party_fulfillment_orders"})
    service = site.shop.catalog.add_location("3PL", is_fulfillment_service=True)
    chair = site.shop.catalog.add_variant(site.shop.catalog.add_product("Chair"), "CHAIR")
    site.shop.catalog.stock(chair, service, 5)
    site.shop.orders.place(Line(site.lamp), Line(chair))
    query = "{ fulfillmentOrders(first: 5) { nodes { assignedLocation { name } } } }"
    names = [one["assignedLocation"]["name"] for one in site.data(query)["fulfillmentOrders"]["nodes"]]
    assert names == ["Berlin"]


def test_what_is_deprecated_is_told_in_a_header(site: Site) -> None:
    """A query with a deprecated field is answered as always, with a header."""
    assert "x-shopify-api-deprecated-reason" not in site.post(SHOP).headers
    answer = site.post("{ deletionEvents(first: 1) { nodes { subjectId } } }")
    assert answer.json()["data"]
    assert "versioning" in answer.headers["x-shopify-api-deprecated-reason"]


def test_a_node_is_found_by_its_id(site: Site) -> None:
    """Any record is a node; one of another type, or none, is not."""
    query = "query ($id: ID!) { node(id: $id) { id ... on ProductVariant { sku } } }"
    assert site.data(query, id=site.lamp.id)["node"] == {"id": site.lamp.id, "sku": "LAMP"}
    assert site.data(query, id="gid://shopify/Order/1")["node"] is None
    assert site.code(ORDER, id=site.lamp.id) == "RESOURCE_NOT_FOUND"
    listed = site.data("query ($ids: [ID!]!) { nodes(ids: $ids) { id } }", ids=[site.lamp.id, "gid://shopify/Order/1"])
    assert listed["nodes"] == [{"id": site.lamp.id}, None]


def test_an_inventory_level_has_a_query_in_its_id(site: Site) -> None:
    """A level is found by its id, in which the id of its item follows a question mark."""
    [level] = site.berlin.inventory_levels
    assert level.id.endswith(f"?inventory_item_id={site.lamp.inventory_item.legacy_resource_id}")
    query = 'query ($id: ID!) { inventoryLevel(id: $id) { item { sku } quantities(names: ["on_hand"]) { quantity } } }'
    assert site.data(query, id=level.id)["inventoryLevel"] == {
        "item": {"sku": "LAMP"},
        "quantities": [{"quantity": 10}],
    }
