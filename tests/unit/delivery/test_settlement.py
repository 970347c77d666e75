"""What is bound of a delivered record: the very bytes that the target accepted."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from tests import sqlite_steps
from tests.conftest import PIN
from tests.integration.delivery.harness import SCOPE
from tests.unit.state.samples import AT, binding, intent, start

from crossdock.state import State, parse_database_url
from crossdock.values import exact_json
from crossdock.writing.delivery import state_writer
from crossdock.writing.delivery.in_doubt_and_refusal_rules import StateDoubts
from crossdock.writing.delivery.operations_and_intents import encoded_payload_after_intent, payload_after_intent
from crossdock.writing.delivery.state_writer import Settlement
from crossdock.writing.targets.answer_outcomes import Outcome
from crossdock.writing.targets.target import Target

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=3)
    | st.decimals(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)
payloads = st.dictionaries(st.text(max_size=3), values, max_size=4)


@given(payload=payloads, changes=payloads)
def test_the_bytes_of_a_payload_are_its_canonical_ones(payload: dict[str, Any], changes: dict[str, Any]) -> None:
    """Of a create its own body, of an update the whole payload: both as if the payload were written anew."""
    created = intent(1, body=exact_json.dumps(payload))
    updated = structs.replace(created, operation="update", before={}, after=payload, body=exact_json.dumps(changes))
    for each in (created, updated):
        assert (
            encoded_payload_after_intent(each)
            == exact_json.dumps(payload_after_intent(each))
            == exact_json.dumps(payload)
        )
        assert encoded_payload_after_intent(each) == exact_json.dumps(payload)


def test_every_kind_of_delivery_is_bound(state: State) -> None:
    """In one turn a create, an update and a delete: the first two are bound with their whole payload, the last goes."""
    run, price = start(state), {"name": "x", "unitPrice": Decimal("0.10")}
    created = intent(1, body=exact_json.dumps(price))
    updated = intent(2, operation="update", before={"name": "y"}, after=price, body=b'{"name":"x"}', target_id="p2")
    deleted = intent(3, operation="delete", body=None, before=price, after={}, target_id="p3")
    turn = [
        Settlement(created, Outcome("delivered", status=201, target_id="p1", etag='"1"')),
        Settlement(updated, Outcome("delivered", status=200)),
        Settlement(deleted, Outcome("delivered", status=204)),
    ]
    with state.begin() as tx:
        tx.intents.add([item.intent for item in turn], run_id=run, fence=1, at=AT)
        for item in turn:
            item.intent.status = "delivered"
        state_writer.store_outcomes_and_bindings(tx, turn, run_id=run, at=AT)
        bound = tx.bindings.get(SCOPE, [1, 2, 3])
        assert {key: (each.target_id, each.payload, each.etag) for key, each in bound.items()} == {
            1: ("p1", price, '"1"'),
            2: ("p2", price, None),
        }
        assert tx.intents.unsettled() == []


def test_what_depends_on_no_unverified_binding_verifies_it(state: State) -> None:
    """A new creation does; an update of what was held does not, and its record is mapped again."""
    run, payload = start(state), {"name": "x"}
    created = intent(1, body=exact_json.dumps(payload), target_id="prd_1")
    updated = intent(2, operation="update", before={"name": "y"}, after=payload, body=b"{}", target_id="prd_2")
    turn = [Settlement(each, Outcome("delivered")) for each in (created, updated)]
    with state.begin() as tx:
        tx.intents.add([created, updated], run_id=run, fence=1, at=AT)
        created.status = updated.status = "delivered"
        tx.bindings.put(SCOPE, [binding(1), binding(2)], run_id=run, at=AT)
        tx.unverified.mark_bindings_and_resource(SCOPE, [binding(1), binding(2)])
        state_writer.store_outcomes_and_bindings(tx, turn, run_id=run, at=AT, doubts=StateDoubts(unverified=True))
        assert list(tx.unverified.unverified_binding_counts_by_scope()) == [(SCOPE, 1)]
        assert {n: each.fingerprint for n, each in tx.bindings.get(SCOPE, [1, 2]).items()} == {1: 5, 2: None}


DELIVERED, REFUSED = Outcome("delivered"), Outcome("rejected")


class ShopTarget:
    """A parcel takes units from the stock."""

    name = "platform"

    def also_changes(self, resource: str, payload: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        return [("stock", key) for key in payload.get("takes", ()) if resource == "parcel"]


def test_what_a_delivery_also_changes_is_in_doubt(state: State) -> None:
    """Only of what was delivered; a refused parcel has taken nothing."""
    stock, run = structs.replace(SCOPE, resource="stock"), start(state)
    parcels = (intent(n, resource="parcel", body=b'{"takes":["K%d"]}' % n) for n in (1, 2))
    turn = [Settlement(each, outcome) for each, outcome in zip(parcels, (DELIVERED, REFUSED), strict=True)]
    for each in turn:
        each.intent.status = "delivered" if each.outcome is DELIVERED else "rejected"
    with state.begin() as tx:
        tx.bindings.put(stock, [binding(1), binding(2)], run_id=run, at=AT)
        state_writer.clear_payloads_of_affected_records(tx, turn, cast("Target", ShopTarget()))
        found = tx.bindings.get(stock, [1, 2])
    assert {number: bool(each.payload) for number, each in found.items()} == {1: False, 2: True}


def test_the_work_of_a_turn_does_not_grow_with_the_state(empty_state: Path, tmp_path: Path) -> None:
    """In steps of SQLite's virtual machine: no statement reads all that is bound."""
    few, many = (
        _work_of_a_turn(Path(shutil.copy(empty_state, tmp_path / f"{each}.db")), each) for each in (300, 6_000)
    )
    assert many < 1.2 * few


def _work_of_a_turn(file: Path, bound: int) -> int:
    """Of 50 operations of each kind, with *bound* records in the state."""
    part, scopes = (
        SCOPE.contribution_scope_of_stream("depot.bins"),
        (SCOPE, SCOPE.contribution_scope_of_stream("depot.bins")),
    )
    with sqlite_steps.counted() as steps:
        state = State(parse_database_url(f"sqlite:///{file}", file.parent), PIN)
        run, items = start(state), [binding(number) for number in range(bound)]
        with state.begin() as tx:
            for scope in scopes:
                tx.bindings.put(scope, items, run_id=run, at=AT)
        turn = [
            Settlement(
                intent(number, scope=scope, operation=operation, after={}, target_id=f"prd_{number}", status=status),
                Outcome("delivered" if status == "delivered" else "rejected", status=code, etag='"2"'),
            )
            for kind, (scope, operation, status, code) in enumerate(
                [
                    (SCOPE, "create", "delivered", 201),
                    (SCOPE, "update", "delivered", 200),
                    (SCOPE, "update", "rejected", 412),
                    (SCOPE, "delete", "delivered", 204),
                    (part, "update", "delivered", 200),
                ]
            )
            for number in range(kind * 50, kind * 50 + 50)
        ]
        with state.begin() as tx:
            tx.intents.add([item.intent for item in turn], run_id=run, fence=1, at=AT)
        before = steps.taken
        with state.begin() as tx:
            state_writer.store_outcomes_and_bindings(tx, turn, run_id=run, at=AT)
        state.close()
    return steps.taken - before
