"""The address at which the records of each scope are: a target that is moved to another one may not have them."""

from __future__ import annotations

import hashlib

from sqlalchemy import Connection, select

from crossdock.state.db import bulk_writes_and_key_queries
from crossdock.state.db.schema import meta
from crossdock.state.tables.record_identity_and_scope import Scope

_BEGIN = "address."


class WrittenAddresses:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, scope: Scope) -> str | None:
        """Return the address to which records of *scope* are sent; None if no run has sent any."""
        found: str | None = self._connection.execute(
            select(meta.c.value).where(meta.c.name == _row_name(scope))
        ).scalar()
        return found

    def put(self, scope: Scope, address: str) -> None:
        row = {"name": _row_name(scope), "value": address}
        bulk_writes_and_key_queries.upsert_rows(self._connection, meta, [row])


def _row_name(scope: Scope) -> str:
    """Return a name that fits the column, which is shorter than a scope may be."""
    text = f"{scope.target}.{scope.resource}.{scope.namespace}"  # the names before the namespace have no dot
    return _BEGIN + hashlib.sha256(text.encode()).hexdigest()[:32]
