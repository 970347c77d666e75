"""Lists inside of orders and refunds that a query has cut off: read on, or marked as cut."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from crossdock.values.json_paths import at_path
from crossdock_connectors.shop.shopify import queries
from crossdock_connectors.shop.shopify.pages import ShopifyContext, request_further_children, request_query


def complete_cut_order_lists(ctx: ShopifyContext, order: Any) -> Any:
    """Return *order* with all of its refunds, fulfillments and tracking numbers, requested again if one may be cut.

    These lists have no pages: one that is as long as was asked for may be cut. If it also is when the most
    is asked for, it is marked, and a record that needs it is a dead letter.
    """
    if not isinstance(order, dict) or not _names_of_possibly_cut_lists(order, queries.PARTS, queries.PARCELS):
        return order
    answer = request_query(ctx, queries.PARTS_OF_ORDER, id=order.get("id"))
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
        numbers = at_path(shipment, "trackingInfo")
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
    ids, named = refund_ids(order), at_path(order, "refunds")
    if not isinstance(named, list) or not named:
        return order
    is_cut = len(ids) < len(named) or (order.get("id") in existing and not found.keys() >= set(ids))
    cut = ["refunds"] if is_cut else []
    return {**order, "refunds": [found[gid] for gid in ids if gid in found], **_cut_marks(cut)}


def refund_ids(order: Any) -> list[str]:
    refunds = at_path(order, "refunds")
    ids = [at_path(refund, "id") for refund in refunds] if isinstance(refunds, list) else []
    return [gid for gid in ids if isinstance(gid, str)]


def complete_lists_of_refund(ctx: ShopifyContext, refund: dict[str, Any]) -> dict[str, Any] | None:
    """Return *refund* with all elements of its lists; None if it was deleted meanwhile."""
    for child in queries.REFUND_LISTS:
        nodes, page = at_path(refund, f"{child.name}.nodes"), at_path(refund, f"{child.name}.pageInfo")
        if not isinstance(nodes, list) or not isinstance(page, dict) or page.get("hasNextPage") is not True:
            continue
        more = request_further_children(ctx, "Refund", refund, child, page)
        if more is None:
            return None
        refund = {**refund, child.name: {"nodes": [*nodes, *more], "pageInfo": {"hasNextPage": False}}}
    return refund
