"""Orders of the fake WooCommerce shop, and what a merchant does with them.

Sources: ``WC_REST_Orders_Controller`` (and its ``V2``), ``wc_create_refund`` and ``wc-stock-functions.php`` in
github.com/woocommerce/woocommerce. Every save changes ``date_modified``, one that changes nothing too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from tests.partners.woocommerce.shop_catalog import Catalog, Product
from tests.partners.woocommerce.shop_customers import Customers
from tests.partners.woocommerce.shop_errors import RefusedError, invalid_parameter
from tests.partners.woocommerce.shop_order_editing import LineEditor, id_member, line_of, sent_line
from tests.partners.woocommerce.shop_order_lines import LINE_KINDS, Coupon, Line, Refund, totals
from tests.partners.woocommerce.shop_records import BILLING, SHIPPING, Record, Shelf, address, decimal

_TEXTS = ("customer_note", "payment_method", "payment_method_title", "transaction_id")
_PAID = ("processing", "completed")
_HOLDING_STOCK = ("processing", "completed", "on-hold")
_RELEASING_STOCK = ("cancelled", "pending")


@dataclass(slots=True)
class Order(Record):
    """One order; ``customer_id`` 0 is a guest."""

    status: str = "pending"
    tax_item_id: int = 0
    lines: list[Line] = field(default_factory=list)
    coupons: list[Coupon] = field(default_factory=list)
    refunds: list[Refund] = field(default_factory=list)
    notes: list[dict[str, Any]] = field(default_factory=list)
    tracking: list[dict[str, str]] = field(default_factory=list)
    paid: datetime | None = None
    completed: datetime | None = None
    holds_stock: bool = False


class Orders:
    """All orders, by id; trashed ones have the status ``trash``, deleted ones are gone."""

    def __init__(self, shelf: Shelf, catalog: Catalog, customers: Customers) -> None:
        self._shelf, self._catalog, self._customers = shelf, catalog, customers
        self._editor = LineEditor(shelf, catalog)
        self.orders: dict[int, Order] = {}

    def place(self, *items: tuple[Product, int], status: str = "processing", **sent: Any) -> Order:
        """A shopper's order of some products; other members as requests send them, such as ``customer_id``."""
        lines = [{id_member(product): product.id, "quantity": quantity} for product, quantity in items]
        return self.create({"line_items": lines, "status": status, **sent}, created_via="checkout")

    def create(self, sent: dict[str, Any], created_via: str = "rest-api") -> Order:
        now = self._shelf.now()
        members: dict[str, Any] = {
            **dict.fromkeys(_TEXTS, ""),
            "currency": self._shelf.settings.currency,
            "parent_id": 0,
            "customer_id": 0,
            "created_via": created_via,
            "billing": {},
            "shipping": {},
        }
        order = Order(0, now, now, members, tax_item_id=self._shelf.item_id())
        self._change(order, sent)
        order.id = next(self._shelf.post_ids)
        self.orders[order.id] = order
        self._pass_to(order, "processing" if sent.get("set_paid") is True else sent.get("status", "pending"))
        order.modified = self._shelf.now()
        self._shelf.tell(order, "created")
        return order

    def edit(self, order: Order, sent: dict[str, Any]) -> None:
        """Save an order with the members of a request."""
        self._change(order, sent)
        if sent.get("set_paid") is True and not order.paid:
            self._pass_to(order, "processing")
        self._pass_to(order, sent.get("status", order.status))
        self._shelf.saved(order)

    def numbered(self, number: str) -> Order:
        """The order with an id from an address.

        Raises:
            RefusedError: 404 if there is none.
        """
        order = self.orders.get(int(number)) if number.isdecimal() else None
        if order is None:
            raise RefusedError(404, "woocommerce_rest_order_invalid_id", "Invalid order ID.")
        return order

    def set_unregistered_status(self, order: Order, status: str) -> None:
        """Leave an order in a status whose extension was removed, so that ``status=any`` does not list it."""
        order.status = status
        self._shelf.saved(order)

    def trash(self, order: Order) -> None:
        order.status, order.modified = "trash", self._shelf.now()
        self._shelf.tell(order, "deleted")

    def delete(self, order: Order) -> None:
        """Delete for ever. No trace is left."""
        del self.orders[order.id]

    def duplicate(self, order: Order) -> Order:
        """A copy with a new id, as extensions make it: the same content, not paid."""
        lines: dict[str, Any] = {
            kind: [sent_line(line) for line in order.lines if line.kind == kind] for kind in LINE_KINDS
        }
        kept = ("customer_id", "currency", "billing", "shipping", *_TEXTS)
        return self.create({**{name: order.members[name] for name in kept}, **lines})

    def refund(
        self, order: Order, amount: str, reason: str = "", units: dict[int, int] | None = None, **sent: Any
    ) -> Refund:
        """Return money, and *units* to the stock by the id of their line. The order's own amounts stay."""
        items = [{"id": line_id, "quantity": quantity} for line_id, quantity in (units or {}).items()]
        body = {"amount": amount, "reason": reason, "line_items": items, "api_refund": False, **sent}
        return self.create_refund(order, body)

    def create_refund(self, order: Order, sent: dict[str, Any]) -> Refund:
        """Source: ``wc_create_refund``. An order that is refunded as a whole passes to ``refunded``.

        By default the payment is returned as well, which needs a payment method.
        """
        amount, remaining = decimal("amount", sent.get("amount", "")), self._remaining(order)
        if not 0 <= amount <= remaining:
            raise _no_refund("Invalid refund amount.")
        if sent.get("api_refund", True) and not order.members["payment_method"]:
            raise _no_refund("The payment gateway for this order does not exist.")
        lines = []
        for item in sent.get("line_items", ()):
            line, quantity = line_of(order.lines, item["id"]), int(item.get("quantity", 0))
            lines.append((line, quantity, decimal("refund_total", item.get("refund_total", 0))))
        for line, quantity, _ in lines:
            if line.taken and sent.get("api_restock", True):
                line.restocked += quantity
        self._settle_stock(order)
        refund = self._add_refund(order, amount, str(sent.get("reason") or ""), tuple(lines))
        if amount == remaining:
            self._pass_to(order, "refunded")
        return refund

    def forget_customer(self, customer_id: int) -> None:
        """Source: ``wc_reset_order_customer_id_on_deleted_user``: the orders become a guest's, which changes them."""
        for order in self.orders.values():
            if order.members["customer_id"] == customer_id:
                order.members["customer_id"] = 0
                self._shelf.saved(order)

    def add_note(self, order: Order, sent: dict[str, Any]) -> dict[str, Any]:
        """A note does not change the order's ``date_modified``: it is a comment."""
        note = {
            "id": next(self._shelf.comment_ids),
            "author": "system",
            **self._shelf.settings.times("date_created", self._shelf.now()),
            "note": str(sent["note"]),
            "customer_note": sent.get("customer_note") is True,
        }
        order.notes.insert(0, note)
        return note

    # ---- what requests send

    def _change(self, order: Order, sent: dict[str, Any]) -> None:
        status, customer_id = sent.get("status", "pending"), sent.get("customer_id", 0)
        if status not in self._shelf.settings.statuses and status != order.status:
            raise invalid_parameter("status", f"status is not one of {', '.join(self._shelf.settings.statuses)}.")
        if customer_id and customer_id not in self._customers.customers:
            raise RefusedError(400, "woocommerce_rest_invalid_customer_id", "Customer ID is invalid.")
        codes = [str(one.get("code", "")) for one in sent.get("coupon_lines") or ()]
        self._editor.check_coupons(codes)
        order.lines, removed = self._editor.changed(order.lines, sent)
        for line in removed:
            if line.product:
                self._catalog.move_stock(line.product, line.taken)
        members = order.members
        for name in ("customer_id", "currency", "parent_id", *_TEXTS):
            members[name] = sent.get(name, members[name])
        members["billing"] = address(BILLING, sent.get("billing"), members["billing"])
        members["shipping"] = address(SHIPPING, sent.get("shipping"), members["shipping"])
        if "coupon_lines" in sent:
            order.coupons = self._editor.apply_coupons(order.lines, codes)
        self._shelf.add_meta(order.meta, sent.get("meta_data"))

    def _pass_to(self, order: Order, status: str) -> None:
        """Pass to a status. ``refunded`` returns what remains, without units (source: ``wc_order_fully_refunded``)."""
        now, before = self._shelf.now(), order.status
        order.status = status
        if status in _PAID:
            order.paid = order.paid or now
        if status == "completed":
            order.completed = now
        if status in (*_HOLDING_STOCK, *_RELEASING_STOCK):
            order.holds_stock = status in _HOLDING_STOCK
        self._settle_stock(order)
        remaining = self._remaining(order)
        if status == "refunded" != before and remaining > 0:
            self._add_refund(order, remaining, "Order fully refunded.", ())

    def _settle_stock(self, order: Order) -> None:
        """Take from the stock what the lines lack, or give back what they have too much; each unit once."""
        for line in order.lines:
            wanted = line.quantity - line.restocked if order.holds_stock else 0
            if line.product and wanted != line.taken:
                self._catalog.move_stock(line.product, line.taken - wanted)
                line.taken = wanted

    def _remaining(self, order: Order) -> Decimal:
        """What was not refunded yet."""
        return totals(order.lines, self._shelf.settings)["total"] - sum(each.amount for each in order.refunds)

    def _add_refund(
        self, order: Order, amount: Decimal, reason: str, lines: tuple[tuple[Line, int, Decimal], ...]
    ) -> Refund:
        refund = Refund(next(self._shelf.post_ids), self._shelf.now(), amount, reason, lines)
        order.refunds.insert(0, refund)
        self._shelf.saved(order)
        return refund


def _no_refund(message: str) -> RefusedError:
    return RefusedError(500, "woocommerce_rest_cannot_create_order_refund", message)
