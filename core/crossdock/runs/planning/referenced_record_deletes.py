"""Deletes of records that others refer to, at the end of the run. Referring records are deleted first.

A gone record is kept while a remaining record refers to it. It is deleted when the source shows again that it is gone,
or by a replay. References of any stream in the state, of unsettled operations, and in lists of the target count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import structs

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.mapping.resource_types import ResourceType
from crossdock.runs.planning.planner import PlannedChunk, Planner
from crossdock.runs.planning.references import referred_resources_and_ids
from crossdock.runs.planning.removals import REFERENCED, REFERENCED_BY, Removals, removal_operation
from crossdock.state import Binding, DeadLetter, Scope, State, Transaction, UnrecordedReference
from crossdock.writing.delivery.operations_and_intents import Operation, payload_after_intent

_SHOWN = 3
_AT_ONCE = 1_000  # ids that are looked up together


class Referrer(NamedTuple):
    """A record that refers to another one.

    Attributes:
        scope: Without a namespace if the state does not know the record.
        key: The target's id if the state does not know the record; empty for all records of a list that was not read.
        is_open: Whether it counts without a binding, for example because an operation on it is unsettled.
    """

    scope: Scope
    key_hash: int
    key: str
    is_open: bool = False


class DeleteRound(NamedTuple):
    """Deletes that may be sent together, or records that are kept. Later rounds decide about the `left` ones."""

    bound: BoundStream
    planner: Planner
    chunks: Iterator[PlannedChunk]
    left: int


PlannerOf = Callable[[BoundStream, Removals], Planner]
"""Makes the planner of a stream for some of its removals."""


class DeferredDeletes:
    def __init__(self, state: State, target: str, kinds: Mapping[str, ResourceType]) -> None:
        self._state, self._target, self._kinds = state, target, kinds
        self._deleted: dict[str, dict[str, set[Referrer]]] = defaultdict(dict)
        self._deferred: dict[str, tuple[BoundStream, Removals]] = {}
        self._planned: dict[tuple[Scope, int], tuple[str, set[tuple[str, str]]]] = {}
        self._shown = defaultdict[tuple[str, str], list[UnrecordedReference]](list)  # by what refers to deleted records

    def defer_deletes_of_referable_records(self, bound: BoundStream, gone: Removals) -> Removals:
        """Keep the deletes of *gone* for `plan_delete_rounds` if records may refer to them. Return what is removed at
        once.
        """
        resource = bound.scope.resource
        is_parent = any(resource in kind.parents for kind in self._kinds.values())
        if bound.stream.on_gone != "delete" or not gone.removed or not is_parent:
            return gone
        with self._state.begin_read_only() as tx:
            ids = [each.target_id for each in tx.bindings.get(bound.scope, gone.removed).values()]
            for each in tx.unrecorded_references.references_to(self._target, resource, ids):
                self._shown[each.by_resource, each.by_id].append(each)
        self._deleted[resource].update({each: set() for each in ids})
        self._deferred[bound.name] = bound, gone
        return structs.replace(gone, removed=())

    def discard_deferred_deletes_and_count(self, bound: BoundStream) -> int:
        deferred = self._deferred.pop(bound.name, None)
        return 0 if deferred is None else len(deferred[1].removed)

    def record_planned_references_to_deleted(self, operation: Operation) -> None:
        """In a plan, note the references of *operation* to records that are to be deleted."""
        kind = self._kinds[operation.scope.resource]
        if not kind.parents & self._deleted.keys():
            return
        before = operation.binding.payload if operation.binding else {}
        after = set(self._references_to_deleted(kind, {} if operation.kind == "delete" else operation.after))
        is_shown = operation.binding and (operation.scope.resource, operation.binding.target_id) in self._shown
        if after or is_shown or any(self._references_to_deleted(kind, before)):
            self._planned[operation.scope, operation.identity.key_hash] = operation.record.key, after

    def _add_unsettled_referrers(self, tx: Transaction) -> None:
        for intent in tx.intents.unsettled():
            kind = self._kinds.get(intent.resource)
            if intent.scope.target == self._target and kind is not None and intent.operation != "delete":
                who = Referrer(intent.scope, intent.identity.key_hash, intent.identity.key, is_open=True)
                self._add_referrer(who, self._references_to_deleted(kind, payload_after_intent(intent)))

    def _add_listed_referrers(self, tx: Transaction) -> None:
        by_resource = defaultdict[str, list[str]](list)
        for name, target_id in self._shown:
            by_resource[name].append(target_id)
        for name, ids in by_resource.items():
            for start in range(0, len(ids), _AT_ONCE):
                self._add_listed_referrers_with_ids(tx, name, ids[start : start + _AT_ONCE])

    def _add_listed_referrers_with_ids(self, tx: Transaction, name: str, ids: Sequence[str]) -> None:
        bound = defaultdict[str, list[tuple[Scope, Binding]]](list)
        for scope, binding in tx.bindings.bindings_of_target_ids(self._target, name, ids):
            bound[binding.target_id].append((scope, binding))
        for each in (shown for target_id in ids for shown in self._shown[name, target_id]):
            who = self._referrer_if_still_referring(self._kinds[name], each, bound[each.by_id])
            if who is not None:
                self._add_referrer(who, [(each.resource, each.target_id)])

    def _referrer_if_still_referring(
        self, kind: ResourceType, shown: UnrecordedReference, bound: Sequence[tuple[Scope, Binding]]
    ) -> Referrer | None:
        """Return the record that was *shown* to refer; None if the state has learned since to what it refers."""
        whole = next((each for each in bound if not each[0].is_contribution), None)
        if whole is None:
            return Referrer(Scope(self._target, shown.by_resource, ""), 0, shown.by_id, is_open=True)
        scope, binding = whole
        known = {reference for _, each in bound for reference in referred_resources_and_ids(kind, each.payload)}
        is_replaced = not kind.write_once and any(resource == shown.resource for resource, _ in known)
        is_known = (shown.resource, shown.target_id) in known or (scope, binding.key_hash) in self._planned
        return None if is_replaced or is_known else Referrer(scope, binding.key_hash, binding.key)

    def _add_unread_lists_as_referrers(self, tx: Transaction) -> None:
        """Count each list that had to be read, and could not be, as a record that refers to all."""
        for name in tx.unrecorded_references.unread_resources(self._target):
            who = Referrer(Scope(self._target, name, ""), 0, "", is_open=True)
            for parent in self._kinds[name].parents:
                self._add_referrer(who, ((parent, each) for each in self._deleted.get(parent, ())))

    def _references_to_deleted(self, kind: ResourceType, payload: Mapping[str, object]) -> Iterator[tuple[str, str]]:
        return (each for each in referred_resources_and_ids(kind, payload) if each[1] in self._deleted.get(each[0], ()))

    def _add_referrer(self, referrer: Referrer, referred: Iterable[tuple[str, str]]) -> None:
        for resource, target_id in referred:
            self._deleted[resource][target_id].add(referrer)

    def plan_delete_rounds(self, planner: PlannerOf) -> Iterator[DeleteRound]:
        """Yield decisions about all deferred deletes, after all streams of the run, referring streams first.

        For each stream, rounds delete records without references until none is left, and the last one keeps the others.
        The deletes of a round must be delivered before the next is requested.
        """
        if self._deferred:
            self._find_referrers()
        for bound, gone in reversed(self._deferred.values()):
            yield from self._plan_rounds_of_stream(bound, gone, planner)

    def _find_referrers(self) -> None:
        with self._state.begin_read_only() as tx:
            for name, kind in self._kinds.items():
                ids = [each for parent in kind.parents for each in self._deleted.get(parent, ())]
                for scope, key_hash, key, payload in (
                    tx.bindings.records_referring_to(self._target, name, ids) if ids else ()
                ):
                    if (scope, key_hash) not in self._planned:
                        self._add_referrer(Referrer(scope, key_hash, key), self._references_to_deleted(kind, payload))
            self._add_unsettled_referrers(tx)
            self._add_listed_referrers(tx)
            self._add_unread_lists_as_referrers(tx)
        for (scope, key_hash), (key, referred) in self._planned.items():
            self._add_referrer(Referrer(scope, key_hash, key, is_open=True), referred)

    def _plan_rounds_of_stream(self, bound: BoundStream, gone: Removals, planner: PlannerOf) -> Iterator[DeleteRound]:
        left = dict.fromkeys(gone.removed)
        while left:
            with self._state.begin_read_only() as tx:
                found = self._remaining_referrers(tx, bound, list(left))
            ready = [each for each in left if not found.get(each)]
            if not ready and bound.stream.gone.referenced == "delete":
                ready = list(left)
            if not ready:
                planned = planner(bound, structs.replace(gone, removed=()))
                with self._state.begin_read_only() as tx:
                    kept = tx.bindings.get(bound.scope, list(left))
                letters = (
                    _dead_letter(bound, removal_operation(bound, kept[each], gone.source), found[each]) for each in left
                )
                yield DeleteRound(bound, planned, planned.plan_given_dead_letters(letters), 0)
                return
            for each in ready:
                del left[each]
            planned = planner(bound, structs.replace(gone, removed=tuple(ready)))
            yield DeleteRound(bound, planned, planned.plan_ready_cycles_or_removals() or iter(()), len(left))

    def _remaining_referrers(
        self, tx: Transaction, bound: BoundStream, key_hashes: Sequence[int]
    ) -> dict[int, list[Referrer]]:
        """Return what still refers to each of these records. A record's reference to itself does not count."""
        of_resource = self._deleted[bound.scope.resource]
        found = {
            key_hash: [
                who for who in of_resource.get(each.target_id, ()) if not _is_same_record(who, bound.scope, key_hash)
            ]
            for key_hash, each in tx.bindings.get(bound.scope, key_hashes).items()
        }
        asked = defaultdict[Scope, list[int]](list)
        for who in {who for each in found.values() for who in each if not who.is_open}:
            asked[who.scope.whole_record_scope].append(who.key_hash)
        alive = {
            (scope, each)
            for scope, hashes in asked.items()
            for each in tx.bindings.target_id_by_key_hash(scope, hashes)
        }
        return {
            key_hash: [who for who in each if who.is_open or (who.scope.whole_record_scope, who.key_hash) in alive]
            for key_hash, each in found.items()
        }


