"""Idempotency keys and patches: what makes two operations different, and what does not."""

from __future__ import annotations

import hashlib
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.delivery.operations import idempotency_key
from crossdock.platform.platform_target import difference
from crossdock.state import Scope

members = st.dictionaries(st.sampled_from("abcd"), st.integers() | st.text(max_size=2) | st.none(), max_size=4)


def test_no_two_operations_share_a_key() -> None:
    """Tenant, target, resource, namespace, key, operation and counter each make another key."""
    keys = {
        idempotency_key(tenant, Scope(target, resource, namespace), key, kind, counter)  # type: ignore[arg-type]  # any text will do here
        for tenant, target, resource, namespace, key, kind, counter in product(
            "AB", "AB", "AB", "AB", "AB", "AB", (1, 2)
        )
    }
    assert len(keys) == 2**7
    assert all(len(key) == 40 and key.isalnum() and key.isascii() for key in keys)


def test_a_key_stays_what_it_was() -> None:
    """A newer version mints the same key for the same operation."""
    text = b'["acme","platform","invoice","wms","17","create",1]'
    minted = idempotency_key("acme", Scope("platform", "invoice", "wms"), "17", "create", 1)
    assert minted == hashlib.sha256(text).hexdigest()[:40] == "25e01b7a403da3a617b11e2e005ec72921b5256c"


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
    assert difference(before, after) == patch


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
    assert apply(before, difference(before, after)) == after
