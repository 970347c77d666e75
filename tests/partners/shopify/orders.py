"""An order: its statuses and totals follow from its lines, payments, refunds and fulfillments."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from itertools import groupby
from operator import attrgetter

from tests.partners.shopify.customers import Customer, MailingAddress
from tests.partners.shopify.fulfillments import Fulfillment, FulfillmentOrder
from tests.partners.shopify.money import Currencies, MoneyBag
from tests.partners.shopify.order_lines import DiscountApplication, LineItem, ShippingLine, Tax, TaxLine
from tests.partners.shopify.payments import OrderTransaction, Refund
from tests.partners.shopify.records import Record


@dataclass(eq=False, kw_only=True)
class Order(Record):
    """One order. Totals are before returns, those that begin with ``current`` after them."""

    currencies: Currencies
    tax: Tax
    number: int
    processed_at: datetime
    tip: MoneyBag
    duties: MoneyBag | None = None
    fees: MoneyBag | None = None
    customer: Customer | None = None
    email: str | None = None
    phone: str | None = None
    note: str | None = None
    tags: list[str] = field(default_factory=list)
    test: bool = False
    po_number: str | None = None
    source_name: str | None = "web"
    cancelled_at: datetime | None = None
    cancel_reason: str | None = None
    closed_at: datetime | None = None
    edited: bool = False
    billing_address: MailingAddress | None = None
    shipping_address: MailingAddress | None = None
    original_total_price_set: MoneyBag = field(init=False)
    custom_attributes: list[dict[str, str]] = field(default_factory=list)
    discount_applications: list[DiscountApplication] = field(default_factory=list)
    line_items: list[LineItem] = field(default_factory=list, repr=False)
    shipping_lines: list[ShippingLine] = field(default_factory=list, repr=False)
    transactions: list[OrderTransaction] = field(default_factory=list, repr=False)
    refunds: list[Refund] = field(default_factory=list, repr=False)
    fulfillments: list[Fulfillment] = field(default_factory=list, repr=False)
    fulfillment_orders: list[FulfillmentOrder] = field(default_factory=list, repr=False)

    SEARCHED = ("name", "display_financial_status", "display_fulfillment_status", "customer_id", "status")

    @property
    def name(self) -> str:
        return f"#{self.number}"

    @property
    def confirmed(self) -> bool:
        return self.cancelled_at is None

    @property
    def closed(self) -> bool:
        return self.closed_at is not None

    @property
    def status(self) -> str:
        """For the filter of this name."""
        return "cancelled" if self.cancelled_at else "closed" if self.closed_at else "open"

    @property
    def customer_id(self) -> str | None:
        return self.customer.id if self.customer else None

    @property
    def currency_code(self) -> str:
        return self.currencies.shop

    @property
    def presentment_currency_code(self) -> str:
        return self.currencies.presentment

    @property
    def taxes_included(self) -> bool:
        return self.tax.included

    @property
    def discount_codes(self) -> list[str]:
        return [one.name for one in self.discount_applications if one.kind == "code"]

    @property
    def discount_code(self) -> str | None:
        return self.discount_codes[0] if self.discount_codes else None

    @property
    def shipping_line(self) -> ShippingLine | None:
        return self.shipping_lines[0] if self.shipping_lines else None

    @property
    def payment_gateway_names(self) -> list[str]:
        return list(dict.fromkeys(one.gateway for one in self.transactions))

    # Before returns

    @property
    def subtotal_line_items_quantity(self) -> int:
        return sum(line.quantity for line in self.line_items)

    @property
    def subtotal_price_set(self) -> MoneyBag:
        """Without tips and shipping."""
        return self.currencies.total(line.price for line in self.line_items if not line.is_tip)

    @property
    def total_discounts_set(self) -> MoneyBag:
        return self.currencies.total(line.discounts for line in self.line_items)

    @property
    def total_shipping_price_set(self) -> MoneyBag:
        """Before discounts and returns."""
        return self.currencies.total(line.original_price_set for line in self.shipping_lines)

    @property
    def total_tip_received_set(self) -> MoneyBag:
        return self.tip

    @property
    def tax_lines(self) -> list[TaxLine]:
        goods = [tax for line in self.line_items for tax in line.tax_lines]
        return self._summed(goods + [tax for line in self.shipping_lines for tax in line.tax_lines])

    @property
    def total_tax_set(self) -> MoneyBag:
        return self.currencies.total(tax.price_set for tax in self.tax_lines)

    @property
    def total_price_set(self) -> MoneyBag:
        shipping = self.currencies.total(line.discounted_price_set for line in self.shipping_lines)
        net = self.subtotal_price_set + shipping + self.tip + self._extra
        return net if self.taxes_included else net + self.total_tax_set

    @property
    def _extra(self) -> MoneyBag:
        return self.currencies.total(one for one in (self.duties, self.fees) if one)

    @property
    def original_total_duties_set(self) -> MoneyBag | None:
        return self.duties

    @property
    def current_total_duties_set(self) -> MoneyBag | None:
        back = [duty.amount_set for refund in self.refunds for duty in refund.duties]
        return self.duties - self.currencies.total(back) if self.duties else None

    @property
    def original_total_additional_fees_set(self) -> MoneyBag | None:
        return self.fees

    @property
    def current_total_additional_fees_set(self) -> MoneyBag | None:
        return self.fees

    # After returns

    @property
    def current_subtotal_line_items_quantity(self) -> int:
        return sum(line.current_quantity for line in self.line_items)

    @property
    def current_subtotal_price_set(self) -> MoneyBag:
        left = (line for line in self.line_items if not line.is_tip)
        return self.currencies.total(line.part(line.price, line.current_quantity) for line in left)

    @property
    def current_total_discounts_set(self) -> MoneyBag:
        return self.currencies.total(line.part(line.discounts, line.current_quantity) for line in self.line_items)

    @property
    def current_shipping_price_set(self) -> MoneyBag:
        return self.currencies.total(line.current_discounted_price_set for line in self.shipping_lines)

    @property
    def current_tax_lines(self) -> list[TaxLine]:
        lines = [
            TaxLine(tax.title, tax.rate, line.part(tax.price_set, line.current_quantity))
            for line in self.line_items
            for tax in line.tax_lines
        ]
        shipping = [tax for line in self.shipping_lines for tax in self.tax.lines(line.current_discounted_price_set)]
        return self._summed(lines + shipping)

    @property
    def current_total_tax_set(self) -> MoneyBag:
        return self.currencies.total(tax.price_set for tax in self.current_tax_lines)

    @property
    def current_total_price_set(self) -> MoneyBag:
        net = self.current_subtotal_price_set + self.current_shipping_price_set + self.tip
        net -= self.currencies.total(line.part(line.price, line.removed) for line in self.line_items if line.is_tip)
        net += self.currencies.total(one for one in (self.current_total_duties_set, self.fees) if one)
        return net if self.taxes_included else net + self.current_total_tax_set

    # Payments

    @property
    def total_received_set(self) -> MoneyBag:
        return self._transacted("SALE", "CAPTURE")

    @property
    def total_refunded_set(self) -> MoneyBag:
        return self._transacted("REFUND")

    @property
    def total_refunded_shipping_set(self) -> MoneyBag:
        return self.currencies.total(line.refunded for line in self.shipping_lines)

    @property
    def net_payment_set(self) -> MoneyBag:
        return self.total_received_set - self.total_refunded_set

    @property
    def total_outstanding_set(self) -> MoneyBag:
        return self.current_total_price_set - self.net_payment_set

    @property
    def display_financial_status(self) -> str:
        received, refunded = self.total_received_set.shop_money.amount, self.total_refunded_set.shop_money.amount
        if refunded:
            return "REFUNDED" if refunded >= received else "PARTIALLY_REFUNDED"
        if received or not self.total_price_set.shop_money.amount:  # a free order is paid
            return "PAID" if received >= self.total_price_set.shop_money.amount else "PARTIALLY_PAID"
        kinds = {one.kind for one in self.transactions}
        return "VOIDED" if "VOID" in kinds else "AUTHORIZED" if "AUTHORIZATION" in kinds else "PENDING"

    @property
    def display_fulfillment_status(self) -> str:
        held = [one for one in self.fulfillment_orders if one.status != "CLOSED"]
        shipped = sum(line.fulfilled for line in self.line_items)
        if not any(line.unfulfilled_quantity for line in self.line_items if line.requires_shipping):
            return "FULFILLED" if shipped or not self.fulfillment_orders else "UNFULFILLED"
        if shipped:
            return "PARTIALLY_FULFILLED"
        return "ON_HOLD" if held and all(one.status == "ON_HOLD" for one in held) else "UNFULFILLED"

    def _transacted(self, *kinds: str) -> MoneyBag:
        done = (one for one in self.transactions if one.kind in kinds and one.status == "SUCCESS")
        return self.currencies.total(one.amount_set for one in done)

    def _summed(self, taxes: list[TaxLine]) -> list[TaxLine]:
        """One line for each title and rate."""
        by_rate = sorted(taxes, key=attrgetter("title", "rate"))
        return [
            TaxLine(title, rate, self.currencies.total(tax.price_set for tax in same))
            for (title, rate), same in groupby(by_rate, key=attrgetter("title", "rate"))
        ]

    def line(self, sku: str) -> LineItem:
        """The line with a SKU, or without one and with this title."""
        return next(line for line in self.line_items if (line.sku or line.title) == sku)


NO_TAX = Tax(Decimal(0), included=False)