def _is_same_record(who: Referrer, scope: Scope, key_hash: int) -> bool:
    return who.scope.whole_record_scope == scope and who.key_hash == key_hash


def _dead_letter(bound: BoundStream, kept: Operation, referring: Sequence[Referrer]) -> DeadLetter:
    reason = REFERENCED_BY, None, _referrers_text(bound, referring)
    return DeadLetter(kept.identity, "plan", *reason, kept.record.raw(), None, step=kept.step)


def _referrers_text(bound: BoundStream, referring: Sequence[Referrer]) -> str:
    if unread := sorted(each.scope.resource.replace("_", " ") for each in referring if not each.key):
        lists = " and ".join(unread)
        return (
            f"records of {lists} that the state does not know may refer to it: their list could not be read; permit"
            f" that, and declare it: crossdock state restored; or delete it now with gone: {{{REFERENCED}}}"
        )
    names = sorted(map(_referrer_name, referring))
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    verb, stream = "refers" if len(names) == 1 else "refer", bound.stream
    shows_again = stream.mode == "snapshot" or stream.lists_existing or stream.rereads_gone
    later = "it is deleted when they are" if shows_again else f"after they are: crossdock records replay {bound.name}"
    return f"{', '.join(names[:_SHOWN])}{more} {verb} to it; {later}, or now with gone: {{{REFERENCED}}}"


def _referrer_name(referring: Referrer) -> str:
    namespace = referring.scope.whole_record_scope.namespace
    return f"{referring.scope.resource.replace('_', ' ')} {namespace and f'{namespace}:'}{referring.key}"
