"""Which updates need an approval."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from tests.unit.runs.planning.accounts import Accounts, account, bound_accounts, platform_target

from crossdock.mapping.stream_declaration import ChangeLimits
from crossdock.runs.planning.update_limits import UpdateCandidates, WithheldUpdates, find_unapproved_updates_over_limits
from crossdock.state import Binding, State, Step

AT = datetime(2026, 1, 1, tzinfo=UTC)
KEYS = "abcdef"


class Limited(Accounts):
    changes = ChangeLimits(at_most=2, at_most_percent=50)


BOUND = structs.replace(bound_accounts(), stream=Limited())


def deliver(state: State, keys: Iterable[str], step: Step = "whole") -> None:
    """Bind accounts with the name ``x``."""
    target = platform_target()
    with state.begin() as tx:
        run_id = tx.runs.start(business_date="2026-01-01", at=AT)
        for key in keys:
            read = account(BOUND, key)
            members = {"code": key, "name": "x", "type": "asset"}
            payload = target.payload("ledger_account", "w", key, members)
            binding = Binding(read.identity.key_hash, key, f"id-{key}", 1, None, step, payload, None, 1)
            tx.bindings.put(BOUND.scope, [binding], run_id=run_id, at=AT)


def held(
    state: State, names: dict[str, str], known: int, parents: dict[str, str] | None = None, before: int = 0
) -> WithheldUpdates | None:
    """What is withheld of accounts with these names."""
    records = [account(BOUND, key, (parents or {}).get(key), name) for key, name in names.items()]
    found = UpdateCandidates(len(records), known, lambda: iter(records), "a.csv")
    return find_unapproved_updates_over_limits(state, BOUND, found, set(), at=AT, before=before)


@given(
    updates=st.integers(0, 10_000), known=st.integers(0, 10_000), at_most=st.integers(0, 200), share=st.integers(0, 100)
)
def test_both_limits_must_be_exceeded(updates: int, known: int, at_most: int, share: int) -> None:
    """Neither few updates nor a small share of the known records stop a stream."""
    limits = ChangeLimits(at_most=at_most, at_most_percent=share)
    assert limits.exceeded(updates, known) is (updates > at_most and updates * 100 > share * known)


@pytest.mark.parametrize(("updates", "known"), [(450, 450), (19_820, 19_820), (19_820, 27_000), (101, 300)])
def test_the_defaults_stop_what_no_night_does(updates: int, known: int) -> None:
    """A swapped column and a changed template stop; a set of at most 100 records never does."""
    assert ChangeLimits().exceeded(updates, known)
    assert not ChangeLimits().exceeded(100, 100)
    assert not ChangeLimits().exceeded(300, 1000)


def test_real_updates_are_counted(state: State) -> None:
    """Records that are mapped to what was delivered, new and rejected ones are none."""
    deliver(state, KEYS)
    same = dict.fromkeys(KEYS, "x")
    assert held(state, same, 6) is None
    assert held(state, {**same, "a": "y", "b": "y"}, 6) is None
    assert held(state, {**same, "a": "bad", "b": "bad", "c": "bad", "d": "bad"}, 6) is None
    assert held(state, {"n1": "y", "n2": "y", "n3": "y", "n4": "y"}, 6) is None
    found = held(state, {**same, "a": "y", "b": "y", "c": "y", "d": "y"}, 6)
    assert found is not None
    assert found.pending.record_count == 4
    assert "4 of 6 known records would be updated, more than changes.at_most (2)" in found.refusal.message
    assert "Members that change: name (4); records: a, b, c, d" in found.refusal.message


@pytest.mark.parametrize(
    ("step", "is_withheld"), [("whole", True), ("remove", True), ("import", False), ("open", False)]
)
def test_what_has_unknown_or_unfinished_content_is_no_update(state: State, step: Step, is_withheld: bool) -> None:
    """Imported bindings, and creates whose second step is due, are not counted."""
    deliver(state, KEYS, step)
    assert (held(state, dict.fromkeys(KEYS, "y"), 6) is not None) is is_withheld


def test_updates_that_refer_to_new_records_are_counted(state: State) -> None:
    """Accounts that move below a new parent are updates, though that parent is created in the same run."""
    deliver(state, KEYS)
    names = {**dict.fromkeys(KEYS, "x"), "new": "y"}
    found = held(state, names, 6, dict.fromkeys(KEYS, "new"))
    assert found is not None
    assert found.pending.record_count == 6


def test_an_approval_covers_these_updates_and_fewer(state: State) -> None:
    """Fewer are left after a stopped run; another content or another record asks again."""
    deliver(state, KEYS)
    wanted = {"a": "y", "b": "y", "c": "y", "d": "y"}
    found = held(state, wanted, 6)
    assert found is not None
    with state.begin() as tx:
        tx.pending_approvals.request_approval(found.pending)
    assert held(state, wanted, 6) is not None, "asked for, not approved"
    with state.begin() as tx:
        tx.pending_approvals.approve(found.pending, at=AT)
    assert held(state, wanted, 6) is None
    assert held(state, {"a": "y", "b": "y", "c": "y"}, 3) is None
    assert held(state, {**wanted, "d": "z"}, 6) is not None
    assert held(state, {**wanted, "e": "y"}, 6) is not None


def test_a_changed_mapping_is_the_cause(state: State) -> None:
    """The refusal says since when the mapping has changed."""
    deliver(state, KEYS)
    records = [account(BOUND, key, None, "y") for key in KEYS]
    since = "since the import of 2026-03-09 01:00Z"
    found = UpdateCandidates(6, 6, lambda: iter(records), "a.csv", since)
    refused = find_unapproved_updates_over_limits(state, BOUND, found, set(), at=AT)
    assert refused is not None
    assert f"the mapping of w.accounts has changed {since}: 6 of 6 known records" in refused.refusal.message


def test_a_part_without_updates_is_never_withheld(state: State) -> None:
    """Updates of earlier parts count; a part that adds some is withheld, with a message that tells of both."""
    deliver(state, KEYS)
    changed = {**dict.fromkeys(KEYS, "x"), "a": "y"}
    assert held(state, dict.fromkeys(KEYS, "x"), 6, before=5) is None
    assert held(state, changed, 6, before=2) is None
    found = held(state, changed, 6, before=3)
    assert found is not None
    assert found.pending.record_count == 1
    assert "1 of 6 known records would be updated after 3 in this run, more than" in found.refusal.message
    assert "nothing more of the stream is imported" in found.refusal.message


@pytest.mark.parametrize(("target", "place"), [("platform", "on the platform"), ("depot", "in depot")])
def test_an_approval_names_the_target_and_not_the_namespace_as_the_place(target: str, place: str) -> None:
    """The namespace says whose records they are."""
    bound = bound_accounts()
    bound.target.name = target
    assert bound.records_text == f"ledger_account of w {place}"
