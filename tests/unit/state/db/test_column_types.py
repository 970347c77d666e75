"""Hashes, times and JSON are read from the state exactly as they were stored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Column, Integer, MetaData, Table, create_engine, insert, select
from tests.conftest import PIN
from tests.examples import examples
from tests.hashes import HASHES, NEAR_EDGES

from crossdock.state import (
    Binding,
    DeadLetter,
    RecordFilter,
    RecordIdentity,
    Scope,
    State,
    StateUrl,
    WaitingRecord,
    create_or_upgrade_state,
)
from crossdock.state.db.sql_types_and_statements import UtcDateTime
from crossdock.state.sidecar_files.key_index_files import HASH, KEY_HASH, KNOWN_FP
from crossdock.state.tables.pending_approvals_and_begun_undos import PendingApproval, packed_key_hashes

AT = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
SCOPE = Scope("platform", "product", "wms")
STREAM = "wms.products"


@pytest.fixture
def state(state_url: StateUrl, tmp_path: Path) -> Iterator[State]:
    """An empty state with a key index."""
    create_or_upgrade_state(state_url, PIN)
    with closing(State(state_url, PIN, keys=tmp_path / "keys")) as state:
        yield state


def put(state: State, facts: dict[int, int]) -> None:
    """Bindings, dead letters and waiting records of these key hashes and fingerprints."""
    with state.begin() as tx:
        run = tx.runs.start(business_date="2026-03-29", at=AT)
        made = [Binding(key, f"{key:x}", "p", fp, None, "whole", {}, None, 1) for key, fp in facts.items()]
        tx.bindings.put(SCOPE, made, run_id=run, at=AT)
        dead_letters = [
            DeadLetter(
                RecordIdentity(STREAM, f"{key:x}", key, fp, None, "f", 1), "plan", "rejected", None, "", {}, None
            )
            for key, fp in facts.items()
        ]
        tx.dead_letters.put(dead_letters, run_id=run, at=AT)
        waits = [
            WaitingRecord(RecordIdentity(STREAM, f"{key:x}", key, fp, None, "f", 1), [], {})
            for key, fp in facts.items()
        ]
        tx.waiting_records.put(waits, run_id=run, at=AT)


def known(state: State) -> dict[int, int]:
    return dict(state.key_index_frame_of_scope(SCOPE).select(KEY_HASH, KNOWN_FP).iter_rows())


@pytest.mark.nightly(but=["sqlite"])
@settings(max_examples=examples(10), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(facts=st.dictionaries(HASHES, HASHES, min_size=1, max_size=20))
def test_every_table_gives_back_the_hashes_that_it_took(state: State, facts: dict[int, int]) -> None:
    """Found by key, found in bulk, cleared by key: bindings, dead letters, waiting records and approvals."""
    put(state, facts)
    keys = list(facts)
    with state.begin() as tx:
        assert {key: each.fingerprint for key, each in tx.bindings.get(SCOPE, keys).items()} == facts
        assert set(tx.bindings.target_id_by_key_hash(SCOPE, keys)) == set(keys)
        assert dict(tx.snapshots.accepted_steps_of_live_bindings(SCOPE, keys)) == dict.fromkeys(keys, "whole")
        assert {
            key: fp for key, fp, *_ in tx.dead_letters.facts_of_all_letters_of_stream(STREAM)
        }.items() >= facts.items()
        assert tx.dead_letters.key_hashes_among(STREAM, keys) == set(keys)
        assert {key: tx.waiting_records.fingerprint(STREAM, key) for key in keys} == facts
        tx.pending_approvals.request_approval(PendingApproval(STREAM, "delete", packed_key_hashes(keys), AT))
        asked = tx.pending_approvals.get(STREAM)
        tx.dead_letters.remove_records(STREAM, keys)
        tx.waiting_records.remove_records(STREAM, keys)
        tx.pending_approvals.forget(STREAM)
        assert tx.dead_letters.key_hashes_among(STREAM, keys) == set()
        assert tx.waiting_records.matching(RecordFilter(STREAM)) == []
    assert asked is not None
    assert asked.key_hashes == sorted(keys)


@settings(max_examples=examples(10), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=st.dictionaries(HASHES, HASHES, max_size=10), later=st.dictionaries(HASHES, HASHES, min_size=1))
def test_the_key_index_holds_every_hash(state: State, first: dict[int, int], later: dict[int, int]) -> None:
    """Made from the bindings, brought up to date from a journal and put in another order, it says what they say."""
    put(state, first)
    state.update_key_index(SCOPE)
    put(state, later)
    before = known(state)
    assert before.items() >= (first | later).items()
    state.update_key_index(SCOPE)
    assert known(state) == before
    order = sorted(before, reverse=True)
    state.update_key_index(SCOPE, pl.Series(order, dtype=HASH))
    assert state.key_index_frame_of_scope(SCOPE)[KEY_HASH].to_list() == order
    assert known(state) == before
    with state.begin() as tx:
        tx.bindings.mark_deleted(SCOPE, order, at=AT)
    state.update_key_index(SCOPE)
    assert known(state) == {}


def test_hashes_sort_as_numbers(state: State) -> None:
    """The database compares all 128 bits, and none of them as a sign."""
    put(state, dict.fromkeys(NEAR_EDGES, 2))
    with state.begin_read_only() as tx:
        found = tx.dead_letters.facts_of_all_letters_of_stream(STREAM)
        assert sorted(tx.bindings.target_id_by_key_hash(SCOPE, NEAR_EDGES)) == NEAR_EDGES
    assert sorted(key for key, *_ in found) == NEAR_EDGES
    assert state.key_index_frame_of_scope(SCOPE)[KEY_HASH].sort().to_list() == NEAR_EDGES


def test_a_time_without_zone_is_refused() -> None:
    """A naive time is a mistake of ours and never stored."""
    table = Table("t", MetaData(), Column("at", UtcDateTime))
    engine = create_engine("sqlite://")
    table.metadata.create_all(engine)
    with engine.begin() as connection, pytest.raises(Exception, match="needs a time zone"):
        connection.execute(insert(table), {"at": datetime(2026, 1, 1)})  # noqa: DTZ001
    engine.dispose()


def test_times_sort_as_text_on_sqlite() -> None:
    """On SQLite instants are text that sorts by time, whatever zone they came in."""
    table = Table("t", MetaData(), Column("n", Integer), Column("at", UtcDateTime))
    engine = create_engine("sqlite://")
    table.metadata.create_all(engine)
    east = timezone(timedelta(hours=9))
    with engine.begin() as connection:
        times = [datetime(2026, 1, 2, 3, tzinfo=UTC), datetime(2026, 1, 2, 11, tzinfo=east)]
        connection.execute(insert(table), [{"n": n, "at": at} for n, at in enumerate(times)])
        assert connection.execute(select(table.c.n).order_by(table.c.at)).scalars().all() == [1, 0]
    engine.dispose()
