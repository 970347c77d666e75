"""Compacting releases space, keeps the data and runs alone."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.conftest import PIN
from tests.unit.state.queries.test_state_size import contents, fill, table
from tests.unit.state.samples import SCOPE, start

from crossdock.errors import StateError
from crossdock.state import State, StateUrl, create_or_upgrade_state, parse_database_url, purge_and_compaction
from crossdock.state.db import database_opening_and_errors as state_engine


def test_compacting_gives_back_room(tmp_path: Path) -> None:
    """The space of removed rows is shown before and released afterwards; the other rows stay."""
    url = parse_database_url("sqlite:///state.db", tmp_path)
    create_or_upgrade_state(url, PIN)
    with closing(State(url, PIN)) as state:
        fill(state, 1_000)
        with closing(sqlite3.connect(tmp_path / "state.db")) as file, file:
            file.execute("DELETE FROM bindings WHERE rowid > 10")
        before = contents(state)
        assert before.free is not None
        assert before.free > 900_000
        purge_and_compaction.release_space_of_removed_rows(url)
        after = contents(state)
        assert after.free == 0
        assert after.size < before.size - 900_000
        assert after.size == sum((tmp_path / name).stat().st_size for name in ("state.db", "state.db-wal"))
        with state.begin_read_only() as tx:
            assert sorted(tx.bindings.target_id_by_key_hash(SCOPE, range(1_000))) == list(range(10))


def test_compacting_keeps_the_contents(state: State, state_url: StateUrl) -> None:
    """On both databases counts are the same afterwards, and the state can be written."""
    fill(state, 20)
    before = contents(state)
    purge_and_compaction.release_space_of_removed_rows(state_url)
    after = contents(state)
    assert {each.name: each.rows for each in after.tables} == {each.name: each.rows for each in before.tables}
    assert after.bindings == before.bindings
    start(state)


@pytest.mark.postgres
@pytest.mark.parametrize("state_url", ["postgresql"], indirect=True)
def test_a_server_looks_at_what_it_holds(state: State, state_url: StateUrl) -> None:
    """On PostgreSQL compacting leaves statistics of every table, and rows that were replaced make room."""
    for _ in range(2):
        fill(state, 500)
    purge_and_compaction.release_space_of_removed_rows(state_url)
    size = table(state, "bindings").size
    with state.begin_read_only() as tx:
        seen = tx.bindings._connection.exec_driver_sql("SELECT reltuples FROM pg_class WHERE relname = 'bindings'")
        assert seen.scalar_one() == 500
    fill(state, 500)
    assert table(state, "bindings").size <= size * 1.1


def test_a_reader_blocks_compacting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process reads the state the file cannot shrink: an error says what to do."""
    monkeypatch.setattr(state_engine, "BUSY_S", 0.05)
    url = parse_database_url("sqlite:///state.db", tmp_path)
    create_or_upgrade_state(url, PIN)
    with closing(State(url, PIN)) as state, closing(State(url, PIN)) as other:
        fill(state, 10)
        with other.begin_read_only() as seen:
            assert seen.bindings.counts_by_resource() == {"product": 10}
            with pytest.raises(
                StateError, match="cannot be compacted: another process is reading the state"
            ) as refused:
                purge_and_compaction.release_space_of_removed_rows(url)
        assert "free disk space" in str(refused.value.hint)
        purge_and_compaction.release_space_of_removed_rows(url)
