"""The planner: turns records into decisions, in chunks, for plan and sync alike."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field, structs

from crossdock.config.project.connections_and_bound_streams import BoundStream, guard_author_code_of_stream
from crossdock.delta.changed_record_reading import KeyedRecord, chunks_of_bounded_count_and_size
from crossdock.delta.latest_records import KEEP_TOGETHER
from crossdock.errors import CrossdockError, RecordError, StateError
from crossdock.runs.planning.acknowledgement_matching import (
    OperationsAwaitingAcknowledgement,
    hash_identifying_acknowledgement_row,
    is_about_whole_file,
)
from crossdock.runs.planning.adoptable_records import AdoptionMatcher
from crossdock.runs.planning.contributions_and_own_writes import Contributions, OriginRecord, OwnWrites
from crossdock.runs.planning.mapping_to_drafts import (
    AuthorCodeFailureCounter,
    map_record_to_draft_members,
    rejection_by_target_code,
)
from crossdock.runs.planning.references import References, ScopedKey
from crossdock.runs.planning.removals import Removals, is_resource_never_removed, removal_operation
from crossdock.runs.planning.waiting_records import RecordsAwaitingParents
from crossdock.state import Binding, DeadLetter, NamedRecord, RecordIdentity, Step, Transaction, WaitingRecord
from crossdock.values import exact_json
from crossdock.values.author_code_errors import AuthorCodeError
from crossdock.values.run_states_and_tally import Tally
from crossdock.writing.delivery.operations_and_intents import Kind, Operation, make_intent_of_operation
from crossdock.writing.delivery.state_writer import Settlement
from crossdock.writing.targets.payload_comparison import merge_patch_between
from crossdock.writing.targets.target import TargetResource

if TYPE_CHECKING:
    from crossdock.writing.delivery.delivery_context import DeliveringRun


class RecordNamesOfOtherNamespaces:
    """The names that records of other namespaces have, or get in this run, where a new record would have the same."""

    def __init__(self, bound: BoundStream, references: References) -> None:
        self._bound, self._references = bound, references
        kind = bound.resource_type
        form = kind.name_form if isinstance(kind, TargetResource) and kind.name_member is not None else None
        self._are_shared = form is not None and "{namespace}" not in form and not bound.scope.is_contribution
        self._owners: dict[int, str] = {}

    def look_up(self, tx: Transaction, key_hashes: Sequence[int]) -> None:
        if not self._are_shared or not key_hashes:
            return
        self._owners = {}
        scope = self._bound.scope
        others = tx.bindings.namespaces_of_resource(scope) | self._bound.namespaces_of_same_resource
        for namespace in sorted(others - {scope.namespace}):
            other = structs.replace(scope, namespace=namespace)
            taken = {
                *tx.bindings.target_id_by_key_hash(other, key_hashes),
                *(intent.identity.key_hash for intent in tx.intents.unsettled_in_scope(other, among=key_hashes)),
                *(key_hash for key_hash in key_hashes if self._references.is_planned(other, key_hash)),
            }
            self._owners |= dict.fromkeys(taken, namespace)

    def raise_if_taken(self, key_hash: int, key: str) -> None:
        """Raise RecordError if a record of another namespace has the name that a new one would get."""
        if (owner := self._owners.get(key_hash)) is not None:
            message = (
                f"{self._bound.target.title} has a record of this name already, {owner}:{key}: send one of the streams"
                " to a resource of its own, with another name_form"
            )
            raise RecordError("conflict", message)


class PlannedChunk(Struct):
    """Decisions about some records of one stream. Bindings in `suppressed` are as they are to be stored, and
    `acknowledged_settlements` are operations of other streams that its records acknowledge.
    """

    bound: BoundStream
    run_id: int
    at: datetime
    operations: list[Operation] = field(default_factory=list)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    waits: list[WaitingRecord] = field(default_factory=list)
    suppressed: list[Binding] = field(default_factory=list)
    refetched: list[NamedRecord] = field(default_factory=list)
    acknowledged_settlements: list[Settlement] = field(default_factory=list)

    @property
    def decision_count(self) -> int:
        kept = len(self.dead_letters) + len(self.waits) + len(self.suppressed) + len(self.refetched)
        return len(self.operations) + kept

    def add_waiting(self, read: KeyedRecord, missing: Sequence[ScopedKey], idle_under: str | None) -> None:
        waits_for = [{"resource": scope.resource, "namespace": scope.namespace, "key": key} for scope, key in missing]
        self.waits.append(WaitingRecord(read.identity, waits_for, read.record.raw(), idle_under=idle_under))

    def store_all_but_operations(self, tx: Transaction) -> None:
        """Store every decision except the operations, which are stored as intents."""
        stream = self.bound.name
        tx.inbox.schedule_fetch_of_records(self.refetched, at=self.at)
        tx.dead_letters.put(self.dead_letters, run_id=self.run_id, at=self.at)
        tx.waiting_records.put(self.waits, run_id=self.run_id, at=self.at)
        tx.bindings.put(self.bound.scope, self.suppressed, run_id=self.run_id, at=self.at)
        suppressed = [binding.key_hash for binding in self.suppressed]
        waiting = [record.identity.key_hash for record in self.waits]
        rejected = [dead_letter.identity.key_hash for dead_letter in self.dead_letters]
        sent = [operation.identity.key_hash for operation in self.operations if operation.step != "open"]
        tx.dead_letters.remove_records(stream, [*suppressed, *waiting])
        tx.waiting_records.remove_records(stream, [*suppressed, *rejected, *sent])


CHUNK = 200  # records per chunk: their look-ups share statements, their results one transaction
_WITHDRAWN = "the source has withdrawn the record, which was delivered, and its resource is never removed"


class Planner:
    """Decides what to do with the records of one stream.

    Args:
        run: None in a plan.
        gone: The stream's removals; the last round plans them.
        operations: Operations that were decided about before; a round before the removals takes them.
        matches: Decides which records are taken over from the target; None if none are, and in a plan.
    """

    def __init__(
        self,
        held: RecordsAwaitingParents,
        tally: Tally,
        run: DeliveringRun | None,
        *,
        gone: Removals,
        failing: AuthorCodeFailureCounter,
        operations: Iterable[Operation] = (),
        at_once: int = CHUNK,
        matches: AdoptionMatcher | None = None,
    ) -> None:
        self.stopped: CrossdockError | None = None
        self.updates = 0  # those that the limits of the stream count
        self._is_division_told = False
        self._held, self._bound, self._target = held, held.bound, held.bound.target
        self._state, self._references, self._tally = held.state, held.references, tally
        self._run, self._failing, self._at_once, self._matches = run, failing, at_once, matches
        self._to_remove, self._snapshot = deque(gone.removed), gone.source
        self._operations: Iterator[Operation] | None = iter(operations) if operations else None
        self._contributions, self._own_writes = Contributions(held.bound), OwnWrites(held.bound)
        self._names = RecordNamesOfOtherNamespaces(held.bound, held.references)
        is_acknowledging = (
            isinstance(held.bound.resource_type, TargetResource) and held.bound.resource_type.acknowledges
        )
        self._acknowledged = (
            OperationsAwaitingAcknowledgement(held.state, held.bound.target) if is_acknowledging else None
        )

    def decide_in_chunks(self, reads: Iterator[KeyedRecord]) -> Iterator[PlannedChunk]:
        """Yield decisions about *reads* in their order. Each chunk uses the state at the time when it is requested."""
        decide = self._decide_chunk if self._acknowledged is None else self._settle_by_acknowledgements
        for chunk in chunks_of_bounded_count_and_size(self._records_until_source_fails(reads), self._at_once):
            yield decide(chunk)
            if self.stopped is not None:
                return

    def count_rest_as_carried_on(self, reads: Iterator[KeyedRecord]) -> None:
        """Count the rest of *reads* as `carried_on`: the next run reads it again."""
        for _ in self._records_until_source_fails(reads):
            self._tally.count("carried_on")

    def plan_ready_cycles_or_removals(self) -> Iterator[PlannedChunk] | None:
        """Return decisions about records that waited for others of this run, once the previous ones are delivered.

        Of records in a cycle, one is created without the reference that closes it, and completed in a later round. The
        last round plans removals, when no record of this run refers to the removed ones any more.
        """
        if self.stopped is not None:
            return None
        if ready := self._held.find_ready_key_hashes():
            return self.decide_in_chunks(self._held.pop_ready(ready))
        if breakers := self._held.choose_cycle_breakers():
            return self._plan_first_steps_of_cycles(breakers)
        if self._operations is not None:
            operations, self._operations = self._operations, None
            return self._plan_operations_decided_before(operations)
        return self._plan_removals() if self._to_remove else None

    def count_unplanned_removals_as_carried_on(self) -> None:
        self._tally.count("carried_on", len(self._to_remove))

    def _records_until_source_fails(self, reads: Iterator[KeyedRecord]) -> Iterator[KeyedRecord]:
        """Yield *reads* until their source fails. The source has counted the records that it does not yield."""
        try:
            with guard_author_code_of_stream(self._bound):
                for read in reads:  # noqa: UP028  `yield from` would close `reads` with this; `count_rest_as_carried_on` may need it
                    yield read
        except CrossdockError as error:
            self.stopped = self.stopped or error

    # ---- records

    def _decide_chunk(self, chunk: Sequence[KeyedRecord]) -> PlannedChunk:
        planned, scope = self._new_chunk(), self._bound.scope
        origins = self._own_writes.origins_by_key_hash(self._state, chunk)
        chunk = self._without_own_writes(chunk, origins)
        drafts = self._draft_records(planned, chunk)
        others = self._claim_and_return_busy_elsewhere(read.identity.key_hash for read, *_ in drafts)
        for read, *_ in drafts:
            if read.identity.key_hash in others:
                self._schedule_fetch_after_other_run(planned, read.identity)
        drafts = [each for each in drafts if each[0].identity.key_hash not in others]
        with self._state.begin_read_only() as tx:
            self._references.look_up((key for *_, keys in drafts for key in keys), tx)
            bindings, former = self._bindings_and_contributions_to_deleted(tx, [read for read, *_ in drafts], origins)
            hashes = [read.identity.key_hash for read, *_ in drafts]
            self._names.look_up(tx, [key_hash for key_hash in hashes if key_hash not in bindings])
        if any(
            read.identity.key_hash not in bindings for read, *_ in drafts
        ) and not self._refresh_adoption_matches_or_stop(len(drafts)):
            return planned
        for number, (read, members, keys) in enumerate(drafts, 1):
            key_hash = read.identity.key_hash
            binding = bindings.get(key_hash) or self._references.planned_first_step_binding(scope, key_hash)
            missing = self._references.missing(keys)
            if binding is None and not missing and self._contributions.needed:
                binding = self._contributions.binding_before_first_contribution(read)
            if self._was_contributed_to_deleted(read, members, missing, former.get(key_hash)):
                binding, missing = former[key_hash], []
            if not missing:
                if not self._plan_record_and_return_may_continue(planned, read, members, binding):
                    self._tally.count("carried_on", len(drafts) - number)
                    break
                continue
            is_bound = binding is not None or self._contributions.needed
            is_held = self._held.hold_if_parents_may_come(read, members, missing, is_bound=is_bound)
            planned.add_waiting(read, missing, None if is_held else self._held.version)
            if not is_held:
                self._tally.count("carried_on")
        return planned

    def _settle_by_acknowledgements(self, chunk: Sequence[KeyedRecord]) -> PlannedChunk:
        assert self._acknowledged is not None
        planned, settled = self._new_chunk(), list[Settlement]()
        files = self._bound.context.run.inputs.get(self._bound.name)
        for read, said, _ in sorted(self._draft_records(planned, chunk), key=lambda each: is_about_whole_file(each[1])):
            try:
                first_read_at = None if files is None else files.first_read_time_of(read.identity.source)
                said_by = hash_identifying_acknowledgement_row(
                    read.record, None if files is None else read.identity.source
                )
                term, decided = self._acknowledged.settle(said, first_read_at, said_by)
            except RecordError as error:
                self._make_dead_letter_and_return_may_continue(planned, read, "plan", error, said)
                continue
            self._tally.count(term)
            settled += decided
        if settled:
            planned.acknowledged_settlements += self._acknowledged.settlements_with_operation_data(settled)
        return planned

    def _bindings_and_contributions_to_deleted(
        self, tx: Transaction, reads: Sequence[KeyedRecord], origins: Mapping[int, OriginRecord]
    ) -> tuple[Mapping[int, Binding], Mapping[int, Binding]]:
        """Return the bindings of *reads*, and contributions to records that were deleted since, by key hash."""
        if self._contributions.needed:
            return self._contributions.contributions_to_existing_and_deleted(tx, reads, origins)
        return tx.bindings.get(self._bound.scope, [read.identity.key_hash for read in reads]), {}

    def _was_contributed_to_deleted(
        self, read: KeyedRecord, members: dict[str, Any], missing: list[ScopedKey], former: Binding | None
    ) -> bool:
        """Return whether a contribution was delivered to a record that was deleted since. It waits for nothing."""
        if former is None or missing != self._contributions.record_that_must_exist_first(read):
            return False
        try:
            return self._payload_with_resolved_references(read, members) == former.payload
        except RecordError:
            return False

    def _plan_record_and_return_may_continue(
        self, planned: PlannedChunk, read: KeyedRecord, members: dict[str, Any], binding: Binding | None
    ) -> bool:
        """Compare a record, or reject it if the target's code fails on it. Return False after too many failures."""
        if read.record.parts:  # mostly there are none, and this is done for each record
            self._tally.parts.update(read.record.parts)
        try:
            self._plan_create_or_update(planned, read, self._payload_with_resolved_references(read, members), binding)
        except RecordError as error:
            return self._make_dead_letter_and_return_may_continue(planned, read, "plan", error, None)
        return True

    def _claim_and_return_busy_elsewhere(self, key_hashes: Iterable[int]) -> set[int]:
        return (
            self._run.own_records.begin_exclusive_planning_and_find_busy(self._bound.scope, key_hashes)
            if self._run
            else set()
        )

    def _schedule_fetch_after_other_run(self, planned: PlannedChunk, identity: RecordIdentity) -> None:
        """Have a record fetched again: another run has worked on it, and this run may have read an older version."""
        self._tally.count("carried_on")
        planned.refetched.append(NamedRecord(identity.stream, identity.key, identity.key_hash))

    def _without_own_writes(
        self, chunk: Sequence[KeyedRecord], origins: Mapping[int, OriginRecord]
    ) -> Sequence[KeyedRecord]:
        """Remove records that crossdock wrote: they are not created at their origin, or sent back unchanged."""
        by_origin = self._bound.stream.matches == "origin"
        kept = []
        for read in chunk:
            origin = origins.get(read.identity.key_hash)
            if origin is None and by_origin:
                self._tally.count("ignored")
            elif origin is not None and (origin.is_unchanged or not self._contributions.needed):
                self._tally.count("suppressed")
            else:
                kept.append(read)
        return kept

    def _draft_records(
        self, planned: PlannedChunk, chunk: Sequence[KeyedRecord]
    ) -> list[tuple[KeyedRecord, dict[str, Any], list[ScopedKey]]]:
        drafts = []
        for number, read in enumerate(chunk, 1):
            try:
                members, references = map_record_to_draft_members(self._bound, read.record)
            except RecordError as error:
                if not self._make_dead_letter_and_return_may_continue(planned, read, "mapping", error, None):
                    self._tally.count("carried_on", len(chunk) - number)
                    break
            else:
                keys = self._references.scoped_keys(references, self._bound.namespace_and_key_of_reference)
                drafts.append((read, members, [*keys, *self._contributions.record_that_must_exist_first(read)]))
        return drafts

    def _plan_create_or_update(
        self, planned: PlannedChunk, read: KeyedRecord, after: dict[str, Any], binding: Binding | None
    ) -> None:
        write_once = self._bound.resource_type.write_once
        if binding is not None and (own := self._bound.members_of_own(binding.payload, after)) is not binding.payload:
            binding = structs.replace(binding, payload=own)
        if binding is None:
            self._plan_create(planned, read, after)
        elif binding.payload == after or (
            binding.step == "import" and (write_once or binding.fingerprint == read.identity.fingerprint)
        ):
            self._tally.count("suppressed")
            planned.suppressed.append(_accepted_binding(binding, read.identity, after))
        elif write_once:
            message = "the record was delivered with different content, and its resource cannot be updated"
            self._make_dead_letter_and_return_may_continue(
                planned, read, "plan", RecordError("changed_after_delivery", message), after
            )
        else:
            operation = self._raise_if_request_cannot_be_made(self._new_operation(read, after, binding))
            self.updates += operation.counts_against_update_limits
            self._tally.parts.update(_removed_members_and_elements(binding.payload, operation.changes))
            self._warn_once_if_list_has_nothing_in_common(binding.payload, operation)
            planned.operations.append(operation)

    def _refresh_adoption_matches_or_stop(self, undecided_count: int) -> bool:
        """Return False if the matches cannot be read: the stream stops, and *undecided_count* records stay."""
        try:
            if self._matches is not None:
                self._matches.read_unless_current()
        except StateError:
            raise
        except CrossdockError as error:
            self.stopped = self.stopped or error
            self._tally.count("carried_on", undecided_count)
            return False
        return True

    def _plan_create(
        self, planned: PlannedChunk, read: KeyedRecord, after: dict[str, Any], step: Step = "whole"
    ) -> bool:
        """Create a record, or take over the existing one. Return False if it is rejected."""
        self._names.raise_if_taken(read.identity.key_hash, read.identity.key)
        operation = self._new_operation(read, after, None, step=step)
        if self._matches is not None:
            try:
                operation.taken_over = self._matches.match(read.identity.key_hash, after.get(self._matches.member))
            except RecordError as error:
                self._make_dead_letter_and_return_may_continue(planned, read, "plan", error, after)
                return False
            operation.kind = "create" if operation.taken_over is None else "update"
        planned.operations.append(self._raise_if_request_cannot_be_made(operation))
        return True

    def _make_dead_letter_and_return_may_continue(
        self, planned: PlannedChunk, read: KeyedRecord, stage: str, error: RecordError, mapped: dict[str, Any] | None
    ) -> bool:
        """Make a record a dead letter. Return False after too many failures of an author's code."""
        self._tally.count("rejected")
        identity = read.identity._replace(line=error.line or read.identity.line)
        reason = error.code, error.pointer, error.message
        planned.dead_letters.append(DeadLetter(identity, stage, *reason, read.record.raw(), mapped))
        refusal = self._failing.count_and_return_limit_error(read.record, error)
        self.stopped = self.stopped or refusal
        return refusal is None

    # ---- operations decided about before, cycles and removals

    def _plan_operations_decided_before(self, operations: Iterator[Operation]) -> Iterator[PlannedChunk]:
        while operations_at_once := list(islice(operations, self._at_once)):
            self._tally.count("read", len(operations_at_once))
            planned = self._new_chunk()
            planned.operations.extend(operations_at_once)
            yield planned

    def _plan_first_steps_of_cycles(self, breakers: Sequence[int]) -> Iterator[PlannedChunk]:
        """Yield creates without the members that close a cycle. Their records wait until they are complete."""
        for start in range(0, len(breakers), CHUNK):
            planned, chunk = self._new_chunk(), breakers[start : start + CHUNK]
            if not self._refresh_adoption_matches_or_stop(0):
                return
            others = self._claim_and_return_busy_elsewhere(chunk)
            for key_hash in chunk:
                if key_hash in others:
                    self._schedule_fetch_after_other_run(planned, self._held.pop_held_record(key_hash).identity)
                    continue
                read, members = self._held.open_without_missing_references(key_hash)
                try:
                    added = self._plan_create(
                        planned, read, self._payload_with_resolved_references(read, members), "open"
                    )
                except RecordError as error:
                    self._make_dead_letter_and_return_may_continue(planned, read, "plan", error, None)
                    added = False
                if added:
                    self._references.remember_planned_first_step(planned.operations[-1])
                else:
                    self._held.pop_held_record(key_hash)
                if self.stopped is not None:
                    break  # the others stay held, and are carried on
            yield planned
            if self.stopped is not None:
                return

    def plan_given_dead_letters(self, kept: Iterator[DeadLetter]) -> Iterator[PlannedChunk]:
        while dead_letters := list(islice(kept, CHUNK)):
            self._tally.count("rejected", len(dead_letters))
            planned = self._new_chunk()
            planned.dead_letters.extend(dead_letters)
            yield planned

    def _plan_removals(self) -> Iterator[PlannedChunk]:
        while self._to_remove:
            chunk = [self._to_remove.popleft() for _ in range(min(CHUNK, len(self._to_remove)))]
            others = self._claim_and_return_busy_elsewhere(chunk)
            with self._state.begin_read_only() as tx:
                bindings = tx.bindings.get(self._bound.scope, chunk).values()
            self._tally.count("ignored", len(chunk) - len(bindings))  # replayed removals that were executed meanwhile
            planned = self._new_chunk()
            for binding in bindings:
                operation = removal_operation(self._bound, binding, self._snapshot)
                if binding.key_hash in others:
                    self._schedule_fetch_after_other_run(planned, operation.identity)
                elif is_resource_never_removed(self._bound):
                    self._tally.count("rejected")
                    reason = "changed_after_delivery", None, _WITHDRAWN
                    planned.dead_letters.append(
                        DeadLetter(operation.identity, "plan", *reason, {}, None, step=operation.step)
                    )
                elif operation.kind == "delete" or operation.changes:
                    planned.operations.append(operation)
                else:
                    self._tally.count("suppressed")
                    planned.suppressed.append(structs.replace(binding, fingerprint=None, step=operation.step))
            yield planned

    def _new_chunk(self) -> PlannedChunk:
        return PlannedChunk(self._bound, self._run.id if self._run else 0, self._bound.context.run.clock.now())

    def _payload_with_resolved_references(self, read: KeyedRecord, members: dict[str, Any]) -> dict[str, Any]:
        bound = self._bound
        resolved: dict[str, Any] = self._references.resolve(members, bound.namespace_and_key_of_reference)
        if (
            bound.stream.target_resource is not None
            and (inexact := exact_json.pointer_and_type_if_inexact(resolved)) is not None
        ):
            pointer, kind = inexact  # of a draft that an author declares
            raise RecordError("invalid_draft", f"{kind} has no exact JSON form; use Decimal or text", pointer=pointer)
        if self._contributions.needed:
            return resolved
        try:
            return self._target.payload(bound.resource_type.name, bound.namespace, read.record.key, resolved)
        except AuthorCodeError as error:
            raise rejection_by_target_code(error, read.record) from None

    def _warn_once_if_list_has_nothing_in_common(self, before: Mapping[str, Any], operation: Operation) -> None:
        """Warn once of a record of several rows of which nothing is as in the file before: each may have a half."""
        stream = self._bound.stream
        if self._is_division_told or not stream.group_by or not stream.reads_files or stream.mode == "snapshot":
            return
        name = None if stream.order_by else _list_without_common_element(before, operation.changes)
        if name is not None:
            self._is_division_told = True
            place = f"{operation.identity.source}:{operation.identity.line}"
            text = f"the record at {place} has none of the {name} that were delivered before, and takes their place"
            self._bound.context.run.warn(self._bound.name, f"{text}: {KEEP_TOGETHER}", code="records_repeated")

    def _new_operation(
        self, read: KeyedRecord, after: dict[str, Any], binding: Binding | None, *, step: Step = "whole"
    ) -> Operation:
        kind: Kind = "create" if binding is None else "update"
        changes = after if binding is None else merge_patch_between(binding.payload, after)
        return Operation(kind, read.identity, self._bound.scope, read.record, after, changes, binding, step)

    def _raise_if_request_cannot_be_made(self, operation: Operation) -> Operation:
        if self._target.is_of_author:
            try:
                make_intent_of_operation(operation, self._target, 0)
            except AuthorCodeError as error:
                raise rejection_by_target_code(error, operation.record) from None
        return operation


