"""The invoicing of WooCommerce's orders and refunds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from crossdock.values.json_values import at_path
from crossdock_connectors.shop.streams import CREDIT_NOTE
from crossdock_connectors.shop.woocommerce.lists import Item, number_of

_NOT_PLACED = frozenset({"checkout-draft", "pending", "failed", "cancelled", "trash"})
_OF_ORDER = ("id", "customer_id", "currency", "billing")


def invoice_due(order: Any, when: Literal["paid", "shipped", "placed", "never"]) -> bool:
    """Return whether an order must be invoiced now.

    ``paid`` and ``shipped`` depend on the times at which it was paid and completed, which a refund does not change. A
    status that an extension has added counts as placed. An order in the trash is not invoiced.
    """
    status = at_path(order, "status")
    if status == "trash":
        return False
    if when == "paid":
        return isinstance(at_path(order, "date_paid_gmt"), str)
    if when == "shipped":
        return status == "completed" or isinstance(at_path(order, "date_completed_gmt"), str)
    return status not in _NOT_PLACED


def refund_rows(order: Any, *, due: bool) -> Iterator[Item]:
    """Yield a row for each refund of an order, with the members of the order that a credit note needs.

    Args:
        due: Whether the order is invoiced. Without an invoice there is no credit note.
    """
    refunds = at_path(order, "refunds")
    own = {name: order.get(name) for name in _OF_ORDER} if isinstance(order, dict) else {}
    for refund in refunds if isinstance(refunds, list) else ():
        number, amount = number_of(refund), at_path(refund, "amount")
        row = refund if isinstance(refund, dict) else {}
        key = None if number is None else f"{CREDIT_NOTE}-{number}"
        yield {**row, "key": key, "order": own, "test": False, "due": due and not _is_zero(amount)}


def _is_zero(amount: Any) -> bool:
    return isinstance(amount, str) and bool(amount) and not amount.strip("0.")
