"""Comparison of the sources, read from their beginning, and of the platform, all or a sample, with the state."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import polars as pl
from msgspec import structs

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.config.project.project import Project
from crossdock.delta.row_preparation import KEY_HASH
from crossdock.delta.state_comparison import Delta, known_keys_missing_in_list
from crossdock.mapping.resource_types import RESOURCES
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.reading.sources.run_context import SourceContext
from crossdock.reading.sources.stream_input_report import name_size_and_time_of_known_file
from crossdock.resources import ResourceName
from crossdock.runs import dry_run
from crossdock.runs.dry_run import CorrectedState
from crossdock.runs.imported_file_log import RereadAllIntakeLog
from crossdock.runs.plan_result import PlanListener
from crossdock.runs.planning.mapping_to_drafts import AuthorCodeFailureCounter
from crossdock.runs.planning.references import referred_resources_and_ids
from crossdock.runs.planning.removals import Removals
from crossdock.runs.planning.update_limits import UpdateCandidates
from crossdock.runs.platform_and_state_comparison import (
    UNKNOWN,
    BindingCorrection,
    BindingsByTargetId,
    ComparedResource,
    Difference,
    DifferenceClass,
    TargetRecordComparison,
    customer_and_items_hash,
)
from crossdock.runs.platform_source.live_records_for_comparisons import LiveRecords
from crossdock.runs.reconciliation.reconciliation_result import Reconciliation, Sample
from crossdock.runs.resource_control_totals import ResourceTotals
from crossdock.runs.still_referenced_records import ReferredRecords
from crossdock.runs.stream_input import StreamInput
from crossdock.state import (
    Binding,
    DeadLetter,
    ExpectedDelivery,
    FileFacts,
    Intent,
    RecordIdentity,
    Scope,
    State,
    Transaction,
    WaitingRecord,
)
from crossdock.state.sidecar_files import key_index_files
from crossdock.values.raw_rows_and_records import Record
from crossdock.values.run_states_and_tally import Tally
from crossdock.writing.delivery.operations_and_intents import FROM_STATE, Operation
from crossdock.writing.targets.payload_comparison import merge_patch_between


class FullInputIgnoringEarlierRuns(StreamInput):
    """The whole content of the source. Each record is mapped and compared with the state's payload.

    It moves no cursor, records no file and removes nothing.

    Args:
        wanted: The bindings that the target must hold, by key hash, each with its present binding, or None for a
            missing record. Used for records that the source no longer names, unless it was read as a list of all.
    """

    finds_changes_without_webhooks = False
    only_changes = True

    def __init__(
        self,
        bound: BoundStream,
        state: State,
        tally: Tally,
        run_id: int = 0,
        *,
        wanted: Mapping[int, tuple[Binding, Binding | None]] = {},
        only: Collection[int] | None = None,
        digested: bool = True,
    ) -> None:
        self._wanted, self._only = wanted, only
        self.absent = pl.Series(KEY_HASH, [], dtype=pl.UInt128)
        super().__init__(bound, state, tally, run_id, digested=digested, whole=True)

    def _stored_cursor(self) -> str | None:
        return None

    @property
    def _loader_of_known_keys_in_export_order(self) -> Callable[[], pl.DataFrame | None] | None:
        return None

    @property
    def _has_read_snapshot(self) -> bool:
        return False

    @property
    def has_read_whole_list(self) -> bool:
        """Whether the source lists all records, and has a list: its file may be in the archive."""
        return self._lists_all and bool(self._scan.source_names)

    def _time_of_mapping_change_text(self, tx: Transaction) -> str:  # noqa: ARG002  everything is mapped in any case
        return ""

    def _known_records(self) -> pl.DataFrame:
        return key_index_files.empty_key_index_frame()

    def _compare_with_state(self, unsettled: list[Intent]) -> Delta:
        read = self._scan.latest.select(KEY_HASH)
        if self._only is not None:
            before = self._scan.latest.height
            self._scan.latest = _rows_with_given_keys(self._scan.latest, self._only)
            self._tally.count("ignored", before - self._scan.latest.height)
        self.absent = known_keys_missing_in_list(self._state.key_index_frame_of_scope(self._bound.scope), read)
        if not self.has_read_whole_list:
            named = set(_rows_with_given_keys(read, self._wanted)[KEY_HASH].to_list())
            others = {intent.identity.key_hash for intent in unsettled}
            left = (pair for key, pair in self._wanted.items() if key not in named and key not in others)
            self.prepared_operations = [
                each for each in (self._operation_from_accepted_payload(*pair) for pair in left) if each.changes
            ]
        return super()._compare_with_state(unsettled)

    def _operation_from_accepted_payload(self, wanted: Binding, held: Binding | None) -> Operation:
        """Write what the target accepted before, since the source no longer names the record."""
        bound, after = self._bound, self._bound.members_of_own(wanted.payload)
        held = held and structs.replace(held, payload=bound.members_of_own(held.payload))
        identity = RecordIdentity(bound.name, wanted.key, wanted.key_hash, None, wanted.position, FROM_STATE, 0)
        changes = after if held is None else merge_patch_between(held.payload, after)
        kind: Any = "create" if held is None else "update"
        return Operation(kind, identity, bound.scope, Record(wanted.key, (), FROM_STATE, (0,)), after, changes, held)

    def _decide_removals(self, found: Delta, counted: Tally, unsettled: Sequence[Intent]) -> Removals:  # noqa: ARG002
        """Remove nothing. Records that the source names as deleted are not compared."""
        return Removals()

    def updates_for_limit_check(self) -> UpdateCandidates:
        """Return no candidates: a person has seen the differences."""
        return UpdateCandidates(0, 0, self._read_waiting_then_changed, "")

    def new_failure_counter(self) -> AuthorCodeFailureCounter:
        """Return no limit: failures are listed."""
        return AuthorCodeFailureCounter(self._bound, None)

    def store_completion(self) -> None:
        with self._state.begin() as tx:
            self._store_keyless_and_clear_resolved(tx)
        self._state.update_key_index(self._bound.scope)


def _rows_with_given_keys(rows: pl.DataFrame, key_hashes: Collection[int]) -> pl.DataFrame:
    keys = pl.Series(KEY_HASH, list(key_hashes), dtype=rows.schema[KEY_HASH]).to_frame()
    return rows.join(keys, on=KEY_HASH, how="semi", maintain_order="left")


Chosen = Mapping[Scope, set[int]]
Listener = Callable[[str, Sequence[dict[str, Any]], BindingsByTargetId], None]
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

    def _new_comparison(self, resource: ResourceName) -> TargetRecordComparison:
        kind = RESOURCES[resource]
        return TargetRecordComparison(
            self._state,
            ComparedResource(resource, kind.has_external_id, kind.write_once),
            self._namespaces[resource],
            {(intent.scope, intent.identity.key_hash) for intent in self._unsettled},
            began=self._run.clock.now(),
        )

    def _add_results(self, resource: ResourceName, comparison: TargetRecordComparison) -> None:
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


class FilesOfReading(RereadAllIntakeLog):
    """Remembers which files were read, by stream and name."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.facts_by_name = defaultdict[str, dict[str, FileFacts]](dict)

    def record_accepted_files(self, stream: str, version: str, files: list[FileFacts]) -> None:  # noqa: ARG002
        own = stream.partition(":")[0]  # of a stream with joins, each source is a log of its own
        self.facts_by_name[own].update({each.name: each for each in files})


