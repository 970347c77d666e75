"""Every query that is sent is valid by Shopify's schema, and cheap enough."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from graphql import (
    FieldNode,
    InlineFragmentNode,
    TypeInfo,
    TypeInfoVisitor,
    Visitor,
    parse,
    print_ast,
    validate,
    visit,
)
from tests.partners.shopify.bulk_queries import checked
from tests.partners.shopify.cost import MAX_COST
from tests.partners.shopify.execution import prepared
from tests.partners.shopify.schema import VERSION as FAKE
from tests.partners.shopify.schema import admin_schema
from tests.partners.shopify.sent_queries import bulk_queries, cost, documents, ids_at_a_time, lists

from crossdock_connectors.shop.shopify.queries import VERSION


def test_the_queries_are_for_the_version_of_the_schema() -> None:
    """The schema that judges them is that of the version that is asked."""
    assert VERSION == FAKE


def test_all_queries_of_the_module_are_known_here() -> None:
    """The tests below run over each list and each text of the module that is a document."""
    assert lists().keys() >= {"ORDERS", "PRODUCTS", "CUSTOMERS", "STOCK"}
    assert documents().keys() >= {"SHOP", "COUNTS", "REFUNDS", "LOCATIONS", "DELETIONS", "ORDERS.paged", "RUN_BULK"}


@pytest.mark.parametrize("name", documents())
def test_a_query_is_valid_and_uses_nothing_deprecated(name: str) -> None:
    """By the part of the published schema that the fake has."""
    assert validate(admin_schema(), parse(documents()[name])) == []
    assert prepared(documents()[name]).deprecated == ()


@pytest.mark.parametrize("name", [name for name, text in documents().items() if text.startswith("query")])
def test_a_query_costs_less_than_the_most_of_one_query(name: str) -> None:
    """Shopify refuses a query of more than 1,000 points, whatever the bucket holds."""
    points = cost(name)
    print(f"{name}: {points} points")
    assert 0 < points <= MAX_COST


@pytest.mark.parametrize("name", [name for name in ids_at_a_time() if name != "REFUNDS"])
def test_records_are_cheap_enough_if_each_id_counts(name: str) -> None:
    """Shopify does not document whether ``nodes`` costs as much as one record or as all of them."""
    assert cost(name) * ids_at_a_time()[name] <= MAX_COST


@pytest.mark.parametrize("name", bulk_queries())
def test_a_bulk_query_is_one_that_shopify_carries_out(name: str) -> None:
    """It obeys the rules of bulk operations: edges and nodes, ids of parents, no list inside a list."""
    _, problems = checked(bulk_queries()[name])
    assert problems == []


_CUT_BY_LENGTH = {"Order.refunds", "Order.fulfillments", "Fulfillment.trackingInfo"}
"""Lists without pages: one that is as long as was asked for is read on, or refused."""


def unpaged(document: str) -> list[str]:
    """The lists of a query that ``first`` cuts off, and whose answer does not say so."""
    found, types = list[str](), TypeInfo(admin_schema())

    class Lists(Visitor):
        def enter_field(self, node: FieldNode, *_: Any) -> None:
            asked = {argument.name.value for argument in node.arguments or ()}
            inside = node.selection_set.selections if node.selection_set else ()
            shown = {each.name.value: each for each in inside if isinstance(each, FieldNode)}
            name = f"{types.get_parent_type()}.{node.name.value}"
            if asked & {"first", "last"} and "hasNextPage" not in print_ast(shown.get("pageInfo", node)).split():
                found.append(name)

    visit(parse(document), TypeInfoVisitor(types, Lists()))
    return found


@pytest.mark.parametrize("name", documents())
def test_every_list_that_a_query_cuts_off_says_so(name: str) -> None:
    """A connection has pageInfo; of a list without pages, the number of elements shows that it may be cut."""
    assert set(unpaged(documents()[name])) <= _CUT_BY_LENGTH


def test_a_list_that_is_cut_off_silently_is_found() -> None:
    """The walk sees connections inside of fragments and of other connections."""
    query = "{ nodes(ids: []) { ... on Order { lineItems(first: 5) { nodes { id } } refunds(first: 5) { id } } } }"
    assert unpaged(query) == ["Order.lineItems", "Order.refunds"]


def selected(document: str) -> set[str]:
    """The paths of the fields of a record, whatever way its lists are selected."""

    def paths(node: Any, above: str) -> Iterator[str]:
        for field in node.selection_set.selections:
            if isinstance(field, InlineFragmentNode):
                yield from paths(field, above)
                continue
            if field.name.value == "pageInfo":
                continue
            path = above if field.name.value in {"edges", "node", "nodes"} else f"{above}/{field.name.value}"
            yield from paths(field, path) if field.selection_set else [path]

    [operation] = parse(document).definitions
    return set(paths(operation, ""))


@pytest.mark.parametrize("name", lists())
def test_pages_bulk_operations_and_names_select_the_same_fields(name: str) -> None:
    """So that a record reads the same from all of them."""
    one = lists()[name]
    assert (
        selected(one.paged_query)
        == selected(one.bulk_query(""))
        == {f"/{one.name}{path}" for path in selected(one.query_by_ids)}
    )


def test_a_search_is_quoted_in_a_bulk_query() -> None:
    """Quotes of the search do not end the argument."""
    query = lists()["CUSTOMERS"].bulk_query('a:"b" \\')
    assert '(query: "a:\\"b\\" \\\\")' in query
    _, problems = checked(query)
    assert problems == []
