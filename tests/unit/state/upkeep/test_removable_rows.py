"""Old rows expire, and nothing that a later run relies on does."""

from __future__ import annotations

import pytest
from msgspec import structs
from tests.unit.state.samples import SCOPE, binding
from tests.unit.state.upkeep.old_rows import (
    AGES,
    CANARY,
    NOW,
    OLD,
    YOUNG,
    dead_letter,
    item,
    minted_next,
    purge,
    rows,
    run,
    settle,
)

from crossdock.state import (
    Attempt,
    RecordFilter,
    RecordIdentity,
    State,
    StateUrl,
    StoredBatch,
    WaitingRecord,
)
from crossdock.state.db.schema import attempts, batches, intents, run_messages, runs
from crossdock.state.retention import PurgeResult
from crossdock.state.tables.intents_and_stored_batches import Status


def test_old_delivered_operations_go(state: State, state_url: StateUrl) -> None:
    """A delivered operation is removed with its attempts once it is old enough; its binding keeps the counter."""
    number, old, young = run(state), item(1), item(3)
    settle(state, number, [old, item(2)], "delivered")
    settle(state, number, [item(2, 2), young], "delivered", at=YOUNG)
    with state.begin() as tx:
        tx.intents.store_attempt_results(
            [Attempt(each.id, 1, OLD, "in_doubt", 500, "is away") for each in (old, young)]
        )
    assert purge(state, state_url).operations_removed == 2
    assert [(row["key_hash"], row["counter"]) for row in rows(state_url, intents)] == [(2, 2), (3, 1)]
    assert [row["intent_id"] for row in rows(state_url, attempts)] == [young.id]
    assert [minted_next(state, key) for key in (1, 2, 3)] == [2, 3, 2]


def test_a_migration_keeps_its_history_until_it_is_signed_off(state: State, state_url: StateUrl) -> None:
    """Operations, dead letters and runs of a migration can be undone and reported, however old they are."""
    ordinary, own = run(state), run(state)
    settle(state, ordinary, [item(1), item(1, 2)], "delivered")
    settle(state, own, [item(2), item(2, 2)], "delivered")
    with state.begin() as tx:
        tx.dead_letters.put([dead_letter(3)], run_id=own, at=OLD)
        migration = tx.migrations.begin("acme", at=OLD, by="ann")
        tx.migrations.add_run(migration, own, "load", "products")
    run(state, YOUNG)
    kept = purge(state, state_url)
    assert (kept.operations_removed, kept.dead_letters_emptied) == (2, 0)
    assert [row["key_hash"] for row in rows(state_url, intents)] == [2, 2]
    with state.begin() as tx:
        tx.migrations.sign_off(migration, at=NOW, by="bob", report_sha256="0" * 64)
    done = purge(state, state_url)
    assert (done.operations_removed, done.dead_letters_emptied) == (2, 1)


@pytest.mark.parametrize("status", ["pending", "sending", "in_doubt"])
def test_what_is_unsettled_stays_whole(state: State, state_url: StateUrl, status: Status) -> None:
    """However old it is, an operation without a settled fate keeps its bytes, and so does what waits."""
    number = run(state)
    settle(state, number, [item(1)], "delivered")
    settle(state, number, [item(1, 2)], status)
    waits = WaitingRecord(
        RecordIdentity("wms.invoices", "K7", 7, 5, None, "f", 2), [], {"columns": [], "rows": [], "lines": []}
    )
    with state.begin() as tx:
        tx.waiting_records.put([waits], run_id=number, at=OLD)
    assert purge(state, state_url) == PurgeResult(1, 0, 0, 0)
    with state.begin() as tx:
        (left,) = tx.intents.unsettled()
        assert (left.body, left.raw["rows"]) == (CANARY.encode(), [[CANARY]])
        assert tx.waiting_records.matching(RecordFilter("wms.invoices")) == [waits]


