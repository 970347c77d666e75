"""A plan: what a sync would do now. No call to the platform, and nothing is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import datetime

from crossdock.clock import Clock
from crossdock.delivery.in_doubt_rules import rule_for
from crossdock.delivery.operations import Kind, Operation
from crossdock.errors import CrossdockError
from crossdock.pacing.bucket_store import BucketState
from crossdock.pacing.forecast import Forecast, forecast
from crossdock.planning import update_limits
from crossdock.planning.planned_chunk import PlannedChunk
from crossdock.planning.planner import Planner
from crossdock.planning.references import References
from crossdock.planning.removals import Removals, verb
from crossdock.platform.platform_target import PlatformTarget
from crossdock.progress import Progress
from crossdock.project.connector_exceptions import FailureCount
from crossdock.project.connector_instances import BoundStream
from crossdock.project.project import Project
from crossdock.runs.intake_logs import PlanIntake
from crossdock.runs.stream_input import StreamInput
from crossdock.runs.temporary_folder import run_folder
from crossdock.sources.source_context import SourceContext
from crossdock.state import DeadLetter, Intent, Scope, State, WaitingRecord
from crossdock.tally import Tally, Term

_AT_ONCE = 1000  # records planned together: nothing is written, so no transaction waits for them

_TERMS: Mapping[Kind, Term] = {"create": "created", "update": "updated", "delete": "deleted"}


@dataclass(frozen=True, slots=True)
class PlanListener:
    """Receives the decisions of a plan, one call each."""

    operation: Callable[[Operation], None]
    refused: Callable[[DeadLetter], None]
    waiting: Callable[[WaitingRecord], None]
    resend: Callable[[Intent], None]
    in_doubt: Callable[[Intent], None]
    withheld: Callable[[Operation], None]


@dataclass(slots=True)
class Planned:
    """What a plan found.

    Attributes:
        tallies: By stream, as they would be if everything planned were delivered.
        operations: By kind, ``archive`` apart; ``resend`` for what an earlier run left unsettled.
        errors: Why a stream could not be read, or its records not be removed, by its name.
        unread: How many streams could not be read.
        sources: A hash of what each stream read, by its name, if requested.
        forecast: What the plan needs of the allowance.
    """

    forecast: Forecast

    tallies: dict[str, Tally] = field(default_factory=dict)
    errors: dict[str, CrossdockError] = field(default_factory=dict)
    operations: Counter[str] = field(default_factory=Counter)
    unread: int = 0
    sources: dict[str, str] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        return max((error.exit_code for error in self.errors.values()), default=0)


def plan(
    project: Project,
    selection: list[str],
    listener: PlanListener,
    *,
    clock: Clock,
    progress: Progress,
    summed: bool = False,
) -> Planned:
    """Pass to *listener* what `crossdock.runs.runner.sync` would do.

    Raises:
        CrossdockError: If the state cannot be read. Errors of sources are in the result.
    """
    with closing(project.open_state(read_only=True)) as state:
        return look_ahead(project, state, selection, listener, clock, progress, summed=summed)


def look_ahead(
    project: Project,
    state: State,
    selection: list[str],
    listener: PlanListener,
    clock: Clock,
    progress: Progress,
    *,
    summed: bool = False,
) -> Planned:
    """Plan on an open state, which is only read; with *summed*, hash the sources."""
    with ExitStack() as stack:
        work = run_folder(stack, None)
        context = SourceContext(clock, progress, PlanIntake(state), work / "spool", work, project.spool)
        streams = project.bind(project.selected(selection), target=PlatformTarget.name, run=context)
        preview = _Preview(project, state, listener, clock.now())
        for bound in streams:
            preview.stream(bound, summed=summed)
        return preview.finished()


class _Preview:
    def __init__(self, project: Project, state: State, listener: PlanListener, now: datetime) -> None:
        self._state, self._listener, self._now, self._rate = state, listener, now, project.platform.rate
        self._known: set[tuple[Scope, int]] = set()
        self._target = PlatformTarget(project.platform)
        self._references = References(self._target.name, self._known)
        with state.look() as tx:
            self._unsettled = tx.intents.unsettled()
            self._earlier = tx.buckets.get(self._target.name)
        self.result = Planned(self._forecast(0))
        for intent in self._unsettled:
            if intent.first_sent_at and rule_for(intent, project.platform, now) == "park":
                listener.in_doubt(intent)
            else:
                self._remember("resend", intent.scope, intent.identity.key_hash)
                listener.resend(intent)

    def finished(self) -> Planned:
        self.result.forecast = self._forecast(self.result.operations.total())
        return self.result

    def _forecast(self, requests: int) -> Forecast:
        now, earlier = self._now.timestamp(), self._earlier
        estimate = self._rate.estimate(earlier.estimate if earlier else None)
        return forecast(earlier.carried_over(now, estimate) if earlier else BucketState.of(estimate), requests, now)

    def stream(self, bound: BoundStream, *, summed: bool) -> None:
        tally = self.result.tallies.setdefault(bound.name, Tally())
        stream_input = StreamInput(bound, self._state, tally, 0, digested=summed)
        try:
            unsettled = [intent for intent in self._unsettled if intent.scope == bound.scope]
            stream_input.read(unsettled, bound.context.run.progress.advance)
        except CrossdockError as error:
            self.result.errors[bound.name] = error
            self.result.unread += 1
            return
        if summed:
            self.result.sources[bound.name] = stream_input.digest
        if self._is_refused(bound, stream_input):
            return
        planner, reads = (
            self._planner(bound, tally, stream_input.removals, stream_input.failure_count()),
            stream_input.records(),
        )
        chunks: Iterator[PlannedChunk] | None = planner.decide(reads)
        while chunks is not None:
            for decided in chunks:
                self._pass_on(decided)
            chunks = planner.next_round()
        planner.pass_over(reads)
        planner.finish()
        if planner.stopped is not None:
            self.result.errors[bound.name] = planner.stopped
            return
        if stream_input.removals.refusal is not None:
            self.result.errors[bound.name] = stream_input.removals.refusal
            self._show_withheld(bound, stream_input.removals)
        elif missing := bound.context.run.failures.get(bound.name):
            self.result.errors[bound.name] = missing

    def _is_refused(self, bound: BoundStream, stream_input: StreamInput) -> bool:
        """True if the stream would update too many records: these are listed as withheld, and nothing is planned."""
        found = stream_input.update_candidates()
        try:
            withheld = update_limits.withheld(self._state, bound, self._target, found, self._known, at=self._now)
            if withheld is None:
                return False
            self.result.errors[bound.name] = withheld.refusal
            for operation in update_limits.updates(self._state, bound, self._target, found, self._known):
                self._listener.withheld(operation)
        except CrossdockError as error:
            self.result.errors[bound.name] = error
        stream_input.refuse(None)
        return True

    def _planner(self, bound: BoundStream, tally: Tally, gone: Removals, failing: FailureCount) -> Planner:
        return Planner(
            bound,
            self._state,
            self._references,
            tally,
            run_id=0,
            target=self._target,
            gone=gone,
            failing=failing,
            at_once=_AT_ONCE,
        )

    def _show_withheld(self, bound: BoundStream, gone: Removals) -> None:
        if gone.withheld is None:
            return
        held = replace(gone, removed=tuple(gone.withheld.key_hashes))
        planner = self._planner(bound, Tally(), held, FailureCount(bound, None))
        for decided in planner.next_round() or ():
            for operation in decided.operations:
                self._listener.withheld(operation)

    def _pass_on(self, decided: PlannedChunk) -> None:
        for operation in decided.operations:
            self._remember(verb(operation), operation.scope, operation.identity.key_hash)
            if operation.step != "open":
                self.result.tallies[decided.bound.name].count(_TERMS[operation.kind])
            self._listener.operation(operation)
        for dead_letter in decided.dead_letters:
            self._listener.refused(dead_letter)
        for record in decided.waits:
            self._listener.waiting(record)

    def _remember(self, kind: str, scope: Scope, key_hash: int) -> None:
        self.result.operations[kind] += 1
        if kind != "delete":
            self._known.add((scope, key_hash))
