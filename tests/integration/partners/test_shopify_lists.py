from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.partners.shopify.order_lines import Line
from tests.partners.shopify.search_terms import Filter, parsed
from tests.partners.shopify.site import ORDERS_BY_CHANGE, Site

EVENTS = 'events(first: 9, query: "action:destroy") { nodes { createdAt ... on BasicEvent { subjectId subjectType } } }'
LEVELS = """query ($item: ID!, $query: String) {
  inventoryItem(id: $item) { updatedAt inventoryLevels(first: 5, query: $query) {
    nodes { updatedAt location { name } quantities(names: ["available", "on_hand", "committed"]) { name quantity } }
  } }
}"""


@pytest.fixture(name="site")
def _site() -> Site:
    return Site()


def order(site: Site, **fields: Any) -> str:
    """A new order of an item that nobody stocks."""
    return site.shop.orders.place(Line(None, price=Decimal(5)), **fields).name


def test_times_are_shown_in_seconds_of_utc(site: Site) -> None:
    """An instant with a fraction is shown without it, and with the letter Z."""
    site.clock.advance(0.75)
    order(site)
    [page] = site.pages()
    assert page[0]["updatedAt"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["#1001", "#1002", "#1003"]),
        ("updated_at:>='2026-01-01T00:00:02Z'", ["#1002", "#1003"]),
        ("updated_at:>'2026-01-01T00:00:02Z'", ["#1003"]),
        ("updated_at:>'2026-01-01T00:00:02.250Z'", ["#1002", "#1003"]),
        ("updated_at:<='2026-01-01T00:00:02Z'", ["#1001"]),
        ("updated_at:<'2026-01-01T00:00:04Z'", ["#1001", "#1002"]),
        ("updated_at:'2026-01-01T00:00:02Z'", ["#1002"]),
        ("updated_at:>='2026-01-01T01:00:02+01:00'", ["#1002", "#1003"]),
        ("updated_at:>='2026-01-01T00:00:02Z' updated_at:<'2026-01-01T00:00:04Z'", ["#1002"]),
        ("updated_at:<'2026-01-01T00:00:02Z' OR name:#1003", ["#1001", "#1003"]),
        ("NOT name:#1001 AND -name:#1003", ["#1002"]),
        ("(name:#1001 OR name:#1002) test:true", ["#1002"]),
        ("name:#1001,#1003", ["#1001", "#1003"]),
        ("created_at:>=2026-01-01 created_at:<2026-01-02", ["#1001", "#1002", "#1003"]),
        ("created_at:>2026-01-01", []),
        ("financial_status:paid", ["#1001", "#1002"]),
        ("financial_status:AUTHORIZED", ["#1003"]),
    ],
)
def test_a_search_finds(site: Site, query: str, found: list[str]) -> None:
    """Comparators, connectives and quotes mean what the search syntax of version 2026-10 says."""
    order(site)
    site.clock.advance(2.5)
    order(site, test=True)
    site.clock.advance(1.5)
    order(site, paid=False)
    assert site.changed(query) == found


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("changed_at:>'2026-01-01T00:00:00Z'", "changed_at"),
        ("updated_at:>2027-01-01T00:00:00Z", "updated_at"),
        ("updated_at:>'2027-01-01T00:00:00'", "updated_at"),
        ("updated_at:>'yesterday'", "updated_at"),
    ],
)
def test_what_a_search_does_not_know_is_ignored(site: Site, query: str, field: str) -> None:
    """A wrong filter finds everything; only a warning in the extensions tells."""
    order(site)
    body = site.ask(ORDERS_BY_CHANGE, query=query)
    assert len(body["data"]["orders"]["nodes"]) == 1
    [search] = body["extensions"]["search"]
    assert (search["path"], search["query"], search["warnings"][0]["field"]) == (["orders"], query, field)


FILTERS = {"updated_at": Filter("at", "time"), "name": Filter("name", "text"), "id": Filter("id", "id")}
ZONE = ZoneInfo("Europe/Berlin")
WORDS = (
    "(",
    ")",
    ":",
    " ",
    "-",
    "'",
    '"',
    "<",
    ">=",
    "AND",
    "OR",
    "NOT",
    "1",
    "updated_at:",
    "name:",
    "id:",
    "é",
    "2026-01-01",
)