def test_no_idempotency_key_is_minted_twice(state: State, state_url: StateUrl) -> None:
    """A rejected operation whose counter no binding holds stays, without data: also an update of a bound record."""
    number = run(state)
    settle(state, number, [item(1), item(2, before={"name": CANARY}, after={"name": CANARY})], "rejected")
    settle(state, number, [item(3)], "delivered")
    settle(state, number, [item(3, 2)], "rejected")
    settle(state, number, [item(4)], "rejected")
    settle(state, number, [item(4, 2)], "delivered")
    due = {key: minted_next(state, key) for key in (1, 2, 3, 4)}
    assert purge(state, state_url) == PurgeResult(operations_removed=3, operations_emptied=3)
    assert {key: minted_next(state, key) for key in due} == due == {1: 2, 2: 2, 3: 3, 4: 3}
    left = rows(state_url, intents)
    assert [(row["key_hash"], row["counter"]) for row in left] == [(1, 1), (2, 1), (3, 2)]
    for row in left:
        assert (row["body"], row["before"], row["after"], row["raw"]) == (None, None, None, {})
        assert row["idempotency_key"] == f"key-{row['key_hash']}-{row['counter']}"


def test_a_removed_binding_holds_its_counter(state: State, state_url: StateUrl) -> None:
    """What was delivered of a record that was deleted later goes; what deleted it stays, for its own counter."""
    number = run(state)
    settle(state, number, [item(1)], "delivered")
    settle(state, number, [item(1, 2, operation="delete")], "rejected")
    with state.begin() as tx:
        tx.bindings.mark_deleted(SCOPE, [1], at=OLD)
    assert purge(state, state_url) == PurgeResult(operations_removed=1, operations_emptied=1)
    assert minted_next(state, 1) == 3


def test_a_later_operation_holds_the_counter(state: State, state_url: StateUrl) -> None:
    """Of a record that is rejected in every run only the latest operation is left."""
    number = run(state)
    for counter in range(1, 6):
        settle(state, number, [item(1, counter), item(2, counter)], "rejected")
    assert purge(state, state_url) == PurgeResult(operations_removed=8, operations_emptied=2)
    assert {minted_next(state, key) for key in (1, 2)} == {6}


def test_a_file_for_a_partner_stays_while_its_operations_do(state: State, state_url: StateUrl) -> None:
    """Its bytes go with the data of the last of them, its numbers are never used again."""
    number = run(state)
    made = StoredBatch(0, "wms", "orders", 7, "ord_7.csv", "here", CANARY.encode(), 2)
    with state.begin() as tx:
        batch = tx.batches.add(made, "key", run_id=number, at=OLD)
    settle(state, number, [item(1, batch_id=batch.id)], "delivered")
    settle(state, number, [item(2, batch_id=batch.id)], "handed_over")
    assert purge(state, state_url).files_out_removed == 0
    with state.begin() as tx:
        (left,) = tx.intents.unsettled()
        left.status = "delivered"
        tx.intents.write_outcomes([left], at=OLD)
        tx.bindings.put(SCOPE, [binding(2, counter=left.counter)], run_id=number, at=OLD)
    assert purge(state, state_url) == PurgeResult(operations_removed=1, files_out_removed=1)
    assert rows(state_url, batches) == []
    with state.begin() as tx:
        assert tx.batches.next_unused_number("wms", 1) == 8


def test_the_platform_memory_of_keys_is_kept(state: State, state_url: StateUrl) -> None:
    """Operations have an age of their own, which is at least what the platform remembers."""
    settle(state, run(state), [item(1), item(2)], "delivered", at=YOUNG)
    assert purge(state, state_url, structs.replace(AGES, others=NOW)).operations_removed == 0


def test_runs_go_when_nothing_refers_to_them(state: State, state_url: StateUrl) -> None:
    """A finished run goes with its messages; those referred to, running, young, or the last of all stay."""
    gone, bound, killed, waiting = run(state), run(state), run(state, finished=False), run(state)
    settle(state, gone, [item(1)], "delivered")
    with state.begin() as tx:
        tx.bindings.put(SCOPE, [binding(1), binding(2)], run_id=bound, at=OLD)
        tx.waiting_records.put([WaitingRecord(dead_letter(3).identity, [], {})], run_id=waiting, at=OLD)
    young, last = run(state, at=YOUNG), run(state)
    assert purge(state, state_url) == PurgeResult(1, 0, 0, 1)
    assert [row["id"] for row in rows(state_url, runs)] == [bound, killed, waiting, young, last]
    assert [row["run_id"] for row in rows(state_url, run_messages)] == [bound, waiting, young, last]
