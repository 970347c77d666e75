"""Orders and refunds of the fake WooCommerce shop as the API shows them.

Source: ``WC_REST_Orders_V2_Controller::get_formatted_item_data`` and ``WC_REST_Order_Refunds_V2_Controller`` in
github.com/woocommerce/woocommerce.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from tests.partners.woocommerce.shop_order_lines import LINE_KINDS, Refund, line_view, tax_lines, totals
from tests.partners.woocommerce.shop_orders import Order
from tests.partners.woocommerce.shop_settings import ShopSettings


def order_view(order: Order, settings: ShopSettings, decimals: int | None = None) -> dict[str, Any]:
    """An order. *decimals* is the parameter ``dp``. Refunds do not change ``total``."""

    def shown(amount: Decimal) -> str:
        return settings.amount(amount, decimals)

    lines: dict[str, Any] = {
        kind: [line_view(line, settings, decimals) for line in order.lines if line.kind == kind] for kind in LINE_KINDS
    }
    return {
        "id": order.id,
        "number": str(order.id),
        "order_key": f"wc_order_{order.id}",
        "status": order.status,
        **order.members,
        **settings.times("date_created", order.created),
        **settings.times("date_modified", order.modified),
        **settings.times("date_paid", order.paid),
        **settings.times("date_completed", order.completed),
        **{name: shown(amount) for name, amount in totals(order.lines, settings).items()},
        "prices_include_tax": settings.prices_include_tax,
        **lines,
        "tax_lines": tax_lines(order.lines, order.tax_item_id, settings, decimals),
        "coupon_lines": [
            {
                "id": coupon.id,
                "code": coupon.code,
                "discount": shown(coupon.discount),
                "discount_tax": shown(coupon.discount_tax),
                "discount_type": "percent",
                "nominal_amount": coupon.percent,
                "free_shipping": False,
                "meta_data": [],
            }
            for coupon in order.coupons
        ],
        "refunds": [{"id": one.id, "reason": one.reason, "total": f"-{shown(one.amount)}"} for one in order.refunds],
        "meta_data": order.meta,
        "needs_payment": order.status in {"pending", "failed"},
    }


def refund_view(refund: Refund, settings: ShopSettings, decimals: int | None = None) -> dict[str, Any]:
    """A refund with a positive ``amount``; its line items have negative quantities and totals, and no tax, since
    nobody gives ``refund_tax`` here."""
    items = []
    for line, quantity, total in refund.lines:
        view = line_view(line, settings, decimals)
        meta = [{"id": 0, "key": "_refunded_item_id", "value": str(line.id)}]
        untaxed = {"total": settings.amount(-total, decimals), "total_tax": settings.amount(Decimal(0), decimals)}
        items.append(view | {"quantity": -quantity, **untaxed, "taxes": [], "meta_data": meta})
    return {
        "id": refund.id,
        **settings.times("date_created", refund.created),
        "amount": settings.amount(refund.amount, decimals),
        "reason": refund.reason,
        "refunded_by": 1,
        "refunded_payment": False,
        "meta_data": [],
        "line_items": items,
    }
