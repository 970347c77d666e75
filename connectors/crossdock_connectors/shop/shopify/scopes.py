"""Access scopes: those of a token, and those that the streams need.

Source: ``requiredAccess`` of each type in the published Admin schema, and shopify.dev/docs/api/usage/access-scopes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from crossdock.sources import ApiAnswer
from crossdock.values.json_paths import value_at_path_or_missing
from crossdock_connectors.shop.shopify.settings import ShopifySettings

ORDERS_SEEN = timedelta(days=60)
"""Older orders need the scope ``read_all_orders``."""
_STREAMS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("read_products",): ("products", "stock", "orders", "invoices"),
    ("read_customers",): ("customers", "orders", "invoices"),
    ("read_inventory",): ("stock",),
    ("read_locations", "read_inventory"): ("locations",),
    ("read_orders",): ("customers", "orders", "invoices"),
}
"""The streams that need one of these scopes: orders name customers and variants, and guests are read from orders."""
APPROVAL = "Shopify's approval for protected customer data"
"""What an app needs beside scopes for the fields of orders and customers that are about people."""
_TARGETS: Mapping[tuple[str, ...], str] = {
    (
        "write_merchant_managed_fulfillment_orders",
        "write_assigned_fulfillment_orders",
        "write_third_party_fulfillment_orders",
    ): "shipments are written back",
    ("write_inventory",): "stock is written",
}


def granted_scopes(shop: ApiAnswer) -> frozenset[str]:
    """Return the scopes of the token in the answer to `queries.SHOP`. A scope for writing includes reading."""
    found = {
        value_at_path_or_missing(each, "handle") for each in shop.items("/data/currentAppInstallation/accessScopes")
    }
    named = {each for each in found if isinstance(each, str)}
    return frozenset(named | {each.replace("write_", "read_", 1) for each in named if each.startswith("write_")})


def missing_scopes_with_streams(settings: ShopifySettings, scopes: frozenset[str]) -> Iterator[tuple[str, str]]:
    unread = {
        "products": settings.product_namespace is not None,
        "invoices": settings.invoices == "never",
    } | {name: True for name, each in getattr(settings, "streams", {}).items() if each.enabled is False}
    for alternatives, streams in _STREAMS.items():
        needing = [stream for stream in streams if not unread.get(stream)]
        if needing and not scopes.intersection(alternatives):
            yield alternatives[0], ", ".join(needing)


def missing_target_scopes_with_purposes(scopes: frozenset[str]) -> Iterator[tuple[str, str]]:
    for alternatives, purpose in _TARGETS.items():
        if not scopes.intersection(alternatives):
            yield alternatives[0], purpose


def are_old_orders_hidden(settings: ShopifySettings, scopes: frozenset[str], now: datetime) -> bool:
    return not can_see_all_orders(scopes) and (settings.first is None or settings.first <= now - ORDERS_SEEN)


def can_see_all_orders(scopes: frozenset[str]) -> bool:
    """Return whether an order that is not shown does not exist. Without the scope, it may only be old."""
    return "read_all_orders" in scopes
