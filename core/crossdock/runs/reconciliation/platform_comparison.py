"""Comparison of the platform's records, all or a sample, with the state."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from crossdock.mapping.resource_types import RESOURCES
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.reading.sources.run_context import SourceContext
from crossdock.resources import ResourceName
from crossdock.runs.bindings_by_target_id import Bound
from crossdock.runs.live_comparison import ComparedResource, LiveComparison
from crossdock.runs.platform_source.live_records_for_comparisons import LiveRecords
from crossdock.runs.reconciliation.reconciliation_result import Reconciliation, Sample
from crossdock.runs.resource_control_totals import ResourceTotals
from crossdock.state import Binding, Intent, Scope, State

Chosen = Mapping[Scope, set[int]]
Listener = Callable[[str, Sequence[dict[str, Any]], Bound], None]
"""Called with the pages of a resource, each with the bindings of its records."""
_AT_ONCE = 5_000  # bindings that are read together


class PlatformComparison:
    """One comparison of the platform's records with the state, which completes *found*.

    Attributes:
        totals: The totals of the state and the platform, by resource.
        unnamed: For resources without external ids, the ids of records that the state does not know, by content.
    """

    def __init__(self, state: State, scopes: set[Scope], run: SourceContext, found: Reconciliation) -> None:
        self._state, self._run, self._found = state, run, found
        self._namespaces = defaultdict[str, set[str]](set)
        self.totals: dict[str, tuple[ResourceTotals, ResourceTotals]] = {}
        self.unnamed: dict[str, Mapping[str, list[str]]] = {}
        for scope in scopes:
            self._namespaces[scope.resource].add(scope.whole_record_scope.namespace)
        with state.begin_read_only() as tx:
            self._unsettled: list[Intent] = tx.intents.unsettled()

    def compare_all_records(self, live: LiveRecords, listener: Listener = lambda *_: None) -> None:
        for resource in self._resources:
            self._compare_resource(live, resource, listener)

    def compare_sample_and_return_keys(self, live: LiveRecords, sample: Sample) -> Chosen:
        """Look up a sample of each resource, and return the chosen key hashes."""
        chosen = defaultdict[Scope, set[int]](set)
        for resource in self._resources:
            comparison = self._new_comparison(resource)
            for scope, binding in self._choose_sample(resource, sample):
                chosen[scope].add(binding.key_hash)
                comparison.compare_looked_up(scope, binding, live.record(resource, binding.target_id))
                self._run.progress.advance(1)
            self._add_results(resource, comparison)
        return chosen

    @property
    def _resources(self) -> list[ResourceName]:
        return [resource for resource in _RESOURCES if resource in self._namespaces]

    def _compare_resource(self, live: LiveRecords, resource: ResourceName, listener: Listener) -> None:
        comparison = self._new_comparison(resource)
        self._run.progress.begin(f"reading {resource} of the platform", None)
        for page in live.pages(resource):
            listener(resource, page, comparison.compare_page(page))
            self._run.progress.advance(len(page))
        comparison.compare_unlisted_bindings(lambda record_id: live.record(resource, record_id))
        for intent in self._unsettled:
            is_internal = intent.scope.target == PLATFORM and intent.resource == resource
            if is_internal and intent.status == "in_doubt":
                self._found.settled.append((intent, comparison.outcome_of_doubtful_operation(intent)))
        self._add_results(resource, comparison)

    def _new_comparison(self, resource: ResourceName) -> LiveComparison:
        kind = RESOURCES[resource]
        return LiveComparison(
            self._state,
            ComparedResource(resource, kind.has_external_id, kind.write_once),
            self._namespaces[resource],
            {(intent.scope, intent.identity.key_hash) for intent in self._unsettled},
            began=self._run.clock.now(),
        )

    def _add_results(self, resource: ResourceName, comparison: LiveComparison) -> None:
        self._found.differences |= comparison.differences
        self._found.corrections |= comparison.corrections
        self._found.compared[resource] = comparison.state_totals.records
        self.totals[resource] = comparison.state_totals, comparison.platform_totals
        if not RESOURCES[resource].has_external_id:
            self.unnamed[resource] = comparison.unbound_ids_by_content

    def _choose_sample(self, resource: ResourceName, sample: Sample) -> list[tuple[Scope, Binding]]:
        """Choose a sample in which each record is with the same probability (algorithm R of Vitter, 1985)."""
        rng = random.Random(f"{sample.seed} {resource}")  # noqa: S311  it chooses what is compared
        chosen: list[tuple[Scope, Binding]] = []
        for number, each in enumerate(self._bindings(resource)):
            if number < sample.records:
                chosen.append(each)
            elif (place := rng.randrange(number + 1)) < sample.records:
                chosen[place] = each
        return chosen

    def _bindings(self, resource: ResourceName) -> Iterator[tuple[Scope, Binding]]:
        after: tuple[str, int] | None = None
        while True:
            with self._state.begin_read_only() as tx:
                page = tx.bindings.page_of_resource_bindings(PLATFORM, resource, after=after, limit=_AT_ONCE)
            if not page:
                return
            yield from (each for each in page if each[0].namespace in self._namespaces[resource])
            scope, last = page[-1]
            after = scope.namespace, last.key_hash


_RESOURCES: tuple[ResourceName, ...] = (
    "ledger_account", "customer", "product", "warehouse_bin", "inventory_lot", "order", "invoice",
)  # fmt: skip
