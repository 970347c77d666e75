"""Control totals of a resource: the number of records, quantities and amounts of money."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, TypeVar

from msgspec import Struct, field

from crossdock.values.field_types import EXACT_DECIMAL_CONTEXT, exact_decimal_sum

PARTS_AT_MOST = 200_000
"""The most products and customers that are distinguished. The totals of all others are one sum."""
OTHERS = "(others)"
_Part = TypeVar("_Part")


class ResourceTotals(Struct):
    """Exact sums over records: quantities by product id, and quantity times price by customer id and currency."""

    records: int = 0
    quantities: dict[str, Decimal] = field(default_factory=lambda: defaultdict(Decimal))
    amounts: dict[tuple[str, str], Decimal] = field(default_factory=lambda: defaultdict(Decimal))

    def add_record(self, payload: Mapping[str, Any], times: int = 1) -> None:
        """Add a record, or remove it with *times* -1."""
        self.records += times
        for product, quantity in _products_with_quantities(payload):
            _add_to_sum(
                self.quantities, product if self._has_room(product, self.quantities) else OTHERS, quantity, times
            )
        customer, currency = str(payload.get("customerId", "")), str(payload.get("currency", ""))
        if "items" in payload:
            place = customer, currency
            part = place if self._has_room(place, self.amounts) else (OTHERS, currency)
            _add_to_sum(self.amounts, part, exact_decimal_sum(_amounts_of_line_items(payload)), times)

    def plus(self, other: ResourceTotals) -> ResourceTotals:
        both = ResourceTotals(self.records + other.records)
        for each in (self, other):
            for product, quantity in each.quantities.items():
                _add_to_sum(
                    both.quantities, product if self._has_room(product, both.quantities) else OTHERS, quantity, 1
                )
            for place, amount in each.amounts.items():
                part = place if self._has_room(place, both.amounts) else (OTHERS, place[1])
                _add_to_sum(both.amounts, part, amount, 1)
        return both

    @property
    def quantity(self) -> Decimal:
        return exact_decimal_sum(self.quantities.values())

    @property
    def amounts_by_currency(self) -> dict[str, Decimal]:
        sums: dict[str, Decimal] = defaultdict(Decimal)
        for (_, currency), amount in self.amounts.items():
            sums[currency] = add_exactly(sums[currency], amount)
        return dict(sorted(sums.items()))

    def as_json(self) -> dict[str, Any]:
        return {"records": self.records, "quantity": self.quantity, "amounts": self.amounts_by_currency}

    @staticmethod
    def _has_room(name: object, sums: Mapping[Any, Decimal]) -> bool:
        return name in sums or len(sums) < PARTS_AT_MOST


def _add_to_sum(sums: dict[_Part, Decimal], part: _Part, number: Decimal, times: int) -> None:
    sums[part] = add_exactly(sums[part], EXACT_DECIMAL_CONTEXT.multiply(times, number))


def add_exactly(one: Decimal, other: Decimal) -> Decimal:
    return EXACT_DECIMAL_CONTEXT.add(one, other)


def _products_with_quantities(payload: Mapping[str, Any]) -> Iterator[tuple[str, Decimal]]:
    for each in (payload, *_line_items(payload)):
        product, quantity = each.get("productId"), each.get("quantity")
        if isinstance(product, str) and isinstance(quantity, int | Decimal):
            yield product, Decimal(quantity)


def _amounts_of_line_items(payload: Mapping[str, Any]) -> Iterator[Decimal]:
    for each in _line_items(payload):
        quantity, price = each.get("quantity"), each.get("unitPrice")
        if isinstance(quantity, int | Decimal) and isinstance(price, int | Decimal):
            yield EXACT_DECIMAL_CONTEXT.multiply(Decimal(quantity), Decimal(price))


def _line_items(payload: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    items = payload.get("items")
    return [each for each in items if isinstance(each, Mapping)] if isinstance(items, list) else []
