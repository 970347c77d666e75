from __future__ import annotations

from decimal import Decimal

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.partners.partner_server import PartnerServer, serving
from tests.partners.shopify.cost import STANDARD, Bucket, Plan
from tests.partners.shopify.execution import prepared
from tests.partners.shopify.fake_shop import PATH
from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.site import Site

from crossdock.testing.manual_clock import ManualClock

PRODUCTS = (
    "query ($first: Int = 250) { products(first: $first) { nodes { title variants(first: 250) { nodes { sku } } } } }"
)


@pytest.mark.parametrize(
    ("query", "cost"),
    [
        pytest.param("{ products(first: 1) { edges { node { title } } } }", 3, id="in Shopify's reference"),
        pytest.param(
            '{ product(id: "gid://shopify/Product/1") { variants(first: 250) { nodes { inventoryItem { id } } } } }',
            25,
            id="told by a shop",
        ),
        pytest.param("{ shop { name currencyCode } }", 1, id="scalars are free"),
        pytest.param("{ products(first: 0) { nodes { id } } }", 2, id="an empty page"),
        pytest.param(
            "{ products(first: 250) { nodes { id } pageInfo { endCursor } } }", 13, id="a page is logarithmic"
        ),
        pytest.param("{ a: shop { name } b: shop { name } }", 2, id="aliases count each"),
        pytest.param(
            '{ node(id: "1") { ... on Order { customer { id } } ... on Product { variants(first: 1) { nodes { id }}}}}',
            1 + 3,
            id="the dearest of the kinds",
        ),
        pytest.param("{ ...F } fragment F on QueryRoot { shop { name } }", 1, id="fragments"),
        pytest.param("{ locations(first: 1) { nodes { address { city } } } }", 3, id="value objects are free"),
        pytest.param('mutation { bulkOperationCancel(id: "x") { bulkOperation { id } } }', 10, id="a mutation"),
    ],
)
def test_the_cost_that_is_requested(query: str, cost: int) -> None:
    """Costs are those of the documentation, and those that shops have answered."""
    assert prepared(query).costs({}).of(prepared(query).operation) == cost


def test_the_actual_cost_is_that_of_what_was_found() -> None:
    """The difference comes back to the bucket; the answer tells both costs, and floats where shops do."""
    site = Site()
    cost = site.ask(PRODUCTS)["extensions"]["cost"]
    assert cost == {
        "requestedQueryCost": 2 + 11 * (1 + 2 + 11 * 1),
        "actualQueryCost": 2 + 1 * (1 + 2 + 1 * 1),
        "throttleStatus": {"maximumAvailable": 2000.0, "currentlyAvailable": 1994, "restoreRate": 100.0},
    }
    assert '"maximumAvailable": 2000.0' in site.post(PRODUCTS).text


def test_too_few_points_are_an_error_inside_200() -> None:
    """A query that the bucket cannot pay is throttled with 200, takes nothing, and is answered when there is enough."""
    site = Site(plan=Plan(restore_rate=10, maximum=160))
    assert site.ask(PRODUCTS)["extensions"]["cost"]["throttleStatus"]["currentlyAvailable"] == 154
    body = site.ask(PRODUCTS)
    documentation = "https://shopify.dev/api/usage/rate-limits"
    assert body == {
        "errors": [{"message": "Throttled", "extensions": {"code": "THROTTLED", "documentation": documentation}}],
        "extensions": {
            "cost": {
                "requestedQueryCost": 156,
                "actualQueryCost": None,
                "throttleStatus": {"maximumAvailable": 160.0, "currentlyAvailable": 154, "restoreRate": 10.0},
            }
        },
    }
    site.clock.advance(0.2)
    assert site.data(PRODUCTS)


def test_a_query_has_a_highest_cost() -> None:
    """A query above a thousand points is refused, whatever the bucket holds, with its cost."""
    site = Site(plan=Plan(1000, 20_000))
    nested = (
        "variants(first: 250) { nodes { inventoryItem { inventoryLevels(first: 250) { nodes { location { id } } } } } }"
    )
    [error] = site.ask(f"{{ products(first: 250) {{ nodes {{ {nested} }} }} }}")["errors"]
    cost = 2 + 11 * (1 + 2 + 11 * (2 + 2 + 11 * 2))
    assert error["extensions"] == {"code": "MAX_COST_EXCEEDED", "cost": cost, "maxCost": 1000}
    assert error["message"].startswith(f"Query cost is {cost}, which exceeds the single query max cost limit (1000).")
    assert site.shop.bucket.available() == 20_000


def test_the_fake_can_be_throttled_by_chance() -> None:
    """As the fault of a server, the partner's own answer to too many requests is that of an empty bucket."""
    site = Site()
    server = PartnerServer(site.shop, {"throttled": 1.0})
    with serving(server), httpx.Client(base_url=server.url, trust_env=False) as client:
        body = client.post(PATH, json={"query": "{ shop { name } }"}).json()
    assert body["errors"][0]["extensions"]["code"] == "THROTTLED"
    assert body["extensions"]["cost"]["throttleStatus"]["currentlyAvailable"] == 0


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 1200), st.integers(0, 1000)), max_size=30))
@settings(max_examples=50)
def test_the_bucket_leaks_at_its_rate(steps: list[tuple[int, int, int]]) -> None:
    """Whatever is taken and given back, the bucket holds what a plain sum says, never more than it can, never less
    than nothing; and a cost is taken exactly if there are as many points."""
    clock = ManualClock()
    bucket, points = Bucket(STANDARD, clock.now), Decimal(STANDARD.maximum)
    for wait_ms, cost, unused in steps:
        clock.advance(wait_ms / 1000)
        points = min(Decimal(STANDARD.maximum), points + Decimal(wait_ms) / 1000 * STANDARD.restore_rate)
        taken = bucket.take(cost)
        assert taken == (cost <= points)
        if taken:
            points -= cost
            bucket.give_back(min(cost, unused))
            points += min(cost, unused)
        assert bucket.available() == points
        assert 0 <= points <= STANDARD.maximum


SELECTIONS = st.recursive(
    st.just("id"),
    lambda inner: st.tuples(st.integers(1, 250), inner).map(
        lambda one: f"variants(first: {one[0]}) {{ nodes {{ id product {{ id {one[1]} }} }} }}"
    ),
    max_leaves=3,
)


@given(selected=SELECTIONS, first=st.integers(0, 250), orders=st.integers(0, 3))
@settings(max_examples=30)
def test_the_actual_cost_is_never_above_the_requested_one(selected: str, first: int, orders: int) -> None:
    """Whatever is asked, and whatever is there, a query costs at most what it was priced at."""
    site = Site(plan=Plan(1000, 20_000))
    for index in range(orders):
        site.variant(f"S{index}", "1.00", 1)
    query = f"{{ products(first: {first}) {{ nodes {{ {selected} }} }} }}"
    cost = site.ask(query).get("extensions", {}).get("cost")
    if cost:
        assert 0 <= cost["actualQueryCost"] <= cost["requestedQueryCost"]


def test_a_mutation_costs_ten_points() -> None:
    """A mutation costs the same whether it was carried out or refused, and nothing of it comes back."""
    site = Site()
    site.shop.orders.place(Line(site.lamp))
    query = 'mutation { bulkOperationCancel(id: "gid://shopify/BulkOperation/1") { userErrors { message } } }'
    cost = site.ask(query)["extensions"]["cost"]
    assert (cost["requestedQueryCost"], cost["actualQueryCost"]) == (10, 10)
