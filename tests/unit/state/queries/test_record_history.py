"""The history of a record is found by any of its names, without the record's data."""

from __future__ import annotations

from typing import Any

from msgspec import structs
from sqlalchemy import Connection, event, text
from tests.unit.state.samples import AT, SCOPE, binding, intent, start

from crossdock.state import Attempt, DeadLetter, FoundRecord, State, WaitingRecord

STREAM = "wms.products"

DATA = {"raw", "mapped", "body", "before", "after", "payload"}


def fill(state: State) -> None:
    """Record 1 was delivered after two attempts, 2 is a dead letter, 3 waits; they begin in lines 10, 20 and 30."""
    run = start(state)
    made = {number: intent(number, line=10 * number) for number in (1, 2, 3)}
    with state.begin() as tx:
        tx.intents.add([made[1]], run_id=run, fence=1, at=AT)
        made[1].status, made[1].target_id = "delivered", "prd_1"
        tx.intents.write_outcomes([made[1]], at=AT)
        tx.intents.store_attempt_results([Attempt(made[1].id, n, AT, "unavailable", 503, "try later") for n in (1, 2)])
        tx.bindings.put(SCOPE, [binding(1)], run_id=run, at=AT)
        letter = DeadLetter(made[2].identity, "mapping", "bad_value", None, "is bad", {}, None)
        tx.dead_letters.put([letter], run_id=run, at=AT)
        tx.waiting_records.put([WaitingRecord(made[3].identity, [], {})], run_id=run, at=AT)


def test_a_record_is_found_by_its_ids(state: State) -> None:
    """By the id at its target and by an idempotency key, with its scope or its stream."""
    fill(state)
    with state.begin_read_only() as tx:
        assert tx.record_history.records_by_id_or_idempotency_key("prd_1") == {
            FoundRecord(SCOPE, None, 1),
            FoundRecord(SCOPE, STREAM, 1),
        }
        assert tx.record_history.records_by_id_or_idempotency_key("key-1") == {FoundRecord(SCOPE, STREAM, 1)}
        assert tx.record_history.records_by_id_or_idempotency_key("nothing") == set()


def test_a_record_is_found_by_its_key_in_its_place_only(state: State) -> None:
    """A key hash means one record in each scope and stream."""
    fill(state)
    other = structs.replace(SCOPE, resource="order")
    with state.begin_read_only() as tx:
        assert (
            tx.record_history.all_scopes_in_state(),
            tx.record_history.all_streams_with_undelivered_records(),
        ) == ({SCOPE}, {STREAM})
        assert tx.record_history.records_with_keys([SCOPE, other], [STREAM], [2, 3]) == {
            FoundRecord(None, STREAM, 2),
            FoundRecord(None, STREAM, 3),
        }
        assert tx.record_history.records_with_keys([other], ["wms.orders"], [1, 2, 3]) == set()


def test_a_record_is_found_by_its_line(state: State) -> None:
    """The nearest records that begin at the line or above it, of that file only; several may begin there."""
    fill(state)
    again = intent(4, line=20)
    with state.begin() as tx:
        tx.intents.add([again], run_id=1, fence=1, at=AT)
    with state.begin_read_only() as tx:
        found = [tx.record_history.nearest_records_up_to_line("f.csv", line) for line in (9, 10, 29, 99)]
        assert [(line, {each.key_hash for each in records}) for line, records in found] == [
            (0, set()), (10, {1}), (20, {2, 4}), (30, {3}),
        ]  # fmt: skip
        assert tx.record_history.nearest_records_up_to_line("other.csv", 99) == (0, set())


def test_a_long_source_is_found_and_told_apart(state: State) -> None:
    """Only the beginning of a source is indexed; addresses of pages may be longer than an index entry can be."""
    long = "https://shop.example/orders?cursor=" + "ü" * 5_000
    run = start(state)
    with state.begin() as tx:
        tx.intents.add([intent(n, source=f"{long}{n}") for n in (1, 2)], run_id=run, fence=1, at=AT)
    with state.begin_read_only() as tx:
        assert tx.record_history.nearest_records_up_to_line(f"{long}2", 2) == (2, {FoundRecord(SCOPE, STREAM, 2)})


def test_rows_have_no_data(state: State) -> None:
    """All columns but those with the record's data, and the attempts of each operation in order."""
    fill(state)
    with state.begin_read_only() as tx:
        (operation,) = tx.record_history.operations(SCOPE, 1)
        letters, waits = tx.record_history.dead_letters(STREAM, 2), tx.record_history.waits_of_record(STREAM, 3)
        found = [operation, *tx.record_history.bindings(SCOPE, 1), *letters, *waits]
    assert [row["key"] for row in found] == ["K1", "K1", "K2", "K3"]
    assert [row["number"] for row in operation["sendings"]] == [1, 2]
    assert not any(DATA & row.keys() for row in found)


def test_every_query_uses_an_index(state: State) -> None:
    """No query of a trace reads a whole table, on either database."""
    fill(state)
    plans: list[str] = []

    def explain(connection: Connection, _: Any, statement: str, parameters: Any, *__: Any) -> None:
        own = connection.connection.cursor()
        kind = "EXPLAIN QUERY PLAN" if connection.dialect.name == "sqlite" else "EXPLAIN"
        own.execute(f"{kind} {statement}", parameters)
        plans.append("\n".join(map(str, own.fetchall())))

    with state.begin_read_only() as tx:
        connection = tx.record_history._connection
        if connection.dialect.name == "postgresql":
            connection.execute(text("SET LOCAL enable_seqscan = off"))  # else it prefers one for a table of one page
        event.listen(connection, "before_cursor_execute", explain)
        tx.record_history.records_by_id_or_idempotency_key("prd_1")
        tx.record_history.records_with_keys(
            tx.record_history.all_scopes_in_state(),
            tx.record_history.all_streams_with_undelivered_records(),
            [1, 2],
        )
        tx.record_history.nearest_records_up_to_line("f.csv", 99)
        tx.record_history.operations(SCOPE, 1)
        tx.record_history.bindings(SCOPE, 1)
        tx.record_history.dead_letters(STREAM, 2)
        tx.record_history.waits_of_record(STREAM, 3)
    assert len(plans) > 15
    assert not [plan for plan in plans if "SCAN" in plan or "Seq LatestRecords" in plan]
