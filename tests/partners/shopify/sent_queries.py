"""Every GraphQL document that the connector for Shopify sends, for tests against the schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.partners.shopify.execution import prepared

from crossdock_connectors.shop.shopify import (
    fulfillment_writes_and_look_ups,
    queries,
    stock_writes_and_look_ups,
    target,
    webhooks,
)
from crossdock_connectors.shop.shopify.queries import ShopList
from crossdock_connectors.shop.shopify.records_by_id import AT_A_TIME

_SIZES = {"LOCATIONS": 250, "DELETIONS": 250, "ORDERS_OF_CUSTOMER": queries.ORDERS.size}
_REFUNDS = 10


def lists() -> Mapping[str, ShopList]:
    """The lists of the module, by their names there."""
    return {name: value for name, value in vars(queries).items() if isinstance(value, ShopList)}


def bulk_queries() -> dict[str, str]:
    """The queries of bulk operations, of whole lists and of what a search finds."""
    search = "updated_at:>='2026-03-01T12:00:00Z'"
    return {f"{name}.bulk({found})": one.bulk_query(found) for name, one in lists().items() for found in ("", search)}


def documents() -> dict[str, str]:
    """The documents of requests: texts of the modules that begin like one, and those of its lists."""
    modules = (queries, fulfillment_writes_and_look_ups, stock_writes_and_look_ups, webhooks, target)
    texts = {name: value for module in modules for name, value in vars(module).items() if isinstance(value, str)}
    return {
        **{name: text for name, text in texts.items() if text.startswith(("query", "mutation"))},
        **{f"{name}.paged": one.paged_query for name, one in lists().items()},
        **{f"{name}.named": one.query_by_ids for name, one in lists().items()},
        **{
            f"{name}.more_children": queries.further_children_query(one.type_name, one.children)
            for name, one in lists().items()
            if one.children
        },
        **{f"{each.name}.of_refund": queries.further_children_query("Refund", each) for each in queries.REFUND_LISTS},
        "all_of": queries.list_query("productVariants", "id sku"),
    }


def ids_at_a_time() -> dict[str, int]:
    """How many ids documents that name records have at most."""
    named = {f"{name}.named": one.named_size for name, one in lists().items()}
    return {**named, "REFUNDS": _REFUNDS, "ORDERS_OF_REFUNDS": AT_A_TIME, "VARIANTS_OF_ITEMS": AT_A_TIME}


def variables(name: str) -> dict[str, Any]:
    """Those of the document *name* that decide its cost: how much is asked for at most."""
    if name.endswith(".paged"):
        return {"first": lists()[name.partition(".")[0]].size}
    if name in (sizes := ids_at_a_time()):
        return {"ids": [f"gid://shopify/Some/{number}" for number in range(sizes[name])]}
    return {"first": _SIZES.get(name, 250)}


def cost(name: str) -> int:
    """The points that the document *name* asks for."""
    ready = prepared(documents()[name])
    declared = {each.variable.name.value for each in ready.operation.variable_definitions or ()}
    given = {key: value for key, value in variables(name).items() if key in declared}
    return ready.costs({**dict.fromkeys(declared, "x"), **given}).of(ready.operation)
