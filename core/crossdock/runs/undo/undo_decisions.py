"""The decisions of an undo about each record that some runs have delivered, by stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import Any, Literal

from msgspec import Struct, structs

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.runs.reconciliation.reconcile_and_repair import new_platform_source_context
from crossdock.runs.session_shared_by_runs import Session
from crossdock.state import Binding, RecordIdentity, Scope, State, Transaction
from crossdock.state.queries.run_details_and_deliveries import DeliveredOperation
from crossdock.values.raw_rows_and_records import Record
from crossdock.values.run_progress_and_messages import SilentProgress
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


ChangedAmong = Callable[[Scope, Sequence[str]], AbstractSet[str]]
"""Returns those of some ids of a scope whose records others have changed."""

Covers = Callable[[int], bool]
"""Returns whether an approved undo covers the record with this key hash."""
_UNSETTLED = "an operation on it is not settled"
_NOT_APPROVED = "it was left alone when the undo was approved"


class UndoneStreams(Struct, frozen=True):
    """The streams *names*, of which *runs* are undone. Once an undo has begun, records that it does not cover stay."""

    session: Session
    names: Sequence[str]
    runs: AbstractSet[int]
    covers: Mapping[str, Covers]

    @property
    def record_scopes(self) -> set[Scope]:
        return {self.session.project.scope_by_stream[name] for name in self.names}

    @contextmanager
    def bind(self) -> Iterator[list[BoundStream]]:
        session, run = self.session, new_platform_source_context(self.session, SilentProgress())
        with run.at_end:
            yield session.project.bind_streams(set(self.names), targets=session.targets, run=run)[::-1]

    def decide_about_records(
        self, bound: BoundStream, changed: ChangedAmong, referred: Referred = nothing_referred
    ) -> Iterator[UndoneRecord]:
        state, covers = self.session.state, self.covers.get(bound.name)
        with state.begin_read_only() as tx:
            unsettled = {each.identity.key_hash for each in tx.intents.unsettled_in_scope(bound.scope)}
        for each in decide_undo_of_records(state, bound, self.runs, lambda ids: changed(bound.scope, ids), referred):
            key_hash = None if each.operation is None else each.operation.identity.key_hash
            if key_hash is None or (key_hash not in unsettled and (covers is None or covers(key_hash))):
                yield each
            else:
                reason = _UNSETTLED if key_hash in unsettled else _NOT_APPROVED
                yield structs.replace(each, undoing="left alone", reason=reason, operation=None)


def undo_operations_of_records(records: Iterator[UndoneRecord]) -> Iterator[Operation]:
    return (each.operation for each in records if each.operation is not None)
