"""What an author does to the thread's decimal context changes no number of ours."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal, Inexact, Rounded, localcontext
from typing import Any

import polars as pl
import pytest
from tests.unit.connectors.shop.woocommerce import test_mapping as woocommerce

from crossdock.mapping.convert import NumberFormat
from crossdock.mapping.row_order_and_cursors import Cursor, OrderBy
from crossdock.reading.sources.file_source import ColumnSumsStatedByManifest
from crossdock.runs.doubtful_operation_look_ups import _invoice_total
from crossdock.runs.platform_and_state_comparison import customer_and_items_hash
from crossdock.runs.resource_control_totals import ResourceTotals
from crossdock_connectors.shop.streams import Invoices
from crossdock_connectors.shop.woocommerce.shop_reader import WooCommerceReader

LONG = "999999999999999.9999"
PAYLOAD = {"customerId": "7", "currency": "EUR", "items": [{"quantity": 3, "unitPrice": Decimal(LONG)}]}


def control_totals() -> Any:
    totals = ResourceTotals()
    totals.add_record(PAYLOAD)
    totals.add_record(PAYLOAD)
    return totals.as_json()


def stated_sums() -> None:
    sums = ColumnSumsStatedByManifest("f", "m", {"AMOUNT": "1999999999999999.9998"})
    for _ in range(2):
        sums.add_rows(pl.DataFrame({"AMOUNT": [LONG], "_line": [1]}))
    sums.check()


def invoice() -> Any:
    placed = woocommerce.order(woocommerce.line("12345678.91", quantity=7), total="12345678.91")
    return Invoices(WooCommerceReader(woocommerce.settings())).to_resource(woocommerce.record(placed))


@pytest.mark.parametrize(
    "compute",
    [
        pytest.param(
            lambda: OrderBy.model_validate({"column": "A", "as": "decimal"}).position({"A": LONG}), id="a position"
        ),
        pytest.param(
            lambda: Cursor.model_validate({"column": "A", "as_": "integer", "overlap": 10}).pull_since("2026112802"),
            id="a cursor",
        ),
        pytest.param(lambda: NumberFormat().parse_decimal(LONG), id="a number"),
        pytest.param(lambda: NumberFormat(factor=Decimal("0.01")).parse_decimal("99999999999999999.99"), id="a factor"),
        pytest.param(lambda: NumberFormat(round="down").parse_decimal("999999999999999.99999"), id="a rounded number"),
        pytest.param(lambda: customer_and_items_hash(PAYLOAD), id="the content of a record"),
        pytest.param(lambda: _invoice_total(PAYLOAD), id="a total"),
        control_totals,
        stated_sums,
        invoice,
    ],
)
def test_numbers_are_those_of_the_usual_context(compute: Callable[[], Any]) -> None:
    """Neither fewer digits nor a trap for rounding changes a number or raises an error."""
    usual = compute()
    for context in (Context(prec=6), Context(prec=6, traps=[Inexact, Rounded])):
        with localcontext(context):
            assert repr(compute()) == repr(usual)
