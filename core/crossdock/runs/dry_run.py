"""A plan: what a sync would do now. It calls no platform and writes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, closing
from datetime import datetime
from itertools import chain

from msgspec import Struct, field, structs

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.config.project.project import Project
from crossdock.errors import CrossdockError, strip_traceback_and_causes
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.pacing.token_bucket import BucketState, Forecast, LimitEstimate, forecast_request_duration
from crossdock.reading.sources.run_context import ClosingStack, SourceContext, create_run_folder
from crossdock.runs import refusals_to_send_records_twice, session_shared_by_runs
from crossdock.runs.adoptable_record_reading import note_creates_that_may_be_in_doubt, note_possible_adoptions
from crossdock.runs.imported_file_log import ReadOnlyIntakeLog, RereadAllIntakeLog
from crossdock.runs.plan_result import PlanListener, PlanResult, WaitingReporter
from crossdock.runs.planned_target_files import PlannedFiles
from crossdock.runs.planning import undo_in_progress, update_limits
from crossdock.runs.planning.mapping_to_drafts import AuthorCodeFailureCounter
from crossdock.runs.planning.planner import PlannedChunk, Planner
from crossdock.runs.planning.referenced_record_deletes import DeferredDeletes
from crossdock.runs.planning.references import References, placeholder_of_planned_record_id
from crossdock.runs.planning.removals import Removals, operation_kind_or_archive
from crossdock.runs.planning.waiting_records import RecordsAwaitingParents
from crossdock.runs.run_report import Timings, settled_tally_term, tally_term_if_target_accepts
from crossdock.runs.stream_input import StreamInput
from crossdock.state import Binding, DeadLetterFacts, ExpectedDeliveries, ExpectedDelivery, Intent, Scope, State
from crossdock.values.author_code_errors import AuthorCodeError
from crossdock.values.clock import Clock
from crossdock.values.run_progress_and_messages import Progress
from crossdock.values.run_states_and_tally import Tally
from crossdock.writing.delivery.in_doubt_and_refusal_rules import (
    is_held_back_as_unverifiable,
    may_be_executed_since_backup,
    rule_for_sent_intent,
    waits_for_acknowledgements,
)
from crossdock.writing.delivery.operations_and_intents import Operation, payload_after_intent
from crossdock.writing.delivery.state_writer import Settlement
from crossdock.writing.targets.target import Target


class UnsettledOperations(Struct):
    """Unsettled operations, grouped by their treatment.

    Attributes:
        held: They are sent before the first stream of records that are written once, or at the end of the run.
        in_doubt: They are not sent, and a person decides.
        nowhere: They are not sent, because the config no longer has their target or resource.
        awaited: Their target has them, or may have them, and acknowledges them later.
    """

    sent_first: list[Intent] = field(default_factory=list)
    held: list[Intent] = field(default_factory=list)
    in_doubt: list[Intent] = field(default_factory=list)
    awaited: list[Intent] = field(default_factory=list)
    nowhere: list[Intent] = field(default_factory=list)

    @classmethod
    def grouped_by_treatment(
        cls,
        unsettled: Sequence[Intent],
        targets: Mapping[str, Target],
        now: datetime,
        *,
        streams: AbstractSet[str],
        state_restored: bool,
    ) -> UnsettledOperations:
        """Decide as `crossdock.writing.delivery.outcome_policy.OutcomePolicy.resume_intent` does."""
        left = cls()
        for intent in unsettled:
            target = targets.get(intent.scope.target)
            if intent.awaits_acknowledgement:
                left.awaited.append(intent)
                continue
            if target is None or intent.resource not in target.resources:
                left.nowhere.append(intent)
                continue
            if state_restored and may_be_executed_since_backup(intent):
                is_in_doubt = is_left_in_doubt_after_restore(intent.resource, intent.operation, target)
            elif intent.first_sent_at:
                is_in_doubt = intent.place is None and rule_for_sent_intent(intent, target, now) == "park"
            elif waits_for_acknowledgements(intent, target) or (
                intent.identity.stream in streams
                and is_held_back_as_unverifiable(intent, target, state_restored=state_restored)
            ):
                left.held.append(intent)
                continue
            else:
                is_in_doubt = False
            (left.in_doubt if is_in_doubt else left.sent_first).append(intent)
        return left

    def count_and_report_as_if_accepted(
        self, tally_of_stream: Callable[[str], Tally], listener: PlanListener, targets: Mapping[str, Target]
    ) -> set[tuple[Scope, int]]:
        """Count and report the results as if the targets accept everything. Return the records with a first step."""
        first_steps = set[tuple[Scope, int]]()
        for intent in self.nowhere:
            listener.in_doubt(intent.identity)
        for intent in self.in_doubt:
            listener.in_doubt(intent.identity)
            if intent.step != "open":
                tally_of_stream(intent.identity.stream).count("carried_over")
                tally_of_stream(intent.identity.stream).count("carried_on")
        for intent in (*self.sent_first, *self.held):
            listener.resend(intent)
            record = intent.scope, intent.identity.key_hash
            if intent.step == "open":
                first_steps.add(record)
                continue
            is_first = intent.operation == "create" or record in first_steps
            tally_of_stream(intent.identity.stream).count("carried_over")
            term = tally_term_if_target_accepts(
                targets[intent.scope.target], intent.resource, intent.operation, first_time=is_first
            )
            tally_of_stream(intent.identity.stream).count(term)
        return first_steps


def expected_delivery_of_unsettled(intent: Intent) -> ExpectedDelivery:
    identity, scope, step = intent.identity, intent.scope, intent.step
    binding = Binding(
        identity.key_hash,
        identity.key,
        intent.target_id or placeholder_of_planned_record_id(scope, identity.key),
        identity.fingerprint if step == "whole" else None,
        identity.position,
        step,
        payload_after_intent(intent),
        None,
        intent.counter,
    )
    deletes = intent.operation == "delete"
    return ExpectedDelivery(
        identity.stream, scope, identity.key_hash, None if deletes else binding, is_whole=step != "open"
    )


def is_left_in_doubt_after_restore(resource: str, operation: str, target: Target) -> bool:
    """Return whether a restored state leaves this operation in doubt. The platform's lists show forgotten records."""
    if operation != "create":
        return False
    return target.name != PLATFORM and not target.resources[resource].endpoint.can_verify(operation)


