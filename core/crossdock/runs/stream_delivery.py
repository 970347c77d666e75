"""Delivery of the streams of one run: in order for each target, targets in parallel, and what earlier runs left first.

Its generators yield where the target is unavailable and the run has other work.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Protocol

from msgspec import Struct

from crossdock.config.project.connections_and_bound_streams import BoundStream, guard_author_code_of_stream
from crossdock.delta.changed_record_reading import KeyedRecord
from crossdock.errors import CrossdockError, StateError, StoppedError
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.reading.sources.expected_and_late_files import LateFileError
from crossdock.runs.adoptable_record_reading import AdoptionMatchersOfRun
from crossdock.runs.binding_verification import resources_written_by_streams
from crossdock.runs.planning import update_limits
from crossdock.runs.planning.mapping_to_drafts import AuthorCodeFailureCounter
from crossdock.runs.planning.planner import PlannedChunk, Planner
from crossdock.runs.planning.referenced_record_deletes import DeferredDeletes
from crossdock.runs.planning.references import References
from crossdock.runs.planning.removals import Removals
from crossdock.runs.planning.update_limits import UpdateCandidates, WithheldUpdates
from crossdock.runs.planning.waiting_records import IdleWaits, RecordsAwaitingParents
from crossdock.runs.run_report import Report, SettlementCount, Timings
from crossdock.runs.session_shared_by_runs import Session
from crossdock.state import Intent, Scope, State, Transaction
from crossdock.values.clock import POLL, Clock
from crossdock.values.run_progress_and_messages import Progress
from crossdock.values.run_states_and_tally import Tally
from crossdock.writing.delivery import in_doubt_and_refusal_rules
from crossdock.writing.delivery.delivery_context import DeliveringRun
from crossdock.writing.delivery.dispatcher import Dispatcher
from crossdock.writing.delivery.operations_and_intents import Operation
from crossdock.writing.targets.target import Target
from crossdock.writing.targets.target_code_guard import take_unreported_errors


class RunInput(Protocol):
    @property
    def requested_key_hashes(self) -> Sequence[int] | None:
        """The key hashes of the records that it reads; None if they are not known in advance."""

    def read_next_part(self, unsettled: list[Intent], advance: Callable[[int], None]) -> None:
        """Read everything, or the next part. Records with an operation in *unsettled* are left alone."""

    @property
    def finds_changes_without_webhooks(self) -> bool:
        """Whether it finds changes by itself, without webhooks."""

    @property
    def formerly_waiting_key_hashes(self) -> Collection[int]:
        """The key hashes of the records that waited before `read_next_part` and are decided again."""

    @property
    def postponed_as_unsettled_count(self) -> int:
        """The number of records that `read_next_part` leaves to the next run, because an operation on them is not
        settled.
        """

    @property
    def idle_waits(self) -> IdleWaits:
        """The waiting records that need no decision."""

    @property
    def has_more(self) -> bool:
        """Whether `read_next_part` has read only a part, and will read the next one."""

    def close(self) -> None:
        """Stop reading."""

    def give_up_after_failed_read(self) -> None:
        """Handle a failed source: what waited before continues to wait."""

    @property
    def expected_record_count(self) -> int:
        """The number of records that `records` yields, plus removals."""

    def records(self) -> Iterator[KeyedRecord]:
        """Yield the records to decide on."""

    @property
    def prepared_operations(self) -> Iterable[Operation]:
        """Operations that need no decision. They are sent after those of the records."""

    def updates_for_limit_check(self) -> UpdateCandidates:
        """Return the updates that are compared with the limits."""

    def withhold_all_records(self, withheld: WithheldUpdates | None) -> None:
        """Execute nothing of it, and store what an operator may approve."""

    def store_completion(self) -> None:
        """Finish the input: every record is settled, or kept in the state."""

    def new_failure_counter(self) -> AuthorCodeFailureCounter:
        """Counts failures of the mapping."""

    @property
    def removals(self) -> Removals:
        """The records that are removed, and the reasons why others are not."""


RunInputFactory = Callable[[BoundStream, Tally, int], RunInput]
"""Makes the source of a stream from the stream, its tally and the run's id."""

