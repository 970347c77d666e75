"""The invoicing of Shopify's orders and refunds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from crossdock import RecordError
from crossdock.values.json_access import JsonAccess
from crossdock.values.json_paths import value_at_path_or_missing
from crossdock_connectors.shop.settings import Invoiced
from crossdock_connectors.shop.shopify.requests_and_complete_lists import Item, number_in_gid_or_empty
from crossdock_connectors.shop.streams import CREDIT_NOTE

_PAID = frozenset({"PAID", "PARTIALLY_REFUNDED", "REFUNDED"})
_UNPAID = frozenset({"AUTHORIZED", "EXPIRED", "PARTIALLY_PAID", "PENDING", "VOIDED"})
_WITHOUT_PAYMENT = frozenset({"EXPIRED", "VOIDED"})
_OF_ORDER = (
    "id", "test", "email", "customer", "currencyCode", "presentmentCurrencyCode", "taxesIncluded",
    "edited", "totalPriceSet", "totalReceivedSet",
)  # fmt: skip


def is_invoice_due(order: Any, when: Invoiced) -> bool:
    """Return whether to invoice an order now. One with an unknown status is, so that `raise_if_payment_status_unknown`
    rejects it.
    """
    payment = order.get("displayFinancialStatus") if isinstance(order, dict) else None
    if payment is not None and not (isinstance(payment, str) and payment in _PAID | _UNPAID):
        return True
    if when == "paid":
        return payment not in _UNPAID and payment is not None
    if when == "shipped":
        return bool(
            value_at_path_or_missing(order, "displayFulfillmentStatus") == "FULFILLED"
        ) or _may_have_shipped_before_refund(order)
    return payment not in _WITHOUT_PAYMENT


def _may_have_shipped_before_refund(order: Any) -> bool:
    """Return whether money of an order was paid back that may have been shipped, and invoiced, before.

    If a fulfillment is cancelled, the order is unfulfilled again, and its credit note would have no invoice.
    """
    fulfillments, refunds = value_at_path_or_missing(order, "fulfillments"), value_at_path_or_missing(order, "refunds")
    shipped = (
        [value_at_path_or_missing(each, "status") for each in fulfillments] if isinstance(fulfillments, list) else []
    )
    if not shipped or not isinstance(refunds, list) or not any(map(_has_paid_back, refunds)):
        return False
    return "CANCELLED" in shipped or value_at_path_or_missing(order, "displayFinancialStatus") == "REFUNDED"


def _has_paid_back(refund: Any) -> bool:
    amount = value_at_path_or_missing(refund, "totalRefundedSet.shopMoney.amount")
    return isinstance(amount, str) and not _is_zero(amount)


def may_invoice_need_withdrawal(order: Any, when: Invoiced) -> bool:
    """Return whether an order that is not due may have been invoiced before its payment expired or was given up."""
    payment = order.get("displayFinancialStatus") if isinstance(order, dict) else None
    return when != "paid" and isinstance(payment, str) and payment in _WITHOUT_PAYMENT


def raise_if_payment_status_unknown(order: JsonAccess) -> None:
    found = order.at("/displayFinancialStatus", str, default=None)
    if found is not None and found not in _PAID | _UNPAID:
        raise RecordError("bad_value", "is a status that crossdock does not know", pointer="/displayFinancialStatus")


_NOT_YET = frozenset({"AWAITING_RESPONSE", "PENDING", "UNKNOWN"})
SETTLED = "settled"
"""The member of a row which says whether all of its money has been paid, or could not be."""


def credit_note_rows_of_order(order: Any, currency: Literal["shop", "presentment"], *, due: bool) -> Iterator[Item]:
    """Yield a row for each refund of an order. Unless the order is invoiced (*due*), there is no credit note.

    Nor is there one of a refund that is nothing in the *currency* of the invoices.

    A refund whose money is on its way is due when it has arrived.
    """
    refunds = value_at_path_or_missing(order, "refunds")
    own = {name: order.get(name) for name in _OF_ORDER} if isinstance(order, dict) else {}
    for refund in refunds if isinstance(refunds, list) else ():
        gid = value_at_path_or_missing(refund, "id")
        key = f"{CREDIT_NOTE}-{number_in_gid_or_empty(gid)}" if isinstance(gid, str) else None
        amount = value_at_path_or_missing(refund, f"totalRefundedSet.{currency}Money.amount")
        row, settled = refund if isinstance(refund, dict) else {}, is_refund_settled(refund)
        is_due = due and settled and not _is_zero(amount)
        yield {**row, "key": key, "order": own, "test": own.get("test"), "due": is_due, SETTLED: settled}


def is_refund_settled(refund: Any) -> bool:
    transactions = value_at_path_or_missing(refund, "transactions.nodes")
    found = transactions if isinstance(transactions, list) else ()
    return not any(value_at_path_or_missing(each, "status") in _NOT_YET for each in found)


def raise_if_transaction_lacks_status(refund: JsonAccess) -> None:
    """Raise RecordError if a refund does not tell whether its money has been paid."""
    for each in refund.each("/transactions/nodes"):
        each.at("/status", str)


def _is_zero(amount: Any) -> bool:
    return isinstance(amount, str) and not amount.strip("0.")
