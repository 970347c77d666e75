"""Migrations: the runs that move a legacy system once, the decisions about them, and what their sign-off needs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from sqlalchemy import Connection, Select, delete, exists, func, insert, or_, select, true, update

from crossdock.state.db import sql_types_and_statements
from crossdock.state.db.schema import dead_letters, intents, migration_runs, migrations, taken_files, wave_approvals
from crossdock.values.run_states_and_tally import OpenCounts


class DeadLetterCount(NamedTuple):
    """The ``rejected`` or ``dropped`` dead letters of one stream with the same reason code."""

    stream: str
    code: str
    status: str
    records: int


class MigrationSignOffFacts:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def dead_letter_counts(self, streams: Collection[str]) -> list[DeadLetterCount]:
        by = dead_letters.c.stream, dead_letters.c.code, dead_letters.c.status
        query = select(*by, func.count()).where(dead_letters.c.stream.in_(streams)).group_by(*by).order_by(*by)
        return [DeadLetterCount(*row) for row in self._connection.execute(query)]

    def dead_letter_files_and_lines(
        self, group: DeadLetterCount, *, limit: int, reads_files: bool = False
    ) -> list[tuple[str, int]]:
        """Return file and line of dead letters. A stream that *reads_files* reads nothing else."""
        source, line = dead_letters.c.source, dead_letters.c.line
        is_file = exists().where(taken_files.c.stream == dead_letters.c.stream, taken_files.c.name == source)
        query = select(source, line).where(
            line > 0,
            dead_letters.c.stream == group.stream,
            dead_letters.c.code == group.code,
            dead_letters.c.status == group.status,
            true() if reads_files else is_file,
        )
        rows = self._connection.execute(query.order_by(source, line).limit(limit))
        return [(name, number) for name, number in rows]

    def settled_times(self, streams: Collection[str], since: datetime, *, limit: int) -> list[datetime]:
        """Return the settlement times of the last *limit* operations of *streams* settled after *since*."""
        settled_at = intents.c.settled_at
        last = (
            select(settled_at)
            .where(settled_at.is_not(None), intents.c.stream.in_(streams))
            .order_by(intents.c.id.desc())
            .limit(limit)
        ).subquery()
        query = select(last.c.settled_at).where(last.c.settled_at > since)
        return list(self._connection.execute(query).scalars())

    def unneeded_write_counts(self, migration_id: int) -> dict[str, int]:
        """Return the number of operations that wrote nothing, because the target held the record already, by stream."""
        own = migration_runs.c.run_id == intents.c.run_id, migration_runs.c.migration_id == migration_id
        query = select(intents.c.stream, func.count()).where(
            exists().where(*own), intents.c.status == "delivered", intents.c.untouched.is_(True)
        )
        rows = self._connection.execute(query.group_by(intents.c.stream).order_by(intents.c.stream))
        return {stream: number for stream, number in rows}

    def count_operations_since(self, streams: Collection[str], at: datetime) -> int:
        query = select(func.count()).where(
            intents.c.stream.in_(streams), or_(intents.c.created_at > at, intents.c.settled_at > at)
        )
        return int(self._connection.execute(query).scalar_one())


RunKind = Literal["load", "repair", "undo"]


class Migration(Struct, frozen=True):
    """One migration. At most one is not signed off. *reconciliation* is void once records were loaded since."""

    id: int
    name: str
    started_at: datetime
    started_by: str
    paused_at: datetime | None
    paused_by: str | None
    rehearsal: dict[str, Any] | None
    freeze: dict[str, Any] | None
    reconciliation: dict[str, Any] | None
    signed_off_at: datetime | None
    signed_off_by: str | None
    report_sha256: str | None


class MigrationPart(Struct, frozen=True):
    """The part of a run in a migration. *wave* is None for a repair, and for an undo of all waves."""

    migration_id: int
    kind: RunKind
    wave: str | None = None


class MigrationRun(Struct, frozen=True):
    run_id: int
    wave: str | None
    kind: RunKind


class WaveApproval(Struct, frozen=True):
    wave: str
    approved_at: datetime
    approved_by: str
    open: OpenCounts


_FIELDS = tuple(migrations.c[name] for name in Migration.__struct_fields__)
_OPEN = migrations.c.signed_off_at.is_(None)


class Migrations:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def current(self) -> Migration | None:
        return self._first_or_none(select(*_FIELDS).where(_OPEN).order_by(migrations.c.id.desc()))

    def last(self) -> Migration | None:
        return self._first_or_none(select(*_FIELDS).order_by(migrations.c.id.desc()))

    def migration_by_report_digest(self, report_sha256: str) -> Migration | None:
        return self._first_or_none(select(*_FIELDS).where(migrations.c.report_sha256 == report_sha256))

    def _first_or_none(self, query: Select[Any]) -> Migration | None:
        row = self._connection.execute(query).first()
        return None if row is None else Migration(*row)

    def begin(self, name: str, *, at: datetime, by: str) -> int:
        row = {"name": name, "started_at": at, "started_by": by}
        result = self._connection.execute(insert(migrations).values(row))
        assert result.inserted_primary_key is not None
        return int(result.inserted_primary_key[0])

    def add_run(self, migration_id: int, run_id: int, kind: RunKind, wave: str | None) -> None:
        """Add a run to the migration. Earlier reconciliations become void, and an undo voids approvals of its waves."""
        row = {"run_id": run_id, "migration_id": migration_id, "wave": wave, "kind": kind}
        self._connection.execute(insert(migration_runs).values(row))
        if kind == "undo":
            undone = delete(wave_approvals).where(wave_approvals.c.migration_id == migration_id)
            self._connection.execute(undone if wave is None else undone.where(wave_approvals.c.wave == wave))
        self._write_columns(migration_id, reconciliation=None)

    def runs(self, migration_id: int) -> list[MigrationRun]:
        columns = (migration_runs.c[name] for name in MigrationRun.__struct_fields__)
        query = select(*columns).where(migration_runs.c.migration_id == migration_id)
        return [MigrationRun(*row) for row in self._connection.execute(query.order_by(migration_runs.c.run_id))]

    def loads_since_undo(self, migration_id: int) -> dict[str, list[int]]:
        """Return the runs that have loaded each wave since it was last undone, in their order, by the wave's name."""
        found = defaultdict[str, list[int]](list)
        for run in self.runs(migration_id):
            if run.kind == "undo" and run.wave is None:
                found.clear()
            elif run.kind == "undo" and run.wave is not None:
                found.pop(run.wave, None)
            elif run.wave is not None:
                found[run.wave].append(run.run_id)
        return dict(found)

    def streams_sent_since_undo(self, migration_id: int, wave: str) -> set[str]:
        """Return the streams for which a load of the wave has written an operation since the wave was last undone."""
        runs = self.loads_since_undo(migration_id).get(wave, [])
        query = select(intents.c.stream).where(intents.c.run_id.in_(runs)).distinct()
        return set(self._connection.execute(query).scalars())

    def pause(self, migration_id: int, *, at: datetime, by: str) -> None:
        self._write_columns(migration_id, paused_at=at, paused_by=by)

    def resume(self, migration_id: int) -> None:
        self._write_columns(migration_id, paused_at=None, paused_by=None)

    def store_rehearsal(self, migration_id: int, facts: dict[str, Any]) -> None:
        self._write_columns(migration_id, rehearsal=facts)

    def store_freeze_check(self, migration_id: int, facts: dict[str, Any]) -> None:
        self._write_columns(migration_id, freeze=facts)

    def store_reconciliation(self, migration_id: int, facts: dict[str, Any]) -> None:
        self._write_columns(migration_id, reconciliation=facts)

    def sign_off(self, migration_id: int, *, at: datetime, by: str, report_sha256: str) -> None:
        """End the migration: its history is no longer kept, and another migration may begin."""
        self._write_columns(migration_id, signed_off_at=at, signed_off_by=by, report_sha256=report_sha256)

    def approve_wave(self, migration_id: int, approval: WaveApproval) -> None:
        row = {
            "migration_id": migration_id,
            "wave": approval.wave,
            "approved_at": approval.approved_at,
            "approved_by": approval.approved_by,
            "open": approval.open.as_json(),
        }
        sql_types_and_statements.upsert_rows(self._connection, wave_approvals, [row])

    def approval_by_wave(self, migration_id: int) -> dict[str, WaveApproval]:
        table = wave_approvals
        query = select(table.c.wave, table.c.approved_at, table.c.approved_by, table.c.open)
        rows = self._connection.execute(query.where(table.c.migration_id == migration_id)).all()
        found = (WaveApproval(wave, at, by, OpenCounts.of_json(counts)) for wave, at, by, counts in rows)
        return {each.wave: each for each in found}

    def _write_columns(self, migration_id: int, **values: Any) -> None:
        self._connection.execute(update(migrations).where(migrations.c.id == migration_id).values(values))
