"""The scopes that a config needs are compared with those granted."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.targets.test_platform_access import profile_of

from crossdock.platform import needed_and_granted_scopes
from crossdock.platform.needed_and_granted_scopes import ScopeComparison
from crossdock.resources import ResourceName

PROFILE = profile_of("https://api.example.com")
RESOURCE = st.sets(st.sampled_from(get_args(ResourceName)))


def compared(granted: str | None, **settings: object) -> ScopeComparison:
    """For a config that writes products and accounts, and looks up orders."""
    wanted = needed_and_granted_scopes.needed_scopes(
        profile_of(PROFILE.base_url, **settings), ["product", "ledger_account"], ["order"]
    )
    return needed_and_granted_scopes.compare_scopes(wanted, None if granted is None else granted.split())


@pytest.mark.parametrize(
    ("granted", "missing", "narrowed", "extra"),
    [
        ("accounts:write products:write orders:read", "", "", ""),
        ("accounts:write products:write orders:write", "", "", "orders:write"),
        ("*:write", "", "", "*:write"),
        ("accounts:write products:read orders:read", "products:write", "", "products:read"),
        ("*:read products:write", "accounts:write", "", "*:read"),
        ("accounts:4000:write products:write orders:o:1:read", "", "accounts:4000:write orders:o:1:read", ""),
        ("accounts:4000:read accounts::write products:write orders:read", "accounts:write", "", "accounts:4000:read"),
        ("", "accounts:write products:write orders:read", "", ""),
        ("bins:read", "accounts:write products:write orders:read", "", "bins:read"),
    ],
)
def test_what_is_missing_narrowed_or_more_than_needed_is_named(
    granted: str, missing: str, narrowed: str, extra: str
) -> None:
    """Writing includes reading, ``*`` every resource; a narrowed scope may be sufficient."""
    found = compared(granted)
    assert found.missing == tuple(missing.split())
    assert found.narrowed == tuple(narrowed.split())
    assert set(extra.split()) <= set(found.extra)
    assert all(name in found.text for name in (*found.missing, *found.narrowed, *found.extra))


def test_names_of_another_form_are_not_called_missing() -> None:
    """The names are assumptions: a platform may call its scopes by other names."""
    assert compared("catalog.write openid").missing == ()
    assert "set platform.scope_names" in compared("catalog.write openid").text
    assert compared(None).text == (
        "the streams need the scopes accounts:write products:write orders:read; which are granted is not reported"
    )


def test_names_are_a_setting() -> None:
    """Once names are set, a scope that is not granted is missing."""
    names = {"product": "catalog.{access}", "ledger_account": "finance", "order": "sales.{access}"}
    assert compared("catalog.write finance sales.read", scope_names=names).text.endswith("exactly these are granted")
    assert compared("catalog.read openid", scope_names=names).missing == ("finance", "catalog.write", "sales.read")


@given(written=RESOURCE, read=RESOURCE)
def test_what_is_needed_is_sufficient_and_no_less(written: set[ResourceName], read: set[ResourceName]) -> None:
    """Granting exactly what is needed leaves nothing to say, and without any one of them it is missing."""
    wanted = needed_and_granted_scopes.needed_scopes(PROFILE, written, read)
    names = [scope.name for scope in wanted]
    whole = needed_and_granted_scopes.compare_scopes(wanted, names)
    assert (whole.missing, whole.narrowed, whole.extra) == ((), (), ())
    for name in names:
        assert needed_and_granted_scopes.compare_scopes(wanted, [each for each in names if each != name]).missing == (
            name,
        )
