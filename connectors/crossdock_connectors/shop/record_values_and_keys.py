"""Values in a shop's records for the mappings of all shops, and the shop's ids in keys of records that are fetched."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Literal

from crossdock import Record, RecordError, Reference
from crossdock.values.field_types import MAX_DIGITS_BEFORE_POINT
from crossdock.values.json_access import JsonAccess
from crossdock_connectors.shop.sale_lines import smallest_unit_price_step
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


def customer_reference(customer_key: str | None, guests: Guests, email: str | None, order_key: str) -> Reference:
    return Reference("customer", customer_key or guest_key(guests, email, order_key))


def product_reference(settings: ShopSettings, number: str, sku: str | None, pointer: str) -> Reference:
    if settings.product_namespace is None and settings.product_key == "id":
        return Reference("product", number)
    if not sku:
        raise RecordError("bad_value", "is empty, and the products' key is the SKU", pointer=pointer)
    return Reference("product", sku, settings.product_namespace)


def platform_status_or_error(record: JsonAccess, pointer: str, statuses: Mapping[str, str]) -> str:
    found = record.at(pointer, str)
    if found not in statuses:
        raise RecordError("bad_value", "is a status that is not in the setting statuses", pointer=pointer)
    return statuses[found]


def text_or_none(record: JsonAccess, pointer: str) -> str | None:
    """Return a text, or that of a whole number, as which plugins write telephone numbers and postal codes."""
    return record.identifier(pointer, default="").strip() or None


def rounded_product_price_or_none(record: Record, pointer: str, currency: str | None) -> Decimal | None:
    """Return the price of a product, with no more decimals than the platform takes, or None without one.

    No order must wait for the price of its product: one that is rounded, or cannot be read, is counted.
    """
    try:
        unit, found = smallest_unit_price_step(currency), record.decimal(pointer, default=None)
        rounded = None if found is None else found.quantize(unit, ROUND_HALF_UP)
    except (RecordError, ValueError, ArithmeticError):  # of no currency, or of a number that is too large
        record.count("price left out")
        return None
    if rounded is not None and rounded.adjusted() >= MAX_DIGITS_BEFORE_POINT:
        record.count("price left out")
        return None
    if rounded == found:
        return found
    record.count("price rounded")
    return rounded


GUEST_OF = "order-"
"""The prefix of a name for the guest of an order, before the order's key. The guest's own key may not contain the
order.
"""
_ID = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)


def shop_ids_in_keys(keys: Sequence[str], beginning: str = "") -> list[str]:
    """Return the ids that follow *beginning* in *keys*, each once. Other keys are left out."""
    rests = (key.removeprefix(beginning) for key in keys if key.startswith(beginning))
    return list(dict.fromkeys(rest for rest in rests if _ID.fullmatch(rest)))


def order_ids_in_guest_keys(keys: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*shop_ids_in_keys(keys, GUEST_OF), *shop_ids_in_keys(keys, f"{GUEST}-{GUEST_OF}")]))
