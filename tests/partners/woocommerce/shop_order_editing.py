"""How requests change the lines of an order of the fake WooCommerce shop, and what coupons take off.

Source: ``WC_REST_Orders_V2_Controller::set_item`` and ``WC_REST_Orders_Controller::calculate_coupons`` in
github.com/woocommerce/woocommerce.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from tests.partners.woocommerce.shop_catalog import Catalog, Product
from tests.partners.woocommerce.shop_errors import RefusedError
from tests.partners.woocommerce.shop_order_lines import (
    KEPT_DECIMALS,
    LINE_KINDS,
    Coupon,
    Line,
    LineKind,
    net_price,
    totals,
)
from tests.partners.woocommerce.shop_records import Shelf, decimal

_MAIN: dict[LineKind, str] = {"line_items": "product_id", "shipping_lines": "method_id", "fee_lines": "name"}


class LineEditor:
    """Changes lines as requests ask for it."""

    def __init__(self, shelf: Shelf, catalog: Catalog) -> None:
        self._shelf, self._catalog = shelf, catalog

    def changed(self, before: list[Line], sent: dict[str, Any]) -> tuple[list[Line], list[Line]]:
        """The lines after a request, and those that it removed; the lines *before* stay as they are.

        Raises:
            RefusedError: 400 if a line is not one of the order, or names no product.
        """
        lines = [replace(line, meta=list(line.meta)) for line in before]
        for kind in LINE_KINDS:
            for item in sent.get(kind) or ():
                self._change_line(lines, kind, item)
        kept = {line.id for line in lines}
        return lines, [line for line in before if line.id not in kept]

    def _change_line(self, lines: list[Line], kind: LineKind, item: dict[str, Any]) -> None:
        """An item without id is new, one with the quantity 0 or null for its main member is removed. A new quantity
        alone does not change the amounts."""
        if item.get("id"):
            line = line_of(lines, item["id"])
            if item.get("quantity") == 0 or item.get(_MAIN[kind], "") is None:
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

    def check_coupons(self, codes: list[str]) -> None:
        for code in codes:
            if code not in self._shelf.settings.coupons:
                message = f'Coupon "{code}" cannot be applied because it does not exist.'
                raise RefusedError(400, "woocommerce_rest_invalid_coupon", message)

    def apply_coupons(self, lines: list[Line], codes: list[str]) -> list[Coupon]:
        """Take percentages off the line items, one coupon after the other; earlier coupons are removed first."""
        known, settings = self._shelf.settings.coupons, self._shelf.settings
        items = [line for line in lines if line.kind == "line_items"]
        for line in items:
            line.total = line.subtotal
        coupons = []
        for code in codes:
            before = totals(lines, settings)
            for line in items:
                line.total = self._kept(line.total * (100 - known[code]) / 100)
            after = totals(lines, settings)
            taken = [after[name] - before[name] for name in ("discount_total", "discount_tax")]
            coupons.append(Coupon(self._shelf.item_id(), code, known[code], *taken))
        return coupons

    def _kept(self, amount: Decimal) -> Decimal:
        return self._shelf.settings.rounded(amount, KEPT_DECIMALS)


def line_of(lines: list[Line], line_id: Any) -> Line:
    """The line with an id.

    Raises:
        RefusedError: 400 if the order has none.
    """
    for line in lines:
        if line.id == line_id:
            return line
    message = "Order item ID provided is not associated with order."
    raise RefusedError(400, "woocommerce_rest_invalid_item_id", message)


def sent_line(line: Line) -> dict[str, Any]:
    """What a request sends to make the same line again."""
    sent = {"name": line.name, "quantity": line.quantity, "subtotal": line.subtotal, "total": line.total}
    if line.product:
        return {**sent, id_member(line.product): line.product.id}
    return {**sent, "method_id": line.method_id, "method_title": line.name}


def id_member(product: Product) -> str:
    return "variation_id" if product.parent else "product_id"
