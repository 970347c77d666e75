"""What runs have delivered is listed by record, oldest first."""

from __future__ import annotations

from tests.unit.state.samples import AT, SCOPE, intent, start

from crossdock.state import Attempt, Intent, State


def deliver(state: State, run_id: int, item: Intent, *, untouched: bool = False, status: str = "delivered") -> None:
    with state.begin() as tx:
        tx.intents.add([item], run_id=run_id, fence=1, at=AT)
        item.status, item.untouched = status, untouched  # type: ignore[assignment]  # one of its statuses
        tx.intents.write_outcomes([item], at=AT)


def test_a_history_has_each_delivery_of_a_record(state: State) -> None:
    """With what was held before and whether anything was written, of all runs; rejected operations are left out."""
    first, second = start(state), start(state)
    deliver(state, first, intent(1, idempotency_key="a", counter=1))
    update = {"operation": "update", "before": {"name": "x"}, "after": {"name": "y"}}
    deliver(state, second, intent(1, idempotency_key="b", counter=2, **update))
    deliver(state, second, intent(1, idempotency_key="c", counter=3, **update), status="rejected")
    deliver(state, second, intent(2, idempotency_key="d"), untouched=True)
    with state.begin_read_only() as tx:
        found = tx.delivered_history.delivered_operations_of_records(SCOPE, [1, 2])
        assert tx.delivered_history.streams_and_scopes_of_runs([second]) == {("wms.products", SCOPE)}
    assert [(each.run_id, each.operation, each.before, each.untouched) for each in found[1]] == [
        (first, "create", None, False),
        (second, "update", {"name": "x"}, False),
    ]
    assert [(each.key, each.untouched) for each in found[2]] == [("K2", True)]


def test_keys_come_in_pages(state: State) -> None:
    """Each record of the wanted runs once, over the whole range of hashes, whatever else was delivered."""
    wanted, other = start(state), start(state)
    hashes = [1, 2**64, 2**127, 2**128 - 1]
    for number, key_hash in enumerate(hashes):
        for again in range(2):
            deliver(state, wanted, intent(key_hash, idempotency_key=f"{number}-{again}", counter=again + 1))
    deliver(state, other, intent(7, idempotency_key="other"))
    found: list[int] = []
    with state.begin_read_only() as tx:
        while page := tx.delivered_history.delivered_key_hashes(
            SCOPE, [wanted], after=found[-1] if found else None, limit=3
        ):
            found += page
    assert found == hashes


def test_an_unanswered_create_is_remembered(state: State) -> None:
    """A create that was decided on again after an ambiguous answer marks the operation that followed it."""
    run_id = start(state)
    create = intent(1, idempotency_key="a")
    deliver(state, run_id, create, status="replaced")
    with state.begin() as tx:
        tx.intents.store_attempt_results([Attempt(create.id, 1, AT, "in_doubt", None, "lost")])
    deliver(state, run_id, intent(1, idempotency_key="b", counter=2, operation="update", before={"name": "x"}))
    refused = intent(2, idempotency_key="c")
    deliver(state, run_id, refused, status="replaced")
    with state.begin() as tx:
        tx.intents.store_attempt_results([Attempt(refused.id, 1, AT, "rejected", 409, "exists")])
    deliver(state, run_id, intent(2, idempotency_key="d", counter=2, operation="update", before={"name": "x"}))
    with state.begin_read_only() as tx:
        found = tx.delivered_history.delivered_operations_of_records(SCOPE, [1, 2])
    assert [found[key][0].was_decided_again for key in (1, 2)] == [True, False]