Steps = Generator[None, None, bool]


class StreamRunner:
    """Runs the streams of one run that write to one target. The report has errors of the delivery under *place*."""

    def __init__(
        self,
        run: DeliveringRun,
        target: Target,
        dispatcher: Dispatcher,
        report: Report,
        timings: Timings,
        scopes: Iterable[Scope],
        matches: AdoptionMatchersOfRun,
        place: str = "",
    ) -> None:
        self._run, self._state, self._target, self._dispatcher = run, run.state, target, dispatcher
        self._report, self._timings, self._matches, self._place = report, timings, matches, place
        self._references = References(target.name)
        self._coming = set(scopes)
        self._held: dict[str, tuple[BoundStream, RecordsAwaitingParents]] = {}
        self._referring = DeferredDeletes(run.state, target.name, target.resources)
        self._updates = Counter[str]()  # by stream, those that its limits count
        self._deferred: dict[str, RunInput] = {}  # by the stream whose deletes come at the end

    def run(self, bound: BoundStream, source: RunInput) -> Steps:
        """Run one stream. Return False if nothing more can be delivered. LateError comes before anything is read."""
        held = RecordsAwaitingParents(bound, self._state, self._references, self._coming)
        self._held[bound.name] = bound, held
        try:
            goes_on = yield from self._run_part(bound, source, held)
            while goes_on and source.has_more and bound.name not in self._report.errors:
                goes_on = yield from self._run_part(bound, source, held)
        finally:
            if bound.name not in self._deferred:
                source.close()
        if not held:
            self._coming.discard(bound.scope)
        if missing := bound.context.run.failures.get(bound.name):
            self._report.messages.add_error(bound.name, missing)
        return goes_on

    def deliver_records_that_waited(self) -> Steps:
        """Deliver what waited for records that a later stream has brought. Return as `run`."""
        is_done = False
        while not is_done:
            is_done = True
            for bound, held in self._held.values():
                planner = self._planner(held, Removals(), AuthorCodeFailureCounter(bound, None))
                chunks = None if bound.name in self._report.errors else planner.plan_ready_cycles_or_removals()
                while chunks is not None:
                    is_done = False
                    if not (yield from self._deliver_chunks(chunks)):
                        return False
                    chunks = planner.plan_ready_cycles_or_removals()
                if planner.stopped is not None:
                    self._report.messages.add_error(bound.name, planner.stopped)
        for bound, held in self._held.values():
            if bound.name not in self._report.errors:
                overdue = self._planner(
                    held, Removals(), AuthorCodeFailureCounter(bound, None)
                ).plan_given_dead_letters(held.pop_overdue_as_dead_letters())
                if held.wait_start_by_overdue_record and not (yield from self._deliver_chunks(overdue)):
                    return False
                held.make_held_records_idle()
        return True

    def report_target_code_errors(self) -> None:
        """Report errors in the code of the target that affected no record."""
        for defect in take_unreported_errors(self._target):
            self._report.messages.add_error(self._place, defect)

    def report_left_out_batches(self) -> None:
        """Report why stored batches were left out, while others were handed over."""
        for refusal in self._dispatcher.take_undelivered_batch_errors():
            self._report.messages.add_error(self._place, refusal)

    def deliver_deletes(self) -> Steps:
        """Delete what is gone and may be referred to, referring records first. Return as `run`."""
        for each in self._referring.plan_delete_rounds(self._new_planner_of_deletes):
            if not (yield from self._deliver_chunks(each.chunks)):
                each.planner.count_unplanned_removals_as_carried_on()
                self._report.tally(each.bound.name).count("carried_on", each.left)
                self._deferred.pop(each.bound.name).close()
                return False
            if not each.left:
                source = self._deferred.pop(each.bound.name)
                self._finish_input(each.bound, source)
                source.close()
        return True

    def _new_planner_of_deletes(self, bound: BoundStream, gone: Removals) -> Planner:
        self._timings.begin_part(f"deleting {bound.name}", len(gone.removed))
        nothing = RecordsAwaitingParents(bound, self._state, self._references, frozenset())
        return self._planner(nothing, gone, AuthorCodeFailureCounter(bound, None))

    def count_undelivered_as_carried_on(self) -> None:
        """Count as `carried_on` what still waits, and the deletes that were not begun."""
        for name, source in self._deferred.items():
            self._report.tally(name).count("carried_on", len(source.removals.removed))
            source.close()
        for bound, held in self._held.values():
            self._report.tally(bound.name).count("carried_on", held.discard_all_and_count())

    def _run_part(self, bound: BoundStream, source: RunInput, held: RecordsAwaitingParents) -> Steps:
        """Read and deliver what `RunInput.read_next_part` reads at once. Return as `run`."""
        with self._state.begin_read_only() as tx:
            unsettled = self._run.own_records.without_records_of_other_runs(
                tx.intents.unsettled_in_scope(bound.scope, source.requested_key_hashes)
            )
        try:
            with guard_author_code_of_stream(bound):
                source.read_next_part(unsettled, self._advance_progress_or_raise_if_interrupted)
        except (StateError, LateFileError):
            raise
        except CrossdockError as error:
            self._report.messages.add_error(bound.name, error)
            source.give_up_after_failed_read()
            return True
        is_awaited = all(intent.status == "handed_over" for intent in unsettled)
        self._report.left_to_next(bound.name, source.postponed_as_unsettled_count, is_awaited=is_awaited)
        self._report.tally(bound.name).count("carried_on", held.remove(source.formerly_waiting_key_hashes))
        held.add_idle(source.idle_waits)
        return (
            True
            if self._withhold_updates_over_limit(bound, source)
            else (yield from self._deliver_records(bound, source, held))
        )

    def _withhold_updates_over_limit(self, bound: BoundStream, source: RunInput) -> bool:
        """Return True if the stream would update too many records, and store what to approve."""
        at = bound.context.run.clock.now()
        try:
            found, before = source.updates_for_limit_check(), self._updates[bound.name]
            withheld = update_limits.find_unapproved_updates_over_limits(
                self._state, bound, found, set(), at=at, before=before
            )
        except StateError:
            raise
        except CrossdockError as error:
            self._report.messages.add_error(bound.name, error)
            source.withhold_all_records(None)
            return True
        if withheld is None:
            return False
        self._report.messages.add_error(bound.name, withheld.refusal)
        source.withhold_all_records(withheld)
        return True

    def repeat_dispatcher_work_until_done(self, work: Callable[[], bool]) -> Steps:
        """Call *work* of the dispatcher until it returns True. Return as `run`."""
        try:
            while not work():
                yield
        except StateError:
            raise
        except CrossdockError as error:
            self._report.messages.add_error(self._place, error)
            return False
        return True

    def _deliver_chunks(self, chunks: Iterator[PlannedChunk]) -> Steps:
        return self.repeat_dispatcher_work_until_done(
            partial(self._dispatcher.deliver, _with_progress(chunks, self._timings))
        )

    def _planner(
        self,
        held: RecordsAwaitingParents,
        gone: Removals,
        failing: AuthorCodeFailureCounter,
        operations: Iterable[Operation] = (),
    ) -> Planner:
        tally, matches = self._report.tally(held.bound.name), self._matches.adoption_matches_of_stream(held.bound)
        return Planner(held, tally, self._run, gone=gone, failing=failing, operations=operations, matches=matches)

    def _deliver_records(self, bound: BoundStream, source: RunInput, held: RecordsAwaitingParents) -> Steps:
        gone = self._referring.defer_deletes_of_referable_records(bound, source.removals)
        planner = self._planner(held, gone, source.new_failure_counter(), source.prepared_operations)
        records = source.records()
        self._timings.begin_part(f"sending {bound.name}", source.expected_record_count)
        chunks: Iterator[PlannedChunk] | None = planner.decide_in_chunks(records)
        missed = ChangesWithoutWebhook(self._state, bound) if source.finds_changes_without_webhooks else None
        try:
            while chunks is not None:
                if not (yield from self._deliver_chunks(missed.count_changes(chunks) if missed else chunks)):
                    planner.count_rest_as_carried_on(records)  # they stay in files that are not finished
                    self._give_up_deferred_deletes(bound)
                    return False
                chunks = planner.plan_ready_cycles_or_removals()
            planner.count_rest_as_carried_on(records)
        finally:
            self._updates[bound.name] += planner.updates
            planner.count_unplanned_removals_as_carried_on()
        if missed:
            missed.report()
        if planner.stopped is not None:
            self._report.messages.add_error(bound.name, planner.stopped)
            self._give_up_deferred_deletes(bound)
        elif gone is not source.removals:
            self._deferred[bound.name] = source
        else:
            self._finish_input(bound, source)
        return True

    def _give_up_deferred_deletes(self, bound: BoundStream) -> None:
        self._report.tally(bound.name).count("carried_on", self._referring.discard_deferred_deletes_and_count(bound))

    def _finish_input(self, bound: BoundStream, source: RunInput) -> None:
        self._timings.begin_part(f"remembering {bound.name}", None)
        try:
            with guard_author_code_of_stream(bound):
                source.store_completion()
        except StateError:
            raise
        except CrossdockError as error:
            self._report.messages.add_error(bound.name, error)
        if source.removals.refusal is not None:
            self._report.messages.add_error(bound.name, source.removals.refusal)

    def _advance_progress_or_raise_if_interrupted(self, rows: int) -> None:
        if self._run.interrupt.is_set():
            raise StoppedError(
                "stopped while reading", hint="nothing from this source was imported; run again to continue"
            )
        self._timings.advance(rows)


