"""What buyers and the merchant do with orders in the fake Shopify shop; a test calls it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from itertools import count
from typing import Any, Literal

from tests.partners.shopify.cart import add_discount, add_lines, add_shipping, add_tip
from tests.partners.shopify.catalog import InventoryLevel, Location, ProductVariant
from tests.partners.shopify.customers import Customer
from tests.partners.shopify.fulfillments import OPEN, FulfillmentOrder, FulfillmentOrderLineItem
from tests.partners.shopify.money import Currencies, MoneyBag
from tests.partners.shopify.order_lines import Discount, Line, LineItem, Tax
from tests.partners.shopify.orders import NO_TAX, Order
from tests.partners.shopify.payments import (
    OrderAdjustment,
    OrderTransaction,
    Refund,
    RefundDuty,
    RefundLineItem,
    RefundShippingLine,
)
from tests.partners.shopify.records import Records

_NOTHING = Decimal(0)


class OrderDesk:
    """Places and changes orders. Every method counts as a change of the order, except where it says otherwise."""

    def __init__(self, records: Records, currency: str) -> None:
        self._records, self._currency, self._numbers = records, currency, count(1001)

    def place(
        self,
        *lines: Line,
        customer: Customer | None = None,
        discount: Discount | None = None,
        shipping: Decimal = _NOTHING,
        shipping_discount: Decimal = _NOTHING,
        tip: Decimal = _NOTHING,
        tip_line: bool = False,
        duties: Decimal = _NOTHING,
        fees: Decimal = _NOTHING,
        tax: Tax = NO_TAX,
        buyer: tuple[str, Decimal] | None = None,
        gift_card: Decimal = _NOTHING,
        paid: bool = True,
        age: timedelta = timedelta(0),
        **fields: Any,
    ) -> Order:
        """A new order, paid at once unless *paid* is false; then its payment is authorized only.

        Args:
            buyer: The currency in which the buyer pays, and what one unit of the shop's currency is in it.
            tip_line: Whether the tip has a line, too.
            gift_card: What is paid with a gift card, in the shop's currency.
            age: How long ago it was placed.
            fields: Of `Order`, such as the ``email`` and the ``shipping_address`` of a guest.
        """
        currencies = Currencies(self._currency, *(buyer or (self._currency,)))
        processed = self._records.now() - age
        order = Order(
            currencies=currencies,
            tax=tax,
            number=next(self._numbers),
            processed_at=processed,
            tip=currencies.bag(tip),
            duties=currencies.bag(duties) if duties else None,
            fees=currencies.bag(fees) if fees else None,
            customer=customer,
            **{"email": customer.email if customer else None, **fields},
        )
        add_lines(self._records, order, lines)
        add_shipping(self._records, order, shipping, shipping_discount)
        if discount:
            add_discount(order, discount)
        if tip_line:
            add_tip(self._records, order)
        order.original_total_price_set = order.total_price_set
        self._pay(order, gift_card, paid=paid)
        self._assign(order, order.line_items)
        if customer:
            customer.orders.append(order)
            order.shipping_address = order.billing_address = customer.default_address
            self._records.touch(customer)
        self._records.add(order)
        order.created_at = processed
        self._records.touch(order)
        return order

    def change(self, order: Order, **fields: Any) -> None:
        """Set fields of an order, such as ``note`` and ``tags``."""
        for name, value in fields.items():
            setattr(order, name, value)
        self._records.touch(order)

    def capture(self, order: Order) -> None:
        """Capture what was authorized."""
        [authorization] = [one for one in order.transactions if one.kind == "AUTHORIZATION"]
        self._transact(order, "CAPTURE", authorization.amount_set, parent_transaction=authorization)
        self._records.touch(order)

    def deposit(self, order: Order, amount: Decimal) -> None:
        """Take a part of the payment in place of an authorization."""
        order.transactions.clear()
        self._transact(order, "SALE", order.currencies.bag(amount))
        self._records.touch(order)

    def void(self, order: Order) -> None:
        """Cancel an order and give up its authorized payment."""
        [authorization] = [one for one in order.transactions if one.kind == "AUTHORIZATION"]
        self._transact(order, "VOID", authorization.amount_set, parent_transaction=authorization)
        self.cancel(order)

    def edit(self, order: Order, *added: Line, removed: Mapping[str, int] = {}) -> None:
        """Add lines, and remove units by SKU that have not shipped."""
        new = add_lines(self._records, order, added)
        self._assign(order, new)
        for sku, units in removed.items():
            self._cancel(order.line(sku), units, order)
        order.edited = True
        self._records.touch(order)

    def cancel(self, order: Order, reason: str = "CUSTOMER") -> None:
        """Cancel what has not shipped. Payments stay; `refund` pays back."""
        for line in order.line_items:
            self._cancel(line, line.unfulfilled_quantity, order)
        for one in order.fulfillment_orders:
            if one.status in {*OPEN, "ON_HOLD"}:
                one.status = "CLOSED" if one.fulfillments else "CANCELLED"
                self._records.touch(one)
        order.cancelled_at, order.cancel_reason = self._records.now(), reason
        self._records.touch(order)

    def close(self, order: Order) -> None:
        order.closed_at = self._records.now()
        self._records.touch(order)

    def delete(self, order: Order) -> None:
        """Delete an order; nothing but an event tells of it."""
        if order.customer:
            order.customer.orders.remove(order)
        for one in order.fulfillment_orders:
            self._records.remove(one)
        self._records.remove(order)

    def hold(self, one: FulfillmentOrder, *, released: bool = False) -> None:
        """Hold a fulfillment order, or release it. The order itself does not count as changed, as shop owners have
        seen (community.shopify.com/t/322697)."""
        one.status = "OPEN" if released else "ON_HOLD"
        self._records.touch(one)

    def refund(
        self,
        order: Order,
        lines: Mapping[str, int] = {},
        *,
        restock: Location | None = None,
        shipping: Decimal = _NOTHING,
        less: Decimal | Literal["all"] = _NOTHING,
        unpaid: Decimal = _NOTHING,
        duties: Decimal = _NOTHING,
        status: str = "SUCCESS",
        note: str | None = None,
    ) -> Refund:
        """Pay units back by SKU, shipping and duties.

        Units that have not shipped are cancelled and available again; shipped ones are returned to *restock*, if it is
        given.

        Args:
            less: What is kept back, in the shop's currency; an adjustment shows it. If it is all, no money moves. What
                is paid beyond the lines is negative.
            unpaid: What of the units was never paid, in the shop's currency: it is not paid back, and no adjustment
                shows it.
            status: That of the payment; `settle` changes it.
        """
        currencies, records = order.currencies, self._records
        refund = Refund(order=order, note=note)
        for sku, units in lines.items():
            refund.refund_line_items.append(self._take_back(order, order.line(sku), units, restock))
        amount = currencies.total(one.subtotal_set for one in refund.refund_line_items)
        if not order.taxes_included:
            amount += currencies.total(one.total_tax_set for one in refund.refund_line_items)
        if shipping:
            part = self._refund_shipping(order, currencies.bag(shipping))
            refund.refund_shipping_lines.append(part)
            amount += part.subtotal_amount_set
            amount = amount if order.taxes_included else amount + part.tax_amount_set
        if duties:
            refund.duties.append(RefundDuty(amount_set=currencies.bag(duties)))
            amount += currencies.bag(duties)
        if less:
            kept = amount if less == "all" else currencies.bag(less)
            refund.order_adjustments.append(
                records.add(OrderAdjustment(amount_set=kept, tax_amount_set=currencies.bag(0)))
            )
            amount -= kept
        amount -= currencies.bag(unpaid)
        if less != "all":
            paid = self._transact(order, "REFUND", amount, parent_transaction=order.transactions[0], status=status)
            refund.transactions.append(paid)
        order.refunds.append(records.add(refund))
        records.touch(order)
        return refund

    def settle(self, refund: Refund, status: str = "SUCCESS", *, quietly: bool = False) -> None:
        """End the payment of a refund. If *quietly*, the order does not count as changed."""
        for one in refund.transactions:
            one.status = status
        if not quietly:
            self._records.touch(refund.order)

    # Inside

    def _pay(self, order: Order, gift_card: Decimal, *, paid: bool) -> None:
        rest = order.total_price_set
        if gift_card:
            part = order.currencies.bag(gift_card)
            self._transact(order, "SALE", part, gateway="gift_card")
            rest -= part
        self._transact(order, "SALE" if paid else "AUTHORIZATION", rest)

    def _transact(self, order: Order, kind: str, amount: MoneyBag, **fields: Any) -> OrderTransaction:
        transaction = self._records.add(OrderTransaction(order=order, kind=kind, amount_set=amount, **fields))
        order.transactions.append(transaction)
        return transaction

    def _assign(self, order: Order, lines: Sequence[LineItem]) -> None:
        """Give what has to be shipped to locations, one fulfillment order each, and commit the stock."""
        by_location: dict[Location, list[LineItem]] = {}
        for line in lines:
            if line.requires_shipping:
                by_location.setdefault(self._location_of(line.variant), []).append(line)
        for location, assigned in by_location.items():
            one = FulfillmentOrder(order=order, location=location)
            for line in assigned:
                item = FulfillmentOrderLineItem(
                    line_item=line, total_quantity=line.quantity, remaining_quantity=line.quantity
                )
                one.line_items.append(self._records.add(item))
                self._move(line, location, available=-line.quantity, committed=line.quantity)
            order.fulfillment_orders.append(self._records.add(one))

    def _location_of(self, variant: ProductVariant | None) -> Location:
        levels: list[InventoryLevel] = variant.inventory_item.inventory_levels if variant else []
        return next((one.location for one in levels if one.is_active), self._records.all(Location)[0])

    def _cancel(self, line: LineItem, units: int, order: Order) -> None:
        line.removed += units
        line.cancelled += units
        for one in order.fulfillment_orders:
            for item in one.line_items:
                if item.line_item is line and units:
                    taken = min(units, item.remaining_quantity)
                    item.remaining_quantity -= taken
                    item.total_quantity -= taken
                    units -= taken
                    self._move(line, one.location, available=taken, committed=-taken)
                    self._records.touch(one)

    def _take_back(self, order: Order, line: LineItem, units: int, restock: Location | None) -> RefundLineItem:
        unshipped = min(units, line.unfulfilled_quantity)
        kind = "CANCEL" if unshipped == units else "RETURN" if restock else "NO_RESTOCK"
        if kind == "CANCEL":
            self._cancel(line, units, order)
        else:
            line.removed += units
            if restock:
                self._move(line, restock, available=units)
        return self._records.add(RefundLineItem(line_item=line, quantity=units, restock_type=kind, location=restock))

    def _refund_shipping(self, order: Order, amount: MoneyBag) -> RefundShippingLine:
        [line] = order.shipping_lines
        line.refunded += amount
        return self._records.add(
            RefundShippingLine(shipping_line=line, subtotal_amount_set=amount, tax_amount_set=order.tax.on(amount))
        )

    def _move(self, line: LineItem, location: Location, **deltas: int) -> None:
        level = line.variant.inventory_item.level_at(location) if line.variant else None
        if level:
            level.move(self._records.now(), **deltas)
            self._records.touch(level)