class SignsOfForgottenRecords:
    def __init__(self, state: State, files: FilesOfReading) -> None:
        self._state, self._files = state, files
        self._known_files: dict[str, set[object]] = {}
        with state.begin_read_only() as tx:
            self._is_restored = tx.runs.is_state_restored()

    def may_be_forgotten(self, scope: Scope, identity: RecordIdentity) -> bool:
        """Return whether the state was restored or is new, or an earlier run has delivered the record or read its file.

        The state is new for a stream that no run has read.
        """
        if self._is_restored:
            return True
        with self._state.begin_read_only() as tx:
            return (
                not _was_read_before(tx, identity.stream)
                or bool(
                    tx.delivered_history.delivered_operations_of_records(scope, [identity.key_hash])[identity.key_hash]
                )
                or self._is_of_file_read_before(tx, identity)
            )

    def _is_of_file_read_before(self, tx: Transaction, identity: RecordIdentity) -> bool:
        """Return whether an earlier run has read the file, with the content that it has now."""
        stream, source = identity.stream, identity.source
        if stream not in self._known_files:
            known = tx.intake.known_files(stream)
            self._known_files[stream] = {fact for each in known for fact in _facts_that_identify(each)}
        read = (
            each
            for name, each in self._files.facts_by_name[stream].items()
            if source == name or source.startswith(f"{name}/")  # a member of an archive
        )
        return any(not self._known_files[stream].isdisjoint(_facts_that_identify(each)) for each in read)


def _facts_that_identify(file: FileFacts) -> set[object]:
    return {file.content_hash, name_size_and_time_of_known_file(file)}


def _was_read_before(tx: Transaction, stream: str) -> bool:
    return (
        tx.intake.has_files(stream)
        or tx.cursors.mapping_version_of_cursor(stream) is not None
        or tx.snapshots.last_snapshot_time(stream) is not None
    )


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
        planned = dry_run.plan_sync_with_open_state(
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
        made = BindingCorrection(scope, identity.key_hash, identity.key, binding, None, after)
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
        difference: DifferenceClass,
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
        difference: DifferenceClass,
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
                found |= {
                    each: resource for payload in payloads for _, each in referred_resources_and_ids(kind, payload)
                }
        return found


def _make_delete_operation(stream: str, scope: Scope, binding: Binding) -> Operation:
    identity = RecordIdentity(stream, binding.key, binding.key_hash, None, None, FROM_STATE, 0)
    record = Record(binding.key, (), FROM_STATE, (0,))
    return Operation("delete", identity, scope, record, {}, {}, binding, "remove")


def _ignore(_: object) -> None:
    """Do nothing: a full input withholds nothing."""
