"""Migrations upgrade an older state step by step."""

from __future__ import annotations

import warnings
from contextlib import closing
from datetime import timedelta

import pytest
from msgspec import structs
from sqlalchemy import Connection, create_engine, inspect, text, update
from tests.conftest import PIN
from tests.unit.state.samples import AT, SCOPE, binding, intent, start

from crossdock.errors import StateBusyError, StateError
from crossdock.state import AuditEntry, AuditFilter, RunResult, State, StateUrl, Transaction, create_or_upgrade_state
from crossdock.state.db import schema, schema_migrations
from crossdock.state.tables.run_history import UNRECORDED
from crossdock.values.run_progress_and_messages import RunMessage


def back_to(connection: Connection, version: int) -> None:
    """Give a new state the columns, tables and indexes of an older *version*, 1 to 3, 6 to 11, or 18 to 21."""
    schema.metadata.drop_all(connection, tables=[schema.audit_log, schema.configs])
    connection.execute(text("DROP INDEX ix_runs_business_date"))
    connection.execute(text("ALTER TABLE runs DROP COLUMN config"))
    for table in ("runs", "scheduled_runs"):
        connection.execute(text(f"ALTER TABLE {table} DROP COLUMN fence"))
    connection.execute(text("DROP INDEX ix_dead_letters_listed"))
    if version == 20:
        connection.execute(text("ALTER TABLE batches DROP COLUMN receipt"))
    if version < 20:
        schema.metadata.drop_all(connection, tables=[schema.batches, schema.sequences])
        connection.execute(text("DROP INDEX ix_intents_batch"))
        connection.execute(text("ALTER TABLE intents DROP COLUMN batch_id"))
        connection.execute(text("ALTER TABLE intents DROP COLUMN place"))
    if version < 19:
        connection.execute(text("DROP INDEX ix_hints_stream_due_at"))
        connection.execute(text("CREATE INDEX ix_hints_due_at ON hints (due_at)"))
    if version < 18:
        schema.metadata.drop_all(connection, tables=[schema.unknown_references])
    if version < 17:
        connection.execute(text("ALTER TABLE intents DROP COLUMN resolved_at"))
    if version < 16:
        connection.execute(text("ALTER TABLE runs DROP COLUMN command"))
    if version < 15:
        connection.execute(text("ALTER TABLE waiting_records DROP COLUMN idle_under"))
    if version < 14:
        schema.metadata.drop_all(connection, tables=[schema.unverified])
        schema.unverified_bindings.drop(connection)
        connection.execute(text("ALTER TABLE bindings DROP COLUMN unverified"))
    if version < 12:
        schema.metadata.drop_all(connection, tables=[schema.begun_undos])
        connection.execute(text("ALTER TABLE intents DROP COLUMN only_unchanged"))
    if version < 11:
        schema.metadata.drop_all(connection, tables=[schema.run_messages])
        connection.execute(text("ALTER TABLE runs ADD COLUMN error TEXT"))
    if version < 8:
        schema.metadata.drop_all(connection, tables=[schema.untrimmed_keys])
    if version < 7:
        connection.execute(text("ALTER TABLE bindings DROP COLUMN changed_at"))
    if version < 6:
        schema.metadata.drop_all(connection, tables=[schema.wave_approvals, schema.migration_runs, schema.migrations])
        connection.execute(text("ALTER TABLE intents DROP COLUMN untouched"))
    for table in ("bindings", "intents") if version < 4 else ():
        connection.execute(text(f"DROP INDEX ix_{table}_target_id"))
        connection.execute(text(f"ALTER TABLE {table} RENAME COLUMN target_id TO platform_id"))
        if version == 3 or table == "bindings":
            connection.execute(text(f"CREATE INDEX ix_{table}_platform_id ON {table} (platform_id)"))
    if version < 3:
        for index in schema.TRACE_INDEXES:
            index.drop(connection, checkfirst=index.name == "ix_intents_target_id")
    if version < 2:
        connection.execute(text("ALTER TABLE runs DROP COLUMN duration_ms"))
    connection.execute(update(schema.meta).where(schema.meta.c.name == "version").values(value=str(version)))


def with_a_binding(url: StateUrl) -> int:
    """Create a state with one binding, of the run with the returned id."""
    create_or_upgrade_state(url, PIN)
    state = State(url, PIN)
    run = start(state)
    with state.begin() as tx:
        tx.bindings.put(SCOPE, [binding(1)], run_id=run, at=AT)
    state.close()
    return run


