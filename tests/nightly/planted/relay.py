"""A stream of a GraphQL connection, and its bugs: of the query, and of the connector's streams together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.nightly.planted.bugs import Bug
from tests.unit.testing.relay_connector import Products, ProductsContract, connector


def _case(**attributes: Any) -> type[ProductsContract]:
    made = connector(type("Bug", (Products,), attributes))
    return type("Case", (ProductsContract,), {"connector": made})


class Variants(Products):
    """Another stream of products, in the same namespace."""

    name = "variants"


TWICE = replace(connector(Products), streams=lambda _: (Products(), Variants()))
BUGS = [
    Bug(what, "graphql", case, test, says)
    for what, case, test, says in (
        ("a member that the query does not select", _case(node="id sku price updatedAt"),
         "a_query_selects_what_is_read", "Bug.pull: the query does not select /data/products/edges/node/name"),
        ("a cursor that the query does not select", _case(node="id sku name price"),
         "a_query_selects_what_is_read", "records have no updatedAt, their cursor"),
        ("the newest change first, with a sorted cursor", _case(direction="DESC"),
         "a_sorted_cursor_asks_for_the_oldest_change_first", "Bug.pull: a request asks for the newest change first"),
        ("two streams that write the same records", type("Case", (ProductsContract,), {"connector": TWICE}),
         "no_other_stream_writes_the_same_records", "relay_shop.variants and relay_shop.products both write product"),
    )
]  # fmt: skip
CORRECT = (ProductsContract,)