PlannedSource = Callable[[BoundStream, Tally], StreamInput]
_AT_ONCE = 1000  # records planned together; no transaction waits for them, because nothing is written


def plan_sync(
    project: Project,
    selection: list[str],
    listener: PlanListener,
    *,
    clock: Clock,
    progress: Progress,
    hash_sources: bool = False,
) -> PlanResult:
    """Pass to *listener* what `crossdock.runs.sync_and_replay.sync` would do. Errors of sources are in the result."""
    with closing(project.open_state(read_only=True)) as state:
        return plan_sync_with_open_state(
            project, state, selection, listener, clock, progress, hash_sources=hash_sources
        )


class CorrectedState(Struct, frozen=True):
    """The state as it will be with `corrections`, which are written before the streams are synced.

    By the log `intake`, all files are read again.
    """

    source: PlannedSource
    corrections: Sequence[ExpectedDelivery]
    intake: RereadAllIntakeLog


def plan_sync_with_open_state(
    project: Project,
    state: State,
    selection: list[str],
    listener: PlanListener,
    clock: Clock,
    progress: Progress,
    *,
    hash_sources: bool = False,
    corrected_state: CorrectedState | None = None,
) -> PlanResult:
    """Plan on an open state, which is only read, or on *corrected_state*. If *hash_sources*, hash the sources."""
    left = list[CrossdockError]()
    with ExitStack() as stack:
        work = create_run_folder(stack, None)
        names, targets = project.selected_streams(selection), project.targets(clock)
        with state.begin_read_only() as tx:
            limits = session_shared_by_runs.read_rate_limits_of_source_apis(
                tx, {name.partition(".")[0] for name in names}, project.names_of_connections_reading_platform
            )
            refused = (
                {}
                if corrected_state
                else undo_in_progress.refusals_of_streams_being_undone(tx, names, project.scope_by_stream)
            )
            moved = refusals_to_send_records_twice.moved_target_refusals(
                tx, project.scope_by_stream, targets, at=clock.now()
            )
        refused = {**{name: each for name, (_, each) in moved.items() if name in names}, **refused}
        intake = corrected_state.intake if corrected_state else ReadOnlyIntakeLog(state)
        folders = work / "spool", work, project.spool
        at_end = stack.enter_context(ClosingStack(left.append))
        timings = Timings.reuse_or_wrap_progress(progress, clock)
        context = SourceContext(
            clock, timings, intake, *folders, at_end=at_end, limits=limits, observe=listener.observe
        )
        streams = project.bind_streams(names - refused.keys(), targets=targets, run=context)
        source = corrected_state.source if corrected_state else None
        preview = _SyncPlanner(targets, state, listener, clock.now(), streams, source)
        preview.result.errors.update(refused)
        preview.result.unread += len(refused)
        for correction in corrected_state.corrections if corrected_state else ():
            preview.expected.add(correction)
        with state.assume_deliveries(preview.expected):
            for bound in streams:
                preview.plan_stream(bound, hash_source=hash_sources)
            preview.decide_held_records_and_deletes()
        # A rehearsal, which observes, says it in its own words.
        for bound in streams if listener.observe is None else ():
            new = preview.result.tallies.get(bound.name, Tally()).records["created"]
            note_possible_adoptions(bound, new)
            note_creates_that_may_be_in_doubt(bound, project, state, new)
            _note_unverified_records(bound, state)
        planned = preview.finish()
    for error in left:
        planned.errors.setdefault("", error)
    return planned


