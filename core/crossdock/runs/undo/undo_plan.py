"""Plans the undo of a migration or a run, without what others have changed since on the platform.

`crossdock.runs.undo.undo_application` executes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, cast

from msgspec import Struct, field

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.errors import ConfigError, RefusedError
from crossdock.mapping.resource_types import CHANGED, RESOURCES
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.reading.sources.compact_id_set import IdSet
from crossdock.resources import ResourceName
from crossdock.runs.plan_and_apply import DecisionHash, PlanFile
from crossdock.runs.plan_result import PlanListener
from crossdock.runs.planning import undo_in_progress
from crossdock.runs.platform_and_state_comparison import BindingsByTargetId, load_bindings_by_target_id
from crossdock.runs.platform_source.live_records_for_comparisons import LiveRecords
from crossdock.runs.reconciliation.reconcile_and_repair import new_platform_source_context, store_platform_rate_limit
from crossdock.runs.reconciliation.reconciliation_result import Reconciliation
from crossdock.runs.reconciliation.source_and_platform_comparison import PlatformComparison
from crossdock.runs.session_shared_by_runs import Session
from crossdock.runs.still_referenced_records import ListedReferences, ReferencesRemainingAfterUndo, in_pages
from crossdock.runs.undo.undo_decisions import Covers, Undoing, UndoneRecord, UndoneStreams, undo_operations_of_records
from crossdock.state import Binding, Migration, Scope, State, Transaction
from crossdock.values.run_progress_and_messages import Progress
from crossdock.values.run_states_and_tally import Tally
from crossdock.values.texts_of_numbers_and_times import count_with_noun
from crossdock.writing.delivery.operations_and_intents import Operation
from crossdock.writing.targets.answer_outcomes import tag_without_compression_marks


class ChangesByOthers:
    """The records that others have changed, and the references of their own records to records that must stay."""

    def __init__(self, undone: UndoneStreams) -> None:
        self._undone, self._state = undone, undone.session.state
        self._differing: set[tuple[str, str]] = set()
        self._edited, self.references = EditedRecords(self._state), ListedReferences()

    def changed_ids(self, scope: Scope, ids: Sequence[str]) -> set[str]:
        if scope.target != PLATFORM:
            return set()
        differing = {each for each in ids if (scope.resource, each) in self._differing}
        return differing | self._edited.edited_ids(scope.resource, ids)

    def undo_operations_ignoring_references(self, bound: BoundStream) -> Iterator[Operation]:
        """Yield the operations that would undo the unchanged records of *bound* if nothing referred to them."""
        return undo_operations_of_records(self._undone.decide_about_records(bound, self.changed_ids))

    def read(self, progress: Progress) -> None:
        session = self._undone.session
        wanted = {each for each in self._undone.record_scopes if each.target == PLATFORM and each.resource in RESOURCES}
        found = Reconciliation(session.clock.now(), None)
        run = new_platform_source_context(session, progress)
        with run.at_end, LiveRecords(session.project.platform, run) as live:
            try:
                PlatformComparison(self._state, wanted, run, found).compare_all_records(
                    live, self._compare_page_and_add_references
                )
                self._differing = {
                    (each.scope.resource, each.target_id)
                    for each in found.differences.values()
                    if each.difference in {"diverged", "duplicate"} and each.target_id is not None
                }
                self._look_up_versions(live)
                self._read_referring(live, progress, {each.resource for each in wanted})
            finally:
                store_platform_rate_limit(session, live)

    def _compare_page_and_add_references(
        self, resource: str, page: Sequence[dict[str, Any]], bound: BindingsByTargetId
    ) -> None:
        self._edited.compare_page(resource, page, bound)
        self.references.add_unrecorded_references(resource, page, bound)

    def _look_up_versions(self, live: LiveRecords) -> None:
        """Look up the versions of records that would be written, as far as the lists do not show them."""
        if not self._edited.has_unsure_records:
            return
        with self._undone.bind() as streams:
            for bound in streams:
                if bound.scope.target != PLATFORM or bound.scope.resource not in RESOURCES:
                    continue
                resource = cast("ResourceName", bound.scope.resource)
                for page in in_pages(self.undo_operations_ignoring_references(bound)):
                    ids = [each.binding.target_id for each in page if each.binding is not None]
                    self._edited.look_up_versions(resource, ids, partial(live.entity_tag, resource))

    def _read_referring(self, live: LiveRecords, progress: Progress, read: AbstractSet[str]) -> None:
        unread = [name for name, kind in RESOURCES.items() if kind.parents and name not in read]
        parents = frozenset[str]().union(*(RESOURCES[name].parents for name in unread))
        with self._undone.bind() as streams:
            deleted = {
                bound.scope.resource
                for bound in streams
                if bound.scope.target == PLATFORM
                and bound.scope.resource in parents
                and self._undo_would_delete_records(bound)
            }
        for name in unread:
            if RESOURCES[name].parents & deleted:
                resource = cast("ResourceName", name)
                progress.begin(f"reading {resource} of the platform", None)
                for page in live.pages(resource):
                    ids = [each["id"] for each in page if isinstance(each.get("id"), str)]
                    self.references.add_unrecorded_references(
                        resource, page, load_bindings_by_target_id(self._state, resource, ids)
                    )
                    progress.advance(len(page))

    def _undo_would_delete_records(self, bound: BoundStream) -> bool:
        return any(each.kind == "delete" for each in self.undo_operations_ignoring_references(bound))


Version = Callable[[str], str | None]
"""Returns the entity tag of the platform's record of an id, or None."""


