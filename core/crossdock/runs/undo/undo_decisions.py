"""The decisions of an undo about each record that some runs have delivered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Literal

from msgspec import Struct, structs

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.state import Binding, RecordIdentity, Scope, State, Transaction
from crossdock.state.queries.run_details_and_deliveries import DeliveredOperation
from crossdock.values.raw_rows_and_records import Record
from crossdock.writing.delivery.operations_and_intents import Kind, Operation
from crossdock.writing.targets.payload_comparison import merge_patch_between

_SOURCE = "undo"
AT_ONCE = 1_000  # records that are looked up together
Undoing = Literal["delete", "restore", "left alone", "impossible"]
Changed = Callable[[Sequence[str]], AbstractSet[str]]
"""Returns those of some ids whose records others have changed since they were written."""
Referred = Callable[[Sequence[str]], Mapping[str, str]]
"""Returns those of some ids that a remaining record refers to, each with the resource of that record."""

CHANGED = "somebody else has changed it since"
_GONE = "it was deleted, and a new record would have another id"
_UNKNOWN = "what it held before is not known"
_RETRIED = "it may have existed before: its create was not answered"


class UndoneRecord(Struct, frozen=True):
    """The decision about one record. Its reason says why it stays, or its operation undoes it."""

    stream: str
    scope: Scope
    key: str
    undoing: Undoing
    reason: str = ""
    operation: Operation | None = None

    @property
    def id_to_delete(self) -> str | None:
        if self.operation is None or self.operation.kind != "delete" or self.operation.binding is None:
            return None
        return self.operation.binding.target_id


def nothing_referred(ids: Sequence[str]) -> Mapping[str, str]:  # noqa: ARG001  see `Referred`
    return {}


def decide_undo_of_records(
    state: State,
    bound: BoundStream,
    runs: AbstractSet[int],
    changed: Changed,
    referred: Referred = nothing_referred,
) -> Iterator[UndoneRecord]:
    """Decide about each record of *bound* that *runs* have delivered. Those that need nothing are left out.

    Later deliveries of other runs are not undone. *changed* and *referred* are called for many records at once.
    """
    scope, after, wanted = bound.scope, None, sorted(runs)
    while True:
        with state.begin_read_only() as tx:
            keys = tx.delivered_history.delivered_key_hashes(scope, wanted, after=after, limit=AT_ONCE)
            histories, bindings = (
                tx.delivered_history.delivered_operations_of_records(scope, keys),
                _bindings(tx, scope, keys),
            )
            ids = [each.target_id for each in bindings.values()]
            contributing = (
                {} if scope.is_contribution else tx.delivered_history.run_ids_contributing_to_records(scope, ids)
            )
        changed_ids = changed(ids)
        page = list[UndoneRecord]()
        for key_hash in keys:
            history = histories[key_hash]
            start = next(number for number, each in enumerate(history) if each.run_id in runs)
            decision = _Decision(bound, history[start:], bindings.get(key_hash), is_first=not start)
            found = decision.decide(runs, changed_ids, contributing)
            if found is not None:
                page.append(found)
        yield from _leave_referred_alone(page, referred)
        if len(keys) < AT_ONCE:
            return
        after = keys[-1]


def _bindings(tx: Transaction, scope: Scope, keys: Sequence[int]) -> dict[int, Binding]:
    """Return the bindings of these records, contributions with the newer version of the whole record."""
    own = tx.bindings.get(scope, keys)
    wholes = tx.bindings.get(scope.whole_record_scope, list(own)) if scope.is_contribution else {}
    return {
        key_hash: structs.replace(each, etag=whole.etag, changed_at=whole.changed_at)
        if (whole := wholes.get(key_hash)) is not None and whole.target_id == each.target_id
        else each
        for key_hash, each in own.items()
    }


def _leave_referred_alone(page: Sequence[UndoneRecord], referred: Referred) -> Iterator[UndoneRecord]:
    ids = referred([each.id_to_delete for each in page if each.id_to_delete is not None])
    for each in page:
        resource = None if each.id_to_delete is None else ids.get(each.id_to_delete)
        if resource is None:
            yield each
        else:
            yield structs.replace(each, undoing="left alone", reason=_referred_reason(resource), operation=None)


def _referred_reason(resource: str) -> str:
    article = "an" if resource[0] in "aeiou" else "a"
    return f"{article} {resource.replace('_', ' ')} that stays refers to it"


class _Decision(Struct, frozen=True):
    """The decision about one record. *history* begins with the first operation of the undone runs."""

    bound: BoundStream
    history: Sequence[DeliveredOperation]
    binding: Binding | None
    is_first: bool

    def decide(
        self, runs: AbstractSet[int], changed: AbstractSet[str], contributing: Mapping[str, Sequence[int]]
    ) -> UndoneRecord | None:
        undone = self._undoing_operation(runs)
        if undone is None or isinstance(undone, str):
            return None if undone is None else self._left_unchanged("impossible", undone)
        if reason := self._reason_irreversible(undone):
            return self._left_unchanged("impossible", reason)
        assert undone.binding is not None
        writing = [each.run_id for each in self.history]
        if undone.kind == "delete":  # with the members that other streams have contributed
            writing += contributing.get(undone.binding.target_id, ())
        later = next((run_id for run_id in writing if run_id not in runs), None)
        if later is not None:
            return self._left_unchanged("left alone", f"run {later} has delivered it again since")
        if undone.binding.target_id in changed or self._differs_from_last_delivery(undone.binding):
            return self._left_unchanged("left alone", CHANGED)
        undoing: Undoing = "delete" if undone.kind == "delete" else "restore"
        return UndoneRecord(self.bound.name, self.bound.scope, self._key, undoing, operation=undone)

    def _differs_from_last_delivery(self, binding: Binding) -> bool:
        """Return whether the record was found with other content than the last delivery, as after a restored backup."""
        return bool(binding.payload) and binding.payload != self.history[-1].after

    def _undoing_operation(self, runs: AbstractSet[int]) -> Operation | str | None:
        """Return the operation that undoes *runs*, or why there is none; None if nothing is to be undone."""
        first, binding = self.history[0], self.binding
        created = first.operation == "create" and not first.untouched
        if binding is None:
            return None if created else _GONE
        if created:
            return self._new_operation("delete", binding, {})
        if any(each.operation == "delete" for each in self.history):
            return _GONE
        written = next((each for each in self.history if each.run_id in runs and not each.untouched), None)
        if written is None or binding.payload == written.before:
            return None
        if written.was_decided_again and self.is_first:
            return _RETRIED
        return self._new_operation("update", binding, written.before) if written.before else _UNKNOWN

    def _reason_irreversible(self, operation: Operation) -> str:
        assert operation.binding is not None
        if self.bound.resource_type.write_once:
            return "what is written once can be neither changed nor deleted"
        if operation.kind == "delete":
            return "" if self.bound.resource_type.deletes else "records of its resource cannot be deleted"
        return "" if operation.binding.payload else _UNKNOWN

    def _new_operation(self, kind: Kind, binding: Binding, after: dict[str, Any]) -> Operation:
        identity = RecordIdentity(self.bound.name, binding.key, binding.key_hash, None, binding.position, _SOURCE, 0)
        record, scope = Record(binding.key, (), _SOURCE, (0,)), self.bound.scope
        if kind == "delete":
            return Operation(kind, identity, scope, record, {}, {}, binding, "remove")
        return Operation(kind, identity, scope, record, after, merge_patch_between(binding.payload, after), binding)

    def _left_unchanged(self, undoing: Undoing, reason: str) -> UndoneRecord:
        return UndoneRecord(self.bound.name, self.bound.scope, self._key, undoing, reason)

    @property
    def _key(self) -> str:
        return self.history[0].key
