"""Which of our records is which of the platform's, and what the platform last accepted of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, select, update

from crossdock.state import sql
from crossdock.state.key_index import Stamps
from crossdock.state.schema import bindings as table
from crossdock.state.scopes import Scope, within


@dataclass(frozen=True, slots=True)
class Binding:
    """A record and its twin on the target.

    Attributes:
        payload: The last accepted payload, wire names, references resolved.
        counter: How many operations were minted for it; feeds idempotency keys.
        position: Value of the stream's ``order_by`` columns, None without.
    """

    key_hash: int
    key: str
    platform_id: str
    record_fp: int
    fp_algorithm: str
    position: str | None
    payload: dict[str, Any]
    payload_fp: int
    etag: str | None
    counter: int


UNKNOWN_FP = 0  # of a payload that was not delivered by us, so that we do not know it

_FIELDS = tuple(table.c[name] for name in Binding.__slots__)


class Bindings:
    def __init__(self, connection: Connection, stamps: Stamps) -> None:
        self._connection, self._stamps = connection, stamps

    def get(self, scope: Scope, key_hashes: Sequence[int]) -> dict[int, Binding]:
        """The live bindings among *key_hashes*, by key hash."""
        found: dict[int, Binding] = {}
        for part in sql.chunks(key_hashes):
            query = select(*_FIELDS).where(
                within(table, scope), table.c.key_hash.in_(part), table.c.deleted_at.is_(None)
            )
            found.update((row.key_hash, Binding(*row)) for row in self._connection.execute(query))
        return found

    def ids(self, scope: Scope, key_hashes: Sequence[int]) -> dict[int, str]:
        """Platform ids of the live bindings among *key_hashes*."""
        found: dict[int, str] = {}
        for part in sql.chunks(key_hashes):
            query = select(table.c.key_hash, table.c.platform_id).where(
                within(table, scope), table.c.key_hash.in_(part), table.c.deleted_at.is_(None)
            )
            found.update((key_hash, platform_id) for key_hash, platform_id in self._connection.execute(query))
        return found

    def put(self, scope: Scope, items: Sequence[Binding], *, run_id: int, at: datetime) -> None:
        """Write what the target accepted."""
        if not items:
            return
        self._stamps.changed(scope, [(item.key_hash, item.record_fp, item.position) for item in items])
        fixed = {**scope.columns, "run_id": run_id, "updated_at": at, "deleted_at": None}
        rows = [fixed | {name: getattr(item, name) for name in Binding.__slots__} for item in items]
        sql.upsert(self._connection, table, rows)

    def bury(self, scope: Scope, key_hashes: Sequence[int], *, at: datetime) -> None:
        """Say that the target has these no longer; what is kept of them is their counter."""
        if key_hashes:
            self._stamps.changed(scope, [(key_hash, None, None) for key_hash in key_hashes])
        for part in sql.chunks(key_hashes):
            changes = update(table).where(within(table, scope), table.c.key_hash.in_(part))
            self._connection.execute(changes.values(deleted_at=at, payload={}, etag=None))

    def counters(self, scope: Scope, key_hashes: Sequence[int]) -> dict[int, int]:
        """The counters of all bindings among *key_hashes*, also of those that are no longer live."""
        found: dict[int, int] = {}
        for part in sql.chunks(key_hashes):
            query = select(table.c.key_hash, table.c.counter).where(within(table, scope), table.c.key_hash.in_(part))
            found.update((key_hash, number) for key_hash, number in self._connection.execute(query))
        return found

    def listed(self) -> Iterator[tuple[Scope, str, str]]:
        """Scope, key and platform id of every live binding, by scope and key."""
        names = (table.c.target, table.c.resource, table.c.namespace, table.c.key)
        query = select(*names, table.c.platform_id).where(table.c.deleted_at.is_(None)).order_by(*names)
        for target, resource, namespace, key, platform_id in self._connection.execute(
            query.execution_options(yield_per=10_000)
        ):
            yield Scope(target, resource, namespace), key, platform_id

    def count(self) -> dict[str, int]:
        """Live bindings by resource."""
        query = select(table.c.resource, func.count()).where(table.c.deleted_at.is_(None)).group_by(table.c.resource)
        return {resource: number for resource, number in self._connection.execute(query)}
