"""Control totals of a resource: how many records, which quantities, how much money."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

PARTS_AT_MOST = 200_000
"""Products and customers that are told apart; the totals of all others are one sum."""
OTHERS = "(others)"


@dataclass(slots=True)
class ControlTotals:
    """Sums over records of one resource, exact.

    Attributes:
        records: Their number.
        quantities: By the product's id; of the lots, or of the items.
        amounts: Quantity times price of the items, by the customer's id and currency.
    """

    records: int = 0
    quantities: dict[str, Decimal] = field(default_factory=lambda: defaultdict(Decimal))
    amounts: dict[tuple[str, str], Decimal] = field(default_factory=lambda: defaultdict(Decimal))

    def add(self, payload: Mapping[str, Any], times: int = 1) -> None:
        """Count a record, or with *times* -1 no longer."""
        self.records += times
        for product, quantity in _quantities(payload):
            self.quantities[self._part(product, self.quantities)] += times * quantity
        customer, currency = str(payload.get("customerId", "")), str(payload.get("currency", ""))
        amount = sum(_amounts(payload), Decimal())
        if "items" in payload:
            place = customer, currency
            self.amounts[place if self._has_room(place, self.amounts) else (OTHERS, currency)] += times * amount

    def move(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """A record holds *after* instead of *before*."""
        self.add(before, -1)
        self.add(after)

    @property
    def quantity(self) -> Decimal:
        """Of all products."""
        return sum(self.quantities.values(), Decimal())

    @property
    def by_currency(self) -> dict[str, Decimal]:
        """Amounts of all customers."""
        sums: dict[str, Decimal] = defaultdict(Decimal)
        for (_, currency), amount in self.amounts.items():
            sums[currency] += amount
        return dict(sorted(sums.items()))

    def differing(self, other: ControlTotals) -> list[str]:
        """The products, and the customers with their currency, whose totals differ."""
        products = _differing(self.quantities, other.quantities)
        customers = _differing(self.amounts, other.amounts)
        return [*products, *(f"{customer} {currency}" for customer, currency in customers)]

    def as_json(self) -> dict[str, Any]:
        """Totals without the parts, whose ids may be many."""
        return {"records": self.records, "quantity": self.quantity, "amounts": self.by_currency}

    def _part(self, name: str, sums: Mapping[str, Decimal]) -> str:
        return name if self._has_room(name, sums) else OTHERS

    @staticmethod
    def _has_room(name: object, sums: Mapping[Any, Decimal]) -> bool:
        return name in sums or len(sums) < PARTS_AT_MOST


def _differing(ours: Mapping[Any, Decimal], theirs: Mapping[Any, Decimal]) -> list[Any]:
    return sorted(name for name in ours.keys() | theirs.keys() if ours.get(name, 0) != theirs.get(name, 0))


def _quantities(payload: Mapping[str, Any]) -> Iterator[tuple[str, Decimal]]:
    """Product and quantity of a lot, or of each item."""
    for each in (payload, *_items(payload)):
        product, quantity = each.get("productId"), each.get("quantity")
        if isinstance(product, str) and isinstance(quantity, int | Decimal):
            yield product, Decimal(quantity)


def _amounts(payload: Mapping[str, Any]) -> Iterator[Decimal]:
    for each in _items(payload):
        quantity, price = each.get("quantity"), each.get("unitPrice")
        if isinstance(quantity, int | Decimal) and isinstance(price, int | Decimal):
            yield Decimal(quantity) * Decimal(price)


def _items(payload: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    items = payload.get("items")
    return [each for each in items if isinstance(each, Mapping)] if isinstance(items, list) else []