def _note_unverified_records(bound: BoundStream, state: State) -> None:
    """Note, since a plan calls no target, that unverified records depend on what their target holds."""
    with state.begin_read_only() as tx:
        number = tx.unverified.count_unverified_records([bound.scope], None)
    if number:
        records = "1 record is" if number == 1 else f"{number:,} records are"
        text = f"{records} unverified: a sync compares them with their target first, and sends what differs"
        bound.context.run.note(bound.name, text)


class _SyncPlanner:
    """One plan. `expected` has updates and removals. `References` knows creates from a source, which are many."""

    def __init__(
        self,
        targets: Mapping[str, Target],
        state: State,
        listener: PlanListener,
        now: datetime,
        streams: list[BoundStream],
        source: PlannedSource | None,
    ) -> None:
        self._source = source
        self._state, self._listener, self._now, self._targets = state, listener, now, targets
        self._known: set[tuple[Scope, int]] = set()
        self._first_steps: set[tuple[Scope, int]] = set()  # records for which this run sends the first of two steps
        self._doubtful: set[tuple[Scope, int]] = set()  # records with a create in doubt
        self._references = {name: References(name, self._known) for name in targets}
        self.expected = ExpectedDeliveries()
        with state.begin_read_only() as tx:
            unsettled = tx.intents.unsettled()
            self._earlier = {name: tx.buckets.get(name) for name in targets}
            self._restored = tx.runs.is_state_restored()
        self.result = PlanResult(self._forecast_of_requests(PLATFORM, 0))
        self._operations = Counter[tuple[str, str, str]]()  # by target, resource and kind
        self._files = PlannedFiles(targets)
        self._coming = {bound.scope for bound in streams}
        self._referring = {name: DeferredDeletes(state, name, each.resources) for name, each in targets.items()}
        self._waiting: list[tuple[BoundStream, RecordsAwaitingParents, WaitingReporter]] = []
        names = {bound.name for bound in streams}
        self._left = UnsettledOperations.grouped_by_treatment(
            unsettled, targets, now, streams=names, state_restored=self._restored
        )
        self._held = list(self._left.held)
        for intent in (*self._left.sent_first, *self._left.held):
            self._count_request("resend", intent.identity.stream, intent.scope)
            self._count_request_of_unsettled(intent)
        self._first_steps.update(self._left.count_and_report_as_if_accepted(self._tally_of_stream, listener, targets))
        self._expect_delivered(self._left.sent_first)

    def finish(self) -> PlanResult:
        with self._state.begin_read_only() as tx:
            self.result.files = self._files.files(tx, self._now)
        needed = Counter(file.target for file in self.result.files)
        for (target, resource, kind), operations in self._operations.items():
            known = self._targets[target].resources.get(resource)  # a connection may have lost it
            together = known.together("update" if kind == "archive" else kind) if known else None
            needed[target] += -(-operations // (together or 1))
        self.result.forecast = self._forecast_of_requests(PLATFORM, needed.pop(PLATFORM, 0))
        self.result.other_forecasts = {
            name: self._forecast_of_requests(name, requests) for name, requests in needed.items()
        }
        return self.result

    def _forecast_of_requests(self, target: str, requests: int) -> Forecast:
        now, earlier = self._now.timestamp(), self._earlier[target]
        try:
            estimate = self._targets[target].estimate(earlier)
        except AuthorCodeError as error:  # the sync can send nothing to it
            self.result.errors.setdefault(target, error)
            estimate = LimitEstimate()
        return forecast_request_duration(BucketState.from_earlier_run(earlier, estimate, now), requests, now)

    # ---- what earlier runs left

    def _count_request(self, kind: str, stream: str, scope: Scope) -> None:
        self.result.operations[kind] += 1
        self.result.requests[scope.target, stream] += 1

    def _count_request_of_unsettled(self, intent: Intent) -> None:
        scope = intent.scope
        if intent.place is not None:
            self._files.add_operation_of_stored_file(intent)
        else:
            self._count_toward_requests_or_files(scope, intent, "resend")

    def _count_toward_requests_or_files(self, scope: Scope, operation: Intent | Operation, request: str) -> None:
        if self._files.is_sent_in_files(scope.target, scope.resource):
            self._files.add_operation(scope, operation)
        else:
            self._operations[scope.target, scope.resource, request] += 1

    def _expect_delivered(self, intents: list[Intent]) -> None:
        for intent in intents:
            self.expected.add(expected_delivery_of_unsettled(intent))

    # ---- streams

    def plan_stream(self, bound: BoundStream, *, hash_source: bool) -> None:
        if bound.resource_type.write_once:
            self._expect_delivered(self._held)
            self._held = []
        if bound.stream.contributes:
            self._expect_repeated_contributions(bound)
        tally = self._tally_of_stream(bound.name)
        if self._source is None:
            stream_input = StreamInput(bound, self._state, tally, 0, digested=hash_source, whole=True)
        else:
            stream_input = self._source(bound, tally)
        held = RecordsAwaitingParents(bound, self._state, self._references[bound.scope.target], self._coming)
        waiting = WaitingReporter(held, self._listener)
        self._waiting.append((bound, held, waiting))
        while self._plan_part(bound, stream_input, held, waiting) and stream_input.has_more:
            pass
        if missing := bound.context.run.failures.get(bound.name):
            self.result.errors.setdefault(bound.name, strip_traceback_and_causes(missing))
        if not held:
            self._coming.discard(bound.scope)

    def _expect_repeated_contributions(self, bound: BoundStream) -> None:
        """Expect that contributions to records which the plan creates again are made again."""
        planned = [key_hash for scope, key_hash in self._known if scope == bound.scope.whole_record_scope]
        with self._state.begin_read_only() as tx:
            mine, existing = (
                tx.bindings.get(bound.scope, planned),
                tx.bindings.target_id_by_key_hash(bound.scope.whole_record_scope, planned),
            )
        for key_hash in mine.keys() - existing.keys():
            again = structs.replace(mine[key_hash], fingerprint=None)
            self.expected.add(ExpectedDelivery(bound.name, bound.scope, key_hash, again, is_whole=False))

    def decide_held_records_and_deletes(self) -> None:
        """Decide about records that waited for a later stream, and then about deletes. The rest waits."""
        is_done = False
        while not is_done:
            is_done = True
            for bound, held, waiting in self._waiting:
                planner = self._planner(
                    held, self._tally_of_stream(bound.name), Removals(), AuthorCodeFailureCounter(bound, None)
                )
                chunks = None if bound.name in self.result.errors else planner.plan_ready_cycles_or_removals()
                is_done = is_done and chunks is None
                self._report_decisions_of_planner_rounds(planner, chunks, waiting)
        for each in chain.from_iterable(
            each.plan_delete_rounds(self._removal_planner) for each in self._referring.values()
        ):
            for decided in each.chunks:
                self._report_decisions(decided)
        for bound, held, waiting in self._waiting:
            if bound.name not in self.result.errors:
                planner = self._planner(
                    held, self._tally_of_stream(bound.name), Removals(), AuthorCodeFailureCounter(bound, None)
                )
                self._report_decisions_of_planner_rounds(
                    planner, planner.plan_given_dead_letters(held.pop_overdue_as_dead_letters()), waiting
                )
            waiting.report_waiting_at_end()
            self._tally_of_stream(bound.name).count("carried_on", held.discard_all_and_count())

    def _plan_part(
        self, bound: BoundStream, stream_input: StreamInput, held: RecordsAwaitingParents, waiting: WaitingReporter
    ) -> bool:
        """Read and decide about the next part of one stream. Return False if nothing more of it can be decided."""
        tally, rejected = self._tally_of_stream(bound.name), self._tally_of_stream(bound.name).records["rejected"]
        left = (*self._left.in_doubt, *self._left.nowhere, *self._held, *self._left.awaited)
        unsettled = [intent for intent in left if intent.scope == bound.scope]
        try:
            stream_input.read_next_part(unsettled, bound.context.run.progress.advance)
        except CrossdockError as error:
            self._record_stream_error(bound, error)
            self.result.unread += 1
            stream_input.give_up_after_failed_read()
            return False
        if stream_input.digest:
            self.result.sources[bound.name] = stream_input.digest
        tally.count("carried_on", held.remove(stream_input.formerly_waiting_key_hashes))
        if rejected_before := tally.records["rejected"] - rejected:  # nothing of the part is decided yet
            self.result.rejected_before[bound.name] += rejected_before
        if self._withhold_updates_over_limit(bound, stream_input):
            return False
        repeated = stream_input.latest_records.repeated_keys(with_examples=bound.context.run.observe is not None)
        self.result.repeated_keys.setdefault(bound.name, repeated)
        for dead_letter in stream_input.latest_records.dead_letters_without_key:
            self._listener.refused(dead_letter)
        referring = self._referring[bound.scope.target]
        reads, failing, gone = stream_input.records(), stream_input.new_failure_counter(), stream_input.removals
        planner = self._planner(
            held,
            tally,
            referring.defer_deletes_of_referable_records(bound, gone),
            failing,
            stream_input.prepared_operations,
        )
        self._report_decisions_of_planner_rounds(planner, planner.decide_in_chunks(reads), waiting)
        planner.count_rest_as_carried_on(reads)
        planner.count_unplanned_removals_as_carried_on()
        if planner.stopped is not None:
            self._record_stream_error(bound, planner.stopped)
            tally.count("carried_on", referring.discard_deferred_deletes_and_count(bound))
            return False
        self._report_withheld_removals(bound, stream_input.removals)
        return True

    def _record_stream_error(self, bound: BoundStream, error: CrossdockError) -> None:
        self.result.errors[bound.name] = strip_traceback_and_causes(error)

    def _tally_of_stream(self, stream: str) -> Tally:
        return self.result.tallies.setdefault(stream, Tally())

    def _report_decisions_of_planner_rounds(
        self, planner: Planner, chunks: Iterator[PlannedChunk] | None, waiting: WaitingReporter
    ) -> None:
        while chunks is not None:
            for decided in chunks:
                self._report_decisions(decided)
                waiting.report_or_hold_waiting(decided)
            chunks = planner.plan_ready_cycles_or_removals()

    def _withhold_updates_over_limit(self, bound: BoundStream, stream_input: StreamInput) -> bool:
        """Return True if the stream would update too many records. They are listed as withheld, and none is planned."""
        found = stream_input.updates_for_limit_check()
        try:
            withheld = update_limits.find_unapproved_updates_over_limits(
                self._state, bound, found, self._known, at=self._now
            )
            if withheld is None:
                return False
            self._record_stream_error(bound, withheld.refusal)
            for operation in update_limits.update_operations_subject_to_limits(self._state, bound, found, self._known):
                self._listener.withheld(operation)
        except CrossdockError as error:
            self._record_stream_error(bound, error)
        stream_input.withhold_all_records(None)
        return True

    def _planner(
        self,
        held: RecordsAwaitingParents,
        tally: Tally,
        gone: Removals,
        failing: AuthorCodeFailureCounter,
        operations: Iterable[Operation] = (),
    ) -> Planner:
        return Planner(held, tally, None, gone=gone, failing=failing, operations=operations, at_once=_AT_ONCE)

    def _removal_planner(self, bound: BoundStream, gone: Removals, tally: Tally | None = None) -> Planner:
        nothing = RecordsAwaitingParents(bound, self._state, self._references[bound.scope.target], frozenset())
        return self._planner(
            nothing, tally or self._tally_of_stream(bound.name), gone, AuthorCodeFailureCounter(bound, None)
        )

    def _report_withheld_removals(self, bound: BoundStream, gone: Removals) -> None:
        """Report the removals that need approval, and count the records that stay."""
        held = gone.withheld
        if gone.refusal is not None:
            self._record_stream_error(bound, gone.refusal)
        if left_alone := gone.terms["ignored"] - (held.record_count if held else 0):
            self.result.left_alone[bound.name] = left_alone
        if held is None:
            return
        planner = self._removal_planner(bound, structs.replace(gone, removed=tuple(held.key_hashes)), Tally())
        for decided in planner.plan_ready_cycles_or_removals() or ():
            for operation in decided.operations:
                self._listener.withheld(operation)

    # ---- decisions

    def _report_decisions(self, decided: PlannedChunk) -> None:
        for operation in decided.operations:
            self._count_and_report_operation(operation)
        for dead_letter in decided.dead_letters:
            self._listener.refused(dead_letter)
        for binding in decided.suppressed:
            self._listener.suppressed(decided.bound.scope, binding)
        for item in decided.acknowledged_settlements:
            if not item.acknowledged:
                continue  # it is planned as sent again
            tally = self._tally_of_stream(item.intent.identity.stream)
            tally.count("carried_over")
            tally.count(settled_tally_term(item, first_time=item.intent.operation == "create"))
            self._expect_acknowledged_settlement(item)

    def _expect_acknowledged_settlement(self, item: Settlement) -> None:
        """Expect what an acknowledgement has settled, before the streams that follow it."""
        intent, identity = item.intent, item.intent.identity
        self._left.awaited = [each for each in self._left.awaited if each.id != intent.id]
        if intent.status == "delivered":
            self._expect_delivered([intent])
        else:
            facts = identity.key_hash, identity.fingerprint, identity.position, "rejected", intent.step
            self.expected.add_refusal(identity.stream, DeadLetterFacts(*facts))

    def _count_and_report_operation(self, operation: Operation) -> None:
        scope, identity = operation.scope, operation.identity
        record, tally = (scope, identity.key_hash), self._tally_of_stream(identity.stream)
        target = self._targets[scope.target]
        if self._restored and is_left_in_doubt_after_restore(scope.resource, operation.kind, target):
            self._doubtful.add(record)
            tally.count("carried_on")
            self._listener.in_doubt(identity)
            return
        if record in self._doubtful:
            return  # the second step of a create in doubt
        self._count_request(operation_kind_or_archive(operation), identity.stream, scope)
        self._count_toward_requests_or_files(scope, operation, operation_kind_or_archive(operation))
        self._referring[scope.target].record_planned_references_to_deleted(operation)
        if operation.kind == "delete":
            self.expected.add(ExpectedDelivery(identity.stream, scope, identity.key_hash, None))
        else:
            self._known.add(record)
        if operation.step == "open":
            self._first_steps.add(record)
            return
        is_first = operation.kind == "create" or record in self._first_steps
        tally.count(tally_term_if_target_accepts(target, scope.resource, operation.kind, first_time=is_first))
        two_steps = is_first and operation.kind == "update"
        whole = (
            structs.replace(operation, kind="create", changes=operation.after, binding=None) if two_steps else operation
        )
        self._listener.operation(whole)
