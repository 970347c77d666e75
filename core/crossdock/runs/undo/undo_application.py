"""Executes an approved undo, and completes an interrupted one."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.config.project.project import Project
from crossdock.delta.changed_record_reading import KeyedRecord
from crossdock.errors import ConfigError, add_code_to_first_line
from crossdock.reading.sources.stream_input_report import comma_separated_first_names
from crossdock.runs.active_run import UNDO, ActiveRun
from crossdock.runs.audit_log import AuditedChange, change_state_exclusively_with_audit
from crossdock.runs.plan_and_apply import PlanFile, plan_outdated_error
from crossdock.runs.planning import undo_in_progress
from crossdock.runs.planning.mapping_to_drafts import AuthorCodeFailureCounter
from crossdock.runs.planning.removals import Removals
from crossdock.runs.planning.update_limits import UpdateCandidates, WithheldUpdates
from crossdock.runs.planning.waiting_records import IdleWaits
from crossdock.runs.run_report import Report
from crossdock.runs.run_start_and_stop_requests import RunRequest
from crossdock.runs.session_shared_by_runs import Session, open_session
from crossdock.runs.undo.undo_decisions import UndoneRecord, undo_operations_of_records
from crossdock.runs.undo.undo_plan import (
    UndoFacts,
    migration_runs_to_undo,
    plan_undo_from_facts,
    raise_if_streams_write_elsewhere,
    run_to_undo,
)
from crossdock.state import BegunUndo, Intent, MigrationPart, Transaction
from crossdock.state.tables.pending_approvals_and_begun_undos import packed_key_hashes
from crossdock.values.clock import Clock
from crossdock.values.run_progress_and_messages import Progress
from crossdock.values.run_states_and_tally import Tally
from crossdock.writing.delivery.in_doubt_and_refusal_rules import rule_for_sent_intent
from crossdock.writing.delivery.operations_and_intents import Operation


def apply_undo_if_unchanged(
    project: Project, approved: PlanFile, *, clock: Clock, progress: Progress, interrupt: threading.Event
) -> Report:
    """Apply *approved* if a new plan is the same, or continue it if it has begun.

    A record that another user changes meanwhile is left alone and listed as rejected. After the undo of a migration its
    sources are read from their beginning again. After the undo of a run its files are not read again.
    """
    with open_session(project, clock, attempt=RunRequest(command="apply: undo", action="apply")) as session:
        with session.state.begin_read_only() as tx:
            begun = tx.begun_undos.listed()
            if begun and begun[0].plan != approved.model_dump(mode="json"):
                undo_in_progress.raise_if_undo_in_progress(tx)
        if begun:
            return _Application(session, approved, progress, interrupt).resume(begun)
        return _Application(session, approved, progress, interrupt).begin()


def settle_and_complete_begun_undo(
    project: Project, *, clock: Clock, progress: Progress, interrupt: threading.Event
) -> Report:
    """Settle the operations of earlier runs, and complete a begun undo. No source is read."""
    attempt = RunRequest(command="apply --resume", action="apply --resume")
    with open_session(project, clock, attempt=attempt) as session:
        with session.state.begin_read_only() as tx:
            begun = tx.begun_undos.listed()
            left = {each.identity.stream for each in tx.intents.unsettled()}
        if begun:
            approved = PlanFile.model_validate(begun[0].plan)
            return _Application(session, approved, progress, interrupt).resume(begun)
        run = ActiveRun(session, progress, interrupt, attempt=attempt)
        return run.execute(set(), reads=False, count_open_records_of=left & project.scope_by_stream.keys())


class AbandonedUndo(Struct, frozen=True):
    """An abandoned undo. *unanswered* operations may have been executed. The next run settles them."""

    streams: list[str]
    unsent: int
    unanswered: int


def give_up_begun_undo(project: Project, *, clock: Clock) -> AbandonedUndo:
    """Abandon the begun undo: what it has done stays, and its streams are synced again."""

    def end(tx: Transaction, change: AuditedChange) -> AbandonedUndo:
        begun = tx.begun_undos.listed()
        if not begun:
            raise ConfigError("no undo has begun", hint="'crossdock undo RUN -o PLAN' plans one", code="undo_missing")
        streams = [each.stream for each in begun]
        left = [each for each in tx.intents.unsettled() if each.identity.stream in streams]
        unsent = [each for each in left if each.status == "pending"]
        for each in unsent:
            each.status = "dropped"
        tx.intents.write_outcomes(unsent, at=clock.now())
        _end_undo_and_release_streams(tx, PlanFile.model_validate(begun[0].plan), streams)
        ended = AbandonedUndo(streams, len(unsent), len(left) - len(unsent))
        change.store_audit_entry(
            tx, before={"streams": streams}, after={"unsent": ended.unsent, "unanswered": ended.unanswered}
        )
        return ended

    return change_state_exclusively_with_audit(project, "apply --give-up", "undo", end, clock=clock)


class _Application:
    def __init__(self, session: Session, approved: PlanFile, progress: Progress, interrupt: threading.Event) -> None:
        self._session, self._approved, self._progress = session, approved, progress
        run, wave = approved.run, approved.wave
        self._undone = migration_runs_to_undo(session, wave) if run is None else run_to_undo(session, run)
        migration = self._undone.migration_id
        part = None if migration is None else MigrationPart(migration, "undo", wave)
        attempt = RunRequest(command=f"apply: undo of {self._undone.title}", action="apply")
        self._run = ActiveRun(session, progress, interrupt, attempt=attempt, part=part, purpose=UNDO)

    def begin(self) -> Report:
        session, keys = self._session, defaultdict[str, list[int]](list)

        def take(each: UndoneRecord) -> None:
            if each.operation is not None:
                keys[each.stream].append(each.operation.identity.key_hash)

        undo = UndoFacts(session, self._undone, self._progress)
        found, again = plan_undo_from_facts(undo, take, self._progress)
        if again != self._approved:
            raise plan_outdated_error("crossdock undo")
        with self._run.recording_start_and_end(set(found.streams)):
            plan, at = self._approved.model_dump(mode="json"), session.clock.now()
            run_id = self._run.report.run
            begun = [BegunUndo(name, run_id, at, plan, packed_key_hashes(keys[name])) for name in found.streams]
            session.state.run_transaction(lambda tx: tx.begun_undos.begin(begun))
            self._deliver(undo, Counter({name: len(each) for name, each in keys.items()}))
        return self._end_if_complete(found.streams)

    def resume(self, begun: Sequence[BegunUndo]) -> Report:
        names = [each.stream for each in begun]
        with self._session.state.begin_read_only() as tx:
            delivered = tx.delivered_history.streams_and_scopes_of_runs(sorted(self._undone.runs))
        raise_if_streams_write_elsewhere(
            self._session, [each for each in delivered if each[0] in names], self._undone.title
        )
        with self._run.recording_start_and_end(set(names)):
            self._run.records.record_begin_of_reading()
            self._run.settle_then_deliver_streams((), _empty_undo_input)
            if not self._run.report.errors:
                covers = {each.stream: each.covers_record for each in begun}
                undo = UndoFacts(self._session, self._undone, self._progress, covers)
                expected: Counter[str] = Counter()

                def count(each: UndoneRecord) -> None:
                    expected[each.stream] += each.operation is not None

                plan_undo_from_facts(undo, count, self._progress)
                self._deliver(undo, expected)
        return self._end_if_complete(names)

    def _deliver(self, undo: UndoFacts, expected: Mapping[str, int]) -> None:
        run = self._run

        def source(bound: BoundStream, _tally: Tally, _run_id: int) -> UndoInput:
            if any(each.records["rejected"] for each in run.report.tallies.values()):
                # A record whose operation was refused is still there, so what it refers to must not be deleted.
                undo.find_references(beginning=bound.name)
            return UndoInput(bound, undo_operations_of_records(undo.decide_about_records(bound)), expected[bound.name])

        run.records.record_begin_of_reading()
        run.settle_then_deliver_streams(run.streams[::-1], source)

    def _end_if_complete(self, names: Sequence[str]) -> Report:
        """End the undo if it has done everything. A person decides about operations in doubt."""
        with self._session.state.begin_read_only() as tx:
            left = [each for each in tx.intents.unsettled() if each.identity.stream in names]
        if self._run.report.completed and all(self._must_be_settled_by_person(each) for each in left):
            self._note_files_to_read_again(names)
            self._session.state.run_transaction(lambda tx: _end_undo_and_release_streams(tx, self._approved, names))
        else:
            text = f"the undo has not ended, and its streams are not synced; {undo_in_progress.ADVICE}"
            self._progress.warn(add_code_to_first_line(text, "undo_in_progress"))
        return self._run.report

    def _note_files_to_read_again(self, names: Sequence[str]) -> None:
        """Name the files that the next load of a migration must find again: their records are not there any more."""
        if self._approved.run is not None:
            return
        with self._session.state.begin_read_only() as tx:
            known = {name: [file.name for file in tx.intake.known_files(name)] for name in names}
        for name, files in known.items():
            if files:
                shown = comma_separated_first_names(list(dict.fromkeys(files)))
                self._run.note(name, f"the next load reads {shown} again: move back what was archived or removed first")

    def _must_be_settled_by_person(self, intent: Intent) -> bool:
        target = self._session.targets[intent.scope.target]
        return (
            intent.first_sent_at is not None
            and rule_for_sent_intent(intent, target, self._session.clock.now()) == "park"
        )


def _empty_undo_input(bound: BoundStream, _tally: Tally, _run_id: int) -> UndoInput:
    return UndoInput(bound, (), 0)


def _end_undo_and_release_streams(tx: Transaction, plan: PlanFile, names: Iterable[str]) -> None:
    """Let the streams sync again. Those of a migration are read from their beginning, so that a load is complete."""
    tx.begun_undos.end()
    undone = None if plan.run is None else tx.runs.get(plan.run)
    for name in names:
        if undone is None:
            tx.intake.forget_files_of_stream(name)
            tx.cursors.forget(name)
        else:
            tx.intake.mark_files_of_run_undone(name, undone.started_at, undone.finished_at)


class UndoInput:
    """The operations of an undo for one stream, as its input. They may be created lazily. No source is read."""

    finds_changes_without_webhooks, requested_key_hashes, has_more, formerly_waiting_key_hashes, idle_waits = (
        False,
        None,
        False,
        frozenset[int](),
        IdleWaits(),
    )
    postponed_as_unsettled_count = 0
    removals = Removals()

    def __init__(self, bound: BoundStream, operations: Iterable[Operation], expected: int) -> None:
        self._bound, self.prepared_operations, self.expected_record_count = bound, operations, expected

    def close(self) -> None:
        """Nothing is open."""

    def read_next_part(self, unsettled: list[Intent], advance: Callable[[int], None]) -> None:
        """Nothing is read."""

    def give_up_after_failed_read(self) -> None:
        """Nothing was read."""

    def new_failure_counter(self) -> AuthorCodeFailureCounter:
        """Return no failures: nothing is mapped."""
        return AuthorCodeFailureCounter(self._bound, None)

    def records(self) -> Iterator[KeyedRecord]:
        return iter(())

    def updates_for_limit_check(self) -> UpdateCandidates:
        """Return no candidates: a person has seen these operations."""
        return UpdateCandidates(0, 0, self.records, "")

    def withhold_all_records(self, withheld: WithheldUpdates | None) -> None:
        """Nothing needs an approval."""

    def store_completion(self) -> None:
        """Do nothing: no source was read."""
