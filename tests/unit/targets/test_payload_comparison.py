"""JSON merge patches: what changed and nothing else."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.writing.targets.payload_comparison import (
    has_wanted_members,
    merge_patch_between,
    with_patch_applied,
)

VALUES = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
MEMBERS = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)


@given(MEMBERS, MEMBERS)
def test_a_patch_turns_one_into_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Applying a difference yields the later members; equal members have none."""
    assert with_patch_applied(before, merge_patch_between(before, after)) == after
    assert merge_patch_between(after, after) == {}


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        pytest.param({"a": 1}, {"a": 1}, {}, id="nothing"),
        pytest.param({"a": 1}, {"a": 2}, {"a": 2}, id="changed"),
        pytest.param({"a": 1}, {"a": 1, "b": 2}, {"b": 2}, id="added"),
        pytest.param({"a": 1, "b": 2}, {"a": 1}, {"b": None}, id="vanished"),
        pytest.param({"a": {"x": 1}}, {"a": {"y": 1}}, {"a": {"y": 1, "x": None}}, id="inside an object"),
        pytest.param({"a": [1, 2]}, {"a": [1]}, {"a": [1]}, id="a list is whole"),
        pytest.param({"a": Decimal("6.0")}, {"a": 6}, {}, id="equal numbers"),
    ],
)
def test_a_patch_has_the_changed_members_only(
    before: dict[str, Any], after: dict[str, Any], patch: dict[str, Any]
) -> None:
    """A merge patch (RFC 7396) says what changed and nothing else."""
    assert merge_patch_between(before, after) == patch


@pytest.mark.parametrize(
    ("held", "is_same"),
    [
        ("2026-11-20T08:15:00.000Z", True),
        ("2026-11-20T08:15:00+00:00", True),
        ("2026-11-20T09:15:00.0+01:00", True),
        ("2026-11-20T08:15:00.001Z", False),
        ("2026-11-20T08:15:00", False),
        ("2026-11-20", False),
        ("2026-13-20T08:15:00Z", False),
        ("", False),
        (None, False),
    ],
)
def test_a_target_may_write_an_instant_in_another_form(held: str | None, *, is_same: bool) -> None:
    """It holds what was sent; another time, a time of no zone and a date are something else."""
    assert has_wanted_members({"lines": [{"at": held}]}, {"lines": [{"at": "2026-11-20T08:15:00Z"}]}) is is_same


def apply(target: Any, patch: Any) -> Any:
    """The algorithm of RFC 7396 section 2."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = apply(result.get(name), value)
    return result


tree = st.recursive(
    st.integers() | st.text(max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from("abc"), tree), st.dictionaries(st.sampled_from("abc"), tree))
def test_a_patch_leads_from_before_to_after(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Whoever applies the patch as the RFC says holds what we hold."""
    assert apply(before, merge_patch_between(before, after)) == after
