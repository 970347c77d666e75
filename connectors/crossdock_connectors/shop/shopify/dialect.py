"""How a Shopify shop is read by the streams of all shops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
from crossdock.json_values import at_path
from crossdock.sources import ApiAnswer, Checkpoint
from crossdock_connectors.shop.feeds import Feed, Pages
from crossdock_connectors.shop.record_values import GUEST, guest_key
from crossdock_connectors.shop.repeated_skus import RepeatedSkus
from crossdock_connectors.shop.shopify import bulk, deletions, feeds, mapping, queries
from crossdock_connectors.shop.shopify.invoicing import invoice_due, refund_rows
from crossdock_connectors.shop.shopify.pages import Item, ShopifyContext, asked, listed, number_of, record_pages, whole
from crossdock_connectors.shop.shopify.refunds import with_refunds
from crossdock_connectors.shop.shopify.scopes import granted, hides_orders
from crossdock_connectors.shop.shopify.settings import ShopifySettings
from crossdock_connectors.shop.streams import Dialect, Read

_IDS = 250  # in a page


class ShopifyDialect(Dialect[ShopifySettings]):
    """The Admin API (GraphQL)."""

    tells_deleted = True

    # ---- reading

    def products(self, ctx: ShopifyContext, since: str | None) -> Read:
        currency, skus = shop_currency(ctx), RepeatedSkus(ctx) if self.settings.product_key == "sku" else None
        feed = feeds.changes(ctx, queries.PRODUCTS, since)
        for records, source in feed.pages():
            rows = [row for record in records for row in self._variants(record)]
            if skus is not None:
                skus.check((at_path(row, "key"), at_path(row, "variant.id")) for row in rows)
            yield RawBatch.json([_joined(row, currency=currency) for row in rows], source=source)
        yield Checkpoint(feed.cursor)

    def _variants(self, product: Any) -> Iterator[Any]:
        for variant, row in _one_by_one(product, "variants", "variant"):
            yield _joined(row, key=self._product_key(variant))

    def _product_key(self, variant: Any) -> str | None:
        if self.settings.product_key == "sku":
            sku = at_path(variant, "sku")
            return sku if isinstance(sku, str) and sku else None
        return _number(at_path(variant, "id"))

    def customers(self, ctx: ShopifyContext, since: str | None) -> Read:
        orders, feed = self._orders(ctx, since), feeds.changes(ctx, queries.CUSTOMERS, since)
        for records, source in feed.pages():
            yield RawBatch.json([_keyed(record) for record in records], source=source)
        for records, source in orders.pages():
            yield RawBatch.json(self._guests(records), source=source)
        yield from deletions.deleted(ctx, since, "CUSTOMER")
        yield Checkpoint(min(feed.cursor, orders.cursor))

    def _guests(self, orders: Iterable[Any]) -> Iterator[Item]:
        """The customers of orders without an account, as Shopify would show them; only of orders that are read."""
        for order in orders:
            if not isinstance(order, dict) or order.get("customer") is not None:
                continue
            if order.get("test") is True and not self.settings.test_orders:
                continue
            email, number = order.get("email"), _number(order.get("id"))
            key = guest_key(self.settings.guests, email if isinstance(email, str) else None, number or "")
            if key == GUEST:
                yield {"key": key, "displayName": "Guest"}
                continue
            address = order.get("billingAddress") or order.get("shippingAddress")
            yield {
                "key": key,
                "displayName": address.get("name") if isinstance(address, dict) else None,
                "defaultEmailAddress": {"emailAddress": email},
                "defaultPhoneNumber": {"phoneNumber": order.get("phone")},
                "defaultAddress": address,
            }

    def orders(self, ctx: ShopifyContext, since: str | None) -> Read:
        feed = self._orders(ctx, since)
        for records, source in feed.pages():
            yield RawBatch.json([_keyed(record) for record in records], source=source)
        yield from deletions.deleted(ctx, since, "ORDER")
        yield Checkpoint(feed.cursor)

    def invoices(self, ctx: ShopifyContext, since: str | None) -> Read:
        feed = self._orders(ctx, since)
        for records, source in feed.pages():
            rows = [_joined(_keyed(record), due=invoice_due(record, self.settings.invoices)) for record in records]
            if self.settings.refunds == "credit_note":
                rows += [row for record in records for row in refund_rows(record)]
            yield RawBatch.json(rows, source=source)
        yield Checkpoint(feed.cursor)

    def _orders(self, ctx: ShopifyContext, since: str | None) -> Feed:
        if since is None:
            ctx.shared("shopify.order_age", lambda: _warn_of_hidden_orders(ctx))
        return feeds.changes(
            ctx, queries.ORDERS, since, more=lambda: self._moved_orders(ctx, since), complete=with_refunds
        )

    def _moved_orders(self, ctx: ShopifyContext, since: str | None) -> Pages:
        """The orders of customers that others were merged into: such orders do not count as changed.

        A merge deletes a customer and changes another, and nothing tells which.
        """
        if "CUSTOMER" not in deletions.events(ctx, since):
            return
        for customers, _ in feeds.changes(ctx, queries.CUSTOMERS, since).pages():
            for customer in customers:
                for page in listed(
                    ctx,
                    "/data/customer/orders",
                    queries.ORDERS_OF_CUSTOMER,
                    queries.ORDERS.size,
                    id=at_path(customer, "id"),
                ):
                    yield whole(ctx, queries.ORDERS, page.items("/data/customer/orders/nodes")), page.address

    def locations(self, ctx: ShopifyContext) -> Iterator[RawBatch]:
        for page in listed(ctx, "/data/locations", queries.LOCATIONS, _IDS):
            nodes = page.items("/data/locations/nodes")
            rows = [_joined(_keyed(node), mapped=self._is_mapped(_number(at_path(node, "id")))) for node in nodes]
            yield RawBatch.json(rows, source=page.address)

    def _is_mapped(self, location: str | None) -> bool:
        return not self.settings.locations or location in self.settings.locations

    def stock(self, ctx: ShopifyContext) -> Iterator[RawBatch]:
        if self.settings.bulk:
            pages = bulk.read(ctx, queries.STOCK, reuse=False).pages
        else:
            pages = record_pages(ctx, queries.STOCK)
        for records, source in pages:
            yield RawBatch.json([row for record in records for row in self._levels(record)], source=source)

    def _levels(self, variant: Any) -> Iterator[Any]:
        item, tracked = _number(at_path(variant, "inventoryItem.id")), at_path(variant, "inventoryItem.tracked")
        for level, row in _one_by_one(variant, "inventoryLevels", "level"):
            location = _number(at_path(level, "location.id"))
            yield _joined(
                row,
                key=None if item is None or location is None else f"{item}-{location}",
                counted=tracked is not False and at_path(level, "isActive") is not False,
                mapped=self._is_mapped(location),
            )

    def existing_products(self, ctx: ShopifyContext) -> Iterator[RawBatch]:
        yield from deletions.existing(ctx, "productVariants", "id sku", self._product_key)

    # ---- mapping

    def product(self, record: Record) -> ProductDraft:
        return mapping.product(record, self.settings)

    def customer(self, record: Record) -> CustomerDraft:
        return mapping.customer(record)

    def order(self, record: Record) -> OrderDraft:
        return mapping.order(record, self.settings)

    def invoice(self, record: Record) -> InvoiceDraft:
        return mapping.invoice(record, self.settings)

    def credit_note(self, record: Record) -> InvoiceDraft:
        return mapping.credit_note(record, self.settings)

    def location(self, record: Record) -> WarehouseBinDraft:
        return mapping.location(record, self.settings)

    def lot(self, record: Record) -> InventoryLotDraft:
        return mapping.level(record, self.settings)


def shop_currency(ctx: ShopifyContext) -> str:
    """The currency of the shop's prices.

    Raises:
        RefusedError: If the shop does not tell it.
    """
    shop = _shop(ctx)
    found = shop.at("/data/shop/currencyCode")
    if not isinstance(found, str):
        raise RefusedError("does not tell the currency of the shop", where=shop.address)
    return found


def _shop(ctx: ShopifyContext) -> ApiAnswer:
    return ctx.shared("shopify.shop", lambda: asked(ctx, queries.SHOP))


def _warn_of_hidden_orders(ctx: ShopifyContext) -> None:
    if hides_orders(ctx.settings, granted(_shop(ctx)), ctx.run.clock.now()):
        text = "the token lacks the scope read_all_orders: orders older than 60 days are not seen"
        ctx.run.warn(ctx.connection, text)


def _number(gid: Any) -> str | None:
    return (number_of(gid) or None) if isinstance(gid, str) else None


def _joined(item: Any, **members: Any) -> Any:
    """*item* with further members; what is no object stays as it is."""
    return {**item, **members} if isinstance(item, dict) else item


def _keyed(item: Any) -> Any:
    return _joined(item, key=_number(at_path(item, "id")))


def _one_by_one(item: Any, children: str, name: str) -> Iterator[tuple[Any, Any]]:
    """Each child of *item* with its row: the item, and the child as the member *name*.

    An item without a list of children is a row without a child.
    """
    found = at_path(item, children)
    if not isinstance(found, list):
        yield None, item
        return
    own = {member: value for member, value in item.items() if member != children}
    for child in found:
        yield child, {**own, name: child}
