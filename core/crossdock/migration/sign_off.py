"""The sign-off of a migration: checks it, lets its report be written, and stores the report's hash."""

from __future__ import annotations

import threading
from collections.abc import Callable

from crossdock.config.project.project import Project
from crossdock.errors import RefusedError
from crossdock.migration.sign_off_checks import NotReadyError, obstacles, unaccepted
from crossdock.migration.sign_off_report import Document, Signature, sign_off_report
from crossdock.migration.source_digests import read_sources
from crossdock.migration.wave_status import wave_status
from crossdock.migration.waves import numbered_waves, wave_streams
from crossdock.runs.state_session import open_session
from crossdock.state import Migration, Transaction
from crossdock.values.clock import Clock
from crossdock.values.times_in_text import instant_text


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

    Args:
        write: Writes the report to its final place, and returns its hash. The state is changed afterwards.
        accepted: Why exceptions are accepted; None if they are not.

    Raises:
        NotReadyError: If facts are missing, or exceptions are not accepted.
        RefusedError: If no migration is open.
        CrossdockError: If a source cannot be read, another run uses the state, or *write* raises.
    """
    waves, streams = numbered_waves(project), wave_streams(project)
    with open_session(project, clock, attempt=None) as session:
        with session.state.look() as tx:
            _open_migration(tx)  # before sources are read in vain
        now = read_sources(project, streams, clock=clock, interrupt=interrupt, state=session.state)
        with session.state.begin() as tx:
            migration = _open_migration(tx)
            found = [wave_status(tx, project, migration, wave) for wave in waves]
            signature = Signature(by, clock.now(), accepted)
            document = sign_off_report(tx, project, migration, found, now.sources, signature)
            if reasons := [*obstacles(tx, migration, found, project.scopes, now), *unaccepted(document)]:
                raise NotReadyError(migration.name, reasons)
            digest = write(document)
            tx.migrations.sign_off(migration.id, at=signature.at, by=by, report_sha256=digest)
    return document


def _open_migration(tx: Transaction) -> Migration:
    current, last = tx.migrations.current(), tx.migrations.last()
    if current is not None:
        return current
    if last is None or last.signed_off_at is None:
        raise RefusedError("no migration has begun", hint="'crossdock migrate load' begins one")
    when = instant_text(last.signed_off_at)
    raise RefusedError(
        f"{last.name}: already signed off {when} by {last.signed_off_by}",
        hint=f"the SHA-256 of its report is {last.report_sha256}; compare it with 'crossdock migrate verify'",
    )
