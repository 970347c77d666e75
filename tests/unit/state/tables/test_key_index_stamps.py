"""The stamp of a scope changes once in each transaction that changes its bindings."""

from __future__ import annotations

import pytest
from tests.unit.state.samples import AT, SCOPE, binding, start

from crossdock.state import Scope, State
from crossdock.state.tables.record_bindings import KeyIndexChange, stamp_of_scope

OTHER = Scope("platform", "product", "other")


def stamp(state: State, scope: Scope = SCOPE) -> int:
    with state.begin_read_only() as tx:
        return stamp_of_scope(tx.stamps._connection, scope)


def test_each_change_gives_a_new_stamp(state: State) -> None:
    """Several changes in one transaction share a stamp; reading and other scopes change nothing."""
    run, stamps = start(state), [stamp(state)]
    for number in (1, 2):
        with state.begin() as tx:
            tx.bindings.put(SCOPE, [binding(number)], run_id=run, at=AT)
            tx.bindings.mark_deleted(SCOPE, [number], at=AT)
            touched = tx.stamps.touched[SCOPE]
        stamps.append(stamp(state))
        assert (touched.before, touched.after) == tuple(stamps[-2:])
        assert touched.changes == [
            KeyIndexChange(number, 10 + number, None),
            KeyIndexChange(number, None, None, is_live=False),
        ]
    assert stamps[0] == 0
    assert len(set(stamps)) == 3
    assert stamp(state, OTHER) == 0


def test_a_rollback_keeps_the_stamp(state: State) -> None:
    """A stamp belongs to committed bindings."""
    with state.begin() as tx:
        tx.stamps.renew_stamp_and_record_changes(SCOPE, [])
    before = stamp(state)
    with pytest.raises(ZeroDivisionError), state.begin() as tx:
        tx.stamps.renew_stamp_and_record_changes(SCOPE, [])
        raise ZeroDivisionError
    assert stamp(state) == before


def test_contributions_belong_to_one_namespace(state: State) -> None:
    """A namespace that differs in case only, or begins with the same text, has contributions of its own."""
    upper = Scope(SCOPE.target, SCOPE.resource, SCOPE.namespace.upper())
    longer = Scope(SCOPE.target, SCOPE.resource, f"{SCOPE.namespace}x")
    parts = {scope: scope.contribution_scope_of_stream("wms.prices") for scope in (SCOPE, upper, longer)}
    with state.begin() as tx:
        for part in parts.values():
            tx.stamps.renew_stamp_and_record_changes(part, [])
    with state.begin_read_only() as tx:
        assert {scope: tx.stamps.contribution_scopes(scope) for scope in parts} == {
            s: [part] for s, part in parts.items()
        }
