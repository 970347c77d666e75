"""What a fake Shopify shop has, as plain JSON for the judge: single facts, and none of the sums that the shop shows."""

from __future__ import annotations

from typing import Any

from tests.partners.shopify.catalog import InventoryLevel, Location, ProductVariant
from tests.partners.shopify.customers import Customer
from tests.partners.shopify.fake_shop import FakeShopify
from tests.partners.shopify.money import MoneyBag
from tests.partners.shopify.order_lines import LineItem
from tests.partners.shopify.orders import Order
from tests.partners.shopify.payments import Refund
from tests.partners.shopify.records import Records

Row = dict[str, Any]


def dump(shop: FakeShopify) -> Row:
    """All records of the shop. An amount is a pair: in the shop's currency, and in the buyer's."""
    records = shop.records
    return {
        "locations": [{"id": _number(one.id), "name": one.name} for one in records.all(Location)],
        "customers": [{"id": _number(one.id), "name": one.display_name} for one in records.all(Customer)],
        "variants": [_variant(one) for one in records.all(ProductVariant)],
        "levels": [_level(one) for one in records.all(InventoryLevel)],
        "orders": [_order(one, records) for one in records.all(Order)],
    }


def _variant(variant: ProductVariant) -> Row:
    return {
        "id": _number(variant.id),
        "sku": variant.sku,
        "price": str(variant.price),
        "active": variant.product.status == "ACTIVE",
    }


def _level(level: InventoryLevel) -> Row:
    item = level.item
    return {
        "item": _number(item.id),
        "variant": _number(item.variant.id) if item.variant else None,
        "location": _number(level.location.id),
        "on_hand": level.units["on_hand"],
    }


def _order(order: Order, records: Records) -> Row:
    return {
        "id": _number(order.id),
        "test": order.test,
        "currencies": [order.currency_code, order.presentment_currency_code],
        "customer": _number(order.customer.id) if order.customer else None,
        "email": order.email,
        "cancelled": order.cancelled_at is not None,
        "fulfillment_status": order.display_fulfillment_status,
        "tax_rate": str(order.tax.rate),
        "taxes_included": order.taxes_included,
        "tip": _money(order.tip),
        "lines": [_line(line, records) for line in order.line_items],
        "shipping": [[_money(one.original_price_set), _money(one.refunded)] for one in order.shipping_lines],
        "payments": [[one.kind, _money(one.amount_set)] for one in order.transactions],
        "parcels": [parcel["number"] for one in order.fulfillments for parcel in one.tracking_info],
        "refunds": [_refund(one) for one in order.refunds],
    }


def _line(line: LineItem, records: Records) -> Row:
    exists = line.variant is not None and records.any(line.variant.id) is not None
    return {
        "id": _number(line.id),
        "variant": _number(line.variant.id) if line.variant and exists else None,
        "gift_card": line.is_gift_card,
        "quantity": line.quantity,
        "removed": line.removed,
        "price": _money(line.original_unit_price_set),
        "discounts": [_money(one.allocated_amount_set) for one in line.discount_allocations],
    }


def _refund(refund: Refund) -> Row:
    return {
        "id": _number(refund.id),
        "lines": [[_number(one.line_item.id), one.quantity] for one in refund.refund_line_items],
        "shipping": [_money(one.subtotal_amount_set) for one in refund.refund_shipping_lines],
        "paid": [_money(one.amount_set) for one in refund.transactions],
    }


def _money(bag: MoneyBag) -> list[str]:
    return [str(bag.shop_money.amount), str(bag.presentment_money.amount)]


def _number(gid: str) -> str:
    return gid.rpartition("/")[2].partition("?")[0]
