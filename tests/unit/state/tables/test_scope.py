"""Scopes as conditions: a row belongs to exactly one."""

from __future__ import annotations

from sqlalchemy import select
from tests.unit.state.samples import SCOPE

from crossdock.state import Scope, State
from crossdock.state.db.schema import key_stamps
from crossdock.state.tables.record_identity import within, within_given

OTHERS = [Scope("3pl", "product", "wms"), Scope("platform", "order", "wms"), Scope("platform", "product", "shop")]


def test_a_condition_selects_one_scope(state: State) -> None:
    """Scopes that differ in any one part are distinguished, by value and by parameters."""
    with state.begin() as tx:
        for scope in (SCOPE, *OTHERS):
            tx.stamps.changed(scope, [])
    with state.read_only() as tx:
        connection = tx.stamps._connection
        for scope in (SCOPE, *OTHERS):
            query = select(*(key_stamps.c[name] for name in scope.columns))
            assert connection.execute(query.where(within(key_stamps, scope))).all() == [tuple(scope.columns.values())]
            given = connection.execute(query.where(within_given(key_stamps)), scope.columns)
            assert given.all() == [tuple(scope.columns.values())]