def _with_progress(chunks: Iterator[PlannedChunk], progress: Progress) -> Iterator[PlannedChunk]:
    """Report the progress of records without an operation, which are done once they are planned."""
    for chunk in chunks:
        progress.advance(chunk.decision_count - len(chunk.operations))
        yield chunk


class ChangesWithoutWebhook:
    """Counts the changes of one stream in one run, if its connection has received webhooks."""

    def __init__(self, state: State, bound: BoundStream) -> None:
        self._state, self._bound, self._number = state, bound, 0
        self._counts = False
        if bound.is_fetched_for_webhooks:
            with state.begin_read_only() as tx:
                self._counts = tx.inbox.has_readable_webhook(bound.name.partition(".")[0])

    def count_changes(self, chunks: Iterator[PlannedChunk]) -> Iterator[PlannedChunk]:
        """Count the operations of *chunks*, except those on records that are to be fetched anyway."""
        for chunk in chunks:
            if self._counts and chunk.operations:
                hashes = {operation.identity.key_hash for operation in chunk.operations}
                with self._state.begin_read_only() as tx:
                    self._number += len(hashes) - len(tx.inbox.key_hashes_among(self._bound.name, list(hashes)))
            yield chunk

    def report(self) -> None:
        if self._number:
            changes = "1 change" if self._number == 1 else f"{self._number:,} changes"
            self._bound.context.run.note(self._bound.name, f"no webhook has told of {changes}")