def _list_without_common_element(before: Mapping[str, Any], changes: Mapping[str, Any]) -> str | None:
    """Return the name of a list of several elements of which an update takes all away and brings others."""
    for name, value in changes.items():
        if isinstance(value, list) and isinstance(was := before.get(name), list) and len(was) + len(value) > 2:
            was_texts, texts = ({*map(_identifying_texts_of_element, each)} for each in (was, value))
            if was_texts and texts and was_texts.isdisjoint(texts):
                return name
    return None


def _removed_members_and_elements(before: Mapping[str, Any], changes: Mapping[str, Any]) -> Iterator[str]:
    """Yield each member and each element of a list that an update removes, such as the lines of half an order."""
    for name, value in changes.items():
        if value is None:
            yield f"{name} taken away"
        elif isinstance(value, list) and isinstance(was := before.get(name), list):
            lost = Counter(map(_identifying_texts_of_element, was)) - Counter(map(_identifying_texts_of_element, value))
            yield from repeat(f"element of {name} taken away", lost.total())


def _identifying_texts_of_element(element: Any) -> str:
    """Return what tells elements of a list apart: a line with another quantity or price is the same line."""
    if isinstance(element, dict):
        element = {name: value for name, value in sorted(element.items()) if isinstance(value, str)}
    return exact_json.dumps(element).decode()


def _accepted_binding(binding: Binding, identity: RecordIdentity, after: dict[str, Any]) -> Binding:
    if binding.unverified and binding.is_unused_import:
        return binding  # no comparison has found it: another import may correct its id
    fingerprint, position = identity.fingerprint, identity.position
    return structs.replace(binding, fingerprint=fingerprint, position=position, step="whole", payload=after)
