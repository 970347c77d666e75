"""Keys with white space around them. The names of their records stay the same although keys are trimmed now."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, select, union

from crossdock.state.db import sql_statements
from crossdock.state.db.schema import dead_letters, waiting_records
from crossdock.state.db.schema import untrimmed_keys as table
from crossdock.state.tables.record_identity_and_scope import Scope, in_scope
from crossdock.values.record_keys import trimmed_key


class UntrimmedKeys:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def keys_of_scope(self, scope: Scope) -> list[str]:
        """Return those of the bindings and intents of *scope*."""
        found = self._connection.execute(select(table.c.key).where(in_scope(table, scope)).order_by(table.c.key))
        return list(found.scalars())

    def keys_of_stream(self, stream: str) -> list[str]:
        """Return those of the rejected and waiting records of *stream*."""
        each = (
            select(other.c.key).where(other.c.stream == stream, other.c.key.contains("%", autoescape=True))
            for other in (dead_letters, waiting_records)
        )
        return sorted(key for key in self._connection.execute(union(*each)).scalars() if trimmed_key(key) != key)

    def add_if_untrimmed(self, scope: Scope, keys: Iterable[tuple[int, str]]) -> None:
        """Store those of *keys*, with their hashes, that have white space around them."""
        found = ((number, key) for number, key in keys if "%" in key and trimmed_key(key) != key)
        rows = [{**scope.columns, "key_hash": number, "key": key} for number, key in found]
        if rows:
            sql_statements.upsert(self._connection, table, rows)
