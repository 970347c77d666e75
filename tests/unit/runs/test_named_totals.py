"""Totals that differ are named as the sources name their records, with both amounts."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from tests.unit.state.samples import AT, SCOPE, binding, start

from crossdock.runs.planning.references import external_id_in_placeholder, placeholder_of_planned_record_id
from crossdock.runs.reconciliation.reconciliation_result import DifferingTotal, differing_totals
from crossdock.runs.resource_control_totals import ResourceTotals
from crossdock.state import Scope, State

CUSTOMERS = Scope("platform", "customer", "wms")


@pytest.fixture
def known(state: State) -> State:
    run = start(state)
    with state.begin() as tx:
        tx.bindings.put(SCOPE, [binding(1), binding(2)], run_id=run, at=AT)
        tx.bindings.put(CUSTOMERS, [binding(1, target_id="cus_1", key="C1")], run_id=run, at=AT)
    return state


def found(state: State, source: list[dict[str, Any]], platform: list[dict[str, Any]]) -> list[DifferingTotal]:
    ours, theirs = ResourceTotals(), ResourceTotals()
    for totals, records in ((ours, source), (theirs, platform)):
        for each in records:
            totals.add_record(each)
    with state.begin_read_only() as tx:
        return differing_totals(tx, ours, theirs)


def _line(product: str, quantity: int) -> dict[str, Any]:
    return {"productId": product, "quantity": quantity, "unitPrice": Decimal("0.5")}


def test_a_difference_is_named(known: State) -> None:
    """The product and the customer whose totals differ are named by their keys, and no other."""
    ours, theirs = (
        [
            {"customerId": "cus_1", "currency": "EUR", "items": [_line("prd_1", quantity), _line("prd_2", 1)]},
            {"customerId": "cus_2", "currency": "EUR", "items": [_line("prd_2", 1)]},
        ]
        for quantity in (2, 3)
    )
    assert found(known, ours, theirs) == [
        DifferingTotal("product", "wms:K1", None, Decimal(2), Decimal(3)),
        DifferingTotal("customer", "wms:C1", "EUR", Decimal("1.5"), Decimal(2)),
    ]


def test_before_the_first_load_keys_are_named(known: State) -> None:
    """A record that has no id yet is named as one that has; what the state does not know, by the platform's id."""
    new = placeholder_of_planned_record_id(SCOPE, "NEW")
    assert external_id_in_placeholder(new) == "wms:NEW"
    assert external_id_in_placeholder("prd_1") is None
    assert found(known, [{"productId": new, "quantity": 3}], [{"productId": "prd_9", "quantity": 3}]) == [
        DifferingTotal("product", "prd_9", None, Decimal(0), Decimal(3)),
        DifferingTotal("product", "wms:NEW", None, Decimal(3), Decimal(0)),
    ]


def test_equal_totals_do_not_differ(known: State) -> None:
    """Also if the source names the record and the platform its id."""
    by_key, by_id = (
        {"productId": each, "quantity": 3} for each in (placeholder_of_planned_record_id(SCOPE, "K1"), "prd_1")
    )
    assert found(known, [by_key], [by_id]) == []
