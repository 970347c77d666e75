"""Payments and refunds of an order, as the schema shows them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from tests.partners.shopify.catalog import Location
from tests.partners.shopify.money import MoneyBag
from tests.partners.shopify.order_lines import LineItem, ShippingLine
from tests.partners.shopify.records import Record

if TYPE_CHECKING:
    from tests.partners.shopify.orders import Order


@dataclass(eq=False, kw_only=True)
class OrderTransaction(Record):
    order: Order = field(repr=False)
    kind: str
    amount_set: MoneyBag
    gateway: str = "shopify_payments"
    status: str = "SUCCESS"
    parent_transaction: OrderTransaction | None = None

    @property
    def formatted_gateway(self) -> str:
        return self.gateway.replace("_", " ").capitalize()

    @property
    def test(self) -> bool:
        return self.order.test

    @property
    def processed_at(self) -> datetime:
        return self.created_at

    @property
    def payment_id(self) -> str:
        return f"{self.order.name}.{self.legacy_resource_id}"

    @property
    def manual_payment_gateway(self) -> bool:
        return self.gateway in {"manual", "bogus", "gift_card"}


@dataclass(eq=False, kw_only=True)
class RefundLineItem(Record):
    line_item: LineItem
    quantity: int
    restock_type: str
    location: Location | None = None

    @property
    def restocked(self) -> bool:
        return self.restock_type != "NO_RESTOCK"

    @property
    def price_set(self) -> MoneyBag:
        """Of one unit."""
        return self.line_item.discounted_unit_price_after_all_discounts_set

    @property
    def subtotal_set(self) -> MoneyBag:
        return self.line_item.part(self.line_item.price, self.quantity)

    @property
    def total_tax_set(self) -> MoneyBag:
        return self.line_item.part(self.line_item.tax_total, self.quantity)


@dataclass(eq=False, kw_only=True)
class RefundShippingLine(Record):
    shipping_line: ShippingLine
    subtotal_amount_set: MoneyBag
    tax_amount_set: MoneyBag


@dataclass(eq=False, kw_only=True)
class OrderAdjustment(Record):
    """A difference between what was returned and what was paid back; positive if less was paid back."""

    amount_set: MoneyBag
    tax_amount_set: MoneyBag
    reason: str = "REFUND_DISCREPANCY"


@dataclass(eq=False, kw_only=True)
class RefundDuty(Record):
    amount_set: MoneyBag


@dataclass(eq=False, kw_only=True)
class Refund(Record):
    order: Order = field(repr=False)
    note: str | None = None
    refund_line_items: list[RefundLineItem] = field(default_factory=list)
    refund_shipping_lines: list[RefundShippingLine] = field(default_factory=list)
    order_adjustments: list[OrderAdjustment] = field(default_factory=list)
    transactions: list[OrderTransaction] = field(default_factory=list)
    duties: list[RefundDuty] = field(default_factory=list)

    @property
    def processed_at(self) -> datetime:
        return self.created_at

    @property
    def total_refunded_set(self) -> MoneyBag:
        """What has been paid; a pending transaction is none yet."""
        return self.order.currencies.total(one.amount_set for one in self.transactions if one.status == "SUCCESS")
