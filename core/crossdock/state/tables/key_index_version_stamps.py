"""Random stamps, one per scope, that change with the scope's bindings. A key index with the same stamp is current."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct, field
from sqlalchemy import Connection, Integer, bindparam, func, select, update

from crossdock.state.db import bulk_writes_and_key_queries
from crossdock.state.db.schema import key_stamps
from crossdock.state.tables.record_identity_and_scope import CONTRIBUTION, Scope, in_scope, in_scope_of_parameters


class KeyIndexChange(NamedTuple):
    """The write of a transaction for one key. *is_live* is false once the target no longer has the record."""

    key_hash: int
    fingerprint: int | None
    position: str | None
    is_live: bool = True


class ScopeChanges(Struct):
    """The changes of one transaction in a scope, and the stamps before and after it; 0 if there was none."""

    before: int
    after: int
    changes: list[KeyIndexChange] = field(default_factory=list)


_RENEW = bulk_writes_and_key_queries.BulkStatement(
    update(key_stamps)
    .where(in_scope_of_parameters(key_stamps), key_stamps.c.stamp == bindparam("before"))
    .values(stamp=bindparam("after"))
)


_CONTRIBUTIONS = select(key_stamps.c.namespace).where(
    key_stamps.c.target == bindparam("target"),
    key_stamps.c.resource == bindparam("resource"),
    func.substr(key_stamps.c.namespace, 1, bindparam("length", type_=Integer)) == bindparam("begin"),
)


class KeyIndexStamps:
    """The stamps in one transaction. *expected* returns a scope's stamp after this process changed it last, or 0."""

    def __init__(self, connection: Connection, expected: Callable[[Scope], int]) -> None:
        self._connection, self._expected = connection, expected
        self.touched: dict[Scope, ScopeChanges] = {}

    def record_changes_of_scope(self, scope: Scope, changes: list[KeyIndexChange]) -> None:
        if scope not in self.touched:
            self.touched[scope] = self._renew(scope)
        self.touched[scope].changes += changes

    def current(self, scope: Scope) -> int:
        return stamp_of_scope(self._connection, scope)

    def contribution_scopes(self, scope: Scope) -> list[Scope]:
        begin = f"{scope.namespace}{CONTRIBUTION}"
        of = {"target": scope.target, "resource": scope.resource, "begin": begin, "length": len(begin)}
        found = self._connection.execute(_CONTRIBUTIONS, of)
        return [Scope(scope.target, scope.resource, namespace) for (namespace,) in found]

    def record_change_of_resource(self, target: str, resource: str) -> None:
        """Record changes of all bindings of these scopes, whose key indexes must be rebuilt."""
        query = select(key_stamps.c.namespace).where(key_stamps.c.target == target, key_stamps.c.resource == resource)
        for (namespace,) in self._connection.execute(query).all():
            scope, after = Scope(target, resource, namespace), secrets.randbits(62) + 1
            bulk_writes_and_key_queries.upsert_rows(self._connection, key_stamps, [{**scope.columns, "stamp": after}])
            self.touched[scope] = ScopeChanges(0, after)

    def _renew(self, scope: Scope) -> ScopeChanges:
        after, before = secrets.randbits(62) + 1, self._expected(scope)
        stamps = {"before": [before], "after": [after]}
        if not before or not _RENEW.run(self._connection, stamps, scope.columns):
            before = stamp_of_scope(self._connection, scope)
            bulk_writes_and_key_queries.upsert_rows(self._connection, key_stamps, [{**scope.columns, "stamp": after}])
        return ScopeChanges(before, after)


def stamp_of_scope(connection: Connection, scope: Scope) -> int:
    """Return the stamp of *scope*; 0 if it never had a binding."""
    return connection.execute(select(key_stamps.c.stamp).where(in_scope(key_stamps, scope))).scalar() or 0
