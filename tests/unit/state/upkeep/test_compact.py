"""What a state tells of itself, and how it gives back room."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import PIN
from tests.unit.state.test_store import AT, SCOPE, binding, intent, start

from crossdock.cli.state import size_text
from crossdock.errors import StateError
from crossdock.state import Scope, State, StateUrl, create, parse_url
from crossdock.state.db import engine as state_engine
from crossdock.state.queries.state_size import Contents, TableSize, Unsettled
from crossdock.state.tables.intents import Status
from crossdock.state.upkeep import compact


def contents(state: State) -> Contents:
    with state.look() as tx:
        return tx.statistics.contents()


def table(state: State, name: str) -> TableSize:
    (found,) = (each for each in contents(state).tables if each.name == name)
    return found


def fill(state: State, number: int) -> None:
    run = start(state)
    with state.begin() as tx:
        bound = [binding(n, payload={"name": "x" * 1_000}) for n in range(number)]
        tx.bindings.put(SCOPE, bound, run_id=run, at=AT)


def test_an_empty_state_tells_of_nothing(state: State) -> None:
    """Every table is told, and those without rows take nothing; there is nothing unsettled."""
    told = contents(state)
    by_name = {each.name: each.rows for each in told.tables}
    assert {name for name, rows in by_name.items() if rows} == {"crossdock_meta", "leases"}
    assert {
        "bindings",
        "intents",
        "attempts",
        "runs",
        "dead_letters",
        "waiting_records",
        "taken_files",
        "cursors",
    } <= by_name.keys()
    assert (told.bindings, told.unsettled, told.oldest) == ({}, {}, None)


def test_contents_are_counted_exactly(state: State) -> None:
    """Rows by table, live bindings by resource, operations that are not settled by status, and the oldest of them."""
    run = start(state)
    fates: list[Status] = ["delivered", "rejected", "in_doubt", "pending", "in_doubt", "dropped"]
    items = [intent(n, status=fate, stream=f"wms.s{n}") for n, fate in enumerate(fates)]
    with state.begin() as tx:
        tx.bindings.put(SCOPE, [binding(n) for n in range(5)], run_id=run, at=AT)
        tx.bindings.put(Scope("platform", "invoice", "wms"), [binding(1)], run_id=run, at=AT)
        tx.bindings.bury(SCOPE, [3], at=AT)
        tx.intents.add(items[3:], run_id=run, fence=1, at=AT)
        tx.intents.add(items[:3], run_id=run, fence=1, at=AT - timedelta(hours=1))
    told = contents(state)
    rows = {each.name: each.rows for each in told.tables}
    assert (rows["bindings"], rows["intents"], rows["runs"], rows["dead_letters"]) == (6, 6, 1, 0)
    assert told.bindings == {"product": 4, "invoice": 1}
    assert told.unsettled == {"in_doubt": 2, "pending": 1}
    assert told.oldest == Unsettled("wms.s2", "in_doubt", AT - timedelta(hours=1))


def test_a_table_is_as_large_as_its_rows(state: State) -> None:
    """The size of a table is near that of its data, and the state as a whole is larger."""
    fill(state, 1_000)
    told = table(state, "bindings")
    assert told.rows == 1_000
    assert 1_000_000 < told.size < 2_000_000
    assert contents(state).size > told.size


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(gone=st.sets(st.integers(1, 400), max_size=400))
def test_a_sample_is_taken_wherever_rows_are(tmp_path: Path, gone: set[int]) -> None:
    """Whatever rows are left, the estimate is that of their mean, and never fails."""
    url = parse_url("sqlite:///state.db", tmp_path)
    (tmp_path / "state.db").unlink(missing_ok=True)
    create(url, PIN)
    with closing(State(url, PIN)) as state:
        fill(state, 400)
        with closing(sqlite3.connect(tmp_path / "state.db")) as file, file:
            file.executemany("DELETE FROM bindings WHERE rowid = ?", [(each,) for each in gone])
        told = table(state, "bindings")
    assert told.rows == 400 - len(gone)
    assert 1_000 * told.rows <= told.size <= 1_300 * told.rows


def test_compacting_gives_back_room(tmp_path: Path) -> None:
    """Room that removed rows left is told, and the file is smaller by it afterwards; what is left can be read."""
    url = parse_url("sqlite:///state.db", tmp_path)
    create(url, PIN)
    with closing(State(url, PIN)) as state:
        fill(state, 1_000)
        with closing(sqlite3.connect(tmp_path / "state.db")) as file, file:
            file.execute("DELETE FROM bindings WHERE rowid > 10")
        before = contents(state)
        assert before.free is not None
        assert before.free > 900_000
        compact.compact(state, url)
        after = contents(state)
        assert after.free == 0
        assert after.size < before.size - 900_000
        assert after.size == sum((tmp_path / name).stat().st_size for name in ("state.db", "state.db-wal"))
        with state.look() as tx:
            assert sorted(tx.bindings.ids(SCOPE, range(1_000))) == list(range(10))


def test_compacting_changes_nothing_that_is_told(state: State, state_url: StateUrl) -> None:
    """On both databases counts are the same afterwards, and the state can be written."""
    fill(state, 20)
    before = contents(state)
    compact.compact(state, state_url)
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
    compact.compact(state, state_url)
    size = table(state, "bindings").size
    with state.look() as tx:
        seen = tx.bindings._connection.exec_driver_sql("SELECT reltuples FROM pg_class WHERE relname = 'bindings'")
        assert seen.scalar_one() == 500
    fill(state, 500)
    assert table(state, "bindings").size <= size * 1.1


def test_compacting_never_works_beside_a_run(state: State, state_url: StateUrl) -> None:
    """Whoever holds the run lock is left alone."""
    with (
        closing(State(state_url, PIN)) as other,
        state.exclusive("test"),
        pytest.raises(StateError, match="another run is using"),
    ):
        compact.compact(other, state_url)


def test_a_reader_is_in_the_way_of_compacting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While somebody reads an older state the file cannot shrink: that is told, with what to do."""
    monkeypatch.setattr(state_engine, "BUSY_S", 0.05)
    url = parse_url("sqlite:///state.db", tmp_path)
    create(url, PIN)
    with closing(State(url, PIN)) as state, closing(State(url, PIN)) as other:
        fill(state, 10)
        with other.look() as seen:
            assert seen.bindings.count() == {"product": 10}
            with pytest.raises(StateError, match="cannot be compacted: another process is reading the state") as told:
                compact.compact(state, url)
        assert "free disk space" in str(told.value.hint)
        compact.compact(state, url)


@pytest.mark.parametrize(
    ("size", "told"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (71 * 2**20 + 2**19, "71.5 MiB"),
        (2**40, "1.0 TiB"),
        (5_000 * 2**50, "5,000.0 PiB"),
    ],
)
def test_sizes_are_told_for_people(size: int, told: str) -> None:
    """A size has one digit after the point, and the largest unit of which there is one."""
    assert size_text(size) == told
