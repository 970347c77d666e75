"""What the decisions of a chunk leave in the state."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import structs
from tests.unit.runs.planning.accounts import account, bound_accounts

from crossdock.runs.planning.planner import PlannedChunk
from crossdock.state import Binding, DeadLetter, State, Step, WaitingRecord
from crossdock.writing.delivery.operations_and_intents import Operation

AT = datetime(2026, 1, 1, tzinfo=UTC)
BOUND = bound_accounts()


def waiting(key: str) -> WaitingRecord:
    return WaitingRecord(account(BOUND, key).identity, [], {})


def dead_letter(key: str) -> DeadLetter:
    return DeadLetter(account(BOUND, key).identity, "mapping", "bad_value", None, "", {}, None)


def binding(key: str) -> Binding:
    return Binding(account(BOUND, key).identity.key_hash, key, f"id-{key}", 1, None, "whole", {}, None, 1)


def operation(key: str, step: Step) -> Operation:
    read = account(BOUND, key)
    return Operation("create", read.identity, BOUND.scope, read.record, {}, {}, None, step)


def test_a_decision_replaces_what_the_record_left_before(state: State) -> None:
    """A record that is delivered, suppressed or rejected waits no longer; one that is suppressed is no dead letter."""
    with state.begin() as tx:
        run_id = tx.runs.start(business_date="2026-01-01", at=AT)
    before = PlannedChunk(BOUND, run_id, AT)
    before.waits = [waiting(key) for key in "abcd"]
    before.dead_letters = [dead_letter(key) for key in "ef"]
    after = PlannedChunk(BOUND, run_id, AT)
    after.operations = [operation("a", "whole"), operation("b", "open")]
    after.suppressed = [binding("c"), binding("e")]
    after.dead_letters = [dead_letter("d")]
    after.waits = [waiting("f")]
    assert (before.decision_count, after.decision_count) == (6, 6)
    with state.begin() as tx:
        before.store_all_but_operations(tx)
    with state.begin() as tx:
        after.store_all_but_operations(tx)
    with state.begin_read_only() as tx:
        assert {record.identity.key for record in tx.waiting_records.waits_of_stream(BOUND.name)} == {"b", "f"}
        keys = {account(BOUND, key).identity.key_hash: key for key in "abcdef"}
        assert {keys[facts.key_hash] for facts in tx.dead_letters.facts_of_all_letters_of_stream(BOUND.name)} == {"d"}


def test_a_suppressed_record_keeps_its_binding(state: State) -> None:
    """The binding has the fingerprint of the version that was suppressed."""
    with state.begin() as tx:
        run_id = tx.runs.start(business_date="2026-01-01", at=AT)
        tx.bindings.put(BOUND.scope, [binding("a")], run_id=run_id, at=AT)
    chunk = PlannedChunk(BOUND, run_id, AT, suppressed=[structs.replace(binding("a"), fingerprint=7)])
    with state.begin() as tx:
        chunk.store_all_but_operations(tx)
        (stored,) = tx.bindings.get(BOUND.scope, [binding("a").key_hash]).values()
    assert (stored.fingerprint, stored.target_id) == (7, "id-a")
