"""Migrations upgrade an older state step by step."""

from __future__ import annotations

import warnings
from datetime import timedelta

import pytest
from sqlalchemy import create_engine, inspect, text, update
from tests.conftest import PIN
from tests.unit.state.samples import AT, SCOPE, binding, start

from crossdock.errors import StateError
from crossdock.state import (
    State,
    StateUrl,
    create,
)
from crossdock.state.db import migrations, schema


def test_an_upgrade_keeps_what_the_state_knows(state_url: StateUrl, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older state is refused until init has brought it up to date, step by step, with its bindings."""
    create(state_url, PIN)
    old = State(state_url, PIN)
    run = start(old)
    with old.begin() as tx:
        tx.bindings.put(SCOPE, [binding(1)], run_id=run, at=AT)
    old.close()
    steps = (
        lambda connection: connection.execute(text("CREATE TABLE later (n INTEGER)")),
        lambda connection: connection.execute(text("INSERT INTO later VALUES (3)")),
    )
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 2)
    monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, *steps))
    with pytest.raises(StateError, match="'crossdock init' upgrades it"):
        State(state_url, PIN)
    assert not create(state_url, PIN)
    assert not create(state_url, PIN)
    opened = State(state_url, PIN)
    with opened.begin() as tx:
        assert tx.bindings.get(SCOPE, [1]) == {1: binding(1)}
    opened.close()
    engine = create_engine(state_url)
    with engine.begin() as connection:
        assert connection.execute(text("SELECT n FROM later")).scalars().all() == [3]
        assert inspect(connection).has_table("bindings")
    engine.dispose()


def test_version_2_stores_durations(state_url: StateUrl) -> None:
    """A run that ended has the time from its start to its end; one that was killed or still runs has none."""
    create(state_url, PIN)
    old = State(state_url, PIN)
    ended, killed, running = (start(old) for _ in range(3))
    after = AT + timedelta(milliseconds=1_500)
    with old.begin() as tx:
        tx.runs.finish(ended, status="done", requests=1, throttled=0, tally={}, error=None, duration_ms=0, at=after)
    old.close()
    engine = create_engine(state_url)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE runs DROP COLUMN duration_ms"))
        for index in schema.TRACE_INDEXES:
            index.drop(connection)
        finished = update(schema.runs).where(schema.runs.c.id == killed)
        connection.execute(finished.values(status="incomplete", finished_at=after))
        connection.execute(text("UPDATE crossdock_meta SET value = '1' WHERE name = 'version'"))
    engine.dispose()
    assert not create(state_url, PIN)
    opened = State(state_url, PIN)
    with opened.look() as tx:
        durations = {run.id: run.duration for run in tx.runs.listed(limit=9)}
    opened.close()
    assert durations == {ended: after - AT, killed: None, running: None}


def test_version_3_has_the_indexes_of_trace(state_url: StateUrl) -> None:
    """An older state gets the same indexes as a new one, and keeps its data."""
    create(state_url, PIN)
    engine = create_engine(state_url)
    tables = ("intents", "dead_letters", "waiting_records")

    def places() -> set[str | None]:
        with engine.connect() as connection, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SQLAlchemy warns that SQLite reports no expressions
            return {each["name"] for table in tables for each in inspect(connection).get_indexes(table)}

    new = places()
    with engine.begin() as connection:
        for index in schema.TRACE_INDEXES:
            index.drop(connection)
        connection.execute(update(schema.meta).where(schema.meta.c.name == "version").values(value="2"))
    assert places() < new
    assert not create(state_url, PIN)
    assert places() == new
    engine.dispose()
    State(state_url, PIN).close()
