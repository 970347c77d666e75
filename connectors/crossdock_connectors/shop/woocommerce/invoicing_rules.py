"""The invoicing of WooCommerce's orders and refunds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crossdock import Record, RecordError
from crossdock.values.json_paths import value_at_path_or_missing
from crossdock_connectors.shop.settings import Invoiced
from crossdock_connectors.shop.streams import CREDIT_NOTE
from crossdock_connectors.shop.woocommerce.lists_and_records_by_id import Item, id_text_or_none

AUTO_DRAFT = "auto-draft"
"""The status of a form for an order that somebody has only opened. ``any`` lists it in some versions."""
_NOT_PLACED = frozenset({AUTO_DRAFT, "checkout-draft", "pending", "failed", "cancelled", "trash"})
_GIVEN_UP = frozenset({"failed", "cancelled", "trash"})
_PAYMENT_AWAITED = frozenset({AUTO_DRAFT, "checkout-draft", "pending", "on-hold"})
"""Statuses in which an order may still be paid, or lost: a payment that was reversed leads to ``on-hold``."""
_UNCLEAR = (
    "is failed, although the order has a date of payment: it is not clear whether it was paid; if it was, give it the"
    " status processing, completed or refunded in the shop, otherwise drop the record with crossdock records drop"
)
_OF_ORDER = ("id", "customer_id", "currency", "billing")


def is_invoice_due(order: Any, when: Invoiced) -> bool:
    """Return whether an order must be invoiced now. A status of an extension counts as placed, and as paid.

    Whatever became of an order, it is due if money was paid back: its invoice may have been written before, and a
    credit note without one would be wrong. Otherwise an order in the trash is not due, nor one whose payment is
    awaited although it has a date of payment, which WooCommerce never removes.
    """
    status, paid_back = (
        value_at_path_or_missing(order, "status"),
        _has_paid_back(value_at_path_or_missing(order, "refunds")),
    )
    if status == "trash" and not paid_back:
        return False
    if when == "paid":
        return isinstance(value_at_path_or_missing(order, "date_paid_gmt"), str) and (
            paid_back or status not in _PAYMENT_AWAITED
        )
    if when == "shipped":
        return status == "completed" or isinstance(value_at_path_or_missing(order, "date_completed_gmt"), str)
    return paid_back or status not in _NOT_PLACED


def may_invoice_need_withdrawal(order: Any) -> bool:
    """Return whether an order that is not due may have been invoiced before it was given up."""
    return value_at_path_or_missing(order, "status") in _GIVEN_UP


def raise_if_payment_failed_after_arrival(order: Record, when: Invoiced) -> None:
    """Reject an order whose payment failed after it had arrived; count one that was cancelled and not paid back."""
    if when != "paid" or _has_paid_back(order.at("/refunds", list, default=())):
        return
    status = order.at("/status", str)
    if status == "failed":
        raise RecordError("bad_value", _UNCLEAR, pointer="/status")
    if status == "cancelled":
        order.count("invoice of a cancelled order")


def _has_paid_back(refunds: Any) -> bool:
    amounts = [value_at_path_or_missing(refund, "amount") for refund in refunds] if isinstance(refunds, list) else []
    return any(isinstance(amount, str) and not _is_zero(amount) for amount in amounts)


def credit_note_rows_of_order(order: Any, *, due: bool) -> Iterator[Item]:
    """Yield a row for each refund of an order. Unless the order is invoiced (*due*), there is no credit note."""
    refunds = value_at_path_or_missing(order, "refunds")
    own = {name: order.get(name) for name in _OF_ORDER} if isinstance(order, dict) else {}
    for refund in refunds if isinstance(refunds, list) else ():
        number, amount = id_text_or_none(refund), value_at_path_or_missing(refund, "amount")
        row = refund if isinstance(refund, dict) else {}
        key = None if number is None else f"{CREDIT_NOTE}-{number}"
        yield {**row, "key": key, "order": own, "test": False, "due": due and not _is_zero(amount)}


def _is_zero(amount: Any) -> bool:
    return isinstance(amount, str) and bool(amount) and not amount.strip("0.")
