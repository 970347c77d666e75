"""Runs one stream: reads it, plans its records and delivers the operations.

Its generators yield where the target is unavailable and the run has other work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial

from crossdock.config.project.connections_and_bound_streams import BoundStream, guard_author_code_of_stream
from crossdock.errors import CrossdockError, StateError, StoppedError
from crossdock.reading.sources.waiting_for_late_files import LateError
from crossdock.runs.adoptable_record_reading import RunAdoptions
from crossdock.runs.planning import update_limits
from crossdock.runs.planning.awaiting_parents import AwaitingParents
from crossdock.runs.planning.mapping_to_drafts import FailureCounter
from crossdock.runs.planning.planned_chunk import PlannedChunk
from crossdock.runs.planning.planner import Planner
from crossdock.runs.planning.referenced_record_deletes import DeferredDeletes
from crossdock.runs.planning.removals import Removals
from crossdock.runs.planning.target_ids_of_references import References
from crossdock.runs.run_report import Report
from crossdock.runs.source_or_dead_letters_input import RunInput
from crossdock.runs.timings import Timings
from crossdock.state import Scope, State
from crossdock.values.run_progress_and_messages import Progress
from crossdock.writing.delivery.delivery_context import DeliveringRun
from crossdock.writing.delivery.dispatcher import Dispatcher
from crossdock.writing.delivery.operations_and_intents import Operation
from crossdock.writing.targets.target import Target
from crossdock.writing.targets.target_code_guard import take_unreported_errors

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
        matches: RunAdoptions,
        place: str = "",
    ) -> None:
        self._run, self._state, self._target, self._dispatcher = run, run.state, target, dispatcher
        self._report, self._timings, self._matches, self._place = report, timings, matches, place
        self._references = References(target.name)
        self._coming = set(scopes)
        self._held: dict[str, tuple[BoundStream, AwaitingParents]] = {}
        self._referring = DeferredDeletes(run.state, target.name, target.resources)
        self._updates = Counter[str]()  # by stream, those that its limits count
        self._deferred: dict[str, RunInput] = {}  # by the stream whose deletes come at the end

    def run(self, bound: BoundStream, source: RunInput) -> Steps:
        """Run one stream. Return False if nothing more can be delivered. LateError comes before anything is read."""
        held = AwaitingParents(bound, self._state, self._references, self._coming)
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

    def deliver_waiting(self) -> Steps:
        """Deliver what waited for records that a later stream has brought. Return as `run`."""
        is_done = False
        while not is_done:
            is_done = True
            for bound, held in self._held.values():
                planner = self._planner(held, Removals(), FailureCounter(bound, None))
                chunks = None if bound.name in self._report.errors else planner.next_round()
                while chunks is not None:
                    is_done = False
                    if not (yield from self._deliver_chunks(chunks)):
                        return False
                    chunks = planner.next_round()
                if planner.stopped is not None:
                    self._report.messages.add_error(bound.name, planner.stopped)
        for bound, held in self._held.values():
            if bound.name not in self._report.errors:
                overdue = self._planner(held, Removals(), FailureCounter(bound, None)).plan_rejections(
                    held.pop_late_as_dead_letters()
                )
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
                each.planner.count_unplanned_removals()
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
        nothing = AwaitingParents(bound, self._state, self._references, frozenset())
        return self._planner(nothing, gone, FailureCounter(bound, None))

    def count_undelivered_as_carried_on(self) -> None:
        """Count as `carried_on` what still waits, and the deletes that were not begun."""
        for name, source in self._deferred.items():
            self._report.tally(name).count("carried_on", len(source.removals.removed))
            source.close()
        for bound, held in self._held.values():
            self._report.tally(bound.name).count("carried_on", held.discard_all())

    def _run_part(self, bound: BoundStream, source: RunInput, held: AwaitingParents) -> Steps:
        """Read and deliver what `RunInput.read_next_part` reads at once. Return as `run`."""
        with self._state.begin_read_only() as tx:
            unsettled = self._run.own_records.without_records_of_other_runs(
                tx.intents.unsettled_in_scope(bound.scope, source.requested_key_hashes)
            )
        try:
            with guard_author_code_of_stream(bound):
                source.read_next_part(unsettled, self._advance_progress_or_raise_if_interrupted)
        except (StateError, LateError):
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
        self, held: AwaitingParents, gone: Removals, failing: FailureCounter, operations: Iterable[Operation] = ()
    ) -> Planner:
        tally, matches = self._report.tally(held.bound.name), self._matches.adoption_matches_of_stream(held.bound)
        return Planner(held, tally, self._run, gone=gone, failing=failing, operations=operations, matches=matches)

    def _deliver_records(self, bound: BoundStream, source: RunInput, held: AwaitingParents) -> Steps:
        gone = self._referring.defer(bound, source.removals)
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
                chunks = planner.next_round()
            planner.count_rest_as_carried_on(records)
        finally:
            self._updates[bound.name] += planner.updates
            planner.count_unplanned_removals()
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
        self._report.tally(bound.name).count("carried_on", self._referring.give_up(bound))

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
