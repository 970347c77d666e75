"""Delivery of one run: streams and operations of earlier runs, in order for each target, targets in parallel."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial

from msgspec import Struct

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.errors import CrossdockError, StateError, StoppedError
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.reading.sources.waiting_for_late_files import LateError
from crossdock.runs.comparison_after_restore import resources_written_by_streams
from crossdock.runs.run_report import Report, SettlementCount
from crossdock.runs.session_shared_by_runs import Session
from crossdock.runs.source_or_dead_letters_input import RunInputFactory
from crossdock.runs.stream_runner import Steps, StreamRunner
from crossdock.runs.timings import Timings
from crossdock.state import Intent, Transaction
from crossdock.values.clock import POLL, Clock
from crossdock.values.run_progress_and_messages import Progress
from crossdock.writing.delivery import in_doubt_and_refusal_rules
from crossdock.writing.delivery.dispatcher import Dispatcher

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
            done = (yield from self._run_streams(delivery, source)) and (yield from runner.deliver_waiting())
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
            except LateError as late:
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

    def postpone_late_stream(self, bound: BoundStream, late: LateError) -> None:
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
