"""Products and customers whose control totals differ, by their external ids."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import NamedTuple, TypeVar

from crossdock.mapping.resource_types import external_id
from crossdock.mapping.stream_facts import PLATFORM
from crossdock.planning.references import name_in_placeholder
from crossdock.runs.control_totals import OTHERS, ControlTotals, plus
from crossdock.state import Transaction

_Part = TypeVar("_Part", str, tuple[str, str])


class DifferingTotal(NamedTuple):
    """A total that differs between the source and the platform.

    Attributes:
        resource: ``product`` for a quantity, ``customer`` for an amount.
        name: The external id, such as ``wms:P1``; the platform's id of a record that the state does not know.
    """

    resource: str
    name: str
    currency: str | None
    source: Decimal
    platform: Decimal


def differing(tx: Transaction, source: ControlTotals, platform: ControlTotals) -> list[DifferingTotal]:
    """Return the differing totals by name, products first."""
    products, customers = (_Names(tx, resource) for resource in ("product", "customer"))
    products.learn([*source.quantities, *platform.quantities])
    customers.learn([customer for customer, _ in (*source.amounts, *platform.amounts)])
    quantities = [products.sums(each.quantities) for each in (source, platform)]
    amounts = [customers.sums_by_currency(each.amounts) for each in (source, platform)]
    return [
        *(DifferingTotal("product", name, None, *both) for name, both in _unequal(*quantities)),
        *(DifferingTotal("customer", name, currency, *both) for (name, currency), both in _unequal(*amounts)),
    ]


class _Names:
    def __init__(self, tx: Transaction, resource: str) -> None:
        self._tx, self._resource = tx, resource
        self._known: dict[str, str] = {}

    def learn(self, ids: Iterable[str]) -> None:
        wanted = [each for each in dict.fromkeys(ids) if each != OTHERS and name_in_placeholder(each) is None]
        for target_id, namespace, _, key in self._tx.bindings.owners(PLATFORM, self._resource, wanted):
            self._known[target_id] = external_id(namespace, key)

    def of(self, record_id: str) -> str:
        return name_in_placeholder(record_id) or self._known.get(record_id, record_id)

    def sums(self, parts: Mapping[str, Decimal]) -> dict[str, Decimal]:
        found: dict[str, Decimal] = defaultdict(Decimal)
        for record_id, number in parts.items():
            found[self.of(record_id)] = plus(found[self.of(record_id)], number)
        return found

    def sums_by_currency(self, parts: Mapping[tuple[str, str], Decimal]) -> dict[tuple[str, str], Decimal]:
        found: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
        for (record_id, currency), amount in parts.items():
            place = self.of(record_id), currency
            found[place] = plus(found[place], amount)
        return found


def _unequal(
    ours: Mapping[_Part, Decimal], theirs: Mapping[_Part, Decimal]
) -> list[tuple[_Part, tuple[Decimal, Decimal]]]:
    names, nothing = sorted(ours.keys() | theirs.keys()), Decimal()
    pairs = [(name, (ours.get(name, nothing), theirs.get(name, nothing))) for name in names]
    return [(name, both) for name, both in pairs if both[0] != both[1]]