def index_names(connection: Connection) -> set[str | None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SQLAlchemy warns that SQLite reports no expressions
        inspector = inspect(connection)
        return {each["name"] for table in inspector.get_table_names() for each in inspector.get_indexes(table)}


def test_an_upgrade_keeps_what_the_state_knows(state_url: StateUrl, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older state is refused until init has brought it up to date, step by step, with its bindings."""
    with_a_binding(state_url)
    steps = (
        lambda connection: connection.execute(text("CREATE TABLE later (n INTEGER)")),
        lambda connection: connection.execute(text("INSERT INTO later VALUES (3)")),
    )
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 2)
    monkeypatch.setattr(schema_migrations, "MIGRATIONS", (*schema_migrations.MIGRATIONS, *steps))
    with pytest.raises(StateError, match="'crossdock init' upgrades it"):
        State(state_url, PIN)
    assert not create_or_upgrade_state(state_url, PIN)
    assert not create_or_upgrade_state(state_url, PIN)
    opened = State(state_url, PIN)
    with opened.begin() as tx:
        assert tx.bindings.get(SCOPE, [1]) == {1: binding(1)}
    opened.close()
    engine = create_engine(state_url)
    with engine.begin() as connection:
        assert connection.execute(text("SELECT n FROM later")).scalars().all() == [3]
        assert inspect(connection).has_table("bindings")
    engine.dispose()


def test_a_state_that_a_run_uses_is_not_upgraded(state_url: StateUrl, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run of the former version would go on with the tables that it knows: the upgrade waits for its end."""
    create_or_upgrade_state(state_url, PIN)
    with closing(State(state_url, PIN)) as former, former.hold_run_lease("host:7"):
        monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
        step = lambda connection: connection.execute(text("CREATE TABLE later (n INTEGER)"))  # noqa: E731
        monkeypatch.setattr(schema_migrations, "MIGRATIONS", (*schema_migrations.MIGRATIONS, step))
        with pytest.raises(StateBusyError, match=r"another run is using this state \(host:7\)"):
            create_or_upgrade_state(state_url, PIN)
        with pytest.raises(StateError, match="'crossdock init' upgrades it"):
            State(state_url, PIN)
    assert not create_or_upgrade_state(state_url, PIN)
    State(state_url, PIN).close()


def test_version_2_stores_durations(state_url: StateUrl) -> None:
    """A run that ended has the time from its start to its end; one that was killed or still runs has none."""
    create_or_upgrade_state(state_url, PIN)
    old = State(state_url, PIN)
    ended, killed, running = (start(old) for _ in range(3))
    after = AT + timedelta(milliseconds=1_500)
    with old.begin() as tx:
        tx.runs.finish(ended, RunResult("done", requests=1), at=after)
    old.close()
    engine = create_engine(state_url)
    with engine.begin() as connection:
        finished = update(schema.runs).where(schema.runs.c.id == killed)
        connection.execute(finished.values(status="incomplete", finished_at=after))
        back_to(connection, 1)
    engine.dispose()
    assert not create_or_upgrade_state(state_url, PIN)
    opened = State(state_url, PIN)
    with opened.begin_read_only() as tx:
        durations = {run.id: run.duration for run in tx.runs.listed(limit=9)}
    opened.close()
    assert durations == {ended: after - AT, killed: None, running: None}


def test_version_3_has_the_indexes_of_trace(state_url: StateUrl) -> None:
    """An older state gets the same indexes as a new one, and keeps its data."""
    create_or_upgrade_state(state_url, PIN)
    engine = create_engine(state_url)
    with engine.begin() as connection:
        new = index_names(connection)
        back_to(connection, 2)
        assert {index.name for index in schema.TRACE_INDEXES}.isdisjoint(index_names(connection))
    assert not create_or_upgrade_state(state_url, PIN)
    with engine.connect() as connection:
        assert index_names(connection) == new
    engine.dispose()
    State(state_url, PIN).close()


def test_version_19_finds_what_is_due_of_one_stream(state_url: StateUrl) -> None:
    """The index of all that is due is replaced."""
    create_or_upgrade_state(state_url, PIN)
    engine = create_engine(state_url)
    with engine.begin() as connection:
        back_to(connection, 18)
    create_or_upgrade_state(state_url, PIN)
    with engine.connect() as connection:
        assert {name for name in index_names(connection) if "due_at" in str(name)} == {"ix_hints_stream_due_at"}
    engine.dispose()


def test_version_22_has_the_audit_log(state_url: StateUrl) -> None:
    """With the indexes of a new state. The upgrade can log itself: it is told which version it found."""
    create_or_upgrade_state(state_url, PIN)
    engine = create_engine(state_url)
    with engine.begin() as connection:
        new = index_names(connection)
        back_to(connection, 21)
    entry, found = AuditEntry.new_by_current_actor("init", "state", at=AT), list[int]()

    def changed(tx: Transaction, version: int) -> None:
        tx.audit_log.put(entry)
        found.append(version)

    assert not create_or_upgrade_state(state_url, PIN, changed)
    assert not create_or_upgrade_state(state_url, PIN, changed)
    assert found == [21]
    with engine.connect() as connection:
        assert index_names(connection) == new
    engine.dispose()
    with closing(State(state_url, PIN)) as opened, opened.begin_read_only() as tx:
        assert [structs.replace(each, id=0) for each in tx.audit_log.listed(AuditFilter(), limit=9)] == [entry]


def test_version_4_has_the_ids_of_targets(state_url: StateUrl) -> None:
    """The ids that the platform assigned are kept, and found as quickly as in a new state."""
    create_or_upgrade_state(state_url, PIN)
    old = State(state_url, PIN)
    run, left = start(old), intent(1, target_id="prd_1", operation="update")
    with old.begin() as tx:
        tx.bindings.put(SCOPE, [binding(1)], run_id=run, at=AT)
        tx.intents.add([left], run_id=run, fence=1, at=AT)
    old.close()
    engine = create_engine(state_url)
    with engine.begin() as connection:
        new = index_names(connection)
        back_to(connection, 3)
    assert not create_or_upgrade_state(state_url, PIN)
    with engine.connect() as connection:
        assert index_names(connection) == new
    engine.dispose()
    opened = State(state_url, PIN)
    with opened.begin_read_only() as tx:
        assert tx.bindings.get(SCOPE, [1]) == {1: binding(1)}
        assert [each.target_id for each in tx.intents.unsettled()] == ["prd_1"]
    opened.close()


def test_version_7_knows_when_records_changed(state_url: StateUrl) -> None:
    """Of what an older state has bound, it is unknown."""
    run = with_a_binding(state_url)
    engine = create_engine(state_url)
    with engine.begin() as connection:
        back_to(connection, 6)
    engine.dispose()
    assert not create_or_upgrade_state(state_url, PIN)
    opened = State(state_url, PIN)
    with opened.begin() as tx:
        tx.bindings.put(SCOPE, [binding(2, changed_at="2026-03-29T01:30:00Z")], run_id=run, at=AT)
        found = tx.bindings.get(SCOPE, [1, 2])
    opened.close()
    assert {number: each.changed_at for number, each in found.items()} == {1: None, 2: "2026-03-29T01:30:00Z"}


def test_an_upgrade_remembers_the_keys_with_white_space(state_url: StateUrl) -> None:
    """Of bindings and of operations that are not settled, so that keys without it are the same records."""
    create_or_upgrade_state(state_url, PIN)
    state = State(state_url, PIN)
    run = start(state)
    keys = {1: "%200017", 2: "0018", 3: "a%20b", 4: "A|%E3%80%80B"}
    with state.begin() as tx:
        tx.bindings.put(
            SCOPE, [structs.replace(binding(number), key=key) for number, key in keys.items()], run_id=run, at=AT
        )
    state.close()
    engine = create_engine(state_url)
    with engine.begin() as connection:
        back_to(connection, 7)
    engine.dispose()
    create_or_upgrade_state(state_url, PIN)
    state = State(state_url, PIN)
    with state.begin_read_only() as tx:
        assert tx.untrimmed_keys.untrimmed_keys_of_scope(SCOPE) == ["%200017", "A|%E3%80%80B"]
    state.close()


def test_version_11_keeps_what_runs_had_to_say(state_url: StateUrl) -> None:
    """The error of a run and the notes of its streams are messages; they end with their run."""
    create_or_upgrade_state(state_url, PIN)
    old = State(state_url, PIN)
    run, other = start(old), start(old)
    tally = {"wms.lots": {"notes": ["no new file"]}, "wms.bins": {"notes": []}}
    with old.begin() as tx:
        tx.runs.finish(run, RunResult("incomplete", tally=tally), at=AT)
    old.close()
    engine = create_engine(state_url)
    with engine.begin() as connection:
        back_to(connection, 10)
        connection.execute(
            text("UPDATE runs SET error = :error WHERE id = :run"), {"error": "f.csv: is short", "run": run}
        )
    engine.dispose()
    assert not create_or_upgrade_state(state_url, PIN)
    opened = State(state_url, PIN)
    with opened.begin_read_only() as tx:
        found = {each.id: each.messages for each in tx.runs.listed(limit=9)}
    opened.close()
    said = RunMessage("error", "", "f.csv: is short"), RunMessage("note", "wms.lots", "no new file")
    assert found == {run: said, other: (UNRECORDED,)}  # no process holds the state, so it has not ended well
