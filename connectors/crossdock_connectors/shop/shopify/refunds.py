"""Refunds with their lines, which are requested separately from their orders."""

from __future__ import annotations

from typing import Any

from crossdock.values.json_values import at_path
from crossdock_connectors.shop.shopify.pages import ShopifyContext, asked
from crossdock_connectors.shop.shopify.queries import REFUNDS

_AT_A_TIME = 10  # a query may cost at most 1,000 points


def with_refunds(ctx: ShopifyContext, orders: list[Any]) -> list[Any]:
    """Replace the ids of refunds in *orders* by the full refunds."""
    ids = [gid for order in orders for gid in _refund_ids(order)]
    found: dict[str, Any] = {}
    for start in range(0, len(ids), _AT_A_TIME):
        nodes = asked(ctx, REFUNDS, ids=ids[start : start + _AT_A_TIME]).items("/data/nodes")
        found |= {node["id"]: node for node in nodes if isinstance(node, dict) and isinstance(node.get("id"), str)}
    return [_completed(order, found) for order in orders]


def _completed(order: Any, found: dict[str, Any]) -> Any:
    """Complete an order. A refund that is not found was deleted with its order meanwhile, and is left out."""
    ids = _refund_ids(order)
    return {**order, "refunds": [found[gid] for gid in ids if gid in found]} if ids else order


def _refund_ids(order: Any) -> list[str]:
    refunds = at_path(order, "refunds")
    ids = [at_path(refund, "id") for refund in refunds] if isinstance(refunds, list) else []
    return [gid for gid in ids if isinstance(gid, str)]
