"""Which orders and refunds of a Shopify shop are invoiced."""

from __future__ import annotations

from typing import Any

import pytest
from tests.partners.shopify.reading import json_record

from crossdock import RecordError
from crossdock_connectors.shop.shopify.invoicing_rules import (
    credit_note_rows_of_order,
    is_invoice_due,
    raise_if_payment_status_unknown,
)

PAID, UNPAID = {"PAID", "PARTIALLY_REFUNDED", "REFUNDED"}, {"AUTHORIZED", "PARTIALLY_PAID", "PENDING"}
NEVER = {"EXPIRED", "VOIDED"}


@pytest.mark.parametrize("payment", sorted(PAID | UNPAID | NEVER))
def test_when_an_order_is_invoiced(payment: str) -> None:
    """When it is paid, when all of it is shipped, or when it is placed; a payment that failed is no sale."""
    order = {"displayFinancialStatus": payment, "displayFulfillmentStatus": "PARTIALLY_FULFILLED"}
    shipped = {**order, "displayFulfillmentStatus": "FULFILLED"}
    assert is_invoice_due(order, "paid") == (payment in PAID)
    assert (is_invoice_due(order, "shipped"), is_invoice_due(shipped, "shipped")) == (False, True)
    assert is_invoice_due(order, "placed") == (payment not in NEVER)
    raise_if_payment_status_unknown(json_record(order))


@pytest.mark.parametrize("when", ["paid", "shipped", "placed"])
@pytest.mark.parametrize("payment", ["HAGGLED", 5, [], ["PAID"]])
def test_an_unknown_payment_is_refused_and_not_left_out(when: Any, payment: Any) -> None:
    """It is due, so that it becomes a dead letter with the place."""
    order = {"displayFinancialStatus": payment, "displayFulfillmentStatus": "UNFULFILLED"}
    assert is_invoice_due(order, when)
    with pytest.raises(RecordError) as caught:
        raise_if_payment_status_unknown(json_record(order))
    assert caught.value.pointer == "/displayFinancialStatus"


@pytest.mark.parametrize("order", [None, 5, [], {}, {"displayFinancialStatus": None}])
def test_an_order_without_a_payment_is_not_paid(order: Any) -> None:
    """It is due only where payment does not matter."""
    assert (is_invoice_due(order, "paid"), is_invoice_due(order, "shipped"), is_invoice_due(order, "placed")) == (
        False, False, True,
    )  # fmt: skip


def test_each_refund_is_a_row_with_what_its_credit_note_needs() -> None:
    """The key is the refund's, and members of the order that a credit note does not need are left out."""
    money = {"totalRefundedSet": {"shopMoney": {"amount": "0.10"}}}
    refunds = [{"id": "gid://shopify/Refund/7", **money}, {"id": "gid://shopify/Refund/8", **money}]
    order = {"id": "gid://shopify/Order/1", "test": True, "note": "x", "refunds": refunds}
    first, second = credit_note_rows_of_order(order, "shop", due=True)
    assert (first["key"], second["key"]) == ("credit-note-7", "credit-note-8")
    assert (first["test"], first["due"], first["order"]["id"]) == (True, True, "gid://shopify/Order/1")
    assert "note" not in first["order"]
    assert "refunds" not in first["order"]


@pytest.mark.parametrize(
    ("amount", "due"), [("0.00", False), ("0", False), ("0.0", False), ("0.01", True), ("10.00", True), (None, True)]
)
def test_a_refund_is_due_if_money_went_back(amount: str | None, due: bool) -> None:
    """One whose amount is missing is due, so that it becomes a dead letter."""
    refund = {"id": "gid://shopify/Refund/7", "totalRefundedSet": {"shopMoney": {"amount": amount}}}
    [row] = credit_note_rows_of_order({"refunds": [refund]}, "shop", due=True)
    assert row["due"] is due


def test_a_refund_is_due_by_its_amount_in_the_currency_of_the_invoices() -> None:
    """Ten fils of a buyer may be nothing in a shop whose currency has no parts."""
    money = {"shopMoney": {"amount": "0"}, "presentmentMoney": {"amount": "0.001"}}
    order = {"refunds": [{"id": "gid://shopify/Refund/7", "totalRefundedSet": money}]}
    found = [
        credit_note_rows_of_order(order, "shop", due=True),
        credit_note_rows_of_order(order, "presentment", due=True),
    ]
    assert [row["due"] for rows in found for row in rows] == [False, True]


def test_a_refund_of_an_order_that_is_not_invoiced_is_not_due() -> None:
    """There is no credit note without its invoice."""
    refund = {"id": "gid://shopify/Refund/7", "totalRefundedSet": {"shopMoney": {"amount": "5.00"}}}
    [row] = credit_note_rows_of_order({"refunds": [refund]}, "shop", due=False)
    assert row["due"] is False


@pytest.mark.parametrize(("refund", "key"), [(None, None), (5, None), ({}, None), ({"id": 5}, None)])
def test_a_refund_that_is_none_is_a_row_without_a_key(refund: Any, key: None) -> None:
    """It becomes one dead letter, and the others stay."""
    rows = list(credit_note_rows_of_order({"refunds": [refund, {"id": "gid://shopify/Refund/8"}]}, "shop", due=True))
    assert [row["key"] for row in rows] == [key, "credit-note-8"]


@pytest.mark.parametrize("order", [None, 5, {}, {"refunds": None}, {"refunds": {}}])
def test_an_order_without_refunds_has_no_rows(order: Any) -> None:
    """Whatever stands in their place."""
    assert list(credit_note_rows_of_order(order, "shop", due=True)) == []
