from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.sandbox.scopes import (
    SCOPE_NAME_BY_RESOURCE,
    SCOPES,
    is_scope_included,
    is_valid_scope,
    permitted_single_record_names,
)

NARROWED = st.builds(
    "{}:{}:{}".format,
    st.sampled_from(["accounts", "bins"]),
    st.sampled_from(["1", "2:3"]),
    st.sampled_from(["read", "write"]),
)
ANY = st.one_of(st.sampled_from(SCOPES), NARROWED)
ACCESSES = ("read", "write")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("orders:read", True),
        ("accounts:4000:write", True),
        ("bins:wms:A-01:read", True),
        ("bins:bin_0123456789abcdef012345678:read", True),
        ("orders:1:read", False),
        ("*:1:read", False),
        ("accounts::read", False),
        ("accounts:a b:read", False),
        ('accounts:":read', False),
        ("bins:\\:read", False),
        ("bins:ä:read", False),
        ("accounts:4000:delete", False),
        ("accounts:4000:read\n", False),
        ("", False),
    ],
)
def test_only_accounts_and_bins_can_be_named(text: str, expected: bool) -> None:
    """The name of a record has the characters of a scope in RFC 6749, colons among them."""
    assert is_valid_scope(text) is expected


@given(st.lists(ANY, min_size=1, max_size=4), ANY)
def test_a_scope_that_is_included_permits_nothing_more(granted: list[str], wanted: str) -> None:
    """A token may have a scope if and only if its client's scopes permit each record that the scope does."""
    text = " ".join(granted)
    permits_no_more = True
    for resource in SCOPE_NAME_BY_RESOURCE:
        for access in ACCESSES:
            most, asked = (
                permitted_single_record_names(text, resource, access),
                permitted_single_record_names(wanted, resource, access),
            )
            permits_no_more &= most is None or (asked is not None and asked <= most)
    if is_scope_included(text, wanted):
        assert permits_no_more
    elif not wanted.startswith(("*", "webhooks")):  # webhooks are no resource
        assert not permits_no_more