@given(st.lists(st.sampled_from(WORDS), max_size=12))
def test_any_text_is_a_search(words: list[str]) -> None:
    """No text makes the search fail."""
    search = parsed("".join(words), FILTERS, ZONE)
    assert search.matches({"name": "#1", "id": 1, "at": datetime.now(ZONE)}) in {True, False}


@given(
    at=st.integers(0, 5_000_000),
    bound=st.integers(0, 5),
    comparators=st.sampled_from([(">", "<="), (">=", "<")]),
)
def test_two_opposite_bounds_never_overlap(at: int, bound: int, comparators: tuple[str, str]) -> None:
    """As of version 2026-10 no instant is found by both of two opposite bounds of a second."""
    instant = datetime(2026, 1, 1, tzinfo=ZONE) + timedelta(microseconds=at)
    text = (instant.replace(microsecond=0, second=bound)).isoformat()
    found = [parsed(f"updated_at:{one}'{text}'", FILTERS, ZONE).matches({"at": instant}) for one in comparators]
    assert sum(found) <= 1


@given(
    steps=st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.integers(0, 30)), min_size=1, max_size=12),
    size=st.integers(1, 5),
)
@settings(max_examples=examples(100))
def test_pages_are_whole_whatever_happens_between_them(steps: list[tuple[int, bool, int]], size: int) -> None:
    """With many orders in one second, and changes between the pages, no order is missed, and none is there twice
    unless it changed."""
    site = Site()
    placed = []
    for seconds, _, _ in steps:
        site.clock.advance(seconds * 0.4)
        placed.append(site.shop.orders.place(Line(None)))
    changed, seen = list[str](), list[str]()
    for page, (seconds, does, which) in zip(site.pages(first=size), steps * 20, strict=False):
        seen += [node["name"] for node in page]
        assert len(page) <= size
        site.clock.advance(seconds * 0.4)
        if does and len(changed) < len(steps):
            site.shop.orders.change(placed[which % len(placed)], note="x")
            changed.append(placed[which % len(placed)].name)
    assert set(seen) == {one.name for one in placed}
    assert all(seen.count(one.name) <= 1 + changed.count(one.name) for one in placed)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ("sortKey: ID", ["#1001", "#1002", "#1003"]),
        ("sortKey: ID, reverse: true", ["#1003", "#1002", "#1001"]),
        ("sortKey: UPDATED_AT", ["#1002", "#1003", "#1001"]),
        ("sortKey: UPDATED_AT, reverse: true", ["#1001", "#1003", "#1002"]),
        ("sortKey: PROCESSED_AT", ["#1001", "#1002", "#1003"]),
        ("sortKey: ORDER_NUMBER, reverse: true", ["#1003", "#1002", "#1001"]),
    ],
)
def test_sort_keys(site: Site, arguments: str, found: list[str]) -> None:
    """A sort key sorts, `reverse` turns it round, page by page too."""
    first = site.shop.orders.place(Line(None))
    order(site)
    order(site)
    site.clock.advance(1)
    site.shop.orders.change(first, note="x")
    found_by = f"orders(first: 2, after: $after, {arguments})"
    query = f"query ($after: String) {{ {found_by} {{ edges {{ cursor node {{ name }} }} }} }}"
    edges = site.data(query)["orders"]["edges"]
    edges += site.data(query, after=edges[-1]["cursor"])["orders"]["edges"]
    assert [edge["node"]["name"] for edge in edges] == found


def test_a_page_tells_what_is_around_it(site: Site) -> None:
    """`pageInfo` has the cursors of the first and last node, and whether there is more on either side."""
    for _ in range(3):
        order(site)
    query = """query ($after: String) { orders(first: 2, after: $after) {
      edges { cursor } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }"""
    page = site.data(query)["orders"]
    start, end = (edge["cursor"] for edge in page["edges"])
    first = {"hasNextPage": True, "hasPreviousPage": False, "startCursor": start, "endCursor": end}
    assert page["pageInfo"] == first
    last = site.data(query, after=end)["orders"]["pageInfo"]
    assert (last["hasNextPage"], last["hasPreviousPage"]) == (False, True)
    empty = site.data(query, after=last["endCursor"])["orders"]
    assert empty == {
        "edges": [],
        "pageInfo": {"hasNextPage": False, "hasPreviousPage": True, "startCursor": None, "endCursor": None},
    }


