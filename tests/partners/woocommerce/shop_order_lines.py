"""The lines of an order of the fake WooCommerce shop, their tax and their sums.

Sources: ``WC_Abstract_Order::calculate_totals`` and ``WC_REST_Orders_V2_Controller::get_order_item_data`` in
github.com/woocommerce/woocommerce. Amounts of lines are kept without tax and with six decimals, and shown with those of
the shop. Sums are those of rounded lines, which is WooCommerce's default.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from tests.partners.woocommerce.shop_catalog import Product
from tests.partners.woocommerce.shop_settings import ShopSettings

LineKind = Literal["line_items", "shipping_lines", "fee_lines"]
LINE_KINDS: tuple[LineKind, ...] = ("line_items", "shipping_lines", "fee_lines")
KEPT_DECIMALS = 6
RATE_ID = 1


@dataclass(slots=True)
class Line:
    """A line with its amounts before and after discounts; *product* and *quantity* only for line items.

    Attributes:
        taken: Units that the stock gave for it.
        restocked: Units that came back to the stock with refunds.
    """

    id: int
    kind: LineKind
    name: str
    subtotal: Decimal
    total: Decimal
    quantity: int = 1
    product: Product | None = None
    method_id: str = ""
    taken: int = 0
    restocked: int = 0
    meta: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Coupon:
    """A coupon on an order: the percentage that it takes off, and the amounts that it took off."""

    id: int
    code: str
    percent: Decimal
    discount: Decimal
    discount_tax: Decimal


@dataclass(frozen=True, slots=True)
class Refund:
    """Money that was returned, and the units that came back with it, by the id of their line."""

    id: int
    created: datetime
    amount: Decimal
    reason: str
    lines: tuple[tuple[Line, int, Decimal], ...]


def tax(amount: Decimal, settings: ShopSettings) -> Decimal:
    return settings.rounded(amount * settings.tax_percent / 100, KEPT_DECIMALS)


def net_price(product: Product, settings: ShopSettings) -> Decimal:
    """The price without tax."""
    price = Decimal(product.price or 0)
    return price / (1 + settings.tax_percent / 100) if settings.prices_include_tax else price


def totals(lines: Iterable[Line], settings: ShopSettings) -> dict[str, Decimal]:
    """The sums of an order, by their member."""
    sums = dict.fromkeys(
        ("discount_total", "discount_tax", "shipping_total", "shipping_tax", "cart_tax", "cart"), Decimal(0)
    )
    for line in lines:
        before, after = settings.rounded(line.subtotal), settings.rounded(line.total)
        taxes = settings.rounded(tax(line.total, settings))
        if line.kind == "shipping_lines":
            sums["shipping_total"] += after
            sums["shipping_tax"] += taxes
            continue
        sums["cart"] += after
        sums["cart_tax"] += taxes
        sums["discount_total"] += before - after
        sums["discount_tax"] += settings.rounded(tax(line.subtotal, settings)) - taxes
    sums["total_tax"] = sums["cart_tax"] + sums["shipping_tax"]
    sums["total"] = sums.pop("cart") + sums["shipping_total"] + sums["total_tax"]
    return sums


def line_view(line: Line, settings: ShopSettings, decimals: int | None = None) -> dict[str, Any]:
    """One line as its list has it."""

    def shown(amount: Decimal) -> str:
        return settings.amount(amount, decimals)

    taxes = tax(line.total, settings)
    subtotal_tax = tax(line.subtotal, settings)
    view: dict[str, Any] = {
        "id": line.id,
        "total": shown(line.total),
        "total_tax": shown(taxes),
        "taxes": [{"id": RATE_ID, "total": f"{taxes.normalize():f}", "subtotal": f"{subtotal_tax.normalize():f}"}],
        "meta_data": [{**one, "display_key": one["key"], "display_value": one["value"]} for one in line.meta],
    }
    if line.kind == "shipping_lines":
        return view | {"method_id": line.method_id, "method_title": line.name, "instance_id": ""}
    if line.kind == "fee_lines":
        return view | {
            "name": line.name,
            "tax_class": "",
            "tax_status": "taxable",
            "amount": f"{line.total.normalize():f}",
        }
    product = line.product
    assert product is not None
    return view | {
        "name": line.name,
        "product_id": (product.parent or product).id,
        "variation_id": product.id if product.parent else 0,
        "parent_name": product.parent.members["name"] if product.parent else None,
        "quantity": line.quantity,
        "tax_class": "",
        "subtotal": shown(line.subtotal),
        "subtotal_tax": shown(subtotal_tax),
        "sku": product.members["sku"],
        "price": Decimal(repr(float(line.total) / line.quantity)) if line.quantity else 0,  # PHP divides floats
    }


def tax_lines(
    lines: Iterable[Line], item_id: int, settings: ShopSettings, decimals: int | None
) -> list[dict[str, Any]]:
    """The shop's one rate, if the order is taxed."""
    sums = totals(lines, settings)
    if not sums["total_tax"]:
        return []
    return [
        {
            "id": item_id,
            "rate_code": "DE-VAT-1",
            "rate_id": RATE_ID,
            "label": "VAT",
            "compound": False,
            "tax_total": settings.amount(sums["cart_tax"], decimals),
            "shipping_tax_total": settings.amount(sums["shipping_tax"], decimals),
            "rate_percent": settings.tax_percent,
            "meta_data": [],
        }
    ]
