"""Schema migrations. A released step is never edited."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from sqlalchemy import BindParameter, Connection, bindparam, column, insert, inspect, select, text, update

from crossdock.state.db import schema, sql_types_and_statements
from crossdock.values.record_keys import trimmed_key

SchemaMigration = Callable[[Connection], None]
IDENTITY = "id"  # the row of the meta table that identifies a state
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


def _add_durations_of_runs(connection: Connection) -> None:
    """A run that was killed gets no duration: its end is the time at which the next run noticed."""
    connection.execute(text("ALTER TABLE runs ADD COLUMN duration_ms BIGINT"))
    runs = schema.runs
    ended = select(runs.c.id, runs.c.started_at, runs.c.finished_at)
    ended = ended.where(runs.c.finished_at.is_not(None), runs.c.tally.is_not(None))
    lasted = [
        {"row": run_id, "lasted": (finished - started) // timedelta(milliseconds=1)}
        for run_id, started, finished in connection.execute(ended)
    ]
    if lasted:
        this: BindParameter[int] = bindparam("row")
        connection.execute(update(runs).where(runs.c.id == this).values(duration_ms=bindparam("lasted")), lasted)


def _create_indexes_of_files_and_lines(connection: Connection) -> None:
    """The index of the ids is created with its new name in the next step."""
    for index in schema.TRACE_INDEXES:
        if index.name != "ix_intents_target_id":
            index.create(connection)


def _rename_platform_id_columns_to_target_id(connection: Connection) -> None:
    for table in ("bindings", "intents"):
        connection.execute(text(f"ALTER TABLE {table} RENAME COLUMN platform_id TO target_id"))
        connection.execute(text(f"DROP INDEX IF EXISTS ix_{table}_platform_id"))
    for index in (*schema.bindings.indexes, *schema.intents.indexes):
        if "target_id" in str(index.name):
            index.create(connection)


def _create_tables_of_inbox(connection: Connection) -> None:
    schema.metadata.create_all(connection, tables=[schema.webhooks, schema.hints])


def _add_system_migrations(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE intents ADD COLUMN untouched BOOLEAN"))
    schema.metadata.create_all(connection, tables=[schema.migrations, schema.migration_runs, schema.wave_approvals])


def _add_change_times_of_bindings(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE bindings ADD COLUMN changed_at TEXT"))


def _store_untrimmed_keys(connection: Connection) -> None:
    """Keys are trimmed from this version on. Records whose names have white space keep these names."""
    table = schema.untrimmed_keys
    schema.metadata.create_all(connection, tables=[table])
    names = [column.name for column in table.columns]
    for other in (schema.bindings, schema.intents):
        query = select(*(other.c[name] for name in names)).where(other.c.key.contains("%", autoescape=True)).distinct()
        found = (dict(zip(names, row, strict=True)) for row in connection.execute(query))
        rows = [row for row in found if trimmed_key(row["key"]) != row["key"]]
        sql_types_and_statements.upsert_rows(connection, table, rows)


def _add_full_lists_and_followed_records(connection: Connection) -> None:
    schema.metadata.create_all(connection, tables=[schema.full_lists, schema.followed_records])


def _add_passed_files(connection: Connection) -> None:
    schema.metadata.create_all(connection, tables=[schema.passed_files])


def _move_errors_and_notes_to_messages(connection: Connection) -> None:
    schema.metadata.create_all(connection, tables=[schema.run_messages])
    rows = []
    for run_id, error, tally in connection.execute(select(schema.runs.c.id, column("error"), schema.runs.c.tally)):
        said = [("error", "", error)] if error else []
        said += [("note", name, note) for name, each in (tally or {}).items() for note in each.get("notes", ())]
        names = ("run_id", "number", "level", "stream", "message")
        rows += [dict(zip(names, (run_id, number, *each), strict=True)) for number, each in enumerate(said)]
    if rows:
        connection.execute(insert(schema.run_messages), rows)
    connection.execute(text("ALTER TABLE runs DROP COLUMN error"))


def _add_begun_undos(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE intents ADD COLUMN only_unchanged VARCHAR(8)"))
    schema.metadata.create_all(connection, tables=[schema.begun_undos])


def _add_suspected_inputs(connection: Connection) -> None:
    schema.metadata.create_all(connection, tables=[schema.suspected_inputs])


def _add_marks_of_unverified_bindings(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE bindings ADD COLUMN unverified BOOLEAN"))
    schema.unverified_bindings.create(connection)
    schema.metadata.create_all(connection, tables=[schema.unverified])


def _add_mapping_of_idle_waits(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE waiting_records ADD COLUMN idle_under VARCHAR(64)"))


def _store_commands_of_runs(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE runs ADD COLUMN command TEXT"))


def _store_when_intents_were_resolved(connection: Connection) -> None:
    time = "TIMESTAMP WITH TIME ZONE" if connection.dialect.name == "postgresql" else "TEXT"
    connection.execute(text(f"ALTER TABLE intents ADD COLUMN resolved_at {time}"))


def _add_unknown_references(connection: Connection) -> None:
    schema.metadata.create_all(connection, tables=[schema.unknown_references])


def _replace_index_of_due_hints(connection: Connection) -> None:
    connection.execute(text("DROP INDEX IF EXISTS ix_hints_due_at"))
    for index in schema.hints.indexes:
        index.create(connection, checkfirst=True)


def _add_batches(connection: Connection) -> None:
    schema.metadata.create_all(connection, tables=[schema.batches, schema.sequences])
    connection.execute(text("ALTER TABLE intents ADD COLUMN batch_id BIGINT"))
    connection.execute(text("ALTER TABLE intents ADD COLUMN place INTEGER"))
    index = next(each for each in schema.intents.indexes if each.name == "ix_intents_batch")
    index.create(connection)


def _add_batch_receipts(connection: Connection) -> None:
    if "receipt" not in {column["name"] for column in inspect(connection).get_columns("batches")}:
        connection.execute(text("ALTER TABLE batches ADD COLUMN receipt TEXT NOT NULL DEFAULT ''"))


def _add_audit_log(connection: Connection) -> None:
    schema.metadata.create_all(connection, tables=[schema.audit_log])
    schema.listed_dead_letters.create(connection)


def _store_categories_of_errors(connection: Connection) -> None:
    if "category" not in {column["name"] for column in inspect(connection).get_columns("run_messages")}:
        connection.execute(text("ALTER TABLE run_messages ADD COLUMN category VARCHAR(16)"))


def _add_configs_of_runs(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE runs ADD COLUMN config VARCHAR(64)"))
    schema.metadata.create_all(connection, tables=[schema.configs])


def _add_fences_of_runs(connection: Connection) -> None:
    for table in ("runs", "scheduled_runs"):
        connection.execute(text(f"ALTER TABLE {table} ADD COLUMN fence BIGINT"))


def _index_runs_by_date(connection: Connection) -> None:
    (index,) = schema.runs.indexes
    index.create(connection)


MIGRATIONS: tuple[SchemaMigration, ...] = (
    _add_durations_of_runs,
    _create_indexes_of_files_and_lines,
    _rename_platform_id_columns_to_target_id,
    _create_tables_of_inbox,
    _add_system_migrations,
    _add_change_times_of_bindings,
    _store_untrimmed_keys,
    _add_full_lists_and_followed_records,
    _add_passed_files,
    _move_errors_and_notes_to_messages,
    _add_begun_undos,
    _add_suspected_inputs,
    _add_marks_of_unverified_bindings,
    _add_mapping_of_idle_waits,
    _store_commands_of_runs,
    _store_when_intents_were_resolved,
    _add_unknown_references,
    _replace_index_of_due_hints,
    _add_batches,
    _add_batch_receipts,
    _add_audit_log,
    _store_categories_of_errors,
    _add_configs_of_runs,
    _add_fences_of_runs,
    _index_runs_by_date,
)
"""Step n upgrades a state from version n to n + 1. Steps after a release are added here."""


def apply_schema_migrations(connection: Connection, steps: Sequence[SchemaMigration]) -> None:
    meta = schema.meta
    version = int(connection.execute(select(meta.c.value).where(meta.c.name == "version")).scalar_one())
    for step in steps[version - 1 :]:
        step(connection)
        version += 1
    connection.execute(update(meta).where(meta.c.name == "version").values(value=str(version)))


def insert_free_lease(connection: Connection) -> None:
    lease = {"name": "run", "fence": 0, "owner": "nobody", "locked": False, "until": LONG_AGO}
    connection.execute(insert(schema.leases), [lease])


def insert_lease_and_identity(connection: Connection) -> None:
    insert_free_lease(connection)
    connection.execute(insert(schema.meta), [{"name": IDENTITY, "value": uuid4().hex}])
