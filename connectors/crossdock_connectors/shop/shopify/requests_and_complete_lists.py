"""Requests to the Admin API, and the shop's lists in pages, each record with all of its children.

Lists inside of orders and refunds that a query has cut off are read on, or marked as cut.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from crossdock import Context
from crossdock.mapping.row_order_and_cursors import OVERLAP_S
from crossdock.sources import ApiAnswer, GraphQLConnection, GraphQLError, UnavailableError
from crossdock.values.json_paths import value_at_path_or_missing
from crossdock_connectors.shop.shopify import queries
from crossdock_connectors.shop.shopify.queries import (
    EXISTING,
    MOST,
    SHOP,
    VERSION,
    Children,
    ShopList,
    further_children_query,
)
from crossdock_connectors.shop.shopify.settings import ShopifySettings

ShopifyContext = Context[ShopifySettings]
Item = dict[str, Any]
_DELETED = object()
_EXPIRED = "BAD_REQUEST"  # the code for an expired cursor


def request_graphql(ctx: ShopifyContext, query: str, /, **variables: Any) -> ApiAnswer:
    answer = ctx.api.request("POST", ctx.settings.endpoint, graphql=query, variables=variables)
    _warn_of_outdated_version(ctx, answer)
    return answer


def shop_facts_requested_once(ctx: ShopifyContext) -> ApiAnswer:
    return ctx.shared("shopify.shop", lambda: request_graphql(ctx, SHOP))


def request_pages(ctx: ShopifyContext, path: str, query: str, size: int, /, **variables: Any) -> Iterator[ApiAnswer]:
    """Yield the pages of a query with ``first`` and ``after``. *path* is a JSON pointer to the connection."""
    paginator = GraphQLConnection(path, size=min(size, ctx.settings.page_size or size))
    for page in ctx.api.pages(ctx.settings.endpoint, graphql=query, variables=variables, paginator=paginator, key="id"):
        _warn_of_outdated_version(ctx, page)
        yield page


def pages_of_changed_records(
    ctx: ShopifyContext, shop_list: ShopList, since: str | None = None
) -> Iterator[tuple[list[Any], str]]:
    """Yield the records that changed since then, or all, in the order of their changes, and each page's address.

    A record that changes meanwhile is read again at the end. If a cursor expires, reading goes on from the last change
    before the last minutes, because the shop's search lags behind and lists a recent record at its earlier place.
    """
    latest, moved = since, ctx.run.clock.now() - timedelta(seconds=OVERLAP_S)
    while True:
        begun = latest
        try:
            for page in request_pages(
                ctx,
                f"/data/{shop_list.name}",
                shop_list.paged_query,
                shop_list.size,
                query=search_for_changes_since(latest),
            ):
                records = page.items(f"/data/{shop_list.name}/nodes")
                yield complete_undeleted_records(ctx, shop_list, records), page.address
                latest = _latest_change_before(records, ctx.run.by_clock_of(ctx.connection, moved)) or latest
        except GraphQLError as error:
            if _EXPIRED not in error.codes or latest == begun:
                raise
        else:
            return


def complete_undeleted_records(ctx: ShopifyContext, shop_list: ShopList, records: list[Any]) -> list[Any]:
    """Complete the *records* of a page with all of their children, and leave out those deleted meanwhile."""
    made = [_complete_record(ctx, shop_list, record) for record in records]
    return [record for record in made if record is not _DELETED]


def search_for_changes_since(since: str | None) -> str | None:
    """Return a search for records that changed at *since* or later. Shopify ignores times without quotes."""
    return None if since is None else f"updated_at:>='{since}'"


def _latest_change_before(records: list[Any], before: datetime) -> str | None:
    texts = [
        each for each in (value_at_path_or_missing(record, "updatedAt") for record in records) if isinstance(each, str)
    ]
    return next((text for text in reversed(texts) if _is_before(text, before)), None)


def _is_before(text: str, instant: datetime) -> bool:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return False
    return found.tzinfo is not None and found < instant


def _complete_record(ctx: ShopifyContext, shop_list: ShopList, record: Any) -> Any:
    """Return *record* with all of its children as a list; `_DELETED` if it is deleted before they are read."""
    child = shop_list.children
    if child is None or not isinstance(record, dict):
        return record
    connection = _children_connection_in_record(record, child)
    page = value_at_path_or_missing(connection, "pageInfo")
    has_page = isinstance(value_at_path_or_missing(connection, "nodes"), list) and isinstance(
        value_at_path_or_missing(page, "hasNextPage"), bool
    )
    if not has_page:
        return record  # which is refused where its children are needed
    nodes = [*connection["nodes"]]
    if page["hasNextPage"]:
        more = request_further_children(ctx, shop_list.type_name, record, child, page)
        if more is None:
            return _DELETED
        nodes += more
    return record_with_sorted_children(record, child, nodes)


def request_further_children(
    ctx: ShopifyContext, type_name: str, record: Mapping[str, Any], child: Children, page: Mapping[str, Any]
) -> list[Any] | None:
    """Return the nodes of a record's connection that follow *page*; None if the record was deleted meanwhile.

    Null for a record that exists is no answer: UnavailableError, so that the next run reads it again.
    """
    nodes, variables = list[Any](), {"id": record.get("id"), "after": page.get("endCursor")}
    pointer = f"/data/node/{child.inside}/{child.name}" if child.inside else f"/data/node/{child.name}"
    for answer in ctx.api.pages(
        ctx.settings.endpoint,
        graphql=further_children_query(type_name, child),
        variables=variables,
        paginator=GraphQLConnection(pointer),
        key="id",
    ):
        if answer.at("/data/node") is None:
            if request_existing_ids(ctx, [record.get("id")]):
                message = f"tells nothing of {record.get('id')}, which exists, when asked for more of its {child.name}"
                raise UnavailableError(message, where=answer.address, hint="run again", code="list_incomplete")
            ctx.run.note(ctx.connection, f"{record.get('id')} was deleted while it was read, and is left out")
            return None
        nodes += answer.items(f"{pointer}/nodes")
    return nodes


def request_existing_ids(ctx: ShopifyContext, gids: Iterable[Any]) -> set[str]:
    """Return those of the global ids whose records exist."""
    texts = [gid for gid in gids if isinstance(gid, str)]
    return {node["id"] for node in request_existing_nodes(ctx, EXISTING, texts, MOST)}


def request_existing_nodes(ctx: ShopifyContext, query: str, gids: Sequence[str], size: int) -> Iterator[Item]:
    """Yield those of the records with these global ids that exist, requested *size* at a time."""
    for start in range(0, len(gids), size):
        for node in request_graphql(ctx, query, ids=gids[start : start + size]).items("/data/nodes"):
            if isinstance(node, dict) and isinstance(node.get("id"), str):
                yield node


def _children_connection_in_record(record: Mapping[str, Any], child: Children) -> Any:
    holder = record.get(child.inside) if child.inside else record
    return holder.get(child.name) if isinstance(holder, dict) else None


def record_with_sorted_children(record: Item, child: Children, nodes: list[Any]) -> Item:
    made = {**record, child.name: sorted(nodes, key=_sort_key_of_child)}
    if child.inside and isinstance(made.get(child.inside), dict):
        made[child.inside] = {name: value for name, value in made[child.inside].items() if name != child.name}
    return made


def _sort_key_of_child(node: Any) -> tuple[int, str]:
    gid = node.get("id") if isinstance(node, dict) else None
    number = number_in_gid_or_empty(gid) if isinstance(gid, str) else ""
    return (int(number) if number.isdecimal() else 0, str(gid))


def number_in_gid_or_empty(gid: str) -> str:
    """Return the number in a global id such as ``gid://shopify/InventoryLevel/11?inventory_item_id=7``."""
    return gid.rpartition("/")[2].partition("?")[0]