class EditedRecords:
    """Compares when the platform's records were changed with what it answered when they were written.

    A list states when a record was changed. If it does not, or if the answer to the write did not, the entity tag is
    looked up, with one request for each record. Each id takes about 20 bytes.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._edited, self._unsure = IdSet(), IdSet()
        self.has_unsure_records = False  # whether some records must be looked up

    def compare_page(self, resource: str, page: Sequence[dict[str, Any]], bound: BindingsByTargetId) -> None:
        held = {each["id"]: each.get(CHANGED) for each in page if isinstance(each.get("id"), str)}
        edited, unsure = list[str](), list[str]()
        for target_id, binding in _bindings_preferring_whole_records(bound).items():
            if binding.changed_at is not None and isinstance(held[target_id], str):
                edited += [target_id] * (held[target_id] != binding.changed_at)
            elif binding.etag is not None:
                unsure.append(target_id)
        self._edited.add([_id_with_resource(resource, each) for each in edited])
        self._unsure.add([_id_with_resource(resource, each) for each in unsure])
        self.has_unsure_records |= bool(unsure)

    def look_up_versions(self, resource: str, ids: Sequence[str], version: Version) -> None:
        unsure = self._unsure.known_ids_among([_id_with_resource(resource, each) for each in ids])
        bound = load_bindings_by_target_id(
            self._state, resource, [each for each in ids if _id_with_resource(resource, each) in unsure]
        )
        for target_id, binding in _bindings_preferring_whole_records(bound).items():
            found = version(target_id)
            own = tag_without_compression_marks(binding.etag or "")
            if found is not None and tag_without_compression_marks(found) != own:
                self._edited.add([_id_with_resource(resource, target_id)])

    def edited_ids(self, resource: str, ids: Sequence[str]) -> set[str]:
        found = self._edited.known_ids_among([_id_with_resource(resource, each) for each in ids])
        return {each for each in ids if _id_with_resource(resource, each) in found}


def _bindings_preferring_whole_records(bound: BindingsByTargetId) -> dict[str, Binding]:
    """Return the binding of each record. Each write of a contribution also renews the version of the whole record."""
    return {name: min(each, key=lambda one: one[0].is_contribution)[1] for name, each in bound.items() if each}


def _id_with_resource(resource: str, target_id: str) -> str:
    return f"{resource} {target_id}"


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


def plan_undo_and_hash_decisions(
    session: Session, undone: UndoneRuns, listener: Callable[[UndoneRecord], None], progress: Progress
) -> tuple[UndoPlan, PlanFile]:
    """Decide about every record, and hash the decisions. The platform is read, and nothing is written."""
    return plan_undo_from_facts(UndoFacts(session, undone, progress), listener, progress)


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
        self._references = ReferencesRemainingAfterUndo(session.state, session.targets, self._others.references)
        with self.streams.bind() as streams:
            names = [each.name for each in streams]
            left = streams[names.index(beginning) :] if beginning is not None else streams
            self._references.find_references_after_undo(left, self._others.undo_operations_ignoring_references)

    def decide_about_records(self, bound: BoundStream) -> Iterator[UndoneRecord]:
        def referred(ids: Sequence[str]) -> Mapping[str, str]:
            return self._references.referring_resource_by_id(bound.scope, ids)

        return self.streams.decide_about_records(bound, self._others.changed_ids, referred)


def plan_undo_from_facts(
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
        undo_in_progress.raise_if_undo_in_progress(tx)
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
    raise_if_streams_write_elsewhere(session, scopes, undone.title)
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


def raise_if_streams_write_elsewhere(session: Session, delivered: Iterable[tuple[str, Scope]], title: str) -> None:
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
