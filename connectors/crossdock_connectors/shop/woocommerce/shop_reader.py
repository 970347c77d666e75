"""How a WooCommerce shop is read by the streams of all shops."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from crossdock import (
    CustomerDraft,
    Filter,
    InventoryLotDraft,
    InvoiceDraft,
    OrderDraft,
    ProductDraft,
    RawBatch,
    Record,
    WarehouseBinDraft,
)
from crossdock.mapping.row_order_and_cursors import format_iso_instant_cursor
from crossdock.values.json_paths import value_at_path_or_missing
from crossdock_connectors.record_mapping_in_code import UnreadParts, with_added_members
from crossdock_connectors.shop.lists_read_once import Pages, yield_checkpoint_if_cursor_given
from crossdock_connectors.shop.record_values_and_keys import GUEST, guest_key, order_ids_in_guest_keys, shop_ids_in_keys
from crossdock_connectors.shop.streams import CREDIT_NOTE, WITHDRAWN, Read, RepeatedSkuWarner, ShopReader
from crossdock_connectors.shop.woocommerce import lists_and_records_by_id, mapping
from crossdock_connectors.shop.woocommerce.invoicing_rules import (
    AUTO_DRAFT,
    credit_note_rows_of_order,
    is_invoice_due,
    may_invoice_need_withdrawal,
)
from crossdock_connectors.shop.woocommerce.lists_and_records_by_id import Item, WooContext, id_text_or_none
from crossdock_connectors.shop.woocommerce.settings import WooCommerceSettings


class WooCommerceReader(ShopReader[WooCommerceSettings]):
    """The REST API ``wc/v3``. Records that were deleted leave no trace in it."""

    tells_deleted = False
    hides_orders = True
    left_out_orders: Mapping[str, Filter] = {"auto_draft": Filter(field="status", equals=AUTO_DRAFT)}

    # ---- reading

    def products(self, ctx: WooContext, since: str | None) -> Read:
        started, cursor = format_iso_instant_cursor(ctx.run.clock.now()), since
        skus = RepeatedSkuWarner(ctx) if self.settings.product_key == "sku" else None
        for records, source in lists_and_records_by_id.pages_of_changed_variants(ctx, since):
            if skus is not None:
                skus.warn_of_repeated(
                    (self._product_key(record), value_at_path_or_missing(record, "id")) for record in records
                )
            cursor = started if records else cursor
            yield RawBatch.json(
                [with_added_members(record, key=self._product_key(record)) for record in records], source=source
            )
        yield from yield_checkpoint_if_cursor_given(cursor)

    def _product_key(self, variant: Any) -> str | None:
        if self.settings.product_key == "sku":
            sku = value_at_path_or_missing(variant, "sku")
            return sku if isinstance(sku, str) and sku else None
        return id_text_or_none(variant)

    def customers(self, ctx: WooContext, since: str | None) -> Read:
        """Yield accounts, guests, and the buyers whose accounts were deleted: orders keep the ids of those."""
        orders, accounts = lists_and_records_by_id.stored_changed_orders(ctx, since), array("Q")
        for records, source in lists_and_records_by_id.stored_customer_accounts(ctx).pages():
            accounts.extend(int(number) for number in map(id_text_or_none, records) if number is not None)
            yield RawBatch.json([_with_id_as_key(record) for record in records], source=source)
        known = _SortedIds(accounts)
        for records, source in orders.pages():
            yield RawBatch.json(self._guest_rows(records), source=source)
            former = [
                order
                for order in records
                if _account_id_of_order(order) is not None and _account_id_of_order(order) not in known
            ]
            if former:
                yield RawBatch.json(map(_row_of_deleted_account, former), source=source)
        yield from yield_checkpoint_if_cursor_given(orders.cursor)

    def _guest_rows(self, orders: Iterable[Any]) -> Iterator[Item]:
        for order in orders:
            if (
                value_at_path_or_missing(order, "customer_id") != 0
                or value_at_path_or_missing(order, "status") == AUTO_DRAFT
            ):
                continue
            email = value_at_path_or_missing(order, "billing.email")
            key = guest_key(
                self.settings.guests, email if isinstance(email, str) else None, id_text_or_none(order) or ""
            )
            yield {"key": key, "username": "Guest"} if key == GUEST else {"key": key, "billing": order.get("billing")}

    def orders(self, ctx: WooContext, since: str | None) -> Read:
        feed = lists_and_records_by_id.stored_changed_orders(ctx, since)
        for records, source in feed.pages():
            yield RawBatch.json(
                [with_added_members(_with_id_as_key(record), test=False) for record in records], source=source
            )
        yield from yield_checkpoint_if_cursor_given(feed.cursor)

    def invoices(self, ctx: WooContext, since: str | None) -> Read:
        feed = lists_and_records_by_id.stored_changed_orders(ctx, since)
        for records, source in feed.pages():
            yield RawBatch.json([row for record in records for row in self._invoice_rows(record)], source=source)
        yield from yield_checkpoint_if_cursor_given(feed.cursor)

    def _invoice_rows(self, order: Any) -> Iterator[Any]:
        due = is_invoice_due(order, self.settings.invoices)
        withdrawn = not due and may_invoice_need_withdrawal(order)
        yield with_added_members(_with_id_as_key(order), test=False, due=WITHDRAWN if withdrawn else due)
        if self.settings.refunds == "credit_note":
            yield from credit_note_rows_of_order(order, due=due)

    def locations(self, ctx: WooContext) -> Iterator[RawBatch]:  # noqa: ARG002  there is one
        yield RawBatch.json([{"key": mapping.STORE, "mapped": self._is_store_mapped}], source="the shop")

    @property
    def _is_store_mapped(self) -> bool:
        return not self.settings.locations or mapping.STORE in self.settings.locations

    def stock(self, ctx: WooContext) -> Iterator[RawBatch]:
        for records, source in lists_and_records_by_id.stored_variants_with_stock_fields(ctx).pages():
            yield RawBatch.json([self._stock_row(record) for record in records], source=source)

    def _stock_row(self, variant: Any) -> Any:
        """Return the stock of a variant. Without its own, it is counted nowhere or, with "parent", with its product."""
        counted = value_at_path_or_missing(variant, "manage_stock") not in (False, "parent")
        return with_added_members(_with_id_as_key(variant), counted=counted, mapped=self._is_store_mapped)

    def batches_of_all_product_keys(self, ctx: WooContext) -> Iterator[RawBatch]:
        for records, source in lists_and_records_by_id.stored_variants_with_stock_fields(ctx).pages():
            yield RawBatch.json([{"key": self._product_key(record)} for record in records], source=source)

    def batches_of_all_customer_keys(self, ctx: WooContext) -> Iterator[RawBatch]:
        for records, source in lists_and_records_by_id.stored_customer_accounts(ctx).pages():
            yield RawBatch.json([{"key": id_text_or_none(record)} for record in records], source=source)
        for records, source in lists_and_records_by_id.stored_orders_with_key_members(ctx).pages():
            yield RawBatch.json([{"key": guest["key"]} for guest in self._guest_rows(records)], source=source)
            buyers = filter(None, map(_account_id_of_order, records))
            yield RawBatch.json([{"key": str(number)} for number in buyers], source=source)

    def batches_of_all_order_keys(self, ctx: WooContext) -> Iterator[RawBatch]:
        for records, source in lists_and_records_by_id.stored_orders_with_key_members(ctx).pages():
            yield RawBatch.json([{"key": id_text_or_none(record)} for record in records], source=source)

    # ---- fetching

    def products_with_keys(self, ctx: WooContext, keys: Sequence[str]) -> Iterator[RawBatch]:
        by_sku = self.settings.product_key == "sku"
        ids = (
            lists_and_records_by_id.product_ids_of_skus(ctx, keys)
            if by_sku
            else lists_and_records_by_id.product_ids_of_variants(ctx, shop_ids_in_keys(keys))
        )
        for records, source in lists_and_records_by_id.variants_of_products(ctx, ids):
            yield RawBatch.json(
                [with_added_members(record, key=self._product_key(record)) for record in records], source=source
            )

    def fetch_customers_by_keys(self, ctx: WooContext, keys: Sequence[str]) -> Iterator[RawBatch]:
        for records, source in lists_and_records_by_id.customers_with_ids(ctx, shop_ids_in_keys(keys)):
            yield RawBatch.json(map(_with_id_as_key, records), source=source)
        for orders, source in lists_and_records_by_id.orders_with_ids(ctx, order_ids_in_guest_keys(keys)):
            yield RawBatch.json(self._guest_rows(orders), source=source)

    def orders_with_keys(self, ctx: WooContext, keys: Sequence[str]) -> Iterator[RawBatch]:
        for records, source in self._orders_with_refunds_by_id(ctx, shop_ids_in_keys(keys)):
            yield RawBatch.json(
                [with_added_members(_with_id_as_key(record), test=False) for record in records], source=source
            )

    def invoices_with_keys(self, ctx: WooContext, keys: Sequence[str]) -> Iterator[RawBatch]:
        refunds = shop_ids_in_keys(keys, f"{CREDIT_NOTE}-")
        wanted = dict.fromkeys([*shop_ids_in_keys(keys), *lists_and_records_by_id.order_ids_of_refunds(ctx, refunds)])
        for records, source in self._orders_with_refunds_by_id(ctx, list(wanted)):
            yield RawBatch.json([row for record in records for row in self._invoice_rows(record)], source=source)

    def _orders_with_refunds_by_id(self, ctx: WooContext, ids: Sequence[str]) -> Pages:
        unread = UnreadParts()
        for records, source in lists_and_records_by_id.orders_with_ids(ctx, ids):
            yield [lists_and_records_by_id.read_refunds_into_order(ctx, order, unread) for order in records], source
        unread.raise_first_doubt()

    def stock_with_keys(self, ctx: WooContext, keys: Sequence[str]) -> Iterator[RawBatch]:
        for records, source in lists_and_records_by_id.variants_with_stock(
            ctx, lists_and_records_by_id.product_ids_of_variants(ctx, shop_ids_in_keys(keys))
        ):
            yield RawBatch.json(map(self._stock_row, records), source=source)

    # ---- mapping

    def map_product(self, record: Record) -> ProductDraft:
        return mapping.product(record, self.settings)

    def map_customer(self, record: Record) -> CustomerDraft:
        return mapping.customer(record, self.settings)

    def map_order(self, record: Record) -> OrderDraft:
        return mapping.order(record, self.settings)

    def map_invoice(self, record: Record) -> InvoiceDraft:
        return mapping.invoice(record, self.settings)

    def map_credit_note(self, record: Record) -> InvoiceDraft:
        return mapping.credit_note(record, self.settings)

    def map_location(self, record: Record) -> WarehouseBinDraft:  # noqa: ARG002  there is one
        return mapping.bin_of_shop(self.settings)

    def map_inventory_lot(self, record: Record) -> InventoryLotDraft:
        return mapping.inventory_lot(record, self.settings)


class _SortedIds:
    """Ids in eight bytes each, since a shop may have millions of accounts."""

    def __init__(self, ids: Iterable[int]) -> None:
        self._ids = array("Q", sorted(ids))

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int):
            return False
        place = bisect_left(self._ids, number)
        return place < len(self._ids) and self._ids[place] == number


def _account_id_of_order(order: Any) -> int | None:
    """Return the id of the account of an order; None for that of a guest."""
    found = value_at_path_or_missing(order, "customer_id")
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None


def _row_of_deleted_account(order: Any) -> Item:
    """Return a buyer whose account was deleted, as the order has him."""
    return {"key": str(_account_id_of_order(order)), "billing": order.get("billing"), "shipping": order.get("shipping")}


def _with_id_as_key(item: Any) -> Any:
    return with_added_members(item, key=id_text_or_none(item))
