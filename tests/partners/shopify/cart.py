"""What goes into an order of the fake Shopify shop: its lines, its shipping and its discounts."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Literal

from tests.partners.shopify.money import MoneyV2
from tests.partners.shopify.order_lines import (
    Discount,
    DiscountAllocation,
    DiscountApplication,
    Line,
    LineItem,
    PricingPercentageValue,
    ShippingLine,
)
from tests.partners.shopify.orders import NO_TAX, Order
from tests.partners.shopify.records import Records


def add_lines(records: Records, order: Order, lines: Sequence[Line]) -> list[LineItem]:
    """Add lines with their own discounts; returns the new ones."""
    added = []
    for line in lines:
        item = records.add(_line_item(order, line))
        if line.discount:
            application = _apply(order, Discount("manual", "Damaged box", amount=line.discount), "line")
            taken = order.currencies.bag(line.discount).off(item.original_total_set)
            item.discount_allocations.append(DiscountAllocation(taken, application))
        added.append(item)
    order.line_items += added
    return added


def add_tip(records: Records, order: Order) -> None:
    """Add the line of the order's tip, which nothing but its name distinguishes."""
    price = order.tip
    tip = LineItem(
        currencies=order.currencies,
        tax=NO_TAX,
        title="Tip",
        quantity=1,
        original_unit_price_set=price,
        requires_shipping=False,
    )
    order.line_items.append(records.add(tip))


def add_shipping(records: Records, order: Order, price: Decimal, discount: Decimal) -> None:
    bag, none = order.currencies.bag(price), order.currencies.bag(0)
    line = ShippingLine(
        currencies=order.currencies, tax=order.tax, title="Standard", original_price_set=bag, refunded=none
    )
    if discount:
        application = _apply(order, Discount("code", "SHIP", amount=discount), "line")
        line.discount_allocations.append(DiscountAllocation(order.currencies.bag(discount).off(bag), application))
    order.shipping_lines.append(records.add(line))


def add_discount(order: Order, discount: Discount) -> None:
    """Take *discount* off the whole order, from its lines in proportion to their prices."""
    prices = [line.price for line in order.line_items]
    subtotal = order.currencies.total(prices)
    fixed = order.currencies.bag(discount.amount or 0).off(subtotal)
    whole = subtotal.times(discount.percentage / 100) if discount.percentage else fixed
    application = _apply(order, discount, "order")
    for line, share in zip(order.line_items, whole.shares(prices), strict=True):
        line.discount_allocations.append(DiscountAllocation(share, application))


def _apply(order: Order, discount: Discount, level: Literal["order", "line"]) -> DiscountApplication:
    value = (
        PricingPercentageValue(discount.percentage)
        if discount.percentage
        else MoneyV2(discount.amount or Decimal(0), order.currencies.shop)
    )
    index = len(order.discount_applications)
    application = DiscountApplication(kind=discount.kind, name=discount.name, index=index, value=value, level=level)
    order.discount_applications.append(application)
    return application


def _line_item(order: Order, line: Line) -> LineItem:
    variant = line.variant
    price = line.price if line.price is not None else variant.price if variant else Decimal(0)
    common: dict[str, Any] = {
        "currencies": order.currencies,
        "tax": order.tax,
        "quantity": line.quantity,
        "original_unit_price_set": order.currencies.bag(price),
    }
    if variant is None:
        return LineItem(title=line.title, **common)
    return LineItem(
        title=variant.product.title,
        variant_title=None if variant.title == "Default Title" else variant.title,
        sku=variant.sku,
        vendor=variant.product.vendor,
        product=variant.product,
        variant=variant,
        is_gift_card=variant.product.is_gift_card,
        requires_shipping=variant.inventory_item.requires_shipping,
        **common,
    )
