"""How a Shopify shop is read by the streams of all shops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from crossdock import (
    CustomerDraft,
    InventoryLotDraft,
    InvoiceDraft,
    OrderDraft,
    ProductDraft,
    RawBatch,
    Record,
    RefusedError,
    WarehouseBinDraft,
)
from crossdock.sources import ApiAnswer
from crossdock.values import exact_json
from crossdock.values.json_paths import at_path
from crossdock_connectors.json_rows import with_members
from crossdock_connectors.shop.lists_read_once import Pages, StoredList, checkpoint_of_cursor
from crossdock_connectors.shop.repeated_skus import RepeatedSkus
from crossdock_connectors.shop.shop_key_ids import ids_in, orders_of_guests
from crossdock_connectors.shop.shopify import bulk, changes_read_once, deletions, mapping, named_records, queries
from crossdock_connectors.shop.shopify.cut_lists import refund_ids, whole_refund, with_found_refunds, with_whole_parts
from crossdock_connectors.shop.shopify.pages import (
    ShopifyContext,
    complete_records,
    existing_ids,
    nodes_of,
    record_pages,
    request_pages,
    request_query,
)
from crossdock_connectors.shop.shopify.queries import REFUNDS
from crossdock_connectors.shop.shopify.rows import ShopifyRows, number_or_none, with_key
from crossdock_connectors.shop.shopify.scopes import granted_scopes, hides_orders, sees_all_orders
from crossdock_connectors.shop.shopify.settings import ShopifySettings
from crossdock_connectors.shop.streams import CREDIT_NOTE, Dialect, Read

_IDS = 250  # in a page


class ShopifyDialect(Dialect[ShopifySettings]):
    tells_deleted = True

    def __init__(self, settings: ShopifySettings) -> None:
        super().__init__(settings)
        self.rows = ShopifyRows(settings)

    # ---- reading

    def products(self, ctx: ShopifyContext, since: str | None) -> Read:
        currency, skus = shop_currency(ctx), RepeatedSkus(ctx) if self.settings.product_key == "sku" else None
        feed = changes_read_once.changed_records(ctx, queries.PRODUCTS, since)
        for records, source in feed.pages():
            rows = [row for record in records for row in self.rows.of_product(record)]
            if skus is not None:
                skus.check((at_path(row, "key"), at_path(row, "variant.id")) for row in rows)
            yield RawBatch.json([with_members(row, currency=currency) for row in rows], source=source)
        yield from checkpoint_of_cursor(feed.cursor)

    def customers(self, ctx: ShopifyContext, since: str | None) -> Read:
        of_accounts, of_orders = positions_of_customers(since)
        orders = self._orders(ctx, of_orders)
        feed = changes_read_once.changed_records(ctx, queries.CUSTOMERS, of_accounts)
        for records, source in feed.pages():
            yield RawBatch.json([with_key(record) for record in records], source=source)
        for records, source in orders.pages():
            yield RawBatch.json(self.rows.of_guests(records), source=source)
        yield from deletions.deleted_records(ctx, of_accounts, "CUSTOMER")
        yield from checkpoint_of_cursor(cursor_of_customers(feed.cursor, orders.cursor, since))

    def orders(self, ctx: ShopifyContext, since: str | None) -> Read:
        feed = self._orders(ctx, since)
        for records, source in feed.pages():
            yield RawBatch.json([with_key(record) for record in records], source=source)
        yield from deletions.deleted_records(ctx, since, "ORDER")
        yield from checkpoint_of_cursor(feed.cursor)

    def invoices(self, ctx: ShopifyContext, since: str | None) -> Read:
        feed = self._orders(ctx, since)
        for records, source in feed.pages():
            yield RawBatch.json(self.rows.of_invoices(records), source=source)
        yield from checkpoint_of_cursor(feed.cursor)

    def _orders(self, ctx: ShopifyContext, since: str | None) -> StoredList:
        if since is None:
            ctx.shared("shopify.order_age", lambda: _warn_of_hidden_orders(ctx))
        return changes_read_once.changed_records(
            ctx, queries.ORDERS, since, more=lambda: self._moved_orders(ctx, since), complete=with_refunds
        )

    def _moved_orders(self, ctx: ShopifyContext, since: str | None) -> Pages:
        """Yield the orders of customers into which others were merged: the shop does not count them as changed."""
        if "CUSTOMER" not in deletions.deletion_events(ctx, since):
            return
        for customers, _ in changes_read_once.changed_records(ctx, queries.CUSTOMERS, since).pages():
            for customer in customers:
                for page in request_pages(
                    ctx,
                    "/data/customer/orders",
                    queries.ORDERS_OF_CUSTOMER,
                    queries.ORDERS.size,
                    id=at_path(customer, "id"),
                ):
                    yield complete_records(ctx, queries.ORDERS, page.items("/data/customer/orders/nodes")), page.address

    def locations(self, ctx: ShopifyContext) -> Iterator[RawBatch]:
        for page in request_pages(ctx, "/data/locations", queries.LOCATIONS, _IDS):
            nodes = page.items("/data/locations/nodes")
            rows = [
                with_members(with_key(node), mapped=self.rows.is_mapped(number_or_none(at_path(node, "id"))))
                for node in nodes
            ]
            yield RawBatch.json(rows, source=page.address)

    def stock(self, ctx: ShopifyContext) -> Iterator[RawBatch]:
        if self.settings.bulk:
            pages = bulk.read_in_bulk(ctx, queries.STOCK, reuse=False).pages
        else:
            pages = record_pages(ctx, queries.STOCK)
        for records, source in pages:
            yield RawBatch.json([row for record in records for row in self.rows.of_levels(record)], source=source)

    def existing_products(self, ctx: ShopifyContext) -> Iterator[RawBatch]:
        yield from deletions.existing_keys(ctx, "productVariants", "id sku", self.rows.product_key)

    # ---- fetching

    def fetched_products(self, ctx: ShopifyContext, keys: Sequence[str]) -> Iterator[RawBatch]:
        by_sku = self.settings.product_key == "sku"
        if by_sku:
            found = named_records.variants_of_skus(ctx, keys)
        else:
            found = named_records.records(ctx, queries.VARIANTS, ids_in(keys))
        for variants, source, _ in found:
            currency = shop_currency(ctx)
            rows = [with_members(self.rows.of_variant(variant), currency=currency) for variant in variants]
            yield RawBatch.json(rows, source=source)

    def fetched_customers(self, ctx: ShopifyContext, keys: Sequence[str]) -> Iterator[RawBatch]:
        for accounts, source, missing in named_records.records(ctx, queries.CUSTOMERS, ids_in(keys)):
            yield RawBatch.json(map(with_key, accounts), source=source, deleted=missing)
        for orders, source, _ in named_records.records(ctx, queries.ORDERS, orders_of_guests(keys)):
            yield RawBatch.json(self.rows.of_guests(orders), source=source)

    def fetched_orders(self, ctx: ShopifyContext, keys: Sequence[str]) -> Iterator[RawBatch]:
        for orders, source, missing in named_records.records(ctx, queries.ORDERS, ids_in(keys)):
            gone = missing if missing and sees_all_orders(granted_scopes(_shop_answer(ctx))) else []
            yield RawBatch.json(map(with_key, with_refunds(ctx, orders)), source=source, deleted=gone)

    def fetched_invoices(self, ctx: ShopifyContext, keys: Sequence[str]) -> Iterator[RawBatch]:
        refunds = ids_in(keys, f"{CREDIT_NOTE}-")
        wanted = dict.fromkeys([*ids_in(keys), *named_records.orders_of_refunds(ctx, refunds)])
        for orders, source, _ in named_records.records(ctx, queries.ORDERS, list(wanted)):
            yield RawBatch.json(self.rows.of_invoices(with_refunds(ctx, orders)), source=source)

    def stock_of_keys(self, ctx: ShopifyContext, keys: Sequence[str]) -> Iterator[RawBatch]:
        items = ids_in([key.partition("-")[0] for key in keys])
        variants = named_records.variants_of_items(ctx, items)
        for records, source, _ in named_records.records(ctx, queries.STOCK, variants):
            yield RawBatch.json([row for record in records for row in self.rows.of_levels(record)], source=source)

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

    def location(self, record: Record) -> WarehouseBinDraft:
        return mapping.bin_of_location(record, self.settings)

    def inventory_lot(self, record: Record) -> InventoryLotDraft:
        return mapping.lot_of_inventory_level(record, self.settings)


def positions_of_customers(since: str | None) -> tuple[str | None, str | None]:
    """Return where the lists of accounts and of orders continue, from the cursor of customers."""
    if since is None or not since.startswith("{"):
        return since, since
    stored = exact_json.loads(since)
    return stored["accounts"], stored["orders"]


def cursor_of_customers(accounts: str | None, orders: str | None, since: str | None) -> str | None:
    """Return the cursor of customers: the earlier position of both lists, or both as JSON if one is where it was."""
    if accounts == orders:
        return accounts
    before = positions_of_customers(since)
    if accounts is not None and orders is not None and accounts != before[0] and orders != before[1]:
        return min(accounts, orders)
    return exact_json.dumps({"accounts": accounts, "orders": orders}).decode()


def shop_currency(ctx: ShopifyContext) -> str:
    shop = _shop_answer(ctx)
    found = shop.at("/data/shop/currencyCode")
    if not isinstance(found, str):
        raise RefusedError("does not tell the currency of the shop", where=shop.address, code="answer_misplaced")
    return found


def _shop_answer(ctx: ShopifyContext) -> ApiAnswer:
    return ctx.shared("shopify.shop", lambda: request_query(ctx, queries.SHOP))


def _warn_of_hidden_orders(ctx: ShopifyContext) -> None:
    if hides_orders(ctx.settings, granted_scopes(_shop_answer(ctx)), ctx.run.clock.now()):
        text = "the token lacks the scope read_all_orders: orders older than 60 days are not seen"
        ctx.run.warn(ctx.connection, text, code="scopes_missing")


_AT_A_TIME = 10  # a query may cost at most 1,000 points


def with_refunds(ctx: ShopifyContext, orders: list[Any]) -> list[Any]:
    orders = [with_whole_parts(ctx, order) for order in orders]
    ids = [gid for order in orders for gid in refund_ids(order)]
    nodes = nodes_of(ctx, REFUNDS, ids, _AT_A_TIME)
    found = {read["id"]: read for node in nodes if (read := whole_refund(ctx, node)) is not None}
    lacking = [order.get("id") for order in orders if not found.keys() >= set(refund_ids(order))]
    still_there = existing_ids(ctx, lacking)
    return [with_found_refunds(order, found, still_there) for order in orders]
