"""Compares the sources, the state and the live platform."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack

from crossdock.config.project.project import Project
from crossdock.errors import ConfigError
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.reading.sources.run_context import SourceContext, create_run_folder
from crossdock.runs.difference_and_correction_types import is_compared
from crossdock.runs.imported_file_log import NoIntake
from crossdock.runs.plan_result import PlanListener
from crossdock.runs.platform_source.live_records_for_comparisons import LiveRecords
from crossdock.runs.reconciliation import reconciliation_result
from crossdock.runs.reconciliation.platform_comparison import Chosen, PlatformComparison
from crossdock.runs.reconciliation.reconciliation_result import Reconciliation, Sample
from crossdock.runs.reconciliation.source_comparison import SourceComparison
from crossdock.runs.records_still_referenced_after_undo import ListedReferences
from crossdock.runs.resource_control_totals import ResourceTotals
from crossdock.runs.session_shared_by_runs import Session
from crossdock.values.run_progress_and_messages import Progress


def select_streams_writing_to_platform(project: Project, names: Iterable[str]) -> list[str]:
    """Return those of the streams that write resources of the platform, so that their records can be compared."""
    found = [name for name in names if is_compared(project.scope_by_stream[name])]
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
                store_bucket(session, live)
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
    return SourceContext(session.clock, progress, NoIntake(), work, work, spool, at_end=stack, buckets=buckets)


def store_bucket(session: Session, live: LiveRecords) -> None:
    with session.state.begin() as tx:
        tx.buckets.put(PLATFORM, live.bucket_state)
