"""Two payloads are compared member by member."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from crossdock.writing.targets.payload_comparison import PERSONAL, member_differences

VALUES = st.recursive(
    st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
)
PAYLOADS = st.dictionaries(st.sampled_from(["name", "items", "currency"]), VALUES)


def test_members_and_items_are_named_by_pointers() -> None:
    """What is new or gone has None on one side."""
    before: dict[str, Any] = {"currency": "EUR", "items": [{"quantity": 1, "productId": "a"}, {"productId": "b"}]}
    after: dict[str, Any] = {"items": [{"quantity": 2, "productId": "a"}], "autoPostLedger": True}
    assert member_differences(before, after) == [
        ("/currency", "EUR", None),
        ("/items/0/quantity", 1, 2),
        ("/items/1", {"productId": "b"}, None),
        ("/autoPostLedger", None, True),
    ]


@given(before=PAYLOADS, after=PAYLOADS)
def test_a_personal_value_is_never_shown(before: dict[str, Any], after: dict[str, Any]) -> None:
    """There is a difference if and only if the payloads differ, and those of personal members have no value."""
    found = member_differences(before, after, {"name"})
    assert bool(found) == (before != after)
    personal = [each for each in found if each.pointer.split("/")[1] == "name"]
    assert {value for _, *pair in personal for value in pair} <= {PERSONAL, None}
