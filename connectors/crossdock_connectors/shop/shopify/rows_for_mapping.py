"""The rows of Shopify's records for `mapping`, with the member ``key``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from crossdock.values.json_paths import value_at_path_or_missing
from crossdock_connectors.record_mapping_in_code import with_added_members
from crossdock_connectors.shop.record_values_and_keys import GUEST, guest_key
from crossdock_connectors.shop.shopify.invoicing_rules import (
    SETTLED,
    credit_note_rows_of_order,
    is_invoice_due,
    may_invoice_need_withdrawal,
)
from crossdock_connectors.shop.shopify.requests_and_complete_lists import Item, number_in_gid_or_empty
from crossdock_connectors.shop.shopify.settings import ShopifySettings
from crossdock_connectors.shop.streams import WITHDRAWN


class ShopifyRowBuilder:
    def __init__(self, settings: ShopifySettings) -> None:
        self._settings = settings

    def variant_rows_of_product(self, product: Any) -> Iterator[Any]:
        for variant, row in _children_with_rows(product, "variants", "variant"):
            yield with_added_members(row, key=self.product_key(variant))

    def row_of_variant(self, variant: Any) -> Any:
        if not isinstance(variant, dict):
            return variant
        own = {name: value for name, value in variant.items() if name != "product"}
        return with_added_members(variant.get("product"), variant=own, key=self.product_key(variant))

    def product_key(self, variant: Any) -> str | None:
        if self._settings.product_key == "sku":
            sku = value_at_path_or_missing(variant, "sku")
            return sku if isinstance(sku, str) and sku else None
        return number_in_gid_or_none(value_at_path_or_missing(variant, "id"))

    def guest_rows(self, orders: Iterable[Any]) -> Iterator[Item]:
        """Yield the customers of orders without an account in Shopify's form; only for orders that are read."""
        for order in orders:
            if not isinstance(order, dict) or order.get("customer") is not None:
                continue
            if order.get("test") is True and not self._settings.test_orders:
                continue
            email, order_id = order.get("email"), number_in_gid_or_none(order.get("id"))
            key = guest_key(self._settings.guests, email if isinstance(email, str) else None, order_id or "")
            if key == GUEST:
                yield {"key": key, "displayName": "Guest"}
                continue
            address = order.get("billingAddress") or order.get("shippingAddress")
            yield {
                "key": key,
                "displayName": (address.get("name") or address.get("company")) if isinstance(address, dict) else None,
                "defaultEmailAddress": {"emailAddress": email},
                "defaultPhoneNumber": {"phoneNumber": order.get("phone")},
                "defaultAddress": address,
            }

    def invoice_rows(self, orders: Iterable[Any]) -> Iterator[Any]:
        found = [(order, is_invoice_due(order, self._settings.invoices)) for order in orders]
        for order, is_due in found:
            withdrawn = not is_due and may_invoice_need_withdrawal(order, self._settings.invoices)
            due = WITHDRAWN if withdrawn else is_due
            yield with_added_members(with_gid_number_as_key(order), due=due, **{SETTLED: True})
        if self._settings.refunds == "credit_note":
            for order, is_due in found:
                yield from credit_note_rows_of_order(order, self._settings.currency, due=is_due)

    def is_location_mapped(self, location: str | None) -> bool:
        return not self._settings.locations or location in self._settings.locations

    def inventory_level_rows(self, variant: Any, first_variants: dict[int, int]) -> Iterator[Any]:
        """Yield a row for each location; ``shared`` if another variant has given those of the inventory item.

        Args:
            first_variants: The variant whose rows count for each item, as hashes: a large shop has many.
        """
        item, tracked = (
            number_in_gid_or_none(value_at_path_or_missing(variant, "inventoryItem.id")),
            value_at_path_or_missing(variant, "inventoryItem.tracked"),
        )
        own = hash(str(value_at_path_or_missing(variant, "id")))
        is_shared = item is not None and first_variants.setdefault(hash(item), own) != own
        for level, row in _children_with_rows(variant, "inventoryLevels", "level"):
            location = number_in_gid_or_none(value_at_path_or_missing(level, "location.id"))
            yield with_added_members(
                row,
                key=None if item is None or location is None else f"{item}-{location}",
                counted=tracked is not False and value_at_path_or_missing(level, "isActive") is not False,
                mapped=self.is_location_mapped(location),
                shared=is_shared,
            )


def number_in_gid_or_none(gid: Any) -> str | None:
    return (number_in_gid_or_empty(gid) or None) if isinstance(gid, str) else None


def with_gid_number_as_key(item: Any) -> Any:
    return with_added_members(item, key=number_in_gid_or_none(value_at_path_or_missing(item, "id")))


def _children_with_rows(item: Any, children: str, name: str) -> Iterator[tuple[Any, Any]]:
    """Yield each child of *item* and a row of both, with the child as *name*; without a list, one row and no child."""
    found = value_at_path_or_missing(item, children)
    if not isinstance(found, list):
        yield None, item
        return
    own = {member: value for member, value in item.items() if member != children}
    for child in found:
        yield child, {**own, name: child}
