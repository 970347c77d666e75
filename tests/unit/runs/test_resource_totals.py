"""Control totals are exact sums, however the records come."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.runs import resource_control_totals
from crossdock.runs.resource_control_totals import OTHERS, ResourceTotals

_NUMBERS = st.decimals(min_value=-(10**15), max_value=10**15, places=4)
_ITEMS = st.fixed_dictionaries({"productId": st.sampled_from("abc"), "quantity": _NUMBERS, "unitPrice": _NUMBERS})
_INVOICES = st.fixed_dictionaries(
    {"customerId": st.sampled_from("xyz"), "currency": st.sampled_from(["EUR", "USD"]), "items": st.lists(_ITEMS)}
)
_LOTS = st.fixed_dictionaries({"productId": st.sampled_from("abc"), "quantity": _NUMBERS})


@given(records=st.lists(_INVOICES | _LOTS))
def test_they_are_the_sums(records: list[dict[str, Any]]) -> None:
    """Quantities by product, amounts by customer and currency: as a plain loop adds them up."""
    totals = ResourceTotals()
    quantities: dict[str, Fraction] = defaultdict(Fraction)
    amounts: dict[str, Fraction] = defaultdict(Fraction)
    for record in records:
        totals.add_record(record)
        for line in record.get("items", [record]):
            quantity = Fraction(line["quantity"])
            quantities[line["productId"]] += quantity
            amounts[record.get("currency", "")] += quantity * Fraction(line.get("unitPrice", 0))
    assert totals.records == len(records)
    assert {name: Fraction(each) for name, each in totals.quantities.items()} == quantities
    assert Fraction(totals.quantity) == sum(quantities.values())
    found = {name: Fraction(each) for name, each in totals.amounts_by_currency.items()}
    assert found == {name: amounts[name] for name in found}


@given(records=st.lists(_INVOICES), changed=st.lists(_INVOICES))
def test_what_is_taken_out_leaves_nothing(records: list[dict[str, Any]], changed: list[dict[str, Any]]) -> None:
    """Totals after a change equal those that never had the former record."""
    moved, fresh = ResourceTotals(), ResourceTotals()
    for record in records:
        moved.add_record(record)
    for before, after in zip(records, changed, strict=False):
        moved.add_record(before, -1)
        moved.add_record(after)
    number = min(len(records), len(changed))
    for record in [*changed[:number], *records[number:]]:
        fresh.add_record(record)
    assert _nonzero(moved.quantities) == _nonzero(fresh.quantities)
    assert _nonzero(moved.amounts) == _nonzero(fresh.amounts)
    assert moved.records == fresh.records


def test_many_products_share_a_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit of memory the sum of all stays right."""
    monkeypatch.setattr(resource_control_totals, "PARTS_AT_MOST", 2)
    totals = ResourceTotals()
    for number in range(5):
        totals.add_record({"productId": f"p{number}", "quantity": number})
    assert totals.quantity == 10
    assert {name: int(each) for name, each in totals.quantities.items()} == {"p0": 0, "p1": 1, OTHERS: 9}


def _line(product: str, quantity: int) -> dict[str, Any]:
    return {"productId": product, "quantity": quantity, "unitPrice": Decimal("0.5")}


def _nonzero(sums: Mapping[Any, Decimal]) -> dict[Any, Decimal]:
    return {name: each for name, each in sums.items() if each}
