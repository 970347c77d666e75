"""Undoes what a migration or a run has done, as a plan that is approved and then applied."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from crossdock.clock import Clock
from crossdock.errors import ConfigError, RefusedError
from crossdock.migration.changes_by_others import ChangesByOthers
from crossdock.migration.remaining_references import RemainingReferences
from crossdock.migration.undone_records import Undoing, UndoneRecord
from crossdock.migration.undone_streams import UndoneStreams, operations
from crossdock.progress import Progress
from crossdock.project.connector_instances import BoundStream
from crossdock.project.project import Project
from crossdock.runs.open_run import MigrationPart, OpenRun
from crossdock.runs.plan_file import DecisionHash, PlanFile, outdated
from crossdock.runs.plan_results import PlanListener
from crossdock.runs.prepared_operations import PreparedOperations
from crossdock.runs.run_report import Report
from crossdock.runs.state_session import Session, open_session
from crossdock.state import Transaction
from crossdock.tally import Tally


@dataclass(frozen=True, slots=True)
class UndoneRuns:
    """What is undone.

    Attributes:
        title: In messages.
        migration_id: None for a single run.
        runs: Ids.
    """

    title: str
    runs: frozenset[int]
    migration_id: int | None = None


@dataclass(slots=True)
class UndoPlan:
    """What an undo would do.

    Attributes:
        counts: By stream and what happens to the record.
        kept: Those of records that stay as they are, by stream and reason.
        streams: In the order in which they are undone: records that refer to others first.
    """

    undone: UndoneRuns
    streams: list[str] = field(default_factory=list)
    counts: Counter[tuple[str, Undoing]] = field(default_factory=Counter)
    kept: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def operations(self) -> Counter[str]:
        """By kind."""
        kinds = {"delete": "delete", "restore": "update"}
        found: Counter[str] = Counter()
        for (_, undoing), number in self.counts.items():
            if undoing in kinds:
                found[kinds[undoing]] += number
        return found

    @property
    def stays(self) -> int:
        """How many records stay as they are."""
        return sum(self.kept.values())


def of_run(session: Session, run_id: int) -> UndoneRuns:
    """The run *run_id*.

    Raises:
        ConfigError: If there is none.
    """
    with session.state.look() as tx:
        if tx.runs.get(run_id) is None:
            raise ConfigError(f"there is no run {run_id}", hint="'crossdock runs' lists them")
    return UndoneRuns(f"run {run_id}", frozenset({run_id}))


def of_migration(session: Session) -> UndoneRuns:
    """The migration that is not signed off.

    Raises:
        RefusedError: If none has begun, or the last one was signed off.
    """
    with session.state.look() as tx:
        current, last = tx.migrations.current(), tx.migrations.last()
        if current is not None:
            runs = frozenset(each.run_id for each in tx.migrations.runs(current.id))
            return UndoneRuns(f"migration {current.name}", runs, current.id)
    if last is None:
        raise RefusedError("no migration has begun", hint="'crossdock migrate load' begins one")
    message = f"migration {last.name} was signed off by {last.signed_off_by}: its history is not kept any more"
    raise RefusedError(message, hint="'crossdock undo RUN' undoes a run as far as the state still knows it")


def plan(
    session: Session, undone: UndoneRuns, listener: Callable[[UndoneRecord], None], progress: Progress
) -> tuple[UndoPlan, PlanFile]:
    """Decide about every record, and hash the decisions. The platform is read, nothing is written.

    Raises:
        RefusedError: If operations of these runs are not settled.
        ConfigError: If the config has no such stream any more.
        CrossdockError: If the platform cannot be read.
    """
    return _planned(_Undo(session, undone, progress), listener, progress)


class _Undo:
    """What is known before the records are decided about. The platform and the state are read for it.

    Attributes:
        streams: Those that are undone.
    """

    def __init__(self, session: Session, undone: UndoneRuns, progress: Progress) -> None:
        self.session, self.undone = session, undone
        self.streams = UndoneStreams(session, _streams(session, undone), undone.runs)
        self._others = ChangesByOthers(self.streams)
        self._others.read(progress)
        self.find_references()

    def find_references(self, beginning: str | None = None) -> None:
        """Look for records that must stay because others refer to them.

        Args:
            beginning: The stream that is undone next; what is left of those before it stays.
        """
        session = self.session
        self._references = RemainingReferences(session.state, session.targets, self._others.references)
        with self.streams.bound() as streams:
            names = [each.name for each in streams]
            left = streams[names.index(beginning) :] if beginning is not None else streams
            self._references.find(left, self._others.operations)

    def records(self, bound: BoundStream) -> Iterator[UndoneRecord]:
        """What happens to each record of *bound*."""

        def referred(ids: Sequence[str]) -> Mapping[str, str]:
            return self._references.among(bound.scope, ids)

        return self.streams.records(bound, self._others.among, referred)


def _planned(undo: _Undo, listener: Callable[[UndoneRecord], None], progress: Progress) -> tuple[UndoPlan, PlanFile]:
    found, digest = UndoPlan(undo.undone), DecisionHash.over(PlanListener.ignoring())
    with undo.streams.bound() as streams:
        for bound in streams:
            found.streams.append(bound.name)
            progress.begin(f"planning {bound.name}", None)
            for each in undo.records(bound):
                found.counts[each.stream, each.undoing] += 1
                if each.operation is None:
                    found.kept[each.stream, each.reason] += 1
                else:
                    digest.add(each.undoing, each.stream, each.key, each.operation.changes)
                listener(each)
                progress.advance(1)
    undone, pin = undo.undone, undo.session.project.pin
    return found, PlanFile(
        kind="undo",
        run=None if undone.migration_id is not None else next(iter(undone.runs)),
        base_url=pin.base_url,
        tenant=pin.tenant,
        selection=tuple(found.streams),
        operations=dict(found.operations),
        decisions=digest.sum.hexdigest(),
        sources={},
    )


def apply(
    project: Project, approved: PlanFile, *, clock: Clock, progress: Progress, interrupt: threading.Event
) -> Report:
    """Undo what *approved* says, if a new plan says the same.

    A record that somebody changes meanwhile is left alone, and is listed as rejected. After the undo of a migration its
    sources are read from their beginning again.

    Raises:
        RefusedError: If the plan is out of date.
        CrossdockError: If the run could not begin. What stops it later is in the report.
    """
    with open_session(project, clock) as session:
        undone = of_migration(session) if approved.run is None else of_run(session, approved.run)
        expected: Counter[str] = Counter()

        def count(each: UndoneRecord) -> None:
            expected[each.stream] += each.operation is not None

        undo = _Undo(session, undone, progress)
        found, again = _planned(undo, count, progress)
        if again != approved:
            raise outdated("crossdock undo")
        part = None if undone.migration_id is None else MigrationPart(undone.migration_id, "undo")
        run = OpenRun(session, progress, interrupt, part=part, only_unchanged="record")

        def source(bound: BoundStream, _tally: Tally, _run_id: int) -> PreparedOperations:
            if any(each.records["rejected"] for each in run.report.tallies.values()):
                # A record whose operation was refused is still there, so what it refers to must not be deleted.
                undo.find_references(beginning=bound.name)
            return PreparedOperations(bound, operations(undo.records(bound)), expected[bound.name])

        report = run.execute(set(found.streams), source, reads=False, children_first=True)
        if undone.migration_id is not None and report.completed:
            session.state.apply(_forget_sources(found.streams))
        return report


def _streams(session: Session, undone: UndoneRuns) -> list[str]:
    """The streams whose records these runs have delivered.

    Raises:
        RefusedError: If an operation is not settled.
        ConfigError: If the config does not have one of them.
    """
    with session.state.look() as tx:
        names = {stream for stream, _ in tx.delivered.scopes(sorted(undone.runs))}
        left = tx.delivered.unsettled(sorted(undone.runs))
    if left:
        hint = "send them with 'crossdock sync', or decide with 'crossdock records resolve'; then plan the undo"
        raise RefusedError(f"operations of {undone.title} are not settled: {left:,}", hint=hint)
    known = session.project.scopes
    for name in sorted(names - known.keys()):
        raise ConfigError(f"the config has no stream {name}", hint=f"add it again to undo {undone.title}")
    return sorted(names)


def _forget_sources(names: list[str]) -> Callable[[Transaction], None]:
    def forget(tx: Transaction) -> None:
        for name in names:
            tx.intake.forget(name)
            tx.cursors.forget(name)

    return forget
