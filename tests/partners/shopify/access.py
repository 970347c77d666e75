"""What an app may see: access scopes, and the sixty days of orders.

Which scope opens which type is in the published schema (``requiredAccess``). The texts of refusals are Shopify's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from graphql import GraphQLError

ORDERS_SEEN = timedelta(days=60)
"""Older orders need the scope ``read_all_orders``."""
_FULFILLMENT_ORDERS = (
    "read_assigned_fulfillment_orders",
    "read_merchant_managed_fulfillment_orders",
    "read_third_party_fulfillment_orders",
)
TYPES: Mapping[str, tuple[str, ...]] = {
    "Order": ("read_orders",),
    "Refund": ("read_orders",),
    "OrderTransaction": ("read_orders",),
    "Customer": ("read_customers",),
    "Product": ("read_products",),
    "ProductVariant": ("read_products",),
    "InventoryItem": ("read_inventory", "read_products"),
    "InventoryLevel": ("read_inventory",),
    "Location": ("read_locations", "read_inventory"),
    "FulfillmentOrder": _FULFILLMENT_ORDERS,
    "Fulfillment": ("read_orders", *_FULFILLMENT_ORDERS),
}
"""One of these scopes is needed for a field of this type, or for a connection of it."""
MUTATIONS: Mapping[str, tuple[str, ...]] = {
    "fulfillmentCreate": tuple(one.replace("read_", "write_") for one in _FULFILLMENT_ORDERS),
    "inventorySetQuantities": ("write_inventory",),
    "inventoryAdjustQuantities": ("write_inventory",),
}
TOPICS: Mapping[str, tuple[str, ...]] = {
    "CUSTOMERS": ("read_customers",),
    "FULFILLMENTS": ("read_fulfillments",),
    "INVENTORY": ("read_inventory",),
    "LOCATIONS": ("read_locations",),
    "ORDERS": ("read_orders",),
    "PRODUCTS": ("read_products",),
    "REFUNDS": ("read_orders",),
}
"""One of these scopes is needed to subscribe to a topic that begins so."""
ALL_SCOPES = frozenset(
    {
        "read_all_orders",
        "read_orders",
        "read_customers",
        "read_fulfillments",
        "read_products",
        "read_locations",
        "write_inventory",
        "write_merchant_managed_fulfillment_orders",
        "write_third_party_fulfillment_orders",
    }
)


def granted(scopes: frozenset[str]) -> frozenset[str]:
    """*scopes* with those for reading that the ones for writing include."""
    return scopes | {one.replace("write_", "read_") for one in scopes}


def check(field: str, needed: tuple[str, ...], scopes: frozenset[str]) -> None:
    """Raise GraphQLError unless *scopes* has one of those that are needed."""
    if needed and not scopes.intersection(needed):
        names = [f"`{one}` access scope" for one in needed]
        access = f"{', '.join(names[:-1])} or {names[-1]}" if names[1:] else names[0]
        code = {
            "code": "ACCESS_DENIED",
            "documentation": "https://shopify.dev/api/usage/access-scopes",
            "requiredAccess": f"{access}.",
        }
        raise GraphQLError(f"Access denied for {field} field. Required access: {access}.", extensions=code)


def sees_order_of(processed: datetime, now: datetime, scopes: frozenset[str]) -> bool:
    """Whether an app sees an order of this age."""
    return "read_all_orders" in scopes or processed > now - ORDERS_SEEN
