"""How a WooCommerce shop is read by the streams of all shops."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from crossdock import (
    CustomerDraft,
    InventoryLotDraft,
    InvoiceDraft,
    OrderDraft,
    ProductDraft,
    RawBatch,
    Record,
    WarehouseBinDraft,
)
from crossdock.mapping.cursors import instant_cursor
from crossdock.values.json_paths import at_path
from crossdock_connectors.json_rows import with_members
from crossdock_connectors.shop.lists_read_once import Pages, checkpoint_of_cursor
from crossdock_connectors.shop.record_values import GUEST, guest_key
from crossdock_connectors.shop.repeated_skus import RepeatedSkus
from crossdock_connectors.shop.shop_key_ids import ids_in, orders_of_guests
from crossdock_connectors.shop.streams import CREDIT_NOTE, Dialect, Read
from crossdock_connectors.shop.woocommerce import lists, mapping, named_records
from crossdock_connectors.shop.woocommerce.invoicing import invoice_due, rows_of_refunds
from crossdock_connectors.shop.woocommerce.lists import Item, WooContext, number_of
from crossdock_connectors.shop.woocommerce.settings import WooCommerceSettings
from crossdock_connectors.unread_parts import UnreadParts


class WooCommerceDialect(Dialect[WooCommerceSettings]):
    """The REST API ``wc/v3``. Records that were deleted leave no trace in it."""

    tells_deleted = False

    # ---- reading

    def products(self, ctx: WooContext, since: str | None) -> Read:
        started, cursor = instant_cursor(ctx.run.clock.now()), since
        skus = RepeatedSkus(ctx) if self.settings.product_key == "sku" else None
        for records, source in lists.products(ctx, since):
            if skus is not None:
                skus.check((self._product_key(record), at_path(record, "id")) for record in records)
            cursor = started if records else cursor
            yield RawBatch.json(
                [with_members(record, key=self._product_key(record)) for record in records], source=source
            )
        yield from checkpoint_of_cursor(cursor)

    def _product_key(self, variant: Any) -> str | None:
        if self.settings.product_key == "sku":
            sku = at_path(variant, "sku")
            return sku if isinstance(sku, str) and sku else None
        return number_of(variant)

    def customers(self, ctx: WooContext, since: str | None) -> Read:
        """Yield accounts, guests, and the buyers whose accounts were deleted: orders keep the ids of those."""
        orders, accounts = lists.orders(ctx, since), array("Q")
        for records, source in lists.customers(ctx).pages():
            accounts.extend(int(number) for number in map(number_of, records) if number is not None)
            yield RawBatch.json([_with_key(record) for record in records], source=source)
        known = _Sorted(accounts)
        for records, source in orders.pages():
            yield RawBatch.json(self._guests(records), source=source)
            former = [order for order in records if _account(order) is not None and _account(order) not in known]
            if former:
                yield RawBatch.json(map(_former_customer, former), source=source)
        yield from checkpoint_of_cursor(orders.cursor)

    def _guests(self, orders: Iterable[Any]) -> Iterator[Item]:
        for order in orders:
            if at_path(order, "customer_id") != 0:
                continue
            email = at_path(order, "billing.email")
            key = guest_key(self.settings.guests, email if isinstance(email, str) else None, number_of(order) or "")
            yield {"key": key, "username": "Guest"} if key == GUEST else {"key": key, "billing": order.get("billing")}

    def orders(self, ctx: WooContext, since: str | None) -> Read:
        feed = lists.orders(ctx, since)
        for records, source in feed.pages():
            yield RawBatch.json([with_members(_with_key(record), test=False) for record in records], source=source)
        yield from checkpoint_of_cursor(feed.cursor)

    def invoices(self, ctx: WooContext, since: str | None) -> Read:
        feed = lists.orders(ctx, since)
        for records, source in feed.pages():
            yield RawBatch.json([row for record in records for row in self._invoices(record)], source=source)
        yield from checkpoint_of_cursor(feed.cursor)

    def _invoices(self, order: Any) -> Iterator[Any]:
        due = invoice_due(order, self.settings.invoices)
        yield with_members(_with_key(order), test=False, due=due)
        if self.settings.refunds == "credit_note":
            yield from rows_of_refunds(order, due=due)

    def locations(self, ctx: WooContext) -> Iterator[RawBatch]:  # noqa: ARG002  there is one
        yield RawBatch.json([{"key": mapping.STORE, "mapped": self._is_mapped}], source="the shop")

    @property
    def _is_mapped(self) -> bool:
        return not self.settings.locations or mapping.STORE in self.settings.locations

    def stock(self, ctx: WooContext) -> Iterator[RawBatch]:
        for records, source in lists.catalog(ctx).pages():
            yield RawBatch.json([self._level(record) for record in records], source=source)

    def _level(self, variant: Any) -> Any:
        """Return the stock of a variant. Without its own, it is counted nowhere or, with "parent", with its product."""
        counted = at_path(variant, "manage_stock") not in (False, "parent")
        return with_members(_with_key(variant), counted=counted, mapped=self._is_mapped)

    def existing_products(self, ctx: WooContext) -> Iterator[RawBatch]:
        for records, source in lists.catalog(ctx).pages():
            yield RawBatch.json([{"key": self._product_key(record)} for record in records], source=source)

    def existing_customers(self, ctx: WooContext) -> Iterator[RawBatch]:
        for records, source in lists.customers(ctx).pages():
            yield RawBatch.json([{"key": number_of(record)} for record in records], source=source)
        for records, source in lists.order_keys(ctx).pages():
            yield RawBatch.json([{"key": guest["key"]} for guest in self._guests(records)], source=source)
            buyers = filter(None, map(_account, records))
            yield RawBatch.json([{"key": str(number)} for number in buyers], source=source)

    def existing_orders(self, ctx: WooContext) -> Iterator[RawBatch]:
        for records, source in lists.order_keys(ctx).pages():
            yield RawBatch.json([{"key": number_of(record)} for record in records], source=source)

    # ---- fetching

    def fetched_products(self, ctx: WooContext, keys: Sequence[str]) -> Iterator[RawBatch]:
        by_sku = self.settings.product_key == "sku"
        ids = named_records.products_of_skus(ctx, keys) if by_sku else named_records.products_of(ctx, ids_in(keys))
        for records, source in named_records.products(ctx, ids):
            yield RawBatch.json(
                [with_members(record, key=self._product_key(record)) for record in records], source=source
            )

    def fetched_customers(self, ctx: WooContext, keys: Sequence[str]) -> Iterator[RawBatch]:
        for records, source in named_records.customers(ctx, ids_in(keys)):
            yield RawBatch.json(map(_with_key, records), source=source)
        for orders, source in named_records.orders(ctx, orders_of_guests(keys)):
            yield RawBatch.json(self._guests(orders), source=source)

    def fetched_orders(self, ctx: WooContext, keys: Sequence[str]) -> Iterator[RawBatch]:
        for records, source in self._fetched_orders(ctx, ids_in(keys)):
            yield RawBatch.json([with_members(_with_key(record), test=False) for record in records], source=source)

    def fetched_invoices(self, ctx: WooContext, keys: Sequence[str]) -> Iterator[RawBatch]:
        refunds = ids_in(keys, f"{CREDIT_NOTE}-")
        wanted = dict.fromkeys([*ids_in(keys), *named_records.orders_of_refunds(ctx, refunds)])
        for records, source in self._fetched_orders(ctx, list(wanted)):
            yield RawBatch.json([row for record in records for row in self._invoices(record)], source=source)

    def _fetched_orders(self, ctx: WooContext, ids: Sequence[str]) -> Pages:
        unread = UnreadParts()
        for records, source in named_records.orders(ctx, ids):
            yield [lists.with_refunds(ctx, order, unread) for order in records], source
        unread.check()

    def stock_of_keys(self, ctx: WooContext, keys: Sequence[str]) -> Iterator[RawBatch]:
        for records, source in named_records.stock(ctx, named_records.products_of(ctx, ids_in(keys))):
            yield RawBatch.json(map(self._level, records), source=source)

    # ---- mapping

    def product(self, record: Record) -> ProductDraft:
        return mapping.product(record, self.settings)

    def customer(self, record: Record) -> CustomerDraft:
        return mapping.customer(record, self.settings)

    def order(self, record: Record) -> OrderDraft:
        return mapping.order(record, self.settings)

    def invoice(self, record: Record) -> InvoiceDraft:
        return mapping.invoice(record, self.settings)

    def credit_note(self, record: Record) -> InvoiceDraft:
        return mapping.credit_note(record, self.settings)

    def location(self, record: Record) -> WarehouseBinDraft:  # noqa: ARG002  there is one
        return mapping.bin_of_shop(self.settings)

    def inventory_lot(self, record: Record) -> InventoryLotDraft:
        return mapping.inventory_lot(record, self.settings)


class _Sorted:
    """Ids in eight bytes each, since a shop may have millions of accounts."""

    def __init__(self, ids: Iterable[int]) -> None:
        self._ids = array("Q", sorted(ids))

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int):
            return False
        place = bisect_left(self._ids, number)
        return place < len(self._ids) and self._ids[place] == number


def _account(order: Any) -> int | None:
    """Return the id of the account of an order; None for that of a guest."""
    found = at_path(order, "customer_id")
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None


def _former_customer(order: Any) -> Item:
    """Return a buyer whose account was deleted, as the order has him."""
    return {"key": str(_account(order)), "billing": order.get("billing"), "shipping": order.get("shipping")}


def _with_key(item: Any) -> Any:
    return with_members(item, key=number_of(item))
