"""The size and contents of a state, exact or estimated from a sample."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import PIN
from tests.examples import examples
from tests.unit.state.samples import AT, SCOPE, binding, intent, start

from crossdock.state import Scope, State, create_or_upgrade_state, parse_database_url
from crossdock.state.queries.record_counts_and_state_size import StateContents, TableSize, UnsettledOperation
from crossdock.state.tables.intents_and_stored_batches import Status


def contents(state: State) -> StateContents:
    with state.begin_read_only() as tx:
        return tx.state_size.contents()


def table(state: State, name: str) -> TableSize:
    (found,) = (each for each in contents(state).tables if each.name == name)
    return found


def fill(state: State, number: int) -> None:
    run = start(state)
    with state.begin() as tx:
        bound = [binding(n, payload={"name": "x" * 1_000}) for n in range(number)]
        tx.bindings.put(SCOPE, bound, run_id=run, at=AT)


def test_an_empty_state_has_no_contents(state: State) -> None:
    """Every table is listed, only two have rows, and nothing is unsettled."""
    found = contents(state)
    by_name = {each.name: each.rows for each in found.tables}
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
    assert (found.bindings, found.unsettled, found.oldest) == ({}, {}, None)


def test_contents_are_counted_exactly(state: State) -> None:
    """Rows by table, live bindings by resource, operations that are not settled by status, and the oldest of them."""
    run = start(state)
    fates: list[Status] = ["delivered", "rejected", "in_doubt", "pending", "in_doubt", "dropped"]
    items = [intent(n, status=fate, stream=f"wms.s{n}") for n, fate in enumerate(fates)]
    with state.begin() as tx:
        tx.bindings.put(SCOPE, [binding(n) for n in range(5)], run_id=run, at=AT)
        tx.bindings.put(Scope("platform", "invoice", "wms"), [binding(1)], run_id=run, at=AT)
        tx.bindings.mark_deleted(SCOPE, [3], at=AT)
        tx.intents.add(items[3:], run_id=run, fence=1, at=AT)
        tx.intents.add(items[:3], run_id=run, fence=1, at=AT - timedelta(hours=1))
    found = contents(state)
    rows = {each.name: each.rows for each in found.tables}
    assert (rows["bindings"], rows["intents"], rows["runs"], rows["dead_letters"]) == (6, 6, 1, 0)
    assert found.bindings == {"product": 4, "invoice": 1}
    assert found.unsettled == {"in_doubt": 2, "pending": 1}
    assert found.oldest == UnsettledOperation("wms.s2", "in_doubt", AT - timedelta(hours=1))


def test_a_table_is_as_large_as_its_rows(state: State) -> None:
    """The size of a table is near that of its data, and the state as a whole is larger."""
    fill(state, 1_000)
    found = table(state, "bindings")
    assert found.rows == 1_000
    assert 1_000_000 < found.size < 2_000_000
    assert contents(state).size > found.size


@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(gone=st.sets(st.integers(1, 400), max_size=400))
def test_a_sample_is_taken_wherever_rows_are(tmp_path: Path, gone: set[int]) -> None:
    """Whatever rows are left, the estimate is near their number times their mean size."""
    url = parse_database_url("sqlite:///state.db", tmp_path)
    (tmp_path / "state.db").unlink(missing_ok=True)
    create_or_upgrade_state(url, PIN)
    with closing(State(url, PIN)) as state:
        fill(state, 400)
        with closing(sqlite3.connect(tmp_path / "state.db")) as file, file:
            file.executemany("DELETE FROM bindings WHERE rowid = ?", [(each,) for each in gone])
        found = table(state, "bindings")
    assert found.rows == 400 - len(gone)
    assert 1_000 * found.rows <= found.size <= 1_300 * found.rows
