"""The history of a record is found by any of its names, without the record's data."""

from __future__ import annotations

from tests.unit.state.samples import AT, SCOPE, binding, intent, start

from crossdock.state import Attempt, DeadLetter, State, WaitingRecord

DATA = {"raw", "mapped", "body", "before", "after", "payload"}


def fill(state: State) -> None:
    """Record 1 was delivered after two attempts, 2 is a dead letter, 3 waits; they begin in lines 10, 20 and 30."""
    run = start(state)
    made = {number: intent(number, line=10 * number) for number in (1, 2, 3)}
    with state.begin() as tx:
        tx.intents.add([made[1]], run_id=run, fence=1, at=AT)
        made[1].status, made[1].platform_id = "delivered", "prd_1"
        tx.intents.move([made[1]], at=AT)
        tx.intents.note([Attempt(made[1].id, n, AT, "unavailable", 503, "try later") for n in (1, 2)])
        tx.bindings.put(SCOPE, [binding(1)], run_id=run, at=AT)
        letter = DeadLetter(made[2].identity, "mapping", "bad_value", None, "is bad", {}, None)
        tx.dead_letters.put([letter], run_id=run, at=AT)
        tx.waiting_records.put([WaitingRecord(made[3].identity, [], {})], run_id=run, at=AT)


def test_a_record_is_found_by_any_name(state: State) -> None:
    """By key, platform id or idempotency key, in whatever table it is."""
    fill(state)
    with state.look() as tx:
        for name, key in (("prd_1", ""), ("key-1", ""), ("", "K1")):
            assert tx.tracing.key_hashes(name, key) == {1}
        assert tx.tracing.key_hashes("", "K2") == {2}
        assert tx.tracing.key_hashes("", "K3") == {3}
        assert tx.tracing.key_hashes("nothing", "nothing") == set()


def test_a_record_is_found_by_its_line(state: State) -> None:
    """The nearest record that begins at the line or above it, of that file only."""
    fill(state)
    with state.look() as tx:
        assert [tx.tracing.at("f.csv", line) for line in (9, 10, 29, 99)] == [
            (0, set()), (10, {1}), (20, {2}), (30, {3}),
        ]  # fmt: skip
        assert tx.tracing.at("other.csv", 99) == (0, set())


def test_rows_have_no_data(state: State) -> None:
    """All columns but those with the record's data, and the attempts of each operation in order."""
    fill(state)
    with state.look() as tx:
        (operation,) = tx.tracing.operations(1)
        found = [operation, *tx.tracing.binding(1), *tx.tracing.dead_letters(2), *tx.tracing.waits(3)]
    assert [row["key"] for row in found] == ["K1", "K1", "K2", "K3"]
    assert [row["number"] for row in operation["sendings"]] == [1, 2]
    assert not any(DATA & row.keys() for row in found)
