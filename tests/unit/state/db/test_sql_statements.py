"""Writing in bulk and looking up by key: exact, repeatable, and as quick for a scope that is new as for an old one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Column, Integer, MetaData, Table, create_engine, insert, select, text
from tests.conftest import PIN
from tests.unit.state.test_store import AT, SCOPE, binding, intent, start

from crossdock import exact_json
from crossdock.errors import InternalError, StateError
from crossdock.state import Accepted, DeadLetter, RecordIdentity, Scope, State, WaitingRecord, create, parse_url
from crossdock.state.db import sql_statements
from crossdock.state.db.column_types import ExactJson, Hash, UtcDateTime

OTHER = Scope("platform", "invoice", "wms")
hashes = st.integers(0, (1 << 128) - 100)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kept=st.lists(hashes, max_size=30, unique=True), asked=st.lists(hashes, max_size=30), number=st.integers(1, 9))
def test_look_ups_find_what_there_is(state: State, kept: list[int], asked: list[int], number: int) -> None:
    """Of any keys, some asked for twice, those of the scope are found and no others, with what was put last."""
    run, wanted = start(state), [*asked, *kept[::2], *kept[:3]]
    scope = Scope("platform", "product", f"n{run}")
    with state.begin() as tx:
        tx.bindings.put(scope, [binding(each, counter=1) for each in kept], run_id=run, at=AT)
        tx.bindings.put(scope, [binding(each, counter=number) for each in kept[::3]], run_id=run, at=AT)
        tx.bindings.put(OTHER, [binding(each, platform_id="other") for each in asked], run_id=run, at=AT)
    with state.look() as tx:
        last = dict.fromkeys(kept, 1) | dict.fromkeys(kept[::3], number)
        there = {each: last[each] for each in wanted if each in last}
        assert tx.bindings.counters(scope, wanted) == there
        assert {key: found.counter for key, found in tx.bindings.get(scope, wanted).items()} == there
        assert tx.bindings.ids(scope, wanted) == {each: f"prd_{each}" for each in there}
        assert set(tx.bindings.ids(OTHER, asked).values()) <= {"other"}


def test_the_highest_counter_of_each_key_is_found(state: State) -> None:
    """Of a record with several operations the highest counter counts, and only its own scope's."""
    run = start(state)
    items = [intent(key, counter=c, idempotency_key=f"{key}-{c}") for key in (1, 2) for c in (1, 3, 2)]
    items.append(intent(1, counter=9, idempotency_key="other", namespace="other"))
    with state.begin() as tx:
        tx.intents.add(items, run_id=run, fence=1, at=AT)
    with state.look() as tx:
        assert tx.intents.counters(SCOPE, [2, 1, 1, 3]) == {1: 3, 2: 3}
        assert tx.intents.counters(SCOPE, []) == {}


def test_what_is_accepted_is_bound(state: State) -> None:
    """A record that was just accepted is bound as any other, whatever its scope, and replaces what was bound."""
    run, payload = start(state), {"name": "é", "unitPrice": Decimal("0.10")}
    facts = binding(7, payload=payload, etag='"2"', counter=4)
    text = exact_json.dumps(payload).decode()
    accepted = Accepted(
        SCOPE, 7, facts.key, facts.platform_id, facts.fingerprint, None, "whole", text, facts.etag, facts.counter
    )
    with state.begin() as tx:
        tx.bindings.put(SCOPE, [binding(7)], run_id=run, at=AT)
        tx.bindings.accept([accepted, replace(accepted, scope=OTHER)], run_id=run, at=AT)
        assert tx.bindings.get(SCOPE, [7]) == tx.bindings.get(OTHER, [7]) == {7: facts}


def test_what_was_buried_is_bound_again(state: State) -> None:
    """A record that is gone keeps its counter alone, until it is delivered once more."""
    run = start(state)
    with state.begin() as tx:
        tx.bindings.put(SCOPE, [binding(1, counter=5), binding(2)], run_id=run, at=AT)
        tx.bindings.bury(SCOPE, [1, 9], at=AT)
        assert (tx.bindings.get(SCOPE, [1]), tx.bindings.counters(SCOPE, [1])) == ({}, {1: 5})
        assert tx.bindings.count() == {"product": 1}
        tx.bindings.put(SCOPE, [binding(1, counter=6)], run_id=run, at=AT)
        assert tx.bindings.get(SCOPE, [1, 2]) == {1: binding(1, counter=6), 2: binding(2)}


