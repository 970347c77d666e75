"""Bodies of the fake Shopify shop's webhooks: records in the form of the REST API, a part of its members.

Source: the examples of payloads at shopify.dev/docs/api/webhooks. Ids are numbers, amounts texts, states in lower case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from tests.partners.shopify.catalog import InventoryItem, InventoryLevel, Location, Product, ProductVariant
from tests.partners.shopify.customers import Customer, MailingAddress
from tests.partners.shopify.fulfillments import Fulfillment
from tests.partners.shopify.money import MoneyBag
from tests.partners.shopify.order_lines import LineItem
from tests.partners.shopify.orders import Order
from tests.partners.shopify.payments import Refund
from tests.partners.shopify.records import Change, Record

Body = dict[str, Any]
_FULFILLMENT = {"FULFILLED": "fulfilled", "PARTIALLY_FULFILLED": "partial", "RESTOCKED": "restocked"}


class Bodies:
    """Makes bodies with times of *zone*."""

    def __init__(self, zone: ZoneInfo) -> None:
        self._zone = zone
        self._makers: Mapping[type[Record], Callable[[Any], Body]] = {
            Customer: self._customer,
            Fulfillment: self._fulfillment,
            InventoryItem: self._item,
            InventoryLevel: self._level,
            Location: self._location,
            Order: self._order,
            Product: self._product,
            Refund: self._refund,
        }

    def of(self, record: Record, change: Change) -> Body:
        """The body for *record*; of one that is deleted, little more than its id."""
        if change != "delete":
            return self._makers[type(record)](record)
        if isinstance(record, InventoryLevel):
            return {name: value for name, value in self._level(record).items() if name in _LEVEL_KEY}
        return {"id": record.legacy_resource_id}

    def _common(self, record: Record) -> Body:
        return {
            "id": record.legacy_resource_id,
            "admin_graphql_api_id": record.id,
            "created_at": self._time(record.created_at),
            "updated_at": self._time(record.updated_at),
        }

    def _time(self, at: datetime | None) -> str | None:
        return None if at is None else at.astimezone(self._zone).isoformat(timespec="seconds")

    def _order(self, order: Order) -> Body:
        return {
            **self._common(order),
            "name": order.name,
            "order_number": order.number,
            "email": order.email or "",
            "phone": order.phone,
            "test": order.test,
            "note": order.note,
            "tags": ", ".join(order.tags),
            "processed_at": self._time(order.processed_at),
            "cancelled_at": self._time(order.cancelled_at),
            "cancel_reason": order.cancel_reason and order.cancel_reason.lower(),
            "closed_at": self._time(order.closed_at),
            "currency": order.currency_code,
            "presentment_currency": order.presentment_currency_code,
            "taxes_included": order.taxes_included,
            "financial_status": order.display_financial_status.lower(),
            "fulfillment_status": _FULFILLMENT.get(order.display_fulfillment_status),
            "subtotal_price": _amount(order.subtotal_price_set),
            "total_tax": _amount(order.total_tax_set),
            "total_discounts": _amount(order.total_discounts_set),
            "total_price": _amount(order.total_price_set),
            "current_total_price": _amount(order.current_total_price_set),
            "customer": order.customer and self._customer(order.customer),
            "billing_address": _address(order.billing_address),
            "shipping_address": _address(order.shipping_address),
            "line_items": [_line(line) for line in order.line_items],
            "refunds": [self._refund(refund) for refund in order.refunds],
            "fulfillments": [self._fulfillment(one) for one in order.fulfillments],
        }

    def _customer(self, customer: Customer) -> Body:
        return {
            **self._common(customer),
            "email": customer.email,
            "first_name": customer.first_name,
            "last_name": customer.last_name,
            "phone": customer.phone,
            "state": customer.state.lower(),
            "note": customer.note,
            "tags": ", ".join(customer.tags),
            "currency": customer.currency,
            "verified_email": customer.verified_email,
            "tax_exempt": customer.tax_exempt,
            "default_address": _address(customer.default_address),
        }

    def _product(self, product: Product) -> Body:
        return {
            **self._common(product),
            "title": product.title,
            "body_html": product.description_html,
            "vendor": product.vendor,
            "product_type": product.product_type,
            "handle": product.handle,
            "status": product.status.lower(),
            "tags": ", ".join(product.tags),
            "published_at": self._time(product.published_at),
            "variants": [self._variant(variant) for variant in product.variants],
        }

    def _variant(self, variant: ProductVariant) -> Body:
        return {
            **self._common(variant),
            "product_id": variant.product.legacy_resource_id,
            "title": variant.title,
            "price": f"{variant.price:.2f}",
            "sku": variant.sku,
            "barcode": variant.barcode,
            "position": variant.position,
            "inventory_item_id": variant.inventory_item.legacy_resource_id,
            "inventory_quantity": variant.inventory_quantity,
        }

    def _item(self, item: InventoryItem) -> Body:
        return self._common(item) | {
            "sku": item.sku,
            "tracked": item.tracked,
            "requires_shipping": item.requires_shipping,
        }

    def _level(self, level: InventoryLevel) -> Body:
        return {
            "inventory_item_id": level.item.legacy_resource_id,
            "location_id": level.location.legacy_resource_id,
            "available": level.units["available"],
            "updated_at": self._time(level.updated_at),
            "admin_graphql_api_id": level.id,
        }

    def _location(self, location: Location) -> Body:
        return self._common(location) | {"name": location.name, "active": location.is_active, **location.address}

    def _refund(self, refund: Refund) -> Body:
        return self._common(refund) | {
            "order_id": refund.order.legacy_resource_id,
            "note": refund.note,
            "refund_line_items": [
                {
                    "id": one.legacy_resource_id,
                    "line_item_id": one.line_item.legacy_resource_id,
                    "quantity": one.quantity,
                    "restock_type": one.restock_type.lower(),
                    "subtotal": _amount(one.subtotal_set),
                    "total_tax": _amount(one.total_tax_set),
                }
                for one in refund.refund_line_items
            ],
        }

    def _fulfillment(self, made: Fulfillment) -> Body:
        tracking = made.tracking_info
        return self._common(made) | {
            "order_id": made.order.legacy_resource_id,
            "name": made.name,
            "status": made.status.lower(),
            "location_id": made.location.legacy_resource_id,
            "tracking_company": tracking[0]["company"] if tracking else None,
            "tracking_number": tracking[0]["number"] if tracking else None,
            "tracking_numbers": [one["number"] for one in tracking],
            "tracking_urls": [one["url"] for one in tracking if one["url"]],
            "line_items": [_line(one.line_item) | {"quantity": one.quantity} for one in made.fulfillment_line_items],
        }


_LEVEL_KEY = ("inventory_item_id", "location_id")


def _line(line: LineItem) -> Body:
    return {
        "id": line.legacy_resource_id,
        "admin_graphql_api_id": line.id,
        "name": line.name,
        "title": line.title,
        "sku": line.sku,
        "quantity": line.quantity,
        "current_quantity": line.current_quantity,
        "price": _amount(line.original_unit_price_set),
        "product_id": line.product and line.product.legacy_resource_id,
        "variant_id": line.variant and line.variant.legacy_resource_id,
        "gift_card": line.is_gift_card,
        "requires_shipping": line.requires_shipping,
    }


def _address(address: MailingAddress | None) -> Body | None:
    if address is None:
        return None
    names = ("first_name", "last_name", "name", "company", "address1", "address2", "city", "province", "zip", "phone")
    return {name: getattr(address, name) for name in names} | {
        "country": address.country,
        "country_code": address.country_code_v2,
    }


def _amount(bag: MoneyBag) -> str:
    """In the shop's currency."""
    return str(bag.shop_money.amount)
