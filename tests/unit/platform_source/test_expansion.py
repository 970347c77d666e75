"""Records beside the ids that name them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from crossdock.resources import ResourceName
from crossdock.runs.platform_source.referenced_record_expansion import Expansion


def named(resource: ResourceName, record_id: str) -> Any:
    return {"is": f"{resource} {record_id}"}


def test_records_are_put_beside_their_ids() -> None:
    """In the record itself and in its items; the ids stay."""
    order = {"id": "o", "customerId": "c", "items": [{"productId": "p", "quantity": 2}]}
    made = Expansion("order", ["customerId", "productId"]).expand(order, named)
    assert made == {
        "id": "o",
        "customerId": "c",
        "customer": {"is": "customer c"},
        "items": [{"productId": "p", "quantity": 2, "product": {"is": "product p"}}],
    }
    assert "customer" not in order


def test_only_what_is_asked_for_is_read() -> None:
    """A member that is not expanded, or that a record lacks, costs no request."""
    lot = {"id": "l", "productId": "p"}
    assert Expansion("inventory_lot", ["binId"]).expand(lot, named) == lot


def test_what_is_no_id_is_not_requested() -> None:
    """Null, a number or a path segment such as ``..`` names no record."""
    for value in (None, 17, "", "..", {"id": "p"}):
        made = Expansion("inventory_lot", ["productId"]).expand({"productId": value}, named)
        assert made == {"productId": value, "product": None}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["items", "productId", "customerId", "id"]), inner),
)


@given(_JSON)
def test_any_json_is_a_record(record: Any) -> None:
    """Whatever the platform lists, nothing of it is lost."""
    made = Expansion("order", ["customerId", "productId"]).expand(record, named)
    if not isinstance(record, dict):
        assert made == record
        return
    assert record.keys() - made.keys() == set()
    assert all(made[name] == value for name, value in record.items() if name != "items")