def test_ids_are_those_of_the_rows(state: State) -> None:
    """Each intent is given the id under which it stands, ascending, also after a transaction that came to nothing."""
    run = start(state)
    first, lost, second = [[intent(10 * n + k) for k in range(3)] for n in range(3)]
    with state.begin() as tx:
        tx.intents.add(first, run_id=run, fence=1, at=AT)
    with pytest.raises(ZeroDivisionError), state.begin() as tx:
        tx.intents.add(lost, run_id=run, fence=1, at=AT)
        raise ZeroDivisionError
    with state.begin() as tx:
        tx.intents.add(second, run_id=run, fence=1, at=AT)
        found = tx.intents.unsettled()
    assert [(each.id, each.identity.key) for each in found] == [
        (each.id, each.identity.key) for each in (*first, *second)
    ]
    assert [each.id for each in found] == sorted({each.id for each in found})


def test_an_intent_that_leaves_at_once_is_written_as_sending(state: State) -> None:
    """New intents are written as they are; of those that stand there already the ones that leave are marked."""
    run = start(state)
    leaving, staying = intent(1), intent(2)
    leaving.leave(AT)
    for _ in range(2):
        with state.begin() as tx:
            tx.intents.add([leaving, staying], run_id=run, fence=1, at=AT)
    staying.leave(AT + timedelta(seconds=1))
    with state.begin() as tx:
        tx.intents.add([leaving, staying], run_id=run, fence=1, at=AT)
        assert tx.intents.unsettled() == [leaving, staying]
    assert (staying.status, staying.attempts, staying.id > leaving.id) == ("sending", 1, True)


def test_a_key_of_another_record_is_found_among_new_ones(state: State) -> None:
    """A key that another record's intent has fails the whole turn, wherever it stands in it."""
    run = start(state)
    with state.begin() as tx:
        tx.intents.add([intent(5)], run_id=run, fence=1, at=AT)
    with pytest.raises(InternalError, match="share an idempotency key"), state.begin() as tx:
        tx.intents.add([intent(1), intent(6, idempotency_key="key-5"), intent(2)], run_id=run, fence=1, at=AT)
    with state.begin() as tx:
        assert [each.identity.key for each in tx.intents.unsettled()] == ["K5"]


def test_clearing_takes_what_is_named(state: State) -> None:
    """Of a stream's dead letters and waiting records those named go, and none of another stream's."""
    run = start(state)
    dead_letters = [
        DeadLetter(
            RecordIdentity(stream, f"K{key}", key, 5, None, "f", 3), "mapping", "bad_value", None, "is bad", {}, None
        )
        for stream in "ab"
        for key in (1, 2, 3)
    ]
    waits = [
        WaitingRecord(
            RecordIdentity(each.identity.stream, each.identity.key, each.identity.key_hash, 5, None, "f", 3), [], {}
        )
        for each in dead_letters
    ]
    with state.begin() as tx:
        tx.dead_letters.put(dead_letters, run_id=run, at=AT)
        tx.waiting_records.put(waits, run_id=run, at=AT)
        for backlog in (tx.dead_letters, tx.waiting_records):
            backlog.clear("a", [1, 3, 9])
            backlog.clear("b", [])
            backlog.clear("c", [1])
        assert {(row["stream"], row["key_hash"]) for row in tx.dead_letters.listed(limit=9)} == {
            ("a", 2), ("b", 1), ("b", 2), ("b", 3),
        }  # fmt: skip
        assert [each.identity.key_hash for each in tx.waiting_records.of("a")] == [2]
        assert [each.identity.key_hash for each in tx.waiting_records.of("b")] == [1, 2, 3]


