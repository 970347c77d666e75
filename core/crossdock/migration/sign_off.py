"""The sign-off of a migration: checks it, lets its report be written, and stores the report's hash."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from crossdock.config.project.project import Project
from crossdock.errors import RefusedError
from crossdock.migration.rehearsal_file_and_load_check import dry_run_load
from crossdock.migration.sign_off_report import Document, Signature, counts_of_exceptions_to_accept, sign_off_report
from crossdock.migration.waves import (
    WaveStatus,
    migration_config_or_raise,
    streams_of_all_waves,
    wave_status,
    waves_numbered_in_config_order,
)
from crossdock.runs.audit_log import audited_change_in_one_transaction
from crossdock.runs.plan_result import PlanResult
from crossdock.runs.planning import undo_in_progress
from crossdock.runs.platform_and_state_comparison import is_compared_by_reconciliation
from crossdock.runs.session_shared_by_runs import open_session
from crossdock.state import Migration, Scope, Transaction
from crossdock.values.clock import Clock
from crossdock.values.texts_of_numbers_and_times import instant_text


def sign_off(
    project: Project,
    write: Callable[[Document], str],
    *,
    by: str,
    accepted: str | None,
    clock: Clock,
    interrupt: threading.Event,
) -> Document:
    """Sign off the open migration. The sources are read once more, and nothing is sent.

    *write* writes the report to its final place, and returns its hash. The state is changed afterwards.
    """
    waves, streams = waves_numbered_in_config_order(project), streams_of_all_waves(project)
    subject = f"migration {migration_config_or_raise(project).name}"
    with (
        audited_change_in_one_transaction(project, "migrate sign-off", subject, clock=clock) as change,
        open_session(project, clock, attempt=None) as session,
    ):
        with session.state.begin_read_only() as tx:
            _open_migration_or_raise(tx)  # before sources are read in vain
        now = dry_run_load(project, streams, clock=clock, interrupt=interrupt, state=session.state)
        with session.state.begin() as tx:
            migration = _open_migration_or_raise(tx)
            found = [wave_status(tx, project, migration, wave) for wave in waves]
            signature = Signature(by, clock.now(), accepted)
            document = sign_off_report(tx, project, migration, found, now.sources, signature)
            missing = sign_off_obstacles(tx, migration, found, project.scope_by_stream, now)
            if reasons := [*missing, *obstacle_if_exceptions_unaccepted(document["exceptions"], accepted)]:
                raise SignOffIncompleteError(migration.name, reasons)
            digest = write(document)
            tx.migrations.sign_off(migration.id, at=signature.at, by=by, report_sha256=digest)
            change.store_audit_entry(
                tx, before="open", after={"signed_off_by": by, "report_sha256": digest}, reason=accepted or ""
            )
    return document


def _open_migration_or_raise(tx: Transaction) -> Migration:
    current, last = tx.migrations.current(), tx.migrations.last()
    if current is not None:
        return current
    if last is None or last.signed_off_at is None:
        raise RefusedError(
            "no migration has begun", hint="'crossdock migrate load' begins one", code="migration_missing"
        )
    when = instant_text(last.signed_off_at)
    raise RefusedError(
        f"{last.name}: already signed off {when} by {last.signed_off_by}",
        hint=f"the SHA-256 of its report is {last.report_sha256}; compare it with 'crossdock migrate verify'",
        code="migration_ended",
    )


_RECONCILE = "crossdock migrate reconcile"


class SignOffObstacle(NamedTuple):
    what: str
    hint: str


class SignOffIncompleteError(RefusedError):
    """A migration cannot be signed off yet. Each obstacle takes two lines."""

    code = "sign_off_incomplete"

    def __init__(self, name: str, obstacles: Sequence[SignOffObstacle]) -> None:
        lines = [f"{name} cannot be signed off:"]
        for each in obstacles:
            lines += [f"- {each.what}", f"  {each.hint}"]
        super().__init__("; ".join(each.what for each in obstacles), where=name)
        self.lines = lines

    def __str__(self) -> str:
        return "\n".join(self.lines)


class SignOffRequirement(NamedTuple):
    """What a migration must fulfil before it can be signed off, and what is in the way; nothing if it is fulfilled."""

    title: str
    obstacles: Sequence[SignOffObstacle]


def sign_off_obstacles(
    tx: Transaction,
    migration: Migration,
    waves: Sequence[WaveStatus],
    scopes: Mapping[str, Scope],
    present_plan: PlanResult,
) -> Iterator[SignOffObstacle]:
    """Yield missing facts, which no person can accept. *present_plan* is what a load would read and send now."""
    for requirement in sign_off_requirements(tx, migration, waves, scopes, present_plan):
        yield from requirement.obstacles


def sign_off_requirements(
    tx: Transaction,
    migration: Migration,
    waves: Sequence[WaveStatus],
    scopes: Mapping[str, Scope],
    present_plan: PlanResult | None,
) -> Iterator[SignOffRequirement]:
    """Yield what the state must have. Without *present_plan* the present content of the sources is unknown."""
    yield SignOffRequirement("The migration is not paused", list(_paused_migration_obstacles(migration)))
    yield SignOffRequirement("No undo is unfinished", list(_unfinished_undo_obstacles(tx)))
    for wave in waves:
        title = f"{str(wave.wave).capitalize()}: loaded, its gate has passed, and nothing is pending or in doubt"
        yield SignOffRequirement(title, list(_wave_obstacles(wave)))
    yield SignOffRequirement("The sources are frozen", list(_freeze_obstacles(tx, migration, present_plan)))
    loaded = {name: scopes[name] for each in waves for name in each.wave.streams}
    if any(map(is_compared_by_reconciliation, loaded.values())):  # otherwise there is nothing that could be reconciled
        title = "Sources, state and platform are reconciled since the last load, repair or undo"
        yield SignOffRequirement(title, list(_reconciliation_obstacles(tx, migration, loaded)))


def obstacle_if_exceptions_unaccepted(exceptions: Document, acceptance_reason: str | None) -> Iterator[SignOffObstacle]:
    counts = counts_of_exceptions_to_accept(exceptions)
    if counts and acceptance_reason is None:
        shown = ", ".join(f"{number:,} {name}" for name, number in counts.items())
        repair = f"repair them: {_RECONCILE} -o repair.plan; drop what no source has any more: crossdock records drop"
        yield SignOffObstacle(f"exceptions: {shown}", f"{repair}; or accept them: --accept-exceptions REASON")


def _paused_migration_obstacles(migration: Migration) -> Iterator[SignOffObstacle]:
    if migration.paused_at is not None:
        yield SignOffObstacle(f"it is paused by {migration.paused_by}", "crossdock migrate resume")


def _unfinished_undo_obstacles(tx: Transaction) -> Iterator[SignOffObstacle]:
    if being_undone := list(tx.begun_undos.begun_at_by_stream()):
        yield SignOffObstacle(f"an undo has not ended: {', '.join(being_undone)}", undo_in_progress.ADVICE)


def _wave_obstacles(status: WaveStatus) -> Iterator[SignOffObstacle]:
    wave, left = status.wave, status.open
    if status.state != "done":
        yield SignOffObstacle(f"{wave}: {status.state}", "crossdock migrate load")
    elif not status.has_passed_gate and status.gate is not None:
        hint = f"fix what is open and load again, or: crossdock migrate go {wave.name}"
        yield SignOffObstacle(f"{wave}: the gate is {status.gate.state}: {status.gate.why}", hint)
    if left.pending:
        yield SignOffObstacle(f"{wave}: {left.pending:,} operations are pending", "crossdock migrate load")
    if left.in_doubt:
        hint = "look them up and decide: crossdock records resolve"
        yield SignOffObstacle(f"{wave}: {left.in_doubt:,} operations are in doubt", hint)


def _freeze_obstacles(
    tx: Transaction, migration: Migration, present_plan: PlanResult | None
) -> Iterator[SignOffObstacle]:
    if present_plan is not None and (operations := present_plan.operations.total()):
        requests = "1 request" if operations == 1 else f"{operations:,} requests"
        yield SignOffObstacle(f"a load would still send {requests}", "crossdock migrate load")
    if migration.freeze is None:
        yield SignOffObstacle("no freeze check has passed", "crossdock migrate freeze")
        return
    at = _instant_text(migration.freeze["at"])
    if present_plan is not None and (
        changed := _sources_changed_since_freeze(migration.freeze["sources"], present_plan.sources)
    ):
        hint = "crossdock migrate load; crossdock migrate freeze"
        if _was_undone_since(tx, migration, datetime.fromisoformat(migration.freeze["at"])):
            what = f"it was undone after the freeze check of {at}, so a load reads the sources from their beginning"
        else:
            what = f"sources changed since the freeze check of {at}: {', '.join(changed)}"
        yield SignOffObstacle(what, hint)
    if loaded := _streams_loaded_since(tx, migration, datetime.fromisoformat(migration.freeze["at"])):
        what = f"loads have delivered records since the freeze check of {at}: {', '.join(loaded)}"
        yield SignOffObstacle(what, "crossdock migrate freeze")


def _was_undone_since(tx: Transaction, migration: Migration, at: datetime) -> bool:
    undos = [tx.runs.get(run.run_id) for run in tx.migrations.runs(migration.id) if run.kind == "undo"]
    return any(run is not None and run.started_at > at for run in undos)


def _streams_loaded_since(tx: Transaction, migration: Migration, at: datetime) -> list[str]:
    """Return streams that have delivered since. No hash shows an imported file, which is not read again."""
    loads = (tx.runs.get(run.run_id) for run in tx.migrations.runs(migration.id) if run.kind == "load")
    tallies = [run.tally or {} for run in loads if run is not None and (run.finished_at or at) > at]
    return sorted({name for each in tallies for name, tally in each.items() if tally["records"]["delivered"]})


def _sources_changed_since_freeze(frozen: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return sorted(name for name, digest in now.items() if frozen.get(name) != digest)


def _reconciliation_obstacles(
    tx: Transaction, migration: Migration, scopes: Mapping[str, Scope]
) -> Iterator[SignOffObstacle]:
    found = migration.reconciliation
    if found is None:
        yield SignOffObstacle("not reconciled since the last load, repair or undo", _RECONCILE)
        return
    compared = {name for name, scope in scopes.items() if is_compared_by_reconciliation(scope)}
    if missing := sorted(compared - found["sources"].keys()):
        yield SignOffObstacle(f"not reconciled: {', '.join(missing)}", _RECONCILE)
    at = datetime.fromisoformat(found["at"])
    if migration.freeze is not None and at < datetime.fromisoformat(migration.freeze["since"]):
        since = _instant_text(migration.freeze["since"])
        yield SignOffObstacle(f"reconciled before {since}, since when the sources are known to be frozen", _RECONCILE)
    if written := tx.migration_outcome.count_operations_since(scopes, at):
        yield SignOffObstacle(f"operations since the reconciliation of {instant_text(at)}: {written:,}", _RECONCILE)


def _instant_text(text: str) -> str:
    return instant_text(datetime.fromisoformat(text))
