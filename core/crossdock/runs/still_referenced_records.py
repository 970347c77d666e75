"""Records that must be left alone, because one that stays refers to them in the state or in the target's lists.

Lists of the platform also show references that the payloads in the state do not have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.mapping.resource_types import RESOURCES
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.reading.sources.compact_id_set import IdSet
from crossdock.runs.planning.references import referred_resources_and_ids
from crossdock.runs.platform_and_state_comparison import BindingsByTargetId, load_bindings_by_target_id
from crossdock.state import Binding, Scope, State, UnrecordedReference
from crossdock.values.field_types import is_valid_target_id
from crossdock.writing.delivery.operations_and_intents import Operation, payload_after_intent
from crossdock.writing.targets.target import Target

_AT_ONCE = 500  # ids that are looked up together


def unrecorded_references(
    resource: str, page: Sequence[Mapping[str, Any]], bound: BindingsByTargetId
) -> Iterator[tuple[Any, set[tuple[str, str]]]]:
    """Yield the id of each record of *page* with references that the payloads *bound* to it do not have, and these."""
    kind = RESOURCES[resource]
    for held in page if kind.parents else ():
        name = held.get("id")
        bindings = bound.get(name, ()) if isinstance(name, str) else ()
        known = {each for _, binding in bindings for each in referred_resources_and_ids(kind, binding.payload)}
        if found := set(referred_resources_and_ids(kind, held)) - known:
            yield name, found


def store_unrecorded_references(
    state: State, resource: str, page: Sequence[Mapping[str, Any]], bound: BindingsByTargetId
) -> None:
    """Store the unknown references of *page* to bound records, so that these are kept. *bound* is not corrected yet."""
    names = [name for name, _ in unrecorded_references(resource, page, bound) if _is_id(name)]
    if not names:
        return
    corrected = load_bindings_by_target_id(state, resource, names)
    left = [each for each in page if _is_id(each.get("id")) and each["id"] in corrected]
    found = dict(unrecorded_references(resource, left, corrected))
    ours = _references_to_bound_records(state, {each for references in found.values() for each in references})
    shown = [
        UnrecordedReference(resource, name, *each)
        for name, references in found.items()
        for each in references
        if each in ours
        or (each[0] == resource and is_valid_target_id(each[1]))  # this list binds its records at its end
    ]
    state.run_transaction(lambda tx: tx.unrecorded_references.add(PLATFORM, shown))


def _references_to_bound_records(state: State, references: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    ids = defaultdict[str, list[str]](list)
    for resource, target_id in references:
        ids[resource].append(target_id)
    with state.begin_read_only() as tx:
        return {
            (resource, target_id)
            for resource, wanted in ids.items()
            for start in range(0, len(wanted), _AT_ONCE)
            for target_id, *_ in tx.bindings.records_of_target_ids(PLATFORM, resource, wanted[start : start + _AT_ONCE])
        }


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and is_valid_target_id(value)


_PAGE = 5_000  # bindings that are read together


class ReferredRecords:
    """Records by the resource of those that refer to them. Each takes about 20 bytes."""

    def __init__(self) -> None:
        self._by = defaultdict[str, IdSet](IdSet)

    def add(self, by: str, target: str, referred: Iterable[tuple[str, str]]) -> None:
        self._by[by].add([record_address(target, *each) for each in referred])

    def referring_resource_by_id(self, scope: Scope, ids: Sequence[str]) -> dict[str, str]:
        places = {record_address(scope.target, scope.resource, each): each for each in ids}
        found = dict[str, str]()
        for resource, referred in sorted(self._by.items()):
            found = {places[each]: resource for each in referred.known_ids_among(list(places))} | found
        return found


def record_address(target: str, resource: str, target_id: str) -> str:
    return f"{target} {resource} {target_id}"


Operations = Callable[[BoundStream], Iterator[Operation]]
"""Yields the operations that would undo the records of a stream if nothing referred to them."""
_Payloads = Mapping[str, object]


class ReferencesRemainingAfterUndo:
    """The references of all records that remain after an undo, and of unsettled operations. An id takes 20 bytes."""

    def __init__(self, state: State, targets: Mapping[str, Target], live: ListedReferences) -> None:
        self._state, self._targets, self._live = state, targets, live
        self._referred = ReferredRecords()
        self._deleted, self._restored, self._kept = IdSet(), IdSet(), IdSet()

    def find_references_after_undo(self, undone: Sequence[BoundStream], operations: Operations) -> None:
        """Find the references. *undone* lists the streams that are undone, referring streams first."""
        is_any = False
        for bound in undone:
            for each in operations(bound):
                is_any |= self._add_planned_operation(each)
        if not is_any:
            return
        for target in sorted({bound.scope.target for bound in undone}):
            for resource, kind in self._targets[target].resources.items():
                if kind.parents:
                    self._add_references_of_remaining(target, resource)
        self._add_references_of_unsettled()
        self._keep_referenced_records_repeatedly([bound for bound in undone if bound.resource_type.parents], operations)

    def referring_resource_by_id(self, scope: Scope, ids: Sequence[str]) -> dict[str, str]:
        return self._live.referring_resource_by_id(scope, ids) | self._referred.referring_resource_by_id(scope, ids)

    def _add_planned_operation(self, operation: Operation) -> bool:
        """Add an operation of the plan. Return True for a delete."""
        scope, binding = operation.scope, operation.binding
        assert binding is not None
        if operation.kind == "delete":
            self._deleted.add([record_address(scope.target, scope.resource, binding.target_id)])
            return True
        self._restored.add([_identifying_text_of_binding(scope, binding)])
        self._add_references(scope, operation.after)
        return False

    def _add_references(self, scope: Scope, payload: _Payloads) -> set[str]:
        kind = self._targets[scope.target].resources[scope.resource]
        found = list(referred_resources_and_ids(kind, payload))
        self._referred.add(scope.resource, scope.target, found)
        return {resource for resource, _ in found}

    def _add_references_of_remaining(self, target: str, resource: str) -> None:
        after: tuple[str, int] | None = None
        while True:
            with self._state.begin_read_only() as tx:
                page = tx.bindings.page_of_resource_bindings(
                    target, resource, after=after, limit=_PAGE, contributions=True
                )
            if not page:
                return
            gone = self._deleted.known_ids_among([record_address(target, resource, each.target_id) for _, each in page])
            restored = self._restored.known_ids_among([_identifying_text_of_binding(*each) for each in page])
            for scope, binding in page:
                is_gone = record_address(target, resource, binding.target_id) in gone
                if not is_gone and _identifying_text_of_binding(scope, binding) not in restored:
                    self._add_references(scope, binding.payload)
            scope, last = page[-1]
            after = scope.namespace, last.key_hash

    def _add_references_of_unsettled(self) -> None:
        with self._state.begin_read_only() as tx:
            unsettled = tx.intents.unsettled()
        for intent in unsettled:
            target = self._targets.get(intent.scope.target)
            if intent.operation != "delete" and target is not None and intent.resource in target.resources:
                self._add_references(intent.scope, payload_after_intent(intent))

    def _keep_referenced_records_repeatedly(self, undone: Sequence[BoundStream], operations: Operations) -> None:
        """Add the references of records that stay only because others refer to them, repeatedly."""
        again = bool(undone)
        while again:
            again, passed = False, set[tuple[str, str]]()
            for bound in undone:
                passed.add((bound.scope.target, bound.scope.resource))
                for page in in_pages(each for each in operations(bound) if each.kind == "delete"):
                    fresh = self._keep_referenced(bound.scope, page)
                    again |= any((bound.scope.target, resource) in passed for resource in fresh)

    def _keep_referenced(self, scope: Scope, page: Sequence[Operation]) -> set[str]:
        """Keep those of *page* that are referred to, and return the resources of what they refer to."""
        ids = [each.binding.target_id for each in page if each.binding is not None]
        referred = self.referring_resource_by_id(scope, ids)
        known = self._kept.known_ids_among([record_address(scope.target, scope.resource, each) for each in referred])
        fresh = {each for each in referred if record_address(scope.target, scope.resource, each) not in known}
        self._kept.add([record_address(scope.target, scope.resource, each) for each in fresh])
        with self._state.begin_read_only() as tx:
            contributed = list(tx.bindings.contributed_payloads(scope.target, scope.resource, list(fresh)))
        found = set[str]()
        for each in page:
            if each.binding is not None and each.binding.target_id in fresh:
                found |= self._add_references(scope, each.binding.payload)
        for _, payload in contributed:
            found |= self._add_references(scope, payload)
        return found


def in_pages(operations: Iterable[Operation]) -> Iterator[list[Operation]]:
    iterator = iter(operations)
    while page := list(islice(iterator, _PAGE)):
        yield page


def _identifying_text_of_binding(scope: Scope, binding: Binding) -> str:
    """Return an id for a binding. Several may have the same target id, one for each contributing stream."""
    return f"{scope.target} {scope.resource} {scope.namespace} {binding.target_id}"


class ListedReferences(ReferredRecords):
    def add_unrecorded_references(
        self, resource: str, page: Sequence[Mapping[str, Any]], bound: BindingsByTargetId
    ) -> None:
        """Add the references of the records of *page* that the payloads *bound* to them do not have."""
        for _, found in unrecorded_references(resource, page, bound):
            self.add(resource, PLATFORM, found)
