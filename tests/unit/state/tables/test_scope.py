"""Scopes as conditions: a row belongs to exactly one."""

from __future__ import annotations

import hashlib

from sqlalchemy import select
from tests.unit.state.samples import SCOPE

from crossdock.state import Scope, State
from crossdock.state.db.schema import key_stamps
from crossdock.state.tables.record_identity_and_scope import scope_condition, scope_condition_with_parameters

OTHERS = [Scope("3pl", "product", "wms"), Scope("platform", "order", "wms"), Scope("platform", "product", "shop")]


def test_a_condition_selects_one_scope(state: State) -> None:
    """Scopes that differ in any one part are distinguished, by value and by parameters."""
    with state.begin() as tx:
        for scope in (SCOPE, *OTHERS):
            tx.stamps.renew_stamp_and_record_changes(scope, [])
    with state.begin_read_only() as tx:
        connection = tx.stamps._connection
        for scope in (SCOPE, *OTHERS):
            query = select(*(key_stamps.c[name] for name in scope.columns))
            assert connection.execute(query.where(scope_condition(key_stamps, scope))).all() == [
                tuple(scope.columns.values())
            ]
            given = connection.execute(query.where(scope_condition_with_parameters(key_stamps)), scope.columns)
            assert given.all() == [tuple(scope.columns.values())]


def test_a_long_name_of_a_contribution_keeps_its_form() -> None:
    """It is stored, so that another form would not be found; a short one has the name of its stream."""
    assert SCOPE.contribution_scope_of_stream("shop.prices").namespace.endswith("shop.prices")
    scope = SCOPE.contribution_scope_of_stream("s" * 192)
    name = hashlib.sha256(b"s" * 192).hexdigest()[:32]
    assert (scope.namespace[-33:-32] + name, scope.is_contribution, scope.whole_record_scope) == (
        scope.namespace[-33:],
        True,
        SCOPE,
    )