def test_a_cursor_belongs_to_its_list() -> None:
    """A cursor of another list or order, an invented one, and an expired one are refused."""
    site = Site(cursor_life=timedelta(hours=1))
    order(site)
    order(site)
    cursor = site.data(ORDERS_BY_CHANGE, first=1)["orders"]["pageInfo"]["endCursor"]
    assert site.data(ORDERS_BY_CHANGE, first=1, after=cursor)["orders"]["nodes"][0]["name"] == "#1002"
    assert site.code(ORDERS_BY_CHANGE, after=cursor, query="test:true") == "BAD_REQUEST"
    assert site.code("query ($after: String) { products(first: 1, after: $after) { nodes { id } } }", after=cursor)
    assert site.code(ORDERS_BY_CHANGE, after="eyJ9") == "BAD_REQUEST"
    site.clock.advance(3600)
    [error] = site.ask(ORDERS_BY_CHANGE, after=cursor)["errors"]
    assert error["message"] == "Invalid cursor for current pagination sort."


@pytest.mark.parametrize("arguments", ["reverse: true", "first: 251", "first: -1"])
def test_the_size_of_a_page_is_limited(site: Site, arguments: str) -> None:
    """A page has a size of at most 250."""
    assert site.code(f"{{ orders({arguments}) {{ nodes {{ id }} }} }}") == "BAD_REQUEST"


def test_nested_lists_have_pages(site: Site) -> None:
    """The lines of an order are a list with its own cursors."""
    placed = site.shop.orders.place(*(Line(None, title=f"T{index}") for index in range(5)))
    query = """query ($id: ID!, $after: String) { order(id: $id) { lineItems(first: 2, after: $after) {
      nodes { title } pageInfo { hasNextPage endCursor } } } }"""
    titles, after, more = list[str](), None, True
    while more:
        page = site.data(query, id=placed.id, after=after)["order"]["lineItems"]
        titles += [one["title"] for one in page["nodes"]]
        more, after = page["pageInfo"]["hasNextPage"], page["pageInfo"]["endCursor"]
    assert titles == ["T0", "T1", "T2", "T3", "T4"]


def test_a_search_learns_of_changes_late(site: Site) -> None:
    """A change is found only after the lag, though the record itself is there at once."""
    placed = site.shop.orders.place(Line(None))
    site.shop.records.search_lag = timedelta(seconds=30)
    site.clock.advance(10)
    site.shop.orders.change(placed, note="new")
    order(site)
    since = "updated_at:>='2026-01-01T00:00:10Z'"
    assert site.changed(since) == []
    [page] = site.pages("name:#1001")
    assert (page[0]["note"], page[0]["updatedAt"]) == ("new", "2026-01-01T00:00:10Z")
    site.clock.advance(30)
    assert site.changed(since) == ["#1001", "#1002"]


def test_a_later_change_can_be_found_first(site: Site) -> None:
    """The lag is that of each change: a cursor can pass a change that becomes visible behind it."""
    site.shop.records.search_lag = timedelta(seconds=30)
    order(site)
    site.clock.advance(1)
    site.shop.records.search_lag = timedelta(0)
    order(site)
    assert site.changed() == ["#1002"]
    site.clock.advance(60)
    assert site.changed() == ["#1001", "#1002"]


def test_deletions_are_events(site: Site) -> None:
    """What was deleted is in no list; an event names it, and the older list names products only."""
    placed = site.shop.orders.place(Line(site.lamp))
    line = """query ($id: ID!) { order(id: $id) {
      lineItems(first: 1) { nodes { sku title variant { id } product { id } } } } }"""
    product = site.lamp.product
    site.clock.advance(60)
    site.shop.catalog.delete_product(product)
    [kept] = site.data(line, id=placed.id)["order"]["lineItems"]["nodes"]
    assert kept == {"sku": "LAMP", "title": "Product LAMP", "variant": None, "product": None}
    site.shop.orders.delete(placed)
    assert site.changed() == []
    events = site.data(f"{{ {EVENTS} }}")["events"]["nodes"]
    assert [(one["subjectType"], one["subjectId"]) for one in events] == [
        ("PRODUCT_VARIANT", site.lamp.id),
        ("PRODUCT", product.id),
        ("ORDER", placed.id),
    ]
    older = "deletionEvents(first: 9, subjectTypes: [PRODUCT]) { nodes { subjectId subjectType occurredAt } }"
    [deleted] = site.data(f"{{ {older} }}")["deletionEvents"]["nodes"]
    assert (deleted["subjectId"], deleted["occurredAt"]) == (product.id, "2026-01-01T00:01:00Z")