def _warn_of_outdated_version(ctx: ShopifyContext, answer: ApiAnswer) -> None:
    served, reason = answer.headers.get("x-shopify-api-version"), answer.headers.get("x-shopify-api-deprecated-reason")
    if reason:
        ctx.shared(
            ("shopify.deprecated", reason),
            lambda: _warn_api_outdated(ctx, f"the shop calls a query deprecated: {reason}"),
        )
    if served and served != VERSION:
        text = f"the shop serves version {served} of its API in place of {VERSION}, which has ended: upgrade crossdock"
        ctx.shared(("shopify.version", served), lambda: _warn_api_outdated(ctx, text))


def _warn_api_outdated(ctx: ShopifyContext, text: str) -> None:
    ctx.run.warn(ctx.connection, text, code="api_outdated")


def complete_cut_order_lists(ctx: ShopifyContext, order: Any) -> Any:
    """Return *order* with all of its refunds, fulfillments and tracking numbers, requested again if one may be cut.

    These lists have no pages: one that is as long as was asked for may be cut. If it also is when the most
    is asked for, it is marked, and a record that needs it is a dead letter.
    """
    if not isinstance(order, dict) or not _names_of_possibly_cut_lists(order, queries.PARTS, queries.PARCELS):
        return order
    answer = request_graphql(ctx, queries.PARTS_OF_ORDER, id=order.get("id"))
    found = answer.at("/data/node")
    if not isinstance(found, dict):  # deleted meanwhile: the next run finds that out
        return {**order, **_cut_marks(_names_of_possibly_cut_lists(order, queries.PARTS, queries.PARCELS))}
    return {**order, **found, **_cut_marks(_names_of_possibly_cut_lists(found, queries.MOST, queries.MOST))}


