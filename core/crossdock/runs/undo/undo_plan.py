"""Plans the undo of a migration or a run; `crossdock.runs.undo.undo_application` executes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.errors import ConfigError, RefusedError
from crossdock.runs.plan_and_apply import DecisionHash, PlanFile
from crossdock.runs.plan_result import PlanListener
from crossdock.runs.planning import undo_in_progress
from crossdock.runs.records_still_referenced_after_undo import StillReferenced
from crossdock.runs.session_shared_by_runs import Session
from crossdock.runs.undo.changes_by_others import ChangesByOthers
from crossdock.runs.undo.streams_with_records_to_undo import Covers, UndoneStreams
from crossdock.runs.undo.undo_decisions import Undoing, UndoneRecord
from crossdock.state import Migration, Scope, Transaction
from crossdock.values.run_progress_and_messages import Progress
from crossdock.values.run_states_and_tally import Tally
from crossdock.values.texts_of_numbers_and_times import count_with_noun


class UndoneRuns(Struct, frozen=True):
    """The runs that are undone. *title* names them in messages, and *migration_id* is None for a single run."""

    title: str
    runs: frozenset[int]
    migration_id: int | None = None
    wave: str | None = None


class UndoPlan(Struct):
    """The decisions of an undo. *streams* are in the order of the undo: referring records first."""

    undone: UndoneRuns
    streams: list[str] = field(default_factory=list)
    counts: Counter[tuple[str, Undoing]] = field(default_factory=Counter)
    kept: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def operation_counts(self) -> Counter[str]:
        kinds = {"delete": "delete", "restore": "update"}
        found: Counter[str] = Counter()
        for (_, undoing), number in self.counts.items():
            if undoing in kinds:
                found[kinds[undoing]] += number
        return found

    @property
    def kept_count(self) -> int:
        return sum(self.kept.values())


def run_to_undo(session: Session, run_id: int) -> UndoneRuns:
    with session.state.begin_read_only() as tx:
        if tx.runs.get(run_id) is None:
            raise ConfigError(f"there is no run {run_id}", hint="'crossdock runs' lists them", code="run_unknown")
    return UndoneRuns(f"run {run_id}", frozenset({run_id}))


def migration_runs_to_undo(session: Session, wave: str | None = None) -> UndoneRuns:
    """Return all runs of the open migration, or those that have loaded one of its waves."""
    with session.state.begin_read_only() as tx:
        current, last = tx.migrations.current(), tx.migrations.last()
        if current is not None and wave is not None:
            return _wave_runs_to_undo(tx, current, wave)
        if current is not None:
            runs = frozenset(each.run_id for each in tx.migrations.runs(current.id))
            return UndoneRuns(f"migration {current.name}", runs, current.id)
    if last is None:
        raise RefusedError(
            "no migration has begun", hint="'crossdock migrate load' begins one", code="migration_missing"
        )
    message = f"migration {last.name} was signed off by {last.signed_off_by}: its history is not kept any more"
    raise RefusedError(
        message, hint="'crossdock undo RUN' undoes a run as far as the state still knows it", code="undo_impossible"
    )


def _wave_runs_to_undo(tx: Transaction, migration: Migration, wave: str) -> UndoneRuns:
    if runs := runs_of_wave(tx, migration, wave):
        return UndoneRuns(f"wave {wave} of migration {migration.name}", runs, migration.id, wave)
    message = f"the migration {migration.name} has loaded no wave {wave}"
    raise RefusedError(message, hint="'crossdock migrate status' lists the waves", code="undo_impossible")


def runs_of_wave(tx: Transaction, migration: Migration, wave: str) -> frozenset[int]:
    """Return the runs that have loaded *wave*, or undone it alone, since the whole migration was undone."""
    found = set[int]()
    for run in tx.migrations.runs(migration.id):
        if run.kind == "undo" and run.wave is None:
            found.clear()
        elif run.wave == wave:
            found.add(run.run_id)
    return frozenset(found)


def plan(
    session: Session, undone: UndoneRuns, listener: Callable[[UndoneRecord], None], progress: Progress
) -> tuple[UndoPlan, PlanFile]:
    """Decide about every record, and hash the decisions. The platform is read, and nothing is written."""
    return plan_from_facts(UndoFacts(session, undone, progress), listener, progress)


class UndoFacts:
    """What is read of the platform and the state before decisions. *covers* says which records a begun undo covers."""

    def __init__(
        self, session: Session, undone: UndoneRuns, progress: Progress, covers: Mapping[str, Covers] | None = None
    ) -> None:
        self.session, self.undone = session, undone
        names = _undoable_streams_of_runs(session, undone) if covers is None else sorted(covers)
        self.streams = UndoneStreams(session, names, undone.runs, covers or {})
        self._others = ChangesByOthers(self.streams)
        self._others.read(progress)
        self.find_references()

    def find_references(self, beginning: str | None = None) -> None:
        """Find records that must stay because others refer to them. Those of streams before *beginning* stay too."""
        session = self.session
        self._references = StillReferenced(session.state, session.targets, self._others.references)
        with self.streams.bind() as streams:
            names = [each.name for each in streams]
            left = streams[names.index(beginning) :] if beginning is not None else streams
            self._references.find_references_after_undo(left, self._others.undo_operations_ignoring_references)

    def decide_about_records(self, bound: BoundStream) -> Iterator[UndoneRecord]:
        def referred(ids: Sequence[str]) -> Mapping[str, str]:
            return self._references.referring_resource_by_id(bound.scope, ids)

        return self.streams.decide_about_records(bound, self._others.changed_ids, referred)


def plan_from_facts(
    undo: UndoFacts, listener: Callable[[UndoneRecord], None], progress: Progress
) -> tuple[UndoPlan, PlanFile]:
    found, digest = UndoPlan(undo.undone), DecisionHash.wrapping_listener(PlanListener.ignoring())
    with undo.streams.bind() as streams:
        for bound in streams:
            found.streams.append(bound.name)
            progress.begin(f"planning {bound.name}", None)
            for each in undo.decide_about_records(bound):
                found.counts[each.stream, each.undoing] += 1
                if each.operation is None:
                    found.kept[each.stream, each.reason] += 1
                else:
                    digest.hash_decision(each.undoing, each.stream, each.key, each.operation.changes)
                listener(each)
                progress.advance(1)
    undone, pin = undo.undone, undo.session.project.pinned_tenant
    return found, PlanFile(
        kind="undo",
        run=None if undone.migration_id is not None else next(iter(undone.runs)),
        wave=undone.wave,
        base_url=pin.base_url,
        tenant=pin.tenant,
        selection=tuple(found.streams),
        operations=dict(found.operation_counts),
        decisions=digest.sum.hexdigest(),
        sources={},
    )


def _undoable_streams_of_runs(session: Session, undone: UndoneRuns) -> list[str]:
    """Return the streams whose records these runs have delivered, if an undo of them may begin."""
    with session.state.begin_read_only() as tx:
        undo_in_progress.check_no_undo_in_progress(tx)
        scopes = tx.delivered_history.streams_and_scopes_of_runs(sorted(undone.runs))
        left = tx.delivered_history.count_unsettled_operations_of_runs(sorted(undone.runs))
        forgotten = _forgotten_record_count(tx, undone)
        unverified = {scope for _, scope in scopes if _has_unverified_records(session, tx, scope)}
    if left:
        hint = (
            f"send them, without reading a source: {undo_in_progress.RESUME}; or decide about them: crossdock records"
        )
        hint = f"{hint} resolve; then plan the undo"
        raise RefusedError(f"operations of {undone.title} are not settled: {left:,}", hint=hint, code="undo_impossible")
    if forgotten:
        message = f"retention has removed what {undone.title} did to {count_with_noun(forgotten, 'record')}"
        hint = (
            "change them at their source, whose next version is delivered; 'retention' says how long undos are possible"
        )
        raise RefusedError(message, hint=hint, code="undo_impossible")
    if unverified:
        message = f"records that {undone.title} has delivered were not compared yet with what their target holds"
        raise RefusedError(message, hint="compare them: crossdock sync; then plan the undo", code="undo_impossible")
    check_streams_unchanged(session, scopes, undone.title)
    return sorted({stream for stream, _ in scopes})


def _forgotten_record_count(tx: Transaction, undone: UndoneRuns) -> int:
    """Return how many records of a run have lost their operations, at least; those of an open migration are kept.

    A run also counts what it settled for earlier runs, whose operations are theirs.
    """
    run = tx.runs.get(next(iter(undone.runs))) if undone.migration_id is None else None
    if run is None or run.tally is None:
        return 0
    kept = tx.delivered_history.counts_of_records_with_kept_operations(run.id)
    settled = tx.delivered_history.counts_of_earlier_runs_settled_since(run.id, run.started_at)
    number = 0
    for name, account in run.tally.items():
        tally = Tally.of_json(account)
        of_earlier_runs = min(tally.records["carried_over"], settled.get(name, 0))
        number += max(0, tally.delivered + tally.records["handed_over"] - of_earlier_runs - kept.get(name, 0))
    return number


def _has_unverified_records(session: Session, tx: Transaction, scope: Scope) -> bool:
    """Return whether a restored backup, or imported bindings, were not compared with the target yet."""
    kind = session.targets[scope.target].resources.get(scope.resource) if scope.target in session.targets else None
    forgotten = tx.unverified.marked_resources(scope.target) if kind is not None and not kind.write_once else set[str]()
    return scope.resource in tx.unverified.resources_with_unverified_bindings(scope.target) | forgotten


def check_streams_unchanged(session: Session, delivered: Iterable[tuple[str, Scope]], title: str) -> None:
    """Check that the config has the streams, and that each still writes where it has delivered."""
    scopes = session.project.scope_by_stream
    for name, scope in sorted(delivered, key=str):
        if name not in scopes:
            hint = f"to undo {title}, add it again, or give it its name again"
            raise ConfigError(
                f"the config has no stream {name}, or it is switched off", hint=hint, code="undo_impossible"
            )
        if scopes[name] != scope:
            now, then = map(_resource_target_and_namespace_text, (scopes[name], scope))
            message = f"{name} writes {now}, but has delivered {then}"
            raise ConfigError(
                message, hint=f"to undo {title}, set the stream back as it was then", code="undo_impossible"
            )


def _resource_target_and_namespace_text(scope: Scope) -> str:
    return f"{scope.resource} to {scope.target} in namespace {scope.namespace}"
