"""The state as it will be once some operations are delivered."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.state.samples import AT, SCOPE, binding, start

from crossdock.state import (
    DeadLetter,
    ExpectedDeliveries,
    ExpectedDelivery,
    RecordIdentity,
    Scope,
    State,
    WaitingRecord,
)

STREAM = "wms.products"
numbers = st.lists(st.integers(1, 30), max_size=20, unique=True)


def delivered(number: int, *, is_whole: bool) -> ExpectedDeliveries:
    found = ExpectedDeliveries()
    found.add(ExpectedDelivery(STREAM, SCOPE, number, binding(number), is_whole=is_whole))
    return found


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stored=numbers, written=numbers, deleted=numbers)
def test_every_look_at_bindings_agrees(state: State, stored: list[int], written: list[int], deleted: list[int]) -> None:
    """Look-ups, the key index and the steps show what is written, hide what is deleted, and keep all else."""
    run = start(state)
    scope = Scope("platform", "product", f"n{run}")
    with state.begin() as tx:
        tx.bindings.put(scope, [binding(each) for each in stored], run_id=run, at=AT)
    deliveries = ExpectedDeliveries()
    for each in written:
        deliveries.add(ExpectedDelivery(STREAM, scope, each, binding(each, fingerprint=99, step="open")))
    for each in deleted:
        deliveries.add(ExpectedDelivery(STREAM, scope, each, None))
    there = {each: 10 + each for each in stored} | dict.fromkeys(written, 99)
    there = {each: fingerprint for each, fingerprint in there.items() if each not in deleted}
    asked = list(range(1, 31))
    with state.assume_deliveries(deliveries):
        with state.begin_read_only() as tx:
            assert {key: found.fingerprint for key, found in tx.bindings.get(scope, asked).items()} == there
            assert tx.bindings.target_id_by_key_hash(scope, asked) == {key: f"prd_{key}" for key in there}
            steps = dict(tx.snapshots.accepted_steps_of_live_bindings(scope, asked))
        known = {row[0]: row[1] for row in state.key_index_frame_of_scope(scope).rows()}
    assert known == there
    assert steps == {key: "open" if fingerprint == 99 else "whole" for key, fingerprint in there.items()}
    with state.begin_read_only() as tx:
        assert set(tx.bindings.target_id_by_key_hash(scope, asked)) == set(stored), "nothing was written"


def test_a_delivered_record_is_not_open(state: State) -> None:
    """It is neither rejected nor waiting, unless only the first of its two steps was delivered."""
    run = start(state)
    identities = [RecordIdentity(STREAM, f"K{number}", number, 5, None, "f.csv", 2) for number in (1, 2)]
    with state.begin() as tx:
        rejected = [DeadLetter(each, "mapping", "bad_value", None, "", {}, None) for each in identities]
        tx.dead_letters.put(rejected, run_id=run, at=AT)
        tx.waiting_records.put([WaitingRecord(each, [], {}) for each in identities], run_id=run, at=AT)

    def still_open() -> tuple[list[int], list[int]]:
        with state.begin_read_only() as tx:
            waiting = [each.identity.key_hash for each in tx.waiting_records.waits_of_stream(STREAM)]
            return [each.key_hash for each in tx.dead_letters.facts_of_all_letters_of_stream(STREAM)], waiting

    with state.assume_deliveries(delivered(1, is_whole=True)):
        assert still_open() == ([2], [2])
    with state.assume_deliveries(delivered(1, is_whole=False)):
        assert still_open() == ([1, 2], [1, 2])
    assert still_open() == ([1, 2], [1, 2])
