"""What is bound of a delivered record: the very bytes that the target accepted."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.integration.delivery.harness import SCOPE
from tests.unit.state.samples import AT, intent, start

from crossdock import exact_json
from crossdock.delivery import settlement
from crossdock.delivery.operations import bytes_after, payload_after
from crossdock.delivery.settlement import Settlement
from crossdock.state import State
from crossdock.targets.outcomes import Outcome

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
    updated = replace(created, operation="update", before={}, after=payload, body=exact_json.dumps(changes))
    for each in (created, updated):
        assert bytes_after(each) == exact_json.dumps(payload_after(each)) == exact_json.dumps(payload)
        assert bytes_after(each) == exact_json.dumps(payload)


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
        settlement.write(tx, turn, run_id=run, at=AT)
        bound = tx.bindings.get(SCOPE, [1, 2, 3])
        assert {key: (each.target_id, each.payload, each.etag) for key, each in bound.items()} == {
            1: ("p1", price, '"1"'),
            2: ("p2", price, None),
        }
        assert tx.intents.unsettled() == []