def test_a_merge_deletes_a_customer(site: Site) -> None:
    """The orders are those of the customer who is kept; the orders do not count as changed."""
    kept, merged = site.shop.customers.add("a@example.com"), site.shop.customers.add("b@example.com", tags=["vip"])
    placed = site.shop.orders.place(Line(site.lamp), customer=merged)
    with pytest.raises(ValueError, match="has orders"):
        site.shop.customers.delete(merged)
    site.clock.advance(60)
    site.shop.customers.merge(kept, merged)
    found = site.data("{ customers(first: 5) { nodes { id tags numberOfOrders updatedAt } } }")["customers"]["nodes"]
    assert found == [{"id": kept.id, "tags": ["vip"], "numberOfOrders": "1", "updatedAt": "2026-01-01T00:01:00Z"}]
    query = "query ($id: ID!) { order(id: $id) { updatedAt customer { id } } }"
    assert site.data(query, id=placed.id)["order"] == {"updatedAt": "2026-01-01T00:00:00Z", "customer": {"id": kept.id}}
    [event] = site.data(f"{{ {EVENTS} }}")["events"]["nodes"]
    assert (event["subjectType"], event["subjectId"]) == ("CUSTOMER", merged.id)


def test_an_archived_product_is_listed(site: Site) -> None:
    """Archiving changes the status, and the time of change; only a filter leaves the product out."""
    site.clock.advance(60)
    site.shop.catalog.archive(site.lamp.product)
    query = "query ($query: String) { products(first: 5, query: $query) { nodes { status updatedAt } } }"
    archived = {"status": "ARCHIVED", "updatedAt": "2026-01-01T00:01:00Z"}
    assert site.data(query)["products"]["nodes"] == [archived]
    assert site.data(query, query="status:active")["products"]["nodes"] == []


def test_stock_changes_the_level_only(site: Site) -> None:
    """A change of stock is the level's; the item, the variant and the product keep their times."""
    site.clock.advance(60)
    site.shop.orders.place(Line(site.lamp, 3))
    item = site.data(LEVELS, item=site.lamp.inventory_item.id)["inventoryItem"]
    [level] = item["inventoryLevels"]["nodes"]
    assert (item["updatedAt"], level["updatedAt"]) == ("2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z")
    assert {one["name"]: one["quantity"] for one in level["quantities"]} == {
        "available": 7,
        "on_hand": 10,
        "committed": 3,
    }
    later = site.data(LEVELS, item=site.lamp.inventory_item.id, query="updated_at:>'2026-01-01T00:01:00Z'")
    assert later["inventoryItem"]["inventoryLevels"]["nodes"] == []


def test_a_variant_changes_with_its_product_and_item(site: Site) -> None:
    """A new SKU is that of the variant and of its inventory item; both and the product have changed."""
    site.clock.advance(60)
    site.shop.catalog.change(site.lamp, sku="LAMP-2")
    query = """{ productVariants(first: 5, query: "sku:lamp-2") { nodes {
      sku updatedAt inventoryItem { sku updatedAt } product { updatedAt } } } }"""
    at = "2026-01-01T00:01:00Z"
    assert site.data(query)["productVariants"]["nodes"] == [
        {
            "sku": "LAMP-2",
            "updatedAt": at,
            "inventoryItem": {"sku": "LAMP-2", "updatedAt": at},
            "product": {"updatedAt": at},
        }
    ]


def test_locations_are_active_and_our_own_by_default(site: Site) -> None:
    """Inactive locations, and those of fulfillment services, are listed on request."""
    closed = site.shop.catalog.add_location("Closed")
    site.shop.catalog.change(closed, is_active=False)
    site.shop.catalog.add_location("Service", is_fulfillment_service=True)

    def names(arguments: str = "") -> list[str]:
        found = site.data(f"{{ locations(first: 5{arguments}) {{ nodes {{ name }} }} }}")
        return [one["name"] for one in found["locations"]["nodes"]]

    assert names() == ["Berlin"]
    assert names(", includeInactive: true, includeLegacy: true") == ["Berlin", "Closed", "Service"]