_ENDED = object()


class TargetDelivery(Struct):
    """One target of a run. Its `streams` are parents first, and `place` is where the report has its errors."""

    dispatcher: Dispatcher
    runner: StreamRunner
    streams: list[BoundStream]
    find_left: Callable[[], list[Intent]]
    restored: bool
    verify: Callable[[], None]
    place: str


class RunningStreams:
    """Runs streams. While one target is unavailable, the streams of the others continue."""

    def __init__(
        self,
        session: Session,
        deliveries: Mapping[str, TargetDelivery],
        counts: SettlementCount,
        report: Report,
        timings: Timings,
        interrupt: threading.Event,
    ) -> None:
        self._session, self._deliveries, self.counts = session, deliveries, counts
        self._report, self._timings, self._interrupt = report, timings, interrupt
        self._running: dict[str, Generator[None, None, None]] = {}

    @property
    def has_several_running_targets(self) -> bool:
        return len(self._running) > 1

    def run(self, new_input_of_stream: RunInputFactory, *, covers_all_streams: bool) -> None:
        """Run all streams. *covers_all_streams* means all streams of the config, read from their own sources."""
        self._running = {
            name: self._deliver_everything_to_target(name, delivery, new_input_of_stream)
            for name, delivery in self._deliveries.items()
        }
        try:
            self._advance_targets_in_turn()
        finally:
            for steps in self._running.values():
                steps.close()
        has_read = any(tally.rows_read for tally in self._report.tallies.values())
        if covers_all_streams and has_read and not self._report.errors:
            self._session.state.run_transaction(self._trust_restored_state_if_compared)

    def _trust_restored_state_if_compared(self, tx: Transaction) -> None:
        """Trust a restored state once everything was compared. Until then, lists of records written once are read.

        Only what is in doubt because of the backup may be open. A rejected record of such a list may have been
        delivered after the backup was made.
        """
        carried_on = sum(tally.records["carried_on"] for tally in self._report.tallies.values())
        unverified = {
            name
            for target in self._session.targets.values()
            for name in tx.unverified.marked_resources(target.name)
            & resources_written_by_streams(self._session.project, target)
            if not target.resources[name].write_once
        }
        if unverified or tx.unverified.has_unverified_bindings():
            return
        if not tx.runs.is_state_restored():
            tx.unverified.clear_all()
        elif carried_on == in_doubt_and_refusal_rules.count_in_doubt_since_backup(
            tx
        ) and not self._rejected_write_once_record_count(tx):
            tx.runs.mark_restored_state_compared(at=self._session.clock.now())
            in_doubt_and_refusal_rules.trust_restored_state_if_verified(tx)

    def _rejected_write_once_record_count(self, tx: Transaction) -> int:
        scopes, platform = self._session.project.scope_by_stream, self._session.targets[PLATFORM]
        writers = {
            scope: name
            for name, scope in scopes.items()
            if scope.target == PLATFORM and platform.resources[scope.resource].write_once
        }
        return sum(
            counts.rejected for counts in tx.open_record_counts.by_stream(list(writers.values()), writers).values()
        )

    def _advance_targets_in_turn(self) -> None:
        while self._running:
            for name, steps in list(self._running.items()):
                if next(steps, _ENDED) is _ENDED:
                    del self._running[name]

    def _deliver_everything_to_target(
        self, name: str, delivery: TargetDelivery, source: RunInputFactory
    ) -> Generator[None, None, None]:
        """Do everything for one target. Yields where another target can continue."""
        runner, dispatcher = delivery.runner, delivery.dispatcher
        if not (yield from self._resume_unsettled_under_lock(name, delivery)):
            return
        try:
            done = (yield from self._run_streams(delivery, source)) and (
                yield from runner.deliver_records_that_waited()
            )
            done = done and (yield from runner.deliver_deletes())
        finally:
            runner.count_undelivered_as_carried_on()
            runner.report_target_code_errors()
        if not (
            done and (yield from runner.repeat_dispatcher_work_until_done(dispatcher.deliver_held_back_operations))
        ):
            dispatcher.leave_to_next_run()
        runner.report_left_out_batches()

    def _verify_bindings_or_report(self, delivery: TargetDelivery) -> bool:
        try:
            delivery.verify()
        except StateError:
            raise
        except CrossdockError as error:
            self._report.messages.add_error(delivery.place, error)
            return False
        return True

    def _resume_unsettled_under_lock(self, name: str, delivery: TargetDelivery) -> Steps:
        """Deliver what earlier runs left, while other runs wait for that. Return False if nothing can be delivered."""
        resuming = self._session.resuming_lock(name)
        while not resuming.acquire(timeout=POLL.total_seconds()):
            if self._interrupt.is_set():
                self._report_requested_stop(f"before the delivery to {name}")
                return False
            yield
        try:
            left = delivery.find_left()
            if not self._verify_bindings_or_report(delivery) or not (yield from self._resume_unsettled(delivery, left)):
                return False
            if not (yield from self._verify_bindings_after_resuming(delivery, left)):
                return False
            self._session.resumed.add(name)
            return True
        finally:
            resuming.release()

    def _report_requested_stop(self, when: str) -> None:
        hint = "requests in flight are settled; run again to continue"
        self._report.messages.add_error("", StoppedError(f"stopped {when}", hint=hint))

    def _resume_unsettled(self, delivery: TargetDelivery, left: Sequence[Intent]) -> Steps:
        self.counts.count_carried_over(left)
        self._timings.begin_part("sending what the last run left", len(left))
        names = {bound.name for bound in delivery.streams}
        steps = delivery.dispatcher.resume_unsettled_intents(left, held_back_streams=names)
        self.counts.resuming.update(intent.id for intent in left)
        return (yield from delivery.runner.repeat_dispatcher_work_until_done(lambda: next(steps, _ENDED) is _ENDED))

    def _verify_bindings_after_resuming(self, delivery: TargetDelivery, left: Sequence[Intent]) -> Steps:
        """Verify the records of operations that a restored backup had left; see
        `settlement.store_outcomes_and_bindings`.
        """
        if not left or not delivery.restored:
            return True
        held_back = partial(delivery.dispatcher.deliver_held_back_operations, at_end=False)
        is_settled = yield from delivery.runner.repeat_dispatcher_work_until_done(held_back)
        return is_settled and self._verify_bindings_or_report(delivery)

    def _run_streams(self, delivery: TargetDelivery, source: RunInputFactory) -> Steps:
        """Run the streams in order. Return False if nothing more can be delivered."""
        runner = delivery.runner
        order = StreamOrder(delivery.streams, self._session.clock, self._timings, self._interrupt)
        others = {bound.name for bound in delivery.streams if not bound.resource_type.write_once}
        written_once = partial(delivery.dispatcher.deliver_held_back_operations, but=others, at_end=False)
        for bound in order:
            if bound is None:
                yield
                continue
            if self._interrupt.is_set():
                self._report_requested_stop(f"before {bound.name}")
                return False
            if bound.resource_type.write_once and not (
                yield from runner.repeat_dispatcher_work_until_done(written_once)
            ):
                return False
            try:
                if not (yield from runner.run(bound, source(bound, self._report.tally(bound.name), self._report.run))):
                    return False
            except LateFileError as late:
                order.postpone_late_stream(bound, late)
        return True


