"""Reading a SQLite state ahead: only where it is faster, and without harm to SQLite's locks."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from tests.conftest import PIN
from tests.unit.state.samples import start

from crossdock.state import (
    State,
    create_or_upgrade_state,
    parse_database_url,
)


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system takes no advice")
def test_many_rows_have_the_file_read_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first byte to the last, where looking up the rows would take the disk longer; else nothing is read."""
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda _, start, length, __: asked.append((start, length)))
    create_or_upgrade_state(parse_database_url("sqlite:///state.db", tmp_path), PIN)
    size = (tmp_path / "state.db").stat().st_size
    with closing(State(parse_database_url("sqlite:///state.db", tmp_path), PIN)) as state:
        state.preload_database(0)
        assert not asked
        state.preload_database(10_000)
    assert asked[0][0] == 0
    assert all(start + length == after for (start, length), (after, _) in pairwise(asked))
    assert sum(asked[-1]) >= size


def test_reading_ahead_keeps_the_locks(tmp_path: Path) -> None:
    """Another process that comes and goes meanwhile is not the last one, which would remove the log of the writes."""
    url = parse_database_url("sqlite:///state.db", tmp_path)
    create_or_upgrade_state(url, PIN)
    with closing(State(url, PIN)) as state:
        start(state)
        state.preload_database(10**6)
        visit = (
            "import sqlite3, sys; file = sqlite3.connect(sys.argv[1]); file.execute('SELECT * FROM runs').fetchall()"
        )
        subprocess.run([sys.executable, "-c", f"{visit}; file.close()", tmp_path / "state.db"], check=True)
        assert (tmp_path / "state.db-wal").exists()
        assert start(state) == 2


def test_reading_ahead_is_never_needed(state: State, tmp_path: Path) -> None:
    """On PostgreSQL, and where the file is gone, it does nothing."""
    state.preload_database(10**9)
    (tmp_path / "state.db").unlink(missing_ok=True)
    state.preload_database(10**9)
