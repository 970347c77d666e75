"""The shop's records by their ids, for `fetch`. Only SKUs are searched for, because the search lags behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from crossdock import RefusedError
from crossdock.values.json_paths import value_at_path_or_missing
from crossdock_connectors.shop.shopify import queries
from crossdock_connectors.shop.shopify.queries import VARIANTS, ShopList
from crossdock_connectors.shop.shopify.requests_and_complete_lists import (
    ShopifyContext,
    complete_undeleted_records,
    request_graphql,
    request_pages,
)
from crossdock_connectors.shop.shopify.rows_for_mapping import number_in_gid_or_none
from crossdock_connectors.shop.shopify.stock_writes_and_look_ups import sku_search

AT_A_TIME = 50


class RecordsOfIds(NamedTuple):
    """The result of one query. *missing* are the numbers that do not exist, or that the token may not see."""

    records: list[Any]
    source: str
    missing: list[str]


def request_records_and_missing_ids(
    ctx: ShopifyContext, shop_list: ShopList, numbers: Sequence[str]
) -> Iterator[RecordsOfIds]:
    for found, source, missing in _request_nodes_and_missing_ids(
        ctx, shop_list.query_by_ids, shop_list.type_name, numbers, shop_list.named_size
    ):
        yield RecordsOfIds(complete_undeleted_records(ctx, shop_list, found), source, missing)


def order_ids_of_refunds(ctx: ShopifyContext, refunds: Sequence[str]) -> list[str]:
    found = _request_nodes_and_missing_ids(ctx, queries.ORDERS_OF_REFUNDS, "Refund", refunds)
    return _distinct_numbers_in_gids(
        value_at_path_or_missing(refund, "order.id") for named in found for refund in named.records
    )


def variant_ids_of_inventory_items(ctx: ShopifyContext, items: Sequence[str]) -> list[str]:
    found = _request_nodes_and_missing_ids(ctx, queries.VARIANTS_OF_ITEMS, "InventoryItem", items)
    records = [item for named in found for item in named.records]
    if any(value_at_path_or_missing(item, "variants.pageInfo.hasNextPage") is True for item in records):
        text = "an inventory item has more than 50 variants, of which the others are not fetched"
        ctx.run.warn(ctx.connection, text, code="records_left_out")
    lists = (value_at_path_or_missing(item, "variants.nodes") for item in records)
    return _distinct_numbers_in_gids(
        value_at_path_or_missing(node, "id") for nodes in lists if isinstance(nodes, list) for node in nodes
    )


def variants_of_skus(ctx: ShopifyContext, skus: Sequence[str]) -> Iterator[RecordsOfIds]:
    """Yield the variants with these SKUs, the last changed at the end of each page. New SKUs may be missing."""
    for start in range(0, len(skus), AT_A_TIME):
        wanted = skus[start : start + AT_A_TIME]
        query = " OR ".join(map(sku_search, wanted))
        for page in request_pages(ctx, f"/data/{VARIANTS.name}", VARIANTS.paged_query, VARIANTS.size, query=query):
            found = [
                node
                for node in page.items(f"/data/{VARIANTS.name}/nodes")
                if value_at_path_or_missing(node, "sku") in wanted
            ]
            found.sort(key=lambda node: str(value_at_path_or_missing(node, "product.updatedAt")))
            yield RecordsOfIds(found, page.address, [])


def _request_nodes_and_missing_ids(
    ctx: ShopifyContext, query: str, type_name: str, numbers: Sequence[str], size: int = AT_A_TIME
) -> Iterator[RecordsOfIds]:
    for start in range(0, len(numbers), size):
        wanted = numbers[start : start + size]
        answer = request_graphql(ctx, query, ids=[f"gid://shopify/{type_name}/{each}" for each in wanted])
        nodes = answer.items("/data/nodes")
        if len(nodes) != len(wanted):
            raise RefusedError(
                f"has {len(nodes)} records for {len(wanted)} ids", where=answer.address, code="list_incomplete"
            )
        missing = [each for each, node in zip(wanted, nodes, strict=True) if node is None]
        yield RecordsOfIds([node for node in nodes if node is not None], answer.address, missing)


def _distinct_numbers_in_gids(gids: Iterator[Any]) -> list[str]:
    return list(dict.fromkeys(found for gid in gids if (found := number_in_gid_or_none(gid)) is not None))
