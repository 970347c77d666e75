"""Intents keep their bytes, their ids and their counters; an idempotency key exists once."""

from __future__ import annotations

from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from sqlalchemy import Select, update
from tests.unit.state.samples import AT, SCOPE, intent, start

from crossdock.errors import InternalError
from crossdock.state import Intent, State
from crossdock.state.db.schema import intents
from crossdock.state.tables.intents_and_stored_batches import Intents


def test_intents_move_and_are_found_again(state: State) -> None:
    """What was left pending or sending is found by the next run with its exact bytes, oldest first."""
    run = start(state)
    first, second, third = intent(1), intent(2), intent(3)
    with state.begin() as tx:
        tx.intents.add([first, second, third], run_id=run, fence=1, at=AT)
        for item in (first, second):
            item.mark_as_sending(AT)
        tx.intents.write_as_sending([first, second])
        second.status, second.target_id, second.http_status = "delivered", "prd_2", 201
        tx.intents.write_outcomes([second], at=AT)
    with state.begin() as tx:
        left = tx.intents.unsettled()
        assert [(each.identity.key, each.status, each.attempts) for each in left] == [
            ("K1", "sending", 1),
            ("K3", "pending", 0),
        ]
        assert left[0].body == first.body
        assert left[0].first_sent_at == AT
        assert left[0] == first
        assert tx.intents.idempotency_counters(SCOPE, [1, 2, 9]) == {1: 1, 2: 1}


def test_one_idempotency_key_is_minted_once(state: State) -> None:
    """Another record's intent with an existing key fails; writing the same intent again adds none."""
    run = start(state)
    with pytest.raises(InternalError, match="share an idempotency key"), state.begin() as tx:
        tx.intents.add([intent(1), intent(2, idempotency_key="key-1")], run_id=run, fence=1, at=AT)
    first, again = intent(1), intent(1)
    for item in (first, again):
        with state.begin() as tx:
            tx.intents.add([item], run_id=run, fence=1, at=AT)
    assert first.id == again.id
    with state.begin() as tx:
        assert len(tx.intents.unsettled()) == 1


def test_the_highest_counter_of_each_key_is_found(state: State) -> None:
    """Of a record with several operations the highest counter counts, and only its own scope's."""
    run = start(state)
    items = [intent(key, counter=c, idempotency_key=f"{key}-{c}") for key in (1, 2) for c in (1, 3, 2)]
    items.append(intent(1, counter=9, idempotency_key="other", namespace="other"))
    with state.begin() as tx:
        tx.intents.add(items, run_id=run, fence=1, at=AT)
    with state.begin_read_only() as tx:
        assert tx.intents.idempotency_counters(SCOPE, [2, 1, 1, 3]) == {1: 3, 2: 3}
        assert tx.intents.idempotency_counters(SCOPE, []) == {}


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
    leaving.mark_as_sending(AT)
    for _ in range(2):
        with state.begin() as tx:
            tx.intents.add([leaving, staying], run_id=run, fence=1, at=AT)
    staying.mark_as_sending(AT + timedelta(seconds=1))
    with state.begin() as tx:
        tx.intents.add([leaving, staying], run_id=run, fence=1, at=AT)
        assert tx.intents.unsettled() == [leaving, staying]
        tx.intents.add([intent(3)], run_id=run, fence=1, at=AT)
        assert tx.intents.counts_of_run(run) == {"pending": 3}, "what is being sent counts as pending"
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


def test_only_operations_of_stored_batches_are_read_for_acknowledgements(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else that is pending or in doubt leaves the database: there may be many of them."""
    run, of_batch, places = start(state), (None, 7), (None, 1)
    kinds = list(product(("pending", "sending", "in_doubt", "handed_over"), of_batch, places))
    items = [intent(number) for number in range(len(kinds))]
    read, seen = Intents._read, list[int]()

    def count(self: Intents, query: Select[Any]) -> list[Intent]:
        found = read(self, query)
        seen.append(len(found))
        return found

    monkeypatch.setattr(Intents, "_read", count)
    with state.begin() as tx:
        tx.intents.add(items, run_id=run, fence=1, at=AT)
        for item, (status, batch, place) in zip(items, kinds, strict=True):
            values = {"status": status, "batch_id": batch, "place": place}
            tx.connection.execute(update(intents).where(intents.c.id == item.id).values(values))
        found = tx.intents.awaiting_acknowledgement(SCOPE.target)
    handed_over = [kind for kind in kinds if kind[0] == "handed_over"]
    wanted = [("pending", 7, None), ("in_doubt", 7, None), ("in_doubt", 7, 1), *handed_over]
    assert [(each.status, each.batch_id, each.place) for each in found] == wanted
    assert seen == [len(wanted)]
