"""A purge runs alone and leaves no remnant in the file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.conftest import PIN
from tests.unit.state.upkeep.old_rows import (
    AGES,
    CANARY,
    OLD,
    dead_letter,
    item,
    purge,
    run,
    settle,
)

from crossdock.errors import StateError
from crossdock.state import (
    State,
    create_or_upgrade_state,
    parse_database_url,
    retention,
)
from crossdock.state import purge_and_compaction as purging
from crossdock.state.db import database_opening_and_errors as state_engine


def bytes_of(tmp_path: Path) -> bytes:
    return b"".join(path.read_bytes() for path in tmp_path.glob("state.db*"))


def test_purged_data_is_gone_from_the_file(tmp_path: Path) -> None:
    """No byte of it stands in the database or its log: of what the purge removed, nor of what runs overwrote before."""
    url = parse_database_url("sqlite:///state.db", tmp_path)
    create_or_upgrade_state(url, PIN)
    with closing(State(url, PIN)) as state:
        number = run(state)
        settle(state, number, [item(key, body=f"{CANARY}{'x' * key * 100}".encode()) for key in range(200)], "rejected")
        with state.begin() as tx:
            tx.dead_letters.put([dead_letter(key) for key in range(200)], run_id=number, at=OLD)
        with closing(sqlite3.connect(tmp_path / "state.db")) as careless, careless:
            careless.execute("PRAGMA secure_delete=OFF")  # what a run's connection has, but for where it is built in
            careless.execute("DELETE FROM dead_letters WHERE rowid % 2")
        assert CANARY.encode() in bytes_of(tmp_path)
        purge(state, url)
        assert CANARY.encode() not in bytes_of(tmp_path)


def test_a_reader_blocks_the_purge_of_remnants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process reads the state the log cannot be emptied: an error; a second purge does it."""
    monkeypatch.setattr(state_engine, "BUSY_S", 0.05)
    url = parse_database_url("sqlite:///state.db", tmp_path)
    create_or_upgrade_state(url, PIN)
    with (
        closing(State(url, PIN)) as state,
        closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as other,
    ):
        settle(state, run(state), [item(1)], "rejected")
        other.execute("BEGIN")
        other.execute("SELECT * FROM intents").fetchall()
        with pytest.raises(StateError, match="another process is reading the state"):
            purging.purge_rows_and_rewrite_file(state, url, AGES)
        other.execute("COMMIT")
        purging.purge_rows_and_rewrite_file(state, url, AGES)
    assert CANARY.encode() not in bytes_of(tmp_path)


def test_a_bounded_purge_says_whether_it_is_finished(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more batches than allowed; what is left is done by the next calls."""
    monkeypatch.setattr(retention, "BATCH", 2)
    settle(state, run(state), [item(key) for key in range(1, 6)], "delivered")
    done, is_finished = purging.purge_in_batches(state, AGES, batches=2)
    assert (done.operations_removed, is_finished) == (4, False)
    done, is_finished = purging.purge_in_batches(state, AGES, batches=99)
    assert (done.operations_removed, is_finished) == (1, True)
