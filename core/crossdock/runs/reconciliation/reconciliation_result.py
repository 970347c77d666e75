"""The result of a reconciliation: the differences between sources, state and platform, named totals, bounds."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from itertools import groupby, islice
from typing import NamedTuple, TypeVar

from msgspec import Struct, field

from crossdock.errors import CrossdockError, worst_exit_code
from crossdock.mapping.resource_types import RESOURCES, make_platform_external_id
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.runs.planning.references import external_id_in_placeholder
from crossdock.runs.platform_and_state_comparison import (
    CLASSES,
    BindingCorrection,
    Difference,
    DifferenceClass,
    InDoubtResult,
)
from crossdock.runs.resource_control_totals import OTHERS, ResourceTotals, add_exactly
from crossdock.state import Intent, Scope, Transaction
from crossdock.writing.delivery.operations_and_intents import Operation

CONFIDENCE = 0.95


def highest_differing_share(sampled: int, differing: int, *, confidence: float = CONFIDENCE) -> float:
    """Return the highest share of differing records, with this confidence.

    This is the upper bound of Clopper and Pearson (1934) for a sample that is small compared with the whole. A larger
    share would show so few differences with a probability below 1 - *confidence*. *sampled* is at least 1.
    """
    if differing >= sampled:
        return 1.0
    low, high = differing / sampled, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _probability_of_at_most(sampled, differing, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def _probability_of_at_most(number: int, successes: int, share: float) -> float:
    if share in {0.0, 1.0}:
        return 1.0 if share == 0.0 else float(successes >= number)
    logs = (
        math.lgamma(number + 1)
        - math.lgamma(each + 1)
        - math.lgamma(number - each + 1)
        + each * math.log(share)
        + (number - each) * math.log1p(-share)
        for each in range(successes + 1)
    )
    return math.fsum(map(math.exp, logs))


LISTED_AT_MOST = 100_000
"""The most corrections of one repair plan."""


class Sample(Struct, frozen=True):
    """The choice of records if not all are compared. The same seed chooses the same records of the same state."""

    records: int
    seed: int = 0


class Reconciliation(Struct):
    """The findings of a reconciliation.

    Attributes:
        undelivered: By class, stream and key hash. Such a record may also differ, and is listed with both.
        settled: Operations in doubt that the platform's records decide.
        totals: The totals of source, state and platform, by resource.
        unavailable: Records whose source cannot be read again, such as those of archived files, by stream. They are
            compared between the state and the platform.
        kept: Records that the source no longer lists and the platform keeps, by stream.
    """

    at: datetime
    sample: Sample | None
    compared: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    differences: dict[tuple[Scope, str], Difference] = field(default_factory=dict)
    undelivered: dict[tuple[DifferenceClass, str, int], Difference] = field(default_factory=dict)
    corrections: dict[tuple[Scope, int], BindingCorrection] = field(default_factory=dict)
    settled: list[tuple[Intent, InDoubtResult]] = field(default_factory=list)
    removals: list[Operation] = field(default_factory=list)
    operations: Counter[str] = field(default_factory=Counter)
    totals: dict[str, tuple[ResourceTotals, ResourceTotals, ResourceTotals]] = field(default_factory=dict)
    differing_totals: dict[str, list[DifferingTotal]] = field(default_factory=dict)
    kept: Counter[str] = field(default_factory=Counter)
    unavailable: Counter[str] = field(default_factory=Counter)
    sources: dict[str, str] = field(default_factory=dict)
    errors: dict[str, CrossdockError] = field(default_factory=dict)
    requests: int = 0

    @property
    def _all_differences(self) -> list[Difference]:
        return [*self.differences.values(), *self.undelivered.values()]

    @property
    def counts_by_resource_and_class(self) -> Counter[tuple[str, DifferenceClass]]:
        return Counter((each.scope.resource, each.difference) for each in self._all_differences)

    def count_differing_records(self, resource: str) -> int:
        return len(
            {(each.scope, each.key or each.place) for each in self._all_differences if each.scope.resource == resource}
        )

    @property
    def exit_code(self) -> int:
        return worst_exit_code(self.errors.values()) or (1 if self._all_differences else 0)

    def first_differences_of_each_class(self, limit: int, only: DifferenceClass | None = None) -> list[Difference]:
        wanted = [each for each in self.sorted_differences() if only in {None, each.difference}]
        by_class = groupby(wanted, key=lambda each: each.difference)
        return [each for _, group in by_class for each in islice(group, limit)]

    def sorted_differences(self) -> list[Difference]:
        """Return the differences by class, the most severe first, and then by resource and key."""
        order = {name: number for number, name in enumerate((*RESOURCES, *CLASSES))}

        def place(each: Difference) -> tuple[int, int, str, str, str]:
            name = each.scope.namespace
            return order[each.difference], order[each.scope.resource], name, each.key, each.place

        return sorted(self._all_differences, key=place)


_Part = TypeVar("_Part", str, tuple[str, str])


class DifferingTotal(NamedTuple):
    """A quantity of a ``product``, or an amount of a ``customer``, that differs between the source and the platform.

    *name* is the external id, such as ``wms:P1``, or the platform's id of a record that the state does not know.
    """

    resource: str
    name: str
    currency: str | None
    source: Decimal
    platform: Decimal


def differing_totals(tx: Transaction, source: ResourceTotals, platform: ResourceTotals) -> list[DifferingTotal]:
    products, customers = (_RecordNames(tx, resource) for resource in ("product", "customer"))
    products.load([*source.quantities, *platform.quantities])
    customers.load([customer for customer, _ in (*source.amounts, *platform.amounts)])
    quantities = [products.quantity_sums_by_name(each.quantities) for each in (source, platform)]
    amounts = [customers.sums_by_name_and_currency(each.amounts) for each in (source, platform)]
    return [
        *(DifferingTotal("product", name, None, *both) for name, both in _differing_pairs_of_sums(*quantities)),
        *(
            DifferingTotal("customer", name, currency, *both)
            for (name, currency), both in _differing_pairs_of_sums(*amounts)
        ),
    ]


class _RecordNames:
    def __init__(self, tx: Transaction, resource: str) -> None:
        self._tx, self._resource = tx, resource
        self._known: dict[str, str] = {}

    def load(self, ids: Iterable[str]) -> None:
        wanted = [each for each in dict.fromkeys(ids) if each != OTHERS and external_id_in_placeholder(each) is None]
        for target_id, namespace, _, key in self._tx.bindings.records_of_target_ids(PLATFORM, self._resource, wanted):
            self._known[target_id] = make_platform_external_id(namespace, key)

    def name_of(self, record_id: str) -> str:
        return external_id_in_placeholder(record_id) or self._known.get(record_id, record_id)

    def quantity_sums_by_name(self, parts: Mapping[str, Decimal]) -> dict[str, Decimal]:
        found: dict[str, Decimal] = defaultdict(Decimal)
        for record_id, number in parts.items():
            found[self.name_of(record_id)] = add_exactly(found[self.name_of(record_id)], number)
        return found

    def sums_by_name_and_currency(self, parts: Mapping[tuple[str, str], Decimal]) -> dict[tuple[str, str], Decimal]:
        found: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
        for (record_id, currency), amount in parts.items():
            place = self.name_of(record_id), currency
            found[place] = add_exactly(found[place], amount)
        return found


def _differing_pairs_of_sums(
    ours: Mapping[_Part, Decimal], theirs: Mapping[_Part, Decimal]
) -> list[tuple[_Part, tuple[Decimal, Decimal]]]:
    names, nothing = sorted(ours.keys() | theirs.keys()), Decimal()
    pairs = [(name, (ours.get(name, nothing), theirs.get(name, nothing))) for name in names]
    return [(name, both) for name, both in pairs if both[0] != both[1]]
