"""Orders of the fake WooCommerce shop, and what a merchant does with them.

Sources: ``WC_REST_Orders_Controller`` (and its ``V2``), ``wc_create_refund`` and ``wc-stock-functions.php`` in
github.com/woocommerce/woocommerce. Every save changes ``date_modified``, one that changes nothing too.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from tests.partners.woocommerce.shop_catalog import Catalog, Product
from tests.partners.woocommerce.shop_customers import Customers
from tests.partners.woocommerce.shop_errors import RefusedError, invalid_parameter
from tests.partners.woocommerce.shop_order_lines import (
    KEPT_DECIMALS,
    LINE_KINDS,
    Coupon,
    Line,
    LineKind,
    Refund,
    net_price,
    totals,
)
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
        self.orders: dict[int, Order] = {}

    def place(self, *items: tuple[Product, int], status: str = "processing", **sent: Any) -> Order:
        """A shopper's order of some products; other members as requests send them, such as ``customer_id``."""
        lines = [{_id_member(product): product.id, "quantity": quantity} for product, quantity in items]
        order = self.create({"line_items": lines, "status": status, **sent})
        order.members["created_via"] = "checkout"
        return order

    def create(self, sent: dict[str, Any]) -> Order:
        now = self._shelf.now()
        members: dict[str, Any] = {
            **dict.fromkeys(_TEXTS, ""),
            "currency": self._shelf.settings.currency,
            "parent_id": 0,
            "customer_id": 0,
            "created_via": "rest-api",
            "billing": {},
            "shipping": {},
        }
        order = Order(0, now, now, members, tax_item_id=self._shelf.item_id())
        self._change(order, sent)
        order.id = next(self._shelf.post_ids)
        self.orders[order.id] = order
        self._pass_to(order, "processing" if sent.get("set_paid") is True else sent.get("status", "pending"))
        return order

    def edit(self, order: Order, sent: dict[str, Any]) -> None:
        """Save an order with the members of a request."""
        self._change(order, sent)
        if sent.get("set_paid") is True and not order.paid:
            self._pass_to(order, "processing")
        self._pass_to(order, sent.get("status", order.status))

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
        order.status, order.modified = status, self._shelf.now()

    def trash(self, order: Order) -> None:
        order.status, order.modified = "trash", self._shelf.now()

    def delete(self, order: Order) -> None:
        """Delete for ever. No trace is left."""
        del self.orders[order.id]

    def duplicate(self, order: Order) -> Order:
        """A copy with a new id, as extensions make it: the same content, not paid."""
        lines: dict[str, Any] = {
            kind: [self._sent(line) for line in order.lines if line.kind == kind] for kind in LINE_KINDS
        }
        kept = ("customer_id", "currency", "billing", "shipping", *_TEXTS)
        return self.create({**{name: order.members[name] for name in kept}, **lines})

    def refund(
        self, order: Order, amount: str, reason: str = "", units: dict[int, int] | None = None, **sent: Any
    ) -> Refund:
        """Return money, and *units* to the stock by the id of their line. The order's own amounts stay."""
        items = [{"id": line_id, "quantity": quantity} for line_id, quantity in (units or {}).items()]
        return self.create_refund(order, {"amount": amount, "reason": reason, "line_items": items, **sent})

    def create_refund(self, order: Order, sent: dict[str, Any]) -> Refund:
        """Source: ``wc_create_refund``. An order that is refunded as a whole passes to ``refunded``."""
        amount = decimal("amount", sent.get("amount", ""))
        remaining = totals(order.lines, self._shelf.settings)["total"] - sum(each.amount for each in order.refunds)
        if not 0 <= amount <= remaining:
            raise RefusedError(500, "woocommerce_rest_cannot_create_order_refund", "Invalid refund amount.")
        lines = []
        for item in sent.get("line_items", ()):
            line, quantity = _line(order.lines, item["id"]), int(item.get("quantity", 0))
            lines.append((line, quantity, decimal("refund_total", item.get("refund_total", 0))))
        for line, quantity, _ in lines:
            if line.product and sent.get("api_restock", True):
                self._catalog.move_stock(line.product, quantity)
        reason = str(sent.get("reason") or "")
        refund = Refund(next(self._shelf.post_ids), self._shelf.now(), amount, reason, tuple(lines))
        order.refunds.insert(0, refund)
        order.modified = self._shelf.now()
        if amount == remaining:
            self._pass_to(order, "refunded")
        return refund

    def forget_customer(self, customer_id: int) -> None:
        """Source: ``wc_reset_order_customer_id_on_deleted_user``: the orders become a guest's, which changes them."""
        for order in self.orders.values():
            if order.members["customer_id"] == customer_id:
                order.members["customer_id"], order.modified = 0, self._shelf.now()

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
        self._check_coupons(codes)
        lines, members = [replace(line, meta=list(line.meta)) for line in order.lines], order.members
        for kind in LINE_KINDS:
            for item in sent.get(kind) or ():
                self._change_line(lines, kind, item)
        order.lines = lines
        for name in ("customer_id", "currency", "parent_id", *_TEXTS):
            members[name] = sent.get(name, members[name])
        members["billing"] = address(BILLING, sent.get("billing"), members["billing"])
        members["shipping"] = address(SHIPPING, sent.get("shipping"), members["shipping"])
        if "coupon_lines" in sent:
            self._apply_coupons(order, codes)
        self._shelf.add_meta(order.meta, sent.get("meta_data"))
        order.modified = self._shelf.now()

    def _change_line(self, lines: list[Line], kind: LineKind, item: dict[str, Any]) -> None:
        """An item without id is new, one with the quantity 0 or null for its main member is removed. A new quantity
        alone does not change the amounts."""
        if item.get("id"):
            line = _line(lines, item["id"])
            main = {"line_items": "product_id", "shipping_lines": "method_id", "fee_lines": "name"}[kind]
            if item.get("quantity") == 0 or (main in item and item[main] is None):
                lines.remove(line)
                return
        else:
            line = self._new_line(kind, item)
            lines.append(line)
        line.quantity = item.get("quantity", line.quantity)
        line.name = str(item.get("name", item.get("method_title", line.name)))
        for name in ("subtotal", "total"):
            if name in item:
                setattr(line, name, self._kept(decimal(name, item[name])))
        if kind != "line_items":
            line.subtotal = line.total
        self._shelf.add_meta(line.meta, item.get("meta_data"))

    def _new_line(self, kind: LineKind, item: dict[str, Any]) -> Line:
        if kind != "line_items":
            if kind == "shipping_lines" and not item.get("method_id"):
                message = "Shipping method ID is required."
                raise RefusedError(400, "woocommerce_rest_invalid_shipping_item", message)
            return Line(
                self._shelf.item_id(), kind, "", Decimal(0), Decimal(0), method_id=str(item.get("method_id", ""))
            )
        product = self._product(item)
        amount = self._kept(net_price(product, self._shelf.settings) * item.get("quantity", 1))
        return Line(self._shelf.item_id(), kind, product.members["name"], amount, amount, product=product)

    def _product(self, item: dict[str, Any]) -> Product:
        wanted: Any = item.get("variation_id") or item.get("product_id")
        if not item.get("sku") and not wanted:
            message = "Product ID or SKU is required."
            raise RefusedError(400, "woocommerce_rest_required_product_reference", message)
        product = self._catalog.by_sku(item["sku"]) if item.get("sku") else self._catalog.products.get(wanted)
        if product is None:
            raise RefusedError(400, "order_item_product_invalid_product_id", "Invalid product ID")
        return product

    def _check_coupons(self, codes: list[str]) -> None:
        for code in codes:
            if code not in self._shelf.settings.coupons:
                message = f'Coupon "{code}" cannot be applied because it does not exist.'
                raise RefusedError(400, "woocommerce_rest_invalid_coupon", message)

    def _apply_coupons(self, order: Order, codes: list[str]) -> None:
        """Take percentages off the line items, one coupon after the other; earlier coupons are removed first."""
        known, settings = self._shelf.settings.coupons, self._shelf.settings
        items = [line for line in order.lines if line.kind == "line_items"]
        for line in items:
            line.total = line.subtotal
        order.coupons = []
        for code in codes:
            before = totals(order.lines, settings)
            for line in items:
                line.total = self._kept(line.total * (100 - known[code]) / 100)
            after = totals(order.lines, settings)
            taken = [after[name] - before[name] for name in ("discount_total", "discount_tax")]
            order.coupons.append(Coupon(self._shelf.item_id(), code, known[code], *taken))

    def _pass_to(self, order: Order, status: str) -> None:
        now = self._shelf.now()
        order.status = status
        if status in _PAID:
            order.paid = order.paid or now
        if status == "completed":
            order.completed = now
        if order.holds_stock != (status in _HOLDING_STOCK) and status in (*_HOLDING_STOCK, *_RELEASING_STOCK):
            order.holds_stock = not order.holds_stock
            for line in order.lines:
                if line.product:
                    self._catalog.move_stock(line.product, -line.quantity if order.holds_stock else line.quantity)

    def _kept(self, amount: Decimal) -> Decimal:
        return self._shelf.settings.rounded(amount, KEPT_DECIMALS)

    @staticmethod
    def _sent(line: Line) -> dict[str, Any]:
        sent = {"name": line.name, "quantity": line.quantity, "subtotal": line.subtotal, "total": line.total}
        if line.product:
            return {**sent, _id_member(line.product): line.product.id}
        return {**sent, "method_id": line.method_id, "method_title": line.name}


def _line(lines: list[Line], line_id: Any) -> Line:
    for line in lines:
        if line.id == line_id:
            return line
    message = "Order item ID provided is not associated with order."
    raise RefusedError(400, "woocommerce_rest_invalid_item_id", message)


def _id_member(product: Product) -> str:
    return "variation_id" if product.parent else "product_id"
