"""Deletes of records that others refer to, at the end of the run. Referring records are deleted first.

A gone record is kept while a remaining record refers to it. Its delete is held back until the source shows again that
the record is gone, or until a replay. All references in the state for the target count, of any stream, namespace or
contribution, and those of unsettled operations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from crossdock.config.project.connector_instances import BoundStream
from crossdock.mapping.resource_types import ResourceType
from crossdock.planning.planned_chunk import PlannedChunk
from crossdock.planning.planner import Planner
from crossdock.planning.referred_ids import referred_ids
from crossdock.planning.removals import REFERENCED, REFERENCED_BY, Removals, removal
from crossdock.state import DeadLetter, Scope, State, Transaction
from crossdock.writing.delivery.operations import Operation, payload_after

_SHOWN = 3


class Referrer(NamedTuple):
    """A record that refers to another one.

    Attributes:
        is_open: Whether an operation on it is unsettled, so that it may yet refer to the other record.
    """

    scope: Scope
    key_hash: int
    key: str
    is_open: bool = False


class Round(NamedTuple):
    """Deletes that may be sent together, or records that are kept.

    Attributes:
        left: The number of records of the stream that later rounds decide.
    """

    bound: BoundStream
    planner: Planner
    chunks: Iterator[PlannedChunk]
    left: int


PlannerOf = Callable[[BoundStream, Removals], Planner]
"""Makes the planner of a stream for some of its removals."""


class ReferringRecords:
    def __init__(self, state: State, target: str, kinds: Mapping[str, ResourceType]) -> None:
        self._state, self._target, self._kinds = state, target, kinds
        self._deleted: dict[str, dict[str, set[Referrer]]] = defaultdict(dict)
        self._deferred: dict[str, tuple[BoundStream, Removals]] = {}
        self._planned: dict[tuple[Scope, int], tuple[str, set[tuple[str, str]]]] = {}

    def defer(self, bound: BoundStream, gone: Removals) -> Removals:
        """Keep the deletes of *gone* for `rounds` if records may refer to them. Return what is removed at once."""
        resource = bound.scope.resource
        is_parent = any(resource in kind.parents for kind in self._kinds.values())
        if bound.stream.on_gone != "delete" or not gone.removed or not is_parent:
            return gone
        with self._state.look() as tx:
            bindings = tx.bindings.get(bound.scope, gone.removed)
        self._deleted[resource].update({each.target_id: set() for each in bindings.values()})
        self._deferred[bound.name] = bound, gone
        return replace(gone, removed=())

    def give_up(self, bound: BoundStream) -> int:
        """Discard the deletes of a stopped stream, and return their number."""
        deferred = self._deferred.pop(bound.name, None)
        return 0 if deferred is None else len(deferred[1].removed)

    def plan(self, operation: Operation) -> None:
        """In a plan, note the references of *operation* to records that are to be deleted."""
        kind = self._kinds[operation.scope.resource]
        if not kind.parents & self._deleted.keys():
            return
        before = operation.binding.payload if operation.binding else {}
        after = set(self._among(kind, {} if operation.kind == "delete" else operation.after))
        if after or any(self._among(kind, before)):
            self._planned[operation.scope, operation.identity.key_hash] = operation.record.key, after

    def _add_open(self, tx: Transaction) -> None:
        for intent in tx.intents.unsettled():
            kind = self._kinds.get(intent.resource)
            if intent.scope.target == self._target and kind is not None and intent.operation != "delete":
                who = Referrer(intent.scope, intent.identity.key_hash, intent.identity.key, is_open=True)
                self._add(who, self._among(kind, payload_after(intent)))

    def _among(self, kind: ResourceType, payload: Mapping[str, object]) -> Iterator[tuple[str, str]]:
        return (each for each in referred_ids(kind, payload) if each[1] in self._deleted.get(each[0], ()))

    def _add(self, referrer: Referrer, referred: Iterable[tuple[str, str]]) -> None:
        for resource, target_id in referred:
            self._deleted[resource][target_id].add(referrer)

    def rounds(self, planner: PlannerOf) -> Iterator[Round]:
        """Yield decisions about all deferred deletes, after all streams of the run, referring streams first.

        For each stream, rounds delete records without references until none is left, and the last one keeps the others.
        The deletes of a round must be delivered before the next is requested.
        """
        if self._deferred:
            self._find()
        for bound, gone in reversed(self._deferred.values()):
            yield from self._rounds_of(bound, gone, planner)

    def _find(self) -> None:
        with self._state.look() as tx:
            for name, kind in self._kinds.items():
                ids = [each for parent in kind.parents for each in self._deleted.get(parent, ())]
                for scope, key_hash, key, payload in tx.bindings.naming(self._target, name, ids) if ids else ():
                    if (scope, key_hash) not in self._planned:
                        self._add(Referrer(scope, key_hash, key), self._among(kind, payload))
            self._add_open(tx)
        for (scope, key_hash), (key, referred) in self._planned.items():
            self._add(Referrer(scope, key_hash, key, is_open=True), referred)

    def _rounds_of(self, bound: BoundStream, gone: Removals, planner: PlannerOf) -> Iterator[Round]:
        left = dict.fromkeys(gone.removed)
        while left:
            with self._state.look() as tx:
                found = self._referring(tx, bound, list(left))
            ready = [each for each in left if not found.get(each)]
            if not ready and bound.stream.gone.referenced == "delete":
                ready = list(left)
            if not ready:
                planned = planner(bound, replace(gone, removed=()))
                with self._state.look() as tx:
                    kept = tx.bindings.get(bound.scope, list(left))
                letters = (_dead_letter(bound, removal(bound, kept[each], gone.source), found[each]) for each in left)
                yield Round(bound, planned, planned.reject(letters), 0)
                return
            for each in ready:
                del left[each]
            planned = planner(bound, replace(gone, removed=tuple(ready)))
            yield Round(bound, planned, planned.next_round() or iter(()), len(left))

    def _referring(self, tx: Transaction, bound: BoundStream, key_hashes: Sequence[int]) -> dict[int, list[Referrer]]:
        """Return what still refers to each of these records. A record's reference to itself does not count."""
        of_resource = self._deleted[bound.scope.resource]
        found = {
            key_hash: [who for who in of_resource.get(each.target_id, ()) if not _is(who, bound.scope, key_hash)]
            for key_hash, each in tx.bindings.get(bound.scope, key_hashes).items()
        }
        asked = defaultdict[Scope, list[int]](list)
        for who in {who for each in found.values() for who in each if not who.is_open}:
            asked[who.scope.whole].append(who.key_hash)
        alive = {(scope, each) for scope, hashes in asked.items() for each in tx.bindings.ids(scope, hashes)}
        return {
            key_hash: [who for who in each if who.is_open or (who.scope.whole, who.key_hash) in alive]
            for key_hash, each in found.items()
        }


def _is(who: Referrer, scope: Scope, key_hash: int) -> bool:
    return who.scope.whole == scope and who.key_hash == key_hash


def _dead_letter(bound: BoundStream, kept: Operation, referring: Sequence[Referrer]) -> DeadLetter:
    reason = REFERENCED_BY, None, _said(bound, referring)
    return DeadLetter(kept.identity, "plan", *reason, kept.record.raw(), None, step=kept.step)


def _said(bound: BoundStream, referring: Sequence[Referrer]) -> str:
    """Describe the referring records, and how to delete the record nevertheless."""
    names = sorted(
        f"{each.scope.resource.replace('_', ' ')} {each.scope.whole.namespace}:{each.key}" for each in referring
    )
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    verb, stream = "refers" if len(names) == 1 else "refer", bound.stream
    shows_again = stream.mode == "snapshot" or stream.lists_existing or stream.rereads_gone
    later = "it is deleted when they are" if shows_again else f"after they are: crossdock records replay {bound.name}"
    return f"{', '.join(names[:_SHOWN])}{more} {verb} to it; {later}, or now with gone: {{{REFERENCED}}}"
