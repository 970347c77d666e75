"""A run that has begun: its streams, and a dispatcher for each of their targets.

What is written once and an earlier run has planned, but never sent, is withdrawn if the present mapping differs.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import partial
from itertools import groupby
from types import TracebackType

from msgspec import Struct, structs

from crossdock.config.project.connections_and_bound_streams import BoundStream, guard_author_code_of_stream
from crossdock.delta.changed_record_reading import stored_records_repaired_and_filtered_again
from crossdock.errors import (
    InternalError,
    RecordError,
    RefusedError,
    StateError,
    add_code_to_first_line,
    as_crossdock_error,
)
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.pacing.request_allowance import Priority, RequestAllowance
from crossdock.pacing.token_bucket import BucketState
from crossdock.reading.sources.run_context import (
    ClosingStack,
    JobRun,
    SourceContext,
    WaitingRun,
    create_run_folder,
)
from crossdock.runs import refusals_to_send_records_twice, session_shared_by_runs
from crossdock.runs.adoptable_record_reading import AdoptionMatchersOfRun
from crossdock.runs.binding_verification import BindingVerification
from crossdock.runs.imported_file_log import IntakeLogInState, RereadAllIntakeLog
from crossdock.runs.planning import undo_in_progress
from crossdock.runs.planning.mapping_to_drafts import map_record_to_draft_members
from crossdock.runs.planning.references import References
from crossdock.runs.run_report import Report, SettlementCount, Timings
from crossdock.runs.run_start_and_stop_requests import RunInterrupt, RunRequest, set_interrupt_on_stop_request
from crossdock.runs.session_shared_by_runs import Session
from crossdock.runs.stream_delivery import RunInputFactory, RunningStreams, StreamRunner, TargetDelivery
from crossdock.runs.stream_input import StreamInput
from crossdock.state import (
    AuditEntry,
    Intent,
    MigrationPart,
    OverdueBatch,
    PendingNotice,
    RecordIdentity,
    RunResult,
    State,
    Transaction,
    Unchanged,
    WaitingRecord,
)
from crossdock.values.author_code_errors import AuthorCodeError, author_code_error_or_none
from crossdock.values.run_progress_and_messages import Progress, RunMessages
from crossdock.values.run_states_and_tally import Tally
from crossdock.values.texts_of_numbers_and_times import count_with_noun, instant_text
from crossdock.writing.delivery.delivery_context import AdoptionRules, DeliveringRun, RecordsOfRun
from crossdock.writing.delivery.dispatcher import Dispatcher
from crossdock.writing.delivery.in_doubt_and_refusal_rules import StateDoubts, is_held_back_as_unverifiable
from crossdock.writing.delivery.operations_and_intents import payload_after_intent
from crossdock.writing.delivery.send_queue_and_threads import SenderThreads
from crossdock.writing.delivery.state_writer import Settlement
from crossdock.writing.targets.target import Target


def withdraw_unsent_with_changed_mapping(
    state: State, streams: Sequence[BoundStream], left: Sequence[Intent], run_id: int
) -> list[Intent]:
    """Let records wait for a new decision whose create was never sent and is outdated. Return the other operations."""
    outdated = [
        intent
        for bound in streams
        for intent in _unsent_creates_mapped_differently_now(state, bound, _unsent_creates(bound, left))
    ]
    if not outdated:
        return list(left)
    at = streams[0].context.run.clock.now()
    for intent in outdated:
        intent.status = "replaced"
    waits = [WaitingRecord(intent.identity, [], intent.raw) for intent in outdated]
    with state.begin() as tx:
        tx.waiting_records.put(waits, run_id=run_id, at=at)
        tx.intents.write_outcomes(outdated, at=at)
    for name, number in Counter(intent.identity.stream for intent in outdated).items():
        records = f"{count_with_noun(number, 'record')} {'is' if number == 1 else 'are'}"
        text = f"{records} mapped again, which an earlier run has planned otherwise and never sent"
        streams[0].context.run.note(name, text)
    return [intent for intent in left if intent.status != "replaced"]


def _unsent_creates(bound: BoundStream, left: Sequence[Intent]) -> list[Intent]:
    return [
        intent
        for intent in left
        if intent.identity.stream == bound.name
        and intent.scope == bound.scope
        and (intent.operation, intent.step, intent.first_sent_at, intent.place) == ("create", "whole", None, None)
        and intent.raw
        and is_held_back_as_unverifiable(intent, bound.target, state_restored=False)
    ]


def _unsent_creates_mapped_differently_now(
    state: State, bound: BoundStream, unsent: Sequence[Intent]
) -> Iterator[Intent]:
    """Yield those of *unsent* that the stream would map to something else, or to nothing."""
    if not unsent:
        return
    try:
        with guard_author_code_of_stream(bound):
            mapped = dict(_payloads(state, bound, unsent))
    except AuthorCodeError:
        return  # it is reported when the stream is read
    for intent in unsent:
        if mapped.get(intent.identity) != payload_after_intent(intent):
            yield intent


def _payloads(
    state: State, bound: BoundStream, unsent: Sequence[Intent]
) -> Iterator[tuple[RecordIdentity, dict[str, object]]]:
    references = References(bound.target.name)
    for read in stored_records_repaired_and_filtered_again(
        bound.stream, ((each.identity, each.raw) for each in unsent)
    ):
        try:
            members, named = map_record_to_draft_members(bound, read.record)
            keys = references.scoped_keys(named, bound.namespace_and_key_of_reference)
            with state.begin_read_only() as tx:
                references.look_up(keys, tx)
            if not references.missing(keys):
                resolved = references.resolve(members, bound.namespace_and_key_of_reference)
                resource, key = bound.resource_type.name, read.record.key
                yield read.identity, bound.target.payload(resource, bound.namespace, key, resolved)
        except (RecordError, AuthorCodeError):
            continue  # it is rejected when it is decided about


class RunPurpose(Struct, frozen=True):
    """What a run is for, as far as it works in another way than a sync.

    Only one that `undoes` works on streams that are being undone. One that `rereads` reads all files and remembers
    none.
    """

    only_unchanged: Unchanged | None = None
    undoes: bool = False
    rereads: bool = False


SYNC, REPAIR = RunPurpose(), RunPurpose(only_unchanged="members", rereads=True)
UNDO = RunPurpose(only_unchanged="record", undoes=True)
_MANUAL = RunRequest(command="sync")
_LEFT = "unsettled operations are left:"
_CHANGED = (
    "the config was changed after this process had read it, and the run works with the earlier one: a service reads it"
    " again on SIGHUP"
)


class ActiveRun:
    """One execution of some streams, at once or in parts. `recording_start_and_end` sets `report`, `streams`, `records`
    and `refused`.

    Args:
        priority: ``live`` takes its tokens before the batches that share the bucket.
        patience: Wait for late files as the streams' ``wait`` says; None to wait for no file.
        attempt: One that continues the last run only settles what was left at the targets of its streams.
    """

    report: Report
    streams: list[BoundStream]
    records: RecordsOfRun
    refused: Mapping[str, RefusedError]
    _entry: AuditEntry | None
    _defects: Mapping[str, AuthorCodeError]
    _doubts: StateDoubts
    _run: DeliveringRun

    def __init__(
        self,
        session: Session,
        progress: Progress,
        interrupt: threading.Event,
        priority: Priority = "batch",
        patience: WaitingRun | None = None,
        *,
        attempt: RunRequest = _MANUAL,
        part: MigrationPart | None = None,
        purpose: RunPurpose = SYNC,
    ) -> None:
        self._session, self._timings = session, Timings.reuse_or_wrap_progress(progress, session.clock)
        self._interrupt = RunInterrupt(interrupt)
        self._priority, self._patience, self._attempt = priority, patience, attempt
        self._part, self._purpose = part, purpose
        self._may_have_left = True  # operations that an earlier run, or a failed delivery, has left
        self._before = timedelta()  # how long the run took that is continued
        self._api_limits, self._dispatchers = dict[str, BucketState](), dict[str, tuple[Dispatcher, ExitStack]]()
        self._running: RunningStreams | None = None
        self._matches = AdoptionMatchersOfRun(session.project.platform, session.state, self._interrupt)

    def execute(
        self,
        names: set[str],
        input_factory: RunInputFactory | None = None,
        *,
        reads: bool = True,
        count_open_records_of: set[str] | None = None,
        children_first: bool = False,
        remark: str | None = None,
    ) -> Report:
        """Run streams at once, from the beginning of the run to its end. *input_factory* replaces `StreamInput`.

        The run is recorded with *remark* as its note.
        """
        with self.recording_start_and_end(names, count_open_records_of=count_open_records_of):
            if remark is not None:
                self.note("", remark)
            for name, refusal in self.refused.items():
                self.report.messages.add_error(name, refusal)
            self.records.record_begin_of_reading()
            whole = reads and names == self._session.project.selected_streams([])
            self.settle_then_deliver_streams(
                self.streams[:: -1 if children_first else 1], input_factory or self._new_stream_input, whole=whole
            )
        return self.report

    def _new_stream_input(self, bound: BoundStream, tally: Tally, run: int) -> StreamInput:
        return StreamInput(bound, self._session.state, tally, run)

    @contextmanager
    def recording_start_and_end(
        self, names: set[str], *, count_open_records_of: set[str] | None = None
    ) -> Iterator[None]:
        """Record the start of the run, and its end after the block.

        Args:
            names: The names of its streams; if empty, only operations that the last run left are sent.
            count_open_records_of: Streams whose open records the report counts; None for *names*.
        """
        with self._session.storing_failed_start(self._attempt):
            self._defects = self._session.author_code_errors_of_targets(names)
            self._record_start()
        try:
            with ExitStack() as stack:
                self.records = self._session.records.begin_run()
                stack.callback(self.records.end_run)
                stack.push(self._end_dispatchers)
                stack.enter_context(
                    set_interrupt_on_stop_request(
                        self._session.state, self.report.run, self._interrupt, self._note_stop_request
                    )
                )
                self._find_refusals_and_bind_streams(stack, names)
                yield
        except BaseException as error:
            self.report.is_partial = True
            self.report.messages.add_error("", author_code_error_or_none(error) or as_crossdock_error(error))
            raise
        finally:
            self.report.lasted = self._before + self._timings.end_run_and_return_duration()
            self._record_end(names if count_open_records_of is None else count_open_records_of)

    def _note_stop_request(self) -> None:
        self.note("", "it was asked to stop, and settles what is in flight")

    def note(self, stream: str, text: str) -> None:
        self._timings.warn(f"{stream}: {text}" if stream else text)
        self.report.messages.add_note(stream, text)

    def settle_then_deliver_streams(
        self, streams: Sequence[BoundStream], input_factory: RunInputFactory, *, whole: bool = False
    ) -> None:
        """Settle the operations of earlier runs, then read *streams* and deliver what is new or changed.

        The report has errors of the delivery under the target's name or an empty one.
        """
        self._matches.mark_outdated()
        self._running = self._new_running_streams(streams)
        self._running.run(input_factory, covers_all_streams=whole)

    def show_idle(self, why: str) -> None:
        self._timings.begin_part(why, None)

    def close_dispatchers_after_failure(self) -> None:
        """Replace the dispatchers: one that has failed delivers nothing more."""
        self._end_dispatchers(None, None, None)
        self._may_have_left = True

    def _end_dispatchers(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the dispatchers. After an interruption their senders do not wait for answers."""
        for _, stack in self._dispatchers.values():
            stack.__exit__(kind, error, traceback)
        self._dispatchers.clear()

    # ---- begin

    def _record_start(self) -> None:
        session, attempt, now = self._session, self._attempt, self._session.clock.now()
        day, job = attempt.business_date(now), attempt.job_name
        with session.state.begin() as tx:
            last = tx.runs.reopen_last_if_ended(business_date=day, job=job or "") if attempt.continues else None
            run_id = last.id if last else tx.runs.start(business_date=day, at=now, job=job, command=attempt.command)
            if session.config is not None:
                tx.run_configs.store(run_id, session.config)
            if (entry := attempt.audit_entry(now)) is not None:
                entry = structs.replace(entry, subject=f"run {run_id}")
                tx.audit_log.put(structs.replace(entry, outcome="begun"))
            if self._part is not None:
                tx.migrations.add_run(self._part.migration_id, run_id, self._part.kind, self._part.wave)
            self._doubts = StateDoubts(tx.runs.is_state_restored(), tx.unverified.has_unverified_bindings())
        self.report = Report.of_earlier(last) if last else Report(run_id, day)
        self._before, self._entry = self.report.lasted, entry
        self._timings.start_run(self.report, job)
        for text in session.project.warnings:
            self._timings.warn(add_code_to_first_line(text, "config_key_renamed"))
            self.report.messages.add_warning("", text, code="config_key_renamed")
        if session.project.has_changed_in_files:
            self.note("", _CHANGED)

    def _find_refusals_and_bind_streams(self, stack: ExitStack, names: set[str]) -> None:
        session, spool, report = self._session, self._session.project.spool, self.report
        connections = {name.partition(".")[0] for name in names}
        with session.state.begin_read_only() as tx:
            self._api_limits = session_shared_by_runs.read_rate_limits_of_source_apis(
                tx, connections, session.project.names_of_connections_reading_platform
            )
            self.refused = (
                {}
                if self._purpose.undoes
                else undo_in_progress.refusals_of_streams_being_undone(tx, names, session.project.scope_by_stream)
            )
        moved = refusals_to_send_records_twice.store_target_addresses_and_return_refusals(
            session.state, session.project.scope_by_stream, session.targets, at=session.clock.now()
        )
        moved = {name: each for name, each in moved.items() if name in names}
        if moved and self._purpose is not SYNC:
            raise next(iter(moved.values()))  # it does all that was approved, or nothing
        self.refused = {**moved, **self.refused}
        self._run = DeliveringRun(
            session.state,
            report.run,
            session.clock,
            self._interrupt,
            self.records,
            report.counters,
            self._purpose.only_unchanged,
            warn=partial(self.note, ""),
            may_pause=lambda: self._running is not None and self._running.has_several_running_targets,
        )
        work = create_run_folder(stack, spool)
        context = SourceContext(
            session.clock,
            self._timings,
            RereadAllIntakeLog(session.state)
            if self._purpose.rereads
            else IntakeLogInState(session.state, session.clock),
            work / "spool" if self._purpose.rereads else spool,
            work,
            spool,
            self._patience,
            report.messages,
            self._due_job_run_with_previous(),
            report.inputs,
            at_end=stack.enter_context(ClosingStack(partial(report.messages.add_error, ""))),
            limits=self._api_limits,
            buckets=session.source_buckets,
            live=self._priority == "live",
            interrupt=self._interrupt,
            api_usage=report.api_usage,
            reading=session.reading,
        )
        self.streams = session.project.bind_streams(names - self.refused.keys(), targets=session.targets, run=context)
        self._verification = BindingVerification(session, context, report.run, self._interrupt)
        self._verification.have_last_snapshots_reread(self.streams)

    def _due_job_run_with_previous(self) -> JobRun | None:
        due_run = self._attempt.due_run
        if due_run is None:
            return None
        with self._session.state.begin_read_only() as tx:
            last = tx.scheduled_runs.last_executed_run_of_job(due_run)
        return JobRun(due_run.due) if last is None else JobRun(due_run.due, last.finished_at, last.due)

    # ---- deliver

    def _new_running_streams(self, streams: Sequence[BoundStream]) -> RunningStreams:
        session, counts = self._session, SettlementCount(self.report)
        used = {bound.scope.target for bound in streams}
        used |= set() if self._attempt.continues else self._other_targets_with_unsettled(used)
        targets = [each for each in session.targets.values() if each.name in used] or [session.targets[PLATFORM]]
        places = {target.name: target.name if len(targets) > 1 else "" for target in targets}
        deliveries = dict[str, TargetDelivery]()
        for target in targets:
            try:
                if (defect := self._defects.get(target.name)) is not None:
                    raise defect
                deliveries[target.name] = self._new_target_delivery(target, streams, places[target.name])
            except AuthorCodeError as error:
                self.report.messages.add_error(places[target.name], error)
        self._may_have_left = not self._attempt.continues
        return RunningStreams(session, deliveries, counts, self.report, self._timings, self._interrupt)

    def _other_targets_with_unsettled(self, used: set[str]) -> set[str]:
        """Return the targets besides *used* where earlier runs of other streams have left operations."""
        session = self._session
        with session.state.begin_read_only() as tx:
            left = tx.intents.to_send_counts_by_target()
        others = left.keys() - used - session.resumed
        for name in others - session.targets.keys():
            self.note(name, f"{left[name]} {_LEFT} the config has no such target")
            session.resumed.add(name)
        return others & session.targets.keys()

    def _new_target_delivery(self, target: Target, streams: Sequence[BoundStream], place: str) -> TargetDelivery:
        own = [bound for bound in streams if bound.scope.target == target.name]
        dispatcher = self._dispatcher_of_target(target)
        runner = StreamRunner(
            self._run,
            target,
            dispatcher,
            self.report,
            self._timings,
            [bound.scope for bound in own],
            self._matches,
            place,
        )
        may_have_left, verify = self._may_have_left, partial(self._verification.compare_unverified_bindings, target)

        def find_left() -> list[Intent]:
            left = (
                self.records.without_records_of_other_runs(
                    self._session.operations_left_by_earlier_runs(target.name, own)
                )
                if may_have_left
                else []
            )
            unknown = Counter(intent.resource for intent in left if intent.resource not in target.resources)
            for resource, number in sorted(unknown.items()):
                self.note(f"{target.name}.{resource}", f"{number} {_LEFT} the config has no such resource")
            left = self._without_operations_for_other_address(
                target, [intent for intent in left if intent.resource not in unknown]
            )
            if self._doubts.restored:
                return left  # what looks unsent may have been sent after the backup
            return withdraw_unsent_with_changed_mapping(self._session.state, own, left, self.report.run)

        return TargetDelivery(dispatcher, runner, own, find_left, self._doubts.restored, verify, place)

    def _without_operations_for_other_address(self, target: Target, left: Sequence[Intent]) -> list[Intent]:
        """Leave what an earlier run had for another address of *target*: it may change records that are not here."""
        targets, numbers = self._session.targets, Counter(intent.scope for intent in left)
        with self._session.state.begin_read_only() as tx:
            found = {
                scope: refusals_to_send_records_twice.both_addresses_if_target_moved(tx, targets, scope)
                for scope in numbers
            }
        for scope, moved in found.items():
            if moved is not None:
                self.note(f"{target.name}.{scope.resource}", f"{numbers[scope]} {_LEFT} they are for {moved[0]}")
        return [intent for intent in left if found[intent.scope] is None]

    def _dispatcher_of_target(self, target: Target) -> Dispatcher:
        if target.name not in self._dispatchers:
            stack = ExitStack()
            self._dispatchers[target.name] = self._new_dispatcher(target, stack), stack
        return self._dispatchers[target.name][0]

    def _new_dispatcher(self, target: Target, stack: ExitStack) -> Dispatcher:
        session, ceiling = (
            self._session,
            max(1, self._session.in_flight_limit_per_run(target) // self._attempt.shared_by),
        )
        bucket, reduced = session.bucket(target), session.bucket_share(target)
        allowance = RequestAllowance(session.clock, bucket, ceiling=ceiling, priority=self._priority, reduced=reduced)

        def settled(item: Settlement) -> None:
            assert self._running is not None
            if self._running.counts.count_settled_operation(item):
                self._timings.advance()
                self._timings.allowance(allowance.tokens)

        return Dispatcher(
            self._run,
            target,
            allowance,
            stack.enter_context(SenderThreads(target, ceiling, session.project.personal_data_masks)),
            settled,
            rules=AdoptionRules(
                session.project.streams_adopting_by_external_id,
                session.project.adoption_member_by_stream,
                session.project.streams_rejecting_conflicts,
            ),
            doubts=self._doubts,
            forgotten=self._verification.forgotten,
        )

    # ---- end

    def _record_end(self, names: set[str]) -> None:
        """Count the open records, and record the end. A scheduled run that was stopped, or lost the state, goes on."""
        report, now = self.report, self._session.clock.now()
        streams = [name for name in report.tallies if name in names]  # without others that it only resumed
        streams += sorted(names.difference(report.tallies))
        project = self._session.project
        writers = {scope: name for name, scope in project.scope_by_stream.items()}
        is_of_all = names == project.selected_streams([])

        def finish(tx: Transaction) -> None:
            session_shared_by_runs.write_rate_limits_of_source_apis(tx, self._api_limits)
            tx.batches.mark_late_operations_overdue(at=now)
            _warn_of_overdue_acknowledgements(report.messages, tx.batches.overdue_batches())
            known = tx.open_record_counts.streams_with_rejected_or_waiting() if is_of_all else set[str]()
            unknown = sorted(known - project.stream_names)
            report.open = tx.open_record_counts.by_stream([*streams, *unknown], writers)
            _warn_of_unknown_streams(report, unknown)
            for name in (name for name, counts in report.open.items() if counts.total):
                report.tally(name)  # also for a stream that was not reached
            for counts, why in (
                (report.postponed, "since an operation on their records had to end first"),
                (report.awaiting, "since the partner has not acknowledged earlier ones yet"),
            ):
                for name, number in (+counts).items():
                    report.messages.add_note(name, f"newer versions left to the next run, {why}: {number:,}")
            tx.runs.finish(
                report.run,
                RunResult(
                    report.status,
                    requests=report.counters.requests,
                    throttled=report.counters.throttled,
                    tally=report.accounts(),
                    messages=report.messages,
                    duration_ms=report.duration_ms,
                    timings=self._timings.as_json() | {"apis": report.apis()},
                ),
                at=now,
            )
            if self._entry is not None:
                tx.audit_log.put(_audit_entry_at_end(self._entry, report))
            stopped = self._interrupt.is_set() and not report.completed
            is_continued = stopped or any(
                isinstance(each, StateError) for each in report.messages.exceptions_of_this_run
            )
            due_run = self._attempt.due_run
            if due_run and not is_continued:
                note = f"open: {report.all_open}" if report.status == "degraded" else None
                tx.scheduled_runs.finish(due_run, report.status, report.run, note, at=now)
                notice = PendingNotice(
                    report.run, due_run.job, due_run.due
                )  # until they were told: this may be killed now
                tx.scheduled_runs.add_pending_notice(notice, self._session.project.notification_recipient_kinds)

        self._session.state.run_transaction(finish)
        self._session.state.raise_if_file_was_replaced()


def _audit_entry_at_end(entry: AuditEntry, report: Report) -> AuditEntry:
    """Return what the audit log says of a run of a person at its end."""
    counts = {"delivered": sum(tally.delivered for tally in report.tallies.values()), "open": report.all_open.total}
    ended = structs.replace(
        entry, after={**entry.after, "status": report.status, "requests": report.counters.requests, **counts}
    )
    if report.completed:
        return ended
    return ended.with_failure(
        next(iter(report.errors.values()), InternalError("the tally does not balance", code="tally_unbalanced"))
    )


_SHOWN_FILES = 3  # files of one stream


def _warn_of_unknown_streams(report: Report, unknown: Sequence[str]) -> None:
    for name in unknown:
        report.messages.add_warning(
            name,
            f"the config no longer has this stream, and nothing works on its records ({report.open[name]}): give it its"
            f" name again, or give them up with 'crossdock records drop {name}'",
            code="stream_missing",
        )


def _warn_of_overdue_acknowledgements(messages: RunMessages, overdue: Sequence[OverdueBatch]) -> None:
    """Add a warning for each stream, with the first files and what to do."""
    for stream, group in groupby(sorted(overdue, key=lambda each: each.stream), lambda each: each.stream):
        files = list(group)
        shown = ", ".join(f"{file.name} by {instant_text(file.due_at)}" for file in files[:_SHOWN_FILES])
        more = f" and {len(files) - _SHOWN_FILES:,} more files" if len(files) > _SHOWN_FILES else ""
        records = sum(file.records for file in files)
        messages.add_warning(
            stream,
            f"{files[0].target} has not acknowledged {shown}{more}: {records:,} overdue; ask whether it has them, then"
            f" run 'crossdock records resolve {stream}' with --delivered or --not-delivered",
            code="files_unacknowledged",
        )
