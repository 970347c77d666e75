"""Conversion of values in a shop's records, for the mappings of all shops."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Literal

from crossdock import RecordError, Reference
from crossdock.values.json_access import JsonAccess
from crossdock_connectors.shop.settings import ShopSettings

GUEST = "guest"
"""The key of the customer who represents all guests, or those without an e-mail address."""
Guests = Literal["email", "order", "one"]


def guest_key(guests: Guests, email: str | None, order_key: str) -> str:
    """Return the key of the customer of an order without a customer account. It does not reveal the e-mail address."""
    if guests == "order":
        return f"{GUEST}-order-{order_key}"
    known = (email or "").strip().casefold()
    if guests == "one" or not known:
        return GUEST
    return f"{GUEST}-{hashlib.sha256(known.encode()).hexdigest()[:32]}"


def customer_of(customer_key: str | None, guests: Guests, email: str | None, order_key: str) -> Reference:
    return Reference("customer", customer_key or guest_key(guests, email, order_key))


def product_of(settings: ShopSettings, number: str, sku: str | None, pointer: str) -> Reference:
    if settings.product_namespace is None and settings.product_key == "id":
        return Reference("product", number)
    if not sku:
        raise RecordError("bad_value", "is empty, and the products' key is the SKU", pointer=pointer)
    return Reference("product", sku, settings.product_namespace)


def status_of(record: JsonAccess, pointer: str, statuses: Mapping[str, str]) -> str:
    found = record.at(pointer, str)
    if found not in statuses:
        raise RecordError("bad_value", "is a status that is not in the setting statuses", pointer=pointer)
    return statuses[found]


def text(record: JsonAccess, pointer: str) -> str | None:
    return (record.at(pointer, str, default=None) or "").strip() or None
