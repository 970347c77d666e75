"""The streams whose records an undo reverts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager

from msgspec import Struct, structs

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.runs.reconciliation.reconcile import new_platform_source_context
from crossdock.runs.session_shared_by_runs import Session
from crossdock.runs.undo.undo_decisions import Referred, UndoneRecord, decide_undo_of_records, nothing_referred
from crossdock.state import Scope
from crossdock.values.run_progress_and_messages import SilentProgress
from crossdock.writing.delivery.operations_and_intents import Operation

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
