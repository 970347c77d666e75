"""Comparison of the sources, read from their beginning, with the state and the platform."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from msgspec import structs

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.config.project.project import Project
from crossdock.delta.row_preparation import KEY_HASH
from crossdock.mapping.resource_types import RESOURCES
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.reading.sources.run_context import SourceContext
from crossdock.runs import dry_run
from crossdock.runs.difference_and_correction_types import UNKNOWN, Class, Correction, Difference
from crossdock.runs.dry_run import CorrectedState
from crossdock.runs.input_including_unchanged_records import FullInputIgnoringEarlierRuns
from crossdock.runs.live_comparison import customer_and_items_hash
from crossdock.runs.plan_result import PlanListener
from crossdock.runs.planning.referred_ids import referred_ids
from crossdock.runs.reconciliation.platform_comparison import Chosen, PlatformComparison
from crossdock.runs.reconciliation.reconciliation_result import Reconciliation
from crossdock.runs.reconciliation.signs_of_forgotten_records import FilesOfReading, SignsOfForgottenRecords
from crossdock.runs.records_still_referenced_after_undo import ReferredRecords
from crossdock.runs.resource_control_totals import ResourceTotals
from crossdock.state import (
    Binding,
    DeadLetter,
    ExpectedDelivery,
    Intent,
    RecordIdentity,
    Scope,
    State,
    WaitingRecord,
)
from crossdock.values.raw_rows_and_records import Record
from crossdock.values.run_states_and_tally import Tally
from crossdock.writing.delivery.operations_and_intents import FROM_STATE, Operation

_KEYS = 1_000  # looked up together
_SAME_AS_NEW = "somebody else has made it, and it holds the same as the new record"


def wanted_and_corrected_bindings(found: Reconciliation, scope: Scope) -> dict[int, tuple[Binding, Binding | None]]:
    """Return what the platform must hold for the corrected records, with the corrected binding.

    See `FullInputIgnoringEarlierRuns`.
    """
    return {
        key_hash: (each.before, each.binding)
        for (of, key_hash), each in found.corrections.items()
        if of == scope and each.before is not None and each.before.payload
    }


class SourceComparison:
    """One comparison of the streams *names* with the state after the corrections. It completes *platform* and *found*.

    Without *chosen*, it compares all records. *unavailable* are totals of records that the sources no longer name,
    although they do not list everything.
    """

    def __init__(
        self,
        state: State,
        project: Project,
        names: Sequence[str],
        platform: PlatformComparison,
        found: Reconciliation,
        chosen: Chosen | None,
        decisions: PlanListener,
    ) -> None:
        self._state, self._project, self._names, self._platform = state, project, names, platform
        self._found, self._chosen, self._decisions = found, chosen, decisions
        self._scopes = {name: project.scope_by_stream[name] for name in names}
        self._inputs: dict[str, FullInputIgnoringEarlierRuns] = {}
        self._files = FilesOfReading(state)
        self._signs = SignsOfForgottenRecords(state, self._files)
        self._dropped: dict[str, set[int]] = {}
        self._unseen = {
            place
            for place, each in found.corrections.items()
            if each.before is None  # known only to the platform
        }
        self.totals = defaultdict[str, ResourceTotals](ResourceTotals)
        self.unavailable = defaultdict[str, ResourceTotals](ResourceTotals)

    def run(self, run: SourceContext, references: ReferredRecords | None) -> None:
        """Read the sources and compare them.

        A record that only the platform has is deleted if no record in *references* refers to it, and else only listed.
        """
        listener = PlanListener(
            self._add_operation_as_difference,
            self._add_dead_letter,
            self._add_waiting,
            self._add_undelivered_resend,
            self._add_in_doubt,
            _ignore,
            suppressed=self._count_unchanged_record,
        )
        corrections = [
            ExpectedDelivery(name, scope, key_hash, each.binding)
            for (scope, key_hash), each in self._found.corrections.items()
            for name, own in self._scopes.items()
            if own == scope
        ]
        planned = dry_run.plan_with_state(
            self._project,
            self._state,
            list(self._names),
            listener,
            run.clock,
            run.progress,
            hash_sources=True,
            corrected_state=CorrectedState(self._new_input, corrections, self._files),
        )
        self._found.sources, self._found.errors = planned.sources, planned.errors
        self._add_rejected_before()
        if not planned.errors:
            self._classify_unlisted_records()
            self._plan_removals_of_extra_records(references)

    def _new_input(self, bound: BoundStream, tally: Tally) -> FullInputIgnoringEarlierRuns:
        only = None if self._chosen is None else self._chosen.get(bound.scope, set())
        made = FullInputIgnoringEarlierRuns(
            bound, self._state, tally, wanted=wanted_and_corrected_bindings(self._found, bound.scope), only=only
        )
        self._inputs[bound.name] = made
        return made

    # ---- decisions about records

    def _add_operation_as_difference(self, operation: Operation) -> None:
        if operation.kind == "create" and self._bind_if_same_content_exists(operation):
            return
        self._decisions.operation(operation)
        self._found.operations[operation.kind] += 1
        scope, identity = operation.scope, operation.identity
        if identity.source != FROM_STATE:
            self._add_to_source_totals(scope, identity.key_hash, operation.after)
        members = () if operation.kind == "create" else tuple(operation.changes)
        self._add_difference("missing" if operation.kind == "create" else "stale", scope, identity.key, members=members)

    def _bind_if_same_content_exists(self, operation: Operation) -> bool:
        """Return whether the platform has the record without an external id, so that it must not be created twice.

        Without a sign that the state has forgotten it, the platform's record is somebody else's, and stays listed.
        """
        scope, identity, after = operation.scope, operation.identity, operation.after
        ids = self._platform.unnamed.get(scope.resource, {}).get(customer_and_items_hash(after))
        if not ids:
            return False
        target_id = ids[-1]
        copy = Scope(PLATFORM, scope.resource, ""), target_id
        if not self._signs.may_be_forgotten(scope, identity):
            self._add_difference("extra", *copy, target_id, remark=f"{_SAME_AS_NEW} {identity.key}")
            return False
        ids.pop()
        if self._found.differences.pop(copy, None) is None:
            self._platform.totals[scope.resource][1].add_record(after)
        self._add_to_source_totals(scope, identity.key_hash, after)
        self._add_difference("extra", scope, identity.key, target_id, remark=UNKNOWN)
        binding = Binding(identity.key_hash, identity.key, target_id, None, identity.position, "import", after, None, 0)
        made = Correction(scope, identity.key_hash, identity.key, binding, None, after)
        self._found.corrections[scope, identity.key_hash] = made
        return True

    def _count_unchanged_record(self, scope: Scope, binding: Binding) -> None:
        self._add_to_source_totals(scope, binding.key_hash, binding.payload)

    def _add_to_source_totals(self, scope: Scope, key_hash: int, payload: Mapping[str, object]) -> None:
        self._unseen.discard((scope, key_hash))
        if not scope.is_contribution:
            self.totals[scope.resource].add_record(payload)

    def _add_dead_letter(self, dead_letter: DeadLetter) -> None:
        self._decisions.refused(dead_letter)
        self._add_rejected(dead_letter.identity, dead_letter.code)

    def _add_rejected_before(self) -> None:
        """Add all dead letters of the state, as ``records list`` shows them, or those of the sample."""
        for name, scope in self._scopes.items():
            with self._state.begin_read_only() as tx:
                listed = tx.dead_letters.rejected_identities_with_reason_codes(name)
            chosen = None if self._chosen is None else self._chosen.get(scope, set())
            for identity, code in listed:
                if chosen is None or identity.key_hash in chosen:
                    self._add_rejected(identity, code)

    def _add_rejected(self, identity: RecordIdentity, code: str) -> None:
        place = f"{identity.source}:{identity.line}"
        if identity.key:
            self._add_undelivered("rejected", identity, f"{code} at {place}")
        elif not self._has_operator_dropped_keyless_row(identity):
            self._add_undelivered("rejected", identity, code, place=place)

    def _has_operator_dropped_keyless_row(self, identity: RecordIdentity) -> bool:
        """Return whether an operator has dropped a row without a key, which is read again nevertheless."""
        if identity.stream not in self._dropped:
            with self._state.begin_read_only() as tx:
                facts = tx.dead_letters.facts_of_all_letters_of_stream(identity.stream)
            self._dropped[identity.stream] = {each.key_hash for each in facts if each.status == "dropped"}
        return identity.key_hash in self._dropped[identity.stream]

    def _add_waiting(self, record: WaitingRecord) -> None:
        self._decisions.waiting(record)
        missing = ", ".join(f"{each['resource']} {each['key']}" for each in record.waits_for)
        self._add_undelivered("waiting", record.identity, f"for {missing}")

    def _add_undelivered_resend(self, intent: Intent) -> None:
        self._decisions.resend(intent)
        self._add_undelivered("in doubt", intent.identity, "the next sync sends it", scope=intent.scope)

    def _add_in_doubt(self, identity: RecordIdentity) -> None:
        self._decisions.in_doubt(identity)
        outcomes = {(intent.identity.stream, intent.identity.key_hash): found for intent, found in self._found.settled}
        known = outcomes.get((identity.stream, identity.key_hash))
        remark = "a person must decide" if known is None or known.outcome == "unknown" else known.outcome
        target_id = known.target_id if known else None
        self._add_undelivered("in doubt", identity, remark, target_id)

    def _add_undelivered(
        self,
        difference: Class,
        identity: RecordIdentity,
        remark: str,
        target_id: str | None = None,
        *,
        scope: Scope | None = None,
        place: str = "",
    ) -> None:
        scope = scope or self._scopes[identity.stream]
        made = Difference(difference, scope, identity.key, target_id, remark=remark, place=place)
        self._found.undelivered.setdefault((difference, identity.stream, identity.key_hash), made)

    def _add_difference(
        self,
        difference: Class,
        scope: Scope,
        key: str,
        target_id: str | None = None,
        *,
        members: tuple[str, ...] = (),
        remark: str = "",
    ) -> None:
        """Add a difference, unless the comparison with the platform has found one for the record."""
        made = Difference(difference, scope, key, target_id, members, remark)
        self._found.differences.setdefault((scope, key), made)

    # ---- records that the source does not name

    def _classify_unlisted_records(self) -> None:
        """Handle records of the state that the source does not name: gone if its list was read, else unavailable."""
        for name, scope in self._scopes.items():
            stream, is_listed = self._project.stream(name), self._inputs[name].has_read_whole_list
            for part in self._inputs[name].absent.to_frame(KEY_HASH).iter_slices(_KEYS):
                keys = [each for each in part[KEY_HASH].to_list() if (scope, each) not in self._unseen]
                if is_listed and stream.on_gone == "nothing":
                    self._found.kept[name] += len(keys)
                    continue
                with self._state.begin_read_only() as tx:
                    bindings = tx.bindings.get(scope, keys)
                for binding in bindings.values():
                    if not is_listed:
                        self._count_unlisted_as_unavailable(name, scope, binding)
                    elif binding.step != "remove":
                        remark = "the source does not list it any more"
                        self._add_difference("extra", scope, binding.key, binding.target_id, remark=remark)

    def _count_unlisted_as_unavailable(self, name: str, scope: Scope, binding: Binding) -> None:
        """Handle a record of an archived file, for example: its totals are those of the accepted payload."""
        self._found.unavailable[name] += 1
        if not scope.is_contribution:
            self.unavailable[scope.resource].add_record(binding.payload)

    def _plan_removals_of_extra_records(self, references: ReferredRecords | None) -> None:
        """List records that only the platform has. They are not taken over, since no source names them."""
        removable = defaultdict[str, list[Binding]](list)
        for place in sorted(self._unseen, key=lambda each: (each[0].resource, each[0].namespace, each[1])):
            correction = self._found.corrections.pop(place)
            if correction.binding is not None and RESOURCES[correction.scope.resource].deletes:
                name = next(name for name, own in self._scopes.items() if own == correction.scope)
                removable[name].append(correction.binding)
        if references is not None and self._chosen is None:
            for name, bindings in removable.items():
                self._plan_removals_unless_referenced(name, bindings, references)

    def _plan_removals_unless_referenced(
        self, name: str, bindings: Sequence[Binding], references: ReferredRecords
    ) -> None:
        scope, stream = self._scopes[name], self._project.stream(name)
        ids = [each.target_id for each in bindings]
        kept = (
            {}
            if stream.gone.referenced == "delete"
            else self._referring_resource_by_id(scope, ids) | references.referring_resource_by_id(scope, ids)
        )
        for binding in bindings:
            if binding.target_id in kept:
                remark = f"it is not deleted, because a record of {kept[binding.target_id]} refers to it"
                place = scope, binding.key
                self._found.differences[place] = structs.replace(self._found.differences[place], remark=remark)
                continue
            operation = _make_delete_operation(name, scope, binding)
            self._found.removals.append(operation)
            self._found.operations["delete"] += 1
            self._decisions.operation(operation)

    def _referring_resource_by_id(self, scope: Scope, ids: Sequence[str]) -> dict[str, str]:
        found = dict[str, str]()
        for resource, kind in RESOURCES.items():
            if scope.resource in kind.parents:
                with self._state.begin_read_only() as tx:
                    payloads = [
                        payload for *_, payload in tx.bindings.records_referring_to(scope.target, resource, ids)
                    ]
                found |= {each: resource for payload in payloads for _, each in referred_ids(kind, payload)}
        return found


def _make_delete_operation(stream: str, scope: Scope, binding: Binding) -> Operation:
    identity = RecordIdentity(stream, binding.key, binding.key_hash, None, None, FROM_STATE, 0)
    record = Record(binding.key, (), FROM_STATE, (0,))
    return Operation("delete", identity, scope, record, {}, {}, binding, "remove")


def _ignore(_: object) -> None:
    """Do nothing: a full input withholds nothing."""
