"""Compares the sources, the state and the platform, and repairs what differs by a plan that is approved and applied."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.config.project.project import Project
from crossdock.errors import ConfigError
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.reading.sources.run_context import SourceContext, create_run_folder
from crossdock.runs.active_run import REPAIR, ActiveRun
from crossdock.runs.imported_file_log import EmptyIntakeLog
from crossdock.runs.plan_and_apply import DecisionHash, PlanFile, plan_outdated_error, raise_if_input_changed
from crossdock.runs.plan_result import PlanListener
from crossdock.runs.planning import undo_in_progress
from crossdock.runs.platform_and_state_comparison import is_compared_by_reconciliation
from crossdock.runs.platform_source.live_records_for_comparisons import LiveRecords
from crossdock.runs.reconciliation import reconciliation_result
from crossdock.runs.reconciliation.reconciliation_result import LISTED_AT_MOST, Reconciliation, Sample
from crossdock.runs.reconciliation.source_and_platform_comparison import (
    Chosen,
    FullInputIgnoringEarlierRuns,
    PlatformComparison,
    SourceComparison,
    wanted_and_corrected_bindings,
)
from crossdock.runs.resource_control_totals import ResourceTotals
from crossdock.runs.run_report import Report
from crossdock.runs.run_start_and_stop_requests import RunRequest
from crossdock.runs.session_shared_by_runs import Session, open_session
from crossdock.runs.still_referenced_records import ListedReferences
from crossdock.state import MigrationPart, Transaction
from crossdock.values.clock import Clock
from crossdock.values.run_progress_and_messages import Progress, SilentProgress
from crossdock.values.run_states_and_tally import Tally
from crossdock.writing.delivery import operator_decisions


def select_streams_writing_to_platform(project: Project, names: Iterable[str]) -> list[str]:
    """Return those of the streams that write resources of the platform, so that their records can be compared."""
    found = [name for name in names if is_compared_by_reconciliation(project.scope_by_stream[name])]
    if not found:
        raise ConfigError(
            "none of these streams writes a resource of the platform, so there is nothing to compare",
            code="choice_unsuitable",
        )
    return sorted(found)


def reconcile(
    session: Session,
    names: Iterable[str],
    progress: Progress,
    *,
    decisions: PlanListener,
    sample: Sample | None = None,
    remove_extra: bool = False,
) -> Reconciliation:
    """Read the platform, then the sources of *names*. Only the allowance is stored. Errors of sources are returned.

    Args:
        decisions: Receives what a repair would do.
        sample: Look up only some records of each resource. Records that only the platform has are not found then.
        remove_extra: Plan to delete records that only the platform has, with an external id of this state.
    """
    project, state = session.project, session.state
    streams = select_streams_writing_to_platform(project, names)
    found = Reconciliation(session.clock.now(), sample)
    run = new_platform_source_context(session, progress)
    with run.at_end:
        with state.begin_read_only() as tx:
            found.known = Counter(tx.bindings.counts_by_resource())
        comparison = PlatformComparison(state, {project.scope_by_stream[name] for name in streams}, run, found)
        chosen: Chosen | None = None
        references = ListedReferences()
        with LiveRecords(project.platform, run) as live:
            try:
                if sample is not None:
                    chosen = comparison.compare_sample_and_return_keys(live, sample)
                elif remove_extra:
                    comparison.compare_all_records(
                        live, lambda resource, page, _: references.add_unrecorded_references(resource, page, {})
                    )
                else:
                    comparison.compare_all_records(live)
            finally:
                found.requests = live.request_count
                store_platform_rate_limit(session, live)
        sources = SourceComparison(state, project, streams, comparison, found, chosen, decisions)
        sources.run(run, references if remove_extra else None)
        for resource, live_totals in comparison.totals.items():
            of_source = sources.totals.get(resource, ResourceTotals())
            found.totals[resource] = (of_source, *live_totals)
            if sample is None:
                readable = of_source.plus(sources.unavailable[resource])
                with state.begin_read_only() as tx:
                    found.differing_totals[resource] = reconciliation_result.differing_totals(
                        tx, readable, live_totals[1]
                    )
    return found


def new_platform_source_context(session: Session, progress: Progress) -> SourceContext:
    """Make a context to read the platform in. Its requests take the tokens of deliveries."""
    stack = ExitStack()
    work = create_run_folder(stack, None)
    spool, buckets = session.project.spool, session.source_buckets
    return SourceContext(session.clock, progress, EmptyIntakeLog(), work, work, spool, at_end=stack, buckets=buckets)


def store_platform_rate_limit(session: Session, live: LiveRecords) -> None:
    with session.state.begin() as tx:
        tx.buckets.put(PLATFORM, live.bucket_state)


_ATTEMPT = RunRequest(command="apply: repair", action="apply")


def reconcile_and_hash_repair(
    session: Session, names: Iterable[str], progress: Progress, *, sample: Sample | None, remove_extra: bool
) -> tuple[Reconciliation, PlanFile]:
    """Reconcile, and hash what a repair would do."""
    streams = select_streams_writing_to_platform(session.project, names)
    digest = DecisionHash.wrapping_listener(PlanListener.ignoring())
    decisions = digest.as_listener()
    found = reconcile(session, streams, progress, decisions=decisions, sample=sample, remove_extra=remove_extra)
    for (scope, _), each in sorted(found.corrections.items(), key=lambda item: (str(item[0][0]), item[0][1])):
        holds = None if each.binding is None else [each.binding.target_id, each.binding.payload]
        digest.hash_decision("correct", scope.resource, scope.namespace, each.key, holds)
    for intent, outcome in found.settled:
        digest.hash_decision("settle", intent.idempotency_key, *outcome)
    pin = session.project.pinned_tenant
    return found, PlanFile(
        kind="repair",
        remove_extra=remove_extra,
        base_url=pin.base_url,
        tenant=pin.tenant,
        selection=tuple(streams),
        operations=dict(found.operations),
        decisions=digest.sum.hexdigest(),
        sources=found.sources,
    )


def raise_if_sample_or_too_many_to_repair(found: Reconciliation) -> None:
    if found.sample is not None:
        raise ConfigError("a sample cannot be repaired", hint="reconcile without --sample", code="options_conflict")
    if len(found.corrections) > LISTED_AT_MOST:
        message = f"{len(found.corrections):,} records differ, more than a plan repairs ({LISTED_AT_MOST:,})"
        raise ConfigError(
            message,
            hint="check that the state is that of this platform, and reconcile one stream at a time",
            code="repair_too_large",
        )


def apply_repair_if_unchanged(
    project: Project, approved: PlanFile, *, clock: Clock, progress: Progress, interrupt: threading.Event
) -> Report:
    """Apply *approved* if a new reconciliation finds the same, else raise RefusedError. The report has later errors."""
    if not {*approved.selection} <= project.scope_by_stream.keys():
        raise plan_outdated_error("crossdock reconcile")
    with open_session(project, clock, attempt=_ATTEMPT) as session:
        with session.state.begin_read_only() as tx:
            undo_in_progress.raise_if_undo_in_progress(tx)
        names = {*approved.selection}
        found, again = reconcile_and_hash_repair(
            session, names, SilentProgress(), sample=None, remove_extra=approved.remove_extra
        )
        for error in found.errors.values():
            raise error
        if again != approved:
            raise plan_outdated_error("crossdock reconcile")
        part = migration_part_of_repair(session, names)
        run = ActiveRun(session, progress, interrupt, attempt=_ATTEMPT, part=part, purpose=REPAIR)

        def source(bound: BoundStream, tally: Tally, run_id: int) -> FullInputIgnoringEarlierRuns:
            return _ApprovedInput(bound, session, tally, run_id, found, approved.sources[bound.name])

        with run.recording_start_and_end(names):
            run.records.record_begin_of_reading()
            session.state.run_transaction(_writer_of_corrections_to_state(found, run.report.run, clock))
            run.settle_then_deliver_streams(run.streams, source)
        return run.report


def migration_part_of_repair(session: Session, names: set[str]) -> MigrationPart | None:
    """Return the part of a repair of the streams *names* in the open migration that loads them, or None."""
    with session.state.begin_read_only() as tx:
        current = tx.migrations.current()
    if current is None or not names <= session.project.names_of_migrated_streams:
        return None
    return MigrationPart(current.id, "repair")


class _ApprovedInput(FullInputIgnoringEarlierRuns):
    def __init__(
        self, bound: BoundStream, session: Session, tally: Tally, run_id: int, found: Reconciliation, digest: str
    ) -> None:
        super().__init__(bound, session.state, tally, run_id, wanted=wanted_and_corrected_bindings(found, bound.scope))
        self._approved = digest
        self._deletes = [each for each in found.removals if each.identity.stream == bound.name]

    def raise_if_input_unexpected(self) -> None:
        raise_if_input_changed(self._bound, self.digest, self._approved)
        self.prepared_operations = [*self.prepared_operations, *self._deletes]


def _writer_of_corrections_to_state(found: Reconciliation, run_id: int, clock: Clock) -> Callable[[Transaction], None]:
    def write(tx: Transaction) -> None:
        at = clock.now()
        for (scope, key_hash), each in found.corrections.items():
            if each.binding is None:
                tx.bindings.mark_deleted(scope, [key_hash], at=at)
            else:
                tx.bindings.put(scope, [each.binding], run_id=run_id, at=at)
        for intent, (outcome, target_id) in found.settled:
            if outcome == "delivered":
                operator_decisions.settle_intents_as_delivered(tx, [intent], target_id, at=at)
            elif outcome == "not delivered":
                operator_decisions.settle_intents_as_not_delivered(tx, [intent], at=at)

    return write