class StreamOrder:
    """Yields the streams of a run, and a postponed one again. *interrupt* ends a pause."""

    def __init__(
        self, streams: Sequence[BoundStream], clock: Clock, progress: Progress, interrupt: threading.Event
    ) -> None:
        self._pending, self._clock, self._progress, self._interrupt = list(streams), clock, progress, interrupt
        self._waiting_for = ""
        self._again: dict[str, timedelta] = {}  # by name of a late stream: when to try it, by the monotonic clock

    def __iter__(self) -> Iterator[BoundStream | None]:
        """Yield the first stream that may run, or None after a pause if each one is late or refers to a late one."""
        while self._pending:
            bound = next(filter(self._may_run, self._pending), None)
            if bound is None:
                bound = min((one for one in self._pending if one.name in self._again), key=self._time_until_retry)
                self._pause_before_retry(bound)
                if self._time_until_retry(bound) > timedelta() and not self._interrupt.is_set():
                    yield None
                    continue
            self._again.pop(bound.name, None)
            self._waiting_for = ""
            yield bound
            if bound.name not in self._again:
                self._pending.remove(bound)

    def postpone_late_stream(self, bound: BoundStream, late: LateFileError) -> None:
        self._again[bound.name] = self._monotonic_time + late.pause

    @property
    def _monotonic_time(self) -> timedelta:
        return timedelta(seconds=self._clock.monotonic())

    def _time_until_retry(self, bound: BoundStream) -> timedelta:
        return self._again.get(bound.name, timedelta()) - self._monotonic_time

    def _may_run(self, bound: BoundStream) -> bool:
        late = (one for one in self._pending if one.name in self._again and one is not bound)
        scopes = {(bound.scope.target, parent) for parent in bound.resource_type.parents}
        return self._time_until_retry(bound) <= timedelta() and not any(
            (o.scope.target, o.scope.resource) in scopes for o in late
        )

    def _pause_before_retry(self, bound: BoundStream) -> None:
        if self._waiting_for != bound.name:
            self._progress.begin(f"waiting for files of {bound.name}", None)
            self._waiting_for = bound.name
        left = self._time_until_retry(bound)
        if left > timedelta() and not self._interrupt.is_set():
            self._clock.sleep(min(left, POLL).total_seconds())