def test_a_look_writes_nothing(state: State) -> None:
    """What only looks is refused every write, and the next transaction is not."""
    with pytest.raises(StateError, match="(?i)read.?only"), state.look() as tx:
        tx.runs.start(business_date="2026-03-29", at=AT)
    with pytest.raises(StateError, match="(?i)read.?only"):
        state.ask(lambda tx: tx.runs.start(business_date="2026-03-29", at=AT))
    run = start(state)
    assert state.ask(lambda tx: [each.id for each in tx.runs.listed(limit=9)]) == [run]


def test_a_look_waits_for_no_writer(tmp_path: Path) -> None:
    """While somebody writes a look sees what was there before; while a run holds the state it flushes nothing."""
    url = parse_url("sqlite:///state.db", tmp_path)
    create(url, PIN)
    state, other = State(url, PIN), State(url, PIN)
    run, log = start(state), tmp_path / "state.db-wal"
    with state.begin() as tx, other.look() as seen:
        tx.runs.start(business_date="2026-03-30", at=AT)
        assert [each.id for each in seen.runs.listed(limit=9)] == [run]
    with state.exclusive("test"):
        before = log.stat().st_mtime_ns
        with state.look() as seen:
            assert len(seen.runs.listed(limit=9)) == 2
        assert log.stat().st_mtime_ns == before
        state.apply(lambda tx: tx.runs.listed(limit=1))
        assert log.stat().st_mtime_ns > before, "a transaction that may write confirms the lease"
    state.close()
    other.close()


def test_cells_are_converted_as_core_does(tmp_path: Path) -> None:
    """Rows in bulk are, cell by cell, what one insert each makes of them: hashes, JSON, instants in any zone."""
    table = Table(
        "t", MetaData(),
        Column("n", Integer, primary_key=True), Column("h", Hash), Column("j", ExactJson), Column("at", UtcDateTime),
    )  # fmt: skip
    engine = create_engine(f"sqlite:///{tmp_path}/t.db")
    table.metadata.create_all(engine)
    here = ZoneInfo("Europe/Berlin")
    twice = datetime(2026, 10, 25, 2, 30, tzinfo=here)  # equal to its second time, and an hour before it
    instants = [twice, twice, twice.replace(fold=1), None, None, twice.astimezone(UTC), twice]
    rows = [
        {"n": n, "h": n << 100, "j": {"b": Decimal("1.50"), "a": [n, None]} if n % 2 else None, "at": at}
        for n, at in enumerate(instants)
    ]
    with engine.begin() as connection:
        for row in rows:
            connection.execute(insert(table).values(row))
        one_by_one = connection.execute(text("SELECT * FROM t")).all()
        connection.execute(table.delete())
        sql_statements.upsert(connection, table, [{**row, "h": 1} for row in rows[:2]])
        sql_statements.upsert(connection, table, rows)
        assert connection.execute(text("SELECT * FROM t")).all() == one_by_one
        with pytest.raises(ValueError, match="needs a time zone"):
            sql_statements.upsert(connection, table, [{"n": 9, "at": datetime(2026, 1, 1)}])  # noqa: DTZ001
        assert connection.execute(select(table.c.n).where(table.c.n == 9)).first() is None
    engine.dispose()


@pytest.mark.postgres
@pytest.mark.parametrize("state_url", ["postgresql"], indirect=True)
def test_a_new_scope_is_not_read_through(state: State) -> None:
    """On PostgreSQL, before it has statistics, a look-up of some keys reads rows of those and not of all the scope."""
    run = start(state)
    with state.begin() as tx:
        tx.bindings.put(SCOPE, [binding(n) for n in range(5_000)], run_id=run, at=AT)
        tx.intents.add([intent(n) for n in range(5_000)], run_id=run, fence=1, at=AT)
    counted = text("SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables")
    some = range(0, 2_000, 20)
    with state.look() as tx:
        connection = tx.bindings._connection
        before = connection.execute(counted).scalar_one()
        for _ in range(12):  # from the sixth time on a statement is prepared, and from the eleventh its plan is kept
            for look_up in (tx.bindings.get, tx.bindings.counters, tx.bindings.ids, tx.intents.counters):
                assert len(look_up(SCOPE, some)) == len(some)
        assert connection.execute(counted).scalar_one() - before == 12 * 4 * len(some)
