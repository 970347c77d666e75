"""The freeze check: the sources are read twice and must not change, and a load must have nothing to send."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from crossdock.config.project.project import Project
from crossdock.errors import RefusedError, StoppedError
from crossdock.migration.pause_resume_and_approve import transaction_on_open_migration
from crossdock.migration.rehearsal_file_and_load_check import dry_run_load
from crossdock.migration.waves import migration_config_or_raise, streams_of_all_waves
from crossdock.reading.sources.stream_input_report import newest_accepted_file
from crossdock.runs.audit_log import AuditedChange, audited_change_in_one_transaction
from crossdock.runs.plan_result import PlanResult
from crossdock.state import Transaction
from crossdock.values.clock import Clock
from crossdock.values.texts_of_numbers_and_times import duration_text, json_time_text


class FreezeCheck(Struct, frozen=True):
    """The sources did not change between two readings. *since* is when any check first read their present content.

    *newest_files* has the time of the newest content of each stream that reads files, which show nothing newer.
    """

    at: datetime
    since: datetime
    waited: timedelta
    sources: dict[str, str]
    newest_files: dict[str, datetime] = {}

    def as_json(self) -> dict[str, Any]:
        return {
            "at": json_time_text(self.at),
            "since": json_time_text(self.since),
            "waited_s": int(self.waited.total_seconds()),
            "sources": self.sources,
            "newest_files": {name: json_time_text(at) for name, at in self.newest_files.items()},
        }


def verify_and_store_source_freeze(
    project: Project, wait: timedelta, *, clock: Clock, interrupt: threading.Event
) -> FreezeCheck:
    """Read all streams of all waves, wait, read them again, and store that they have not changed.

    Raise RefusedError and store nothing if a source has changed, or if a load would still send something.
    """
    with audited_change_in_one_transaction(
        project, "migrate freeze", f"migration {migration_config_or_raise(project).name}", clock=clock
    ) as change:
        return _read_sources_twice_and_store_freeze(project, wait, change, clock=clock, interrupt=interrupt)


def _read_sources_twice_and_store_freeze(
    project: Project, wait: timedelta, change: AuditedChange, *, clock: Clock, interrupt: threading.Event
) -> FreezeCheck:
    with transaction_on_open_migration(project) as (_, migration):
        earlier = migration.freeze
    streams = streams_of_all_waves(project)
    began = clock.now()
    first = dry_run_load(project, streams, clock=clock, interrupt=interrupt)
    _raise_if_operations_unsent(first)
    if interrupt.wait(wait.total_seconds()):
        raise StoppedError("stopped while it waited", hint="check again: crossdock migrate freeze")
    second = dry_run_load(project, streams, clock=clock, interrupt=interrupt)
    changed = sorted(name for name in streams if first.sources[name] != second.sources[name])
    if changed:
        names = ", ".join(changed)
        raise RefusedError(
            f"the source has changed within {duration_text(wait)}",
            where=names,
            hint="stop its users, then load again",
            code="source_changed",
        )
    _raise_if_operations_unsent(second)
    unchanged = earlier is not None and earlier["sources"] == second.sources
    since = datetime.fromisoformat(earlier["since"]) if earlier is not None and unchanged else began
    with transaction_on_open_migration(project) as (tx, migration):
        frozen = FreezeCheck(clock.now(), since, wait, second.sources, _newest_file_times(tx, project))
        tx.migrations.store_freeze_check(migration.id, frozen.as_json())
        before = earlier and {"unchanged_since": earlier["since"]}
        change.store_audit_entry(tx, before=before, after={"unchanged_since": json_time_text(frozen.since)})
    return frozen


def _newest_file_times(tx: Transaction, project: Project) -> dict[str, datetime]:
    reading = (name for name in sorted(streams_of_all_waves(project)) if project.stream(name).reads_files)
    newest = {name: newest_accepted_file(tx.intake.known_files(name)) for name in reading}
    return {name: file.modified_at for name, file in newest.items() if file is not None}


def _raise_if_operations_unsent(planned: PlanResult) -> None:
    if operations := planned.operations.total():
        streams = [name for name, tally in planned.tallies.items() if tally.delivered]
        raise RefusedError(
            f"a load would still send {operations:,} {'request' if operations == 1 else 'requests'}",
            where=", ".join(sorted(streams)) or None,
            hint="run 'crossdock migrate load', then check again",
            code="source_changed",
        )
