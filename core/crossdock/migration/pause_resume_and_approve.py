"""The migration that has begun and is not signed off, and decisions of people while it is loaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager

from crossdock.config.project.project import Project
from crossdock.errors import RefusedError
from crossdock.migration.waves import NumberedWave, WaveStatus, migration_config_or_raise, wave_status
from crossdock.runs.audit_log import audited_change_in_one_transaction
from crossdock.state import Migration, Transaction, WaveApproval
from crossdock.values.clock import Clock
from crossdock.values.texts_of_numbers_and_times import instant_text


@contextmanager
def transaction_on_open_migration(project: Project) -> Iterator[tuple[Transaction, Migration]]:
    """Open a transaction on the state, also while a load uses it. Raise RefusedError if no migration is open."""
    migration_config_or_raise(project)
    with closing(project.open_state()) as state, state.begin() as tx:
        current = tx.migrations.current()
        if current is None:
            raise no_open_migration_error(tx.migrations.last())
        yield tx, current


def no_open_migration_error(last: Migration | None) -> RefusedError:
    if last is None or last.signed_off_at is None:
        return RefusedError(
            "no migration has begun", hint="'crossdock migrate load' begins one", code="migration_missing"
        )
    when = instant_text(last.signed_off_at)
    return RefusedError(
        f"{last.name}: signed off {when} by {last.signed_off_by}",
        hint="'crossdock sync' delivers changes; 'crossdock migrate load --again' begins another migration",
        code="migration_ended",
    )


def pause_open_migration(project: Project, *, clock: Clock, by: str) -> Migration:
    """Make a load wait, a running one within about two seconds. The first person who paused it stays recorded."""
    subject = f"migration {migration_config_or_raise(project).name}"
    with (
        audited_change_in_one_transaction(project, "migrate pause", subject, clock=clock) as change,
        transaction_on_open_migration(project) as (tx, migration),
    ):
        if migration.paused_at is None:
            tx.migrations.pause(migration.id, at=clock.now(), by=by)
        change.store_audit_entry(
            tx, before={"paused_by": migration.paused_by}, after={"paused_by": migration.paused_by or by}
        )
        return migration


def resume_open_migration(project: Project, *, clock: Clock) -> Migration:
    subject = f"migration {migration_config_or_raise(project).name}"
    with (
        audited_change_in_one_transaction(project, "migrate resume", subject, clock=clock) as change,
        transaction_on_open_migration(project) as (tx, migration),
    ):
        tx.migrations.resume(migration.id)
        change.store_audit_entry(tx, before={"paused_by": migration.paused_by}, after={"paused_by": None})
        return migration


def approve_loaded_wave(project: Project, wave: NumberedWave, *, clock: Clock, by: str) -> WaveStatus:
    """Let the migration continue after *wave* with the records that are open now, and return its new status."""
    subject = f"wave {wave.name}"
    with (
        audited_change_in_one_transaction(project, "migrate go", subject, clock=clock) as change,
        transaction_on_open_migration(project) as (tx, migration),
    ):
        status = wave_status(tx, project, migration, wave)
        if status.state != "done":
            hint = "'crossdock migrate load' loads it; 'crossdock migrate status' shows how far it is"
            raise RefusedError(
                f"{wave}: {status.state}, so nobody knows what remains open", hint=hint, code="wave_incomplete"
            )
        tx.migrations.approve_wave(migration.id, WaveApproval(wave.name, clock.now(), by, status.open))
        approved = wave_status(tx, project, migration, wave)
        gates = [None if each.gate is None else {"gate": each.gate.state} for each in (status, approved)]
        change.store_audit_entry(
            tx, before=gates[0], after={**(gates[1] or {}), "open": +Counter(status.open.as_json()), "by": by}
        )
        return approved
