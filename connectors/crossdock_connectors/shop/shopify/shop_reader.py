"""How a Shopify shop is read by the streams of all shops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    RefusedError,
    WarehouseBinDraft,
)
from crossdock.values import exact_json
from crossdock.values.json_paths import value_at_path_or_missing
from crossdock_connectors.record_mapping_in_code import with_added_members
from crossdock_connectors.shop.lists_read_once import Pages, StoredList, yield_checkpoint_if_cursor_given
from crossdock_connectors.shop.record_values_and_keys import order_ids_in_guest_keys, shop_ids_in_keys
from crossdock_connectors.shop.shopify import (
    bulk_operations,
    changed_and_deleted_records,
    mapping,
    queries,
    records_by_id,
)
from crossdock_connectors.shop.shopify.queries import REFUNDS
from crossdock_connectors.shop.shopify.requests_and_complete_lists import (
    ShopifyContext,
    complete_cut_order_lists,
    complete_lists_of_refund,
    complete_undeleted_records,
    pages_of_changed_records,
    refund_ids,
    request_existing_ids,
    request_existing_nodes,
    request_pages,
    shop_facts_requested_once,
    with_found_refunds,
)
from crossdock_connectors.shop.shopify.rows_for_mapping import (
    ShopifyRowBuilder,
    number_in_gid_or_none,
    with_gid_number_as_key,
)
from crossdock_connectors.shop.shopify.scopes import are_old_orders_hidden, can_see_all_orders, granted_scopes
from crossdock_connectors.shop.shopify.settings import ShopifySettings
from crossdock_connectors.shop.streams import CREDIT_NOTE, Read, RepeatedSkuWarner, ShopReader

_IDS = 250  # in a page


class ShopifyReader(ShopReader[ShopifySettings]):
    tells_deleted = True
    left_out_stock: Mapping[str, Filter] = {"shared_item": Filter(field="shared", equals="true")}

    def __init__(self, settings: ShopifySettings) -> None:
        super().__init__(settings)
        self.rows = ShopifyRowBuilder(settings)

    # ---- reading

    def products(self, ctx: ShopifyContext, since: str | None) -> Read:
        currency, skus = shop_currency(ctx), RepeatedSkuWarner(ctx) if self.settings.product_key == "sku" else None
        feed = changed_and_deleted_records.stored_changed_records(ctx, queries.PRODUCTS, since)
        for records, source in feed.pages():
            rows = [row for record in records for row in self.rows.variant_rows_of_product(record)]
            if skus is not None:
                skus.warn_of_repeated(
                    (value_at_path_or_missing(row, "key"), value_at_path_or_missing(row, "variant.id")) for row in rows
                )
            yield RawBatch.json([with_added_members(row, currency=currency) for row in rows], source=source)
        yield from yield_checkpoint_if_cursor_given(feed.cursor)

    def customers(self, ctx: ShopifyContext, since: str | None) -> Read:
        of_accounts, of_orders = split_account_and_order_cursors(since)
        orders = self._stored_changed_orders(ctx, of_orders)
        feed = changed_and_deleted_records.stored_changed_records(ctx, queries.CUSTOMERS, of_accounts)
        for records, source in feed.pages():
            yield RawBatch.json([with_gid_number_as_key(record) for record in records], source=source)
        for records, source in orders.pages():
            yield RawBatch.json(self.rows.guest_rows(records), source=source)
        yield from changed_and_deleted_records.batches_of_deleted_keys(ctx, of_accounts, "CUSTOMER")
        yield from yield_checkpoint_if_cursor_given(join_account_and_order_cursors(feed.cursor, orders.cursor, since))

    def orders(self, ctx: ShopifyContext, since: str | None) -> Read:
        feed = self._stored_changed_orders(ctx, since)
        for records, source in feed.pages():
            yield RawBatch.json([with_gid_number_as_key(record) for record in records], source=source)
        yield from changed_and_deleted_records.batches_of_deleted_keys(ctx, since, "ORDER")
        yield from yield_checkpoint_if_cursor_given(feed.cursor)

    def invoices(self, ctx: ShopifyContext, since: str | None) -> Read:
        feed = self._stored_changed_orders(ctx, since)
        for records, source in feed.pages():
            yield RawBatch.json(self.rows.invoice_rows(records), source=source)
        yield from yield_checkpoint_if_cursor_given(feed.cursor)

    def _stored_changed_orders(self, ctx: ShopifyContext, since: str | None) -> StoredList:
        if since is None:
            ctx.shared("shopify.order_age", lambda: _warn_of_hidden_orders(ctx))
        return changed_and_deleted_records.stored_changed_records(
            ctx,
            queries.ORDERS,
            since,
            more=lambda: self._orders_of_surviving_merged_customers(ctx, since),
            complete=orders_with_complete_refunds,
        )

    def _orders_of_surviving_merged_customers(self, ctx: ShopifyContext, since: str | None) -> Pages:
        """Yield the orders of customers into which others were merged: the shop does not count them as changed."""
        if "CUSTOMER" not in changed_and_deleted_records.deleted_ids_by_kind(ctx, since):
            return
        for customers, _ in changed_and_deleted_records.stored_changed_records(ctx, queries.CUSTOMERS, since).pages():
            for customer in customers:
                for page in request_pages(
                    ctx,
                    "/data/customer/orders",
                    queries.ORDERS_OF_CUSTOMER,
                    queries.ORDERS.size,
                    id=value_at_path_or_missing(customer, "id"),
                ):
                    yield (
                        complete_undeleted_records(ctx, queries.ORDERS, page.items("/data/customer/orders/nodes")),
                        page.address,
                    )

    def locations(self, ctx: ShopifyContext) -> Iterator[RawBatch]:
        for page in request_pages(ctx, "/data/locations", queries.LOCATIONS, _IDS):
            nodes = page.items("/data/locations/nodes")
            rows = [
                with_added_members(
                    with_gid_number_as_key(node),
                    mapped=self.rows.is_location_mapped(number_in_gid_or_none(value_at_path_or_missing(node, "id"))),
                )
                for node in nodes
            ]
            yield RawBatch.json(rows, source=page.address)

    def stock(self, ctx: ShopifyContext) -> Iterator[RawBatch]:
        if self.settings.bulk:
            pages = bulk_operations.read_list_by_bulk_operation(ctx, queries.STOCK, reuse=False).pages
        else:
            pages = pages_of_changed_records(ctx, queries.STOCK)
        yield from self._stock_batches(pages)

    def _stock_batches(self, pages: Pages) -> Iterator[RawBatch]:
        first_variants: dict[int, int] = {}
        for records, source in pages:
            rows = [row for record in records for row in self.rows.inventory_level_rows(record, first_variants)]
            yield RawBatch.json(rows, source=source)

    def batches_of_all_product_keys(self, ctx: ShopifyContext) -> Iterator[RawBatch]:
        yield from changed_and_deleted_records.batches_of_existing_keys(
            ctx, "productVariants", "id sku", self.rows.product_key
        )

    # ---- fetching

    def products_with_keys(self, ctx: ShopifyContext, keys: Sequence[str]) -> Iterator[RawBatch]:
        by_sku = self.settings.product_key == "sku"
        if by_sku:
            found = records_by_id.variants_of_skus(ctx, keys)
        else:
            found = records_by_id.request_records_and_missing_ids(ctx, queries.VARIANTS, shop_ids_in_keys(keys))
        for variants, source, _ in found:
            currency = shop_currency(ctx)
            rows = [with_added_members(self.rows.row_of_variant(variant), currency=currency) for variant in variants]
            yield RawBatch.json(rows, source=source)

    def fetch_customers_by_keys(self, ctx: ShopifyContext, keys: Sequence[str]) -> Iterator[RawBatch]:
        for accounts, source, missing in records_by_id.request_records_and_missing_ids(
            ctx, queries.CUSTOMERS, shop_ids_in_keys(keys)
        ):
            yield RawBatch.json(map(with_gid_number_as_key, accounts), source=source, deleted=missing)
        for orders, source, _ in records_by_id.request_records_and_missing_ids(
            ctx, queries.ORDERS, order_ids_in_guest_keys(keys)
        ):
            yield RawBatch.json(self.rows.guest_rows(orders), source=source)

    def orders_with_keys(self, ctx: ShopifyContext, keys: Sequence[str]) -> Iterator[RawBatch]:
        for orders, source, missing in records_by_id.request_records_and_missing_ids(
            ctx, queries.ORDERS, shop_ids_in_keys(keys)
        ):
            gone = missing if missing and can_see_all_orders(granted_scopes(shop_facts_requested_once(ctx))) else []
            yield RawBatch.json(
                map(with_gid_number_as_key, orders_with_complete_refunds(ctx, orders)), source=source, deleted=gone
            )

    def invoices_with_keys(self, ctx: ShopifyContext, keys: Sequence[str]) -> Iterator[RawBatch]:
        refunds = shop_ids_in_keys(keys, f"{CREDIT_NOTE}-")
        wanted = dict.fromkeys([*shop_ids_in_keys(keys), *records_by_id.order_ids_of_refunds(ctx, refunds)])
        for orders, source, _ in records_by_id.request_records_and_missing_ids(ctx, queries.ORDERS, list(wanted)):
            yield RawBatch.json(self.rows.invoice_rows(orders_with_complete_refunds(ctx, orders)), source=source)

    def stock_with_keys(self, ctx: ShopifyContext, keys: Sequence[str]) -> Iterator[RawBatch]:
        items = shop_ids_in_keys([key.partition("-")[0] for key in keys])
        variants = sorted(records_by_id.variant_ids_of_inventory_items(ctx, items), key=int)  # as the list has them
        found = records_by_id.request_records_and_missing_ids(ctx, queries.STOCK, variants)
        yield from self._stock_batches((named.records, named.source) for named in found)

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

    def map_location(self, record: Record) -> WarehouseBinDraft:
        return mapping.bin_of_location(record, self.settings)

    def map_inventory_lot(self, record: Record) -> InventoryLotDraft:
        return mapping.lot_of_inventory_level(record, self.settings)


def split_account_and_order_cursors(since: str | None) -> tuple[str | None, str | None]:
    """Return where the lists of accounts and of orders continue, from the cursor of customers."""
    if since is None or not since.startswith("{"):
        return since, since
    stored = exact_json.loads(since)
    return stored["accounts"], stored["orders"]


def join_account_and_order_cursors(accounts: str | None, orders: str | None, since: str | None) -> str | None:
    """Return the cursor of customers: the earlier position of both lists, or both as JSON if one is where it was."""
    if accounts == orders:
        return accounts
    before = split_account_and_order_cursors(since)
    if accounts is not None and orders is not None and accounts != before[0] and orders != before[1]:
        return min(accounts, orders)
    return exact_json.dumps({"accounts": accounts, "orders": orders}).decode()


def shop_currency(ctx: ShopifyContext) -> str:
    shop = shop_facts_requested_once(ctx)
    found = shop.at("/data/shop/currencyCode")
    if not isinstance(found, str):
        raise RefusedError("does not tell the currency of the shop", where=shop.address, code="answer_misplaced")
    return found


def _warn_of_hidden_orders(ctx: ShopifyContext) -> None:
    if are_old_orders_hidden(ctx.settings, granted_scopes(shop_facts_requested_once(ctx)), ctx.run.clock.now()):
        text = "the token lacks the scope read_all_orders: orders older than 60 days are not seen"
        ctx.run.warn(ctx.connection, text, code="scopes_missing")


_AT_A_TIME = 10  # a query may cost at most 1,000 points


def orders_with_complete_refunds(ctx: ShopifyContext, orders: list[Any]) -> list[Any]:
    orders = [complete_cut_order_lists(ctx, order) for order in orders]
    ids = [gid for order in orders for gid in refund_ids(order)]
    nodes = request_existing_nodes(ctx, REFUNDS, ids, _AT_A_TIME)
    found = {read["id"]: read for node in nodes if (read := complete_lists_of_refund(ctx, node)) is not None}
    lacking = [order.get("id") for order in orders if not found.keys() >= set(refund_ids(order))]
    still_there = request_existing_ids(ctx, lacking)
    return [with_found_refunds(order, found, still_there) for order in orders]