def _names_of_possibly_cut_lists(order: dict[str, Any], parts: int, parcels: int) -> list[str]:
    """Return the names of the lists that have as many elements as were asked for."""
    lists = {name: order.get(name) for name in ("refunds", "fulfillments")}
    cut = [name for name, found in lists.items() if isinstance(found, list) and len(found) >= parts]
    shipments = lists["fulfillments"]
    for shipment in shipments if isinstance(shipments, list) else ():
        numbers = value_at_path_or_missing(shipment, "trackingInfo")
        if isinstance(numbers, list) and len(numbers) >= parcels and "fulfillments" not in cut:
            cut.append("fulfillments")
    return cut


def _cut_marks(cut: list[str]) -> dict[str, bool]:
    return {f"{name}HasMore": True for name in cut}


def with_found_refunds(order: Any, found: Mapping[str, Any], existing: Collection[str]) -> Any:
    """Return *order* with those of its refunds that were *found*.

    One that was not found was deleted with its order. If the order is one of the *existing*, the answer lacks the
    refund, and the list is marked as cut. It is also marked if a refund has no id. Anything other than a list is kept,
    and is refused where refunds are needed.
    """
    ids, named = refund_ids(order), value_at_path_or_missing(order, "refunds")
    if not isinstance(named, list) or not named:
        return order
    is_cut = len(ids) < len(named) or (order.get("id") in existing and not found.keys() >= set(ids))
    cut = ["refunds"] if is_cut else []
    return {**order, "refunds": [found[gid] for gid in ids if gid in found], **_cut_marks(cut)}


def refund_ids(order: Any) -> list[str]:
    refunds = value_at_path_or_missing(order, "refunds")
    ids = [value_at_path_or_missing(refund, "id") for refund in refunds] if isinstance(refunds, list) else []
    return [gid for gid in ids if isinstance(gid, str)]


def complete_lists_of_refund(ctx: ShopifyContext, refund: dict[str, Any]) -> dict[str, Any] | None:
    """Return *refund* with all elements of its lists; None if it was deleted meanwhile."""
    for child in queries.REFUND_LISTS:
        nodes, page = (
            value_at_path_or_missing(refund, f"{child.name}.nodes"),
            value_at_path_or_missing(refund, f"{child.name}.pageInfo"),
        )
        if not isinstance(nodes, list) or not isinstance(page, dict) or page.get("hasNextPage") is not True:
            continue
        more = request_further_children(ctx, "Refund", refund, child, page)
        if more is None:
            return None
        refund = {**refund, child.name: {"nodes": [*nodes, *more], "pageInfo": {"hasNextPage": False}}}
    return refund
