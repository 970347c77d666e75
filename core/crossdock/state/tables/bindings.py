"""Which of our records is which of the platform's, and what the platform last accepted of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, func, select, update

from crossdock import exact_json
from crossdock.state.db import sql_statements
from crossdock.state.db.schema import bindings as table
from crossdock.state.tables.key_index import Change, Stamps
from crossdock.state.tables.record_identity import Step
from crossdock.state.tables.scopes import Scope, within_given


@dataclass(slots=True)  # a frozen one takes ten times as long to make, and a run makes one for each change
class Binding:
    """A record and its counterpart on the target.

    Attributes:
        fingerprint: Of the rows that the target's payload was made from; None unless *step* is ``whole``.
        position: Value of the stream's ``order_by`` columns, None without.
        step: Of the operation that the target accepted last.
        payload: The last accepted payload, wire names, references resolved; empty if *step* is ``import``.
        counter: How many operations were made for it; part of idempotency keys.
    """

    key_hash: int
    key: str
    platform_id: str
    fingerprint: int | None
    position: str | None
    step: Step
    payload: dict[str, Any]
    etag: str | None
    counter: int


@dataclass(frozen=True, slots=True)
class Accepted:
    """What the target has just accepted of a record; *payload* is canonical JSON text."""

    scope: Scope
    key_hash: int
    key: str
    platform_id: str
    fingerprint: int | None
    position: str | None
    step: Step
    payload: str
    etag: str | None
    counter: int


_COLUMNS = {name: name for name in Binding.__slots__ if name != "fingerprint"} | {"record_fp": "fingerprint"}
_SCOPE = {name: f"scope.{name}" for name in Scope.__slots__}
_FIELDS = tuple(table.c["record_fp" if name == "fingerprint" else name] for name in Binding.__slots__)
_HERE = within_given(table)
_IS_LIVE = table.c.deleted_at.is_(None)
_GET = sql_statements.ByKey(select(*_FIELDS).where(_HERE, _IS_LIVE), table.c.key_hash)
_IDS = sql_statements.ByKey(select(table.c.key_hash, table.c.platform_id).where(_HERE, _IS_LIVE), table.c.key_hash)
_OF_ID = sql_statements.ByKey(
    select(table.c.platform_id, table.c.namespace, table.c.key_hash, table.c.key).where(
        table.c.target == bindparam("target"), table.c.resource == bindparam("resource"), _IS_LIVE
    ),
    table.c.platform_id,
)
_COUNTERS = sql_statements.ByKey(select(table.c.key_hash, table.c.counter).where(_HERE), table.c.key_hash)
_BURY = sql_statements.Bulk(
    update(table)
    .where(_HERE, table.c.key_hash == bindparam("gone"))
    .values(deleted_at=bindparam("at"), payload={}, etag=None)
)
_FIXED = ("run_id", "updated_at", "deleted_at")
_PUT = sql_statements.upserting(table, (*_SCOPE, *_COLUMNS, *_FIXED), ready=("payload",))


class Bindings:
    def __init__(self, connection: Connection, stamps: Stamps) -> None:
        self._connection, self._stamps = connection, stamps

    def get(self, scope: Scope, key_hashes: Sequence[int]) -> dict[int, Binding]:
        """The live bindings among *key_hashes*, by key hash."""
        found = _GET.rows(self._connection, scope.columns, key_hashes)
        return {row[0]: Binding(*row) for row in found}

    def ids(self, scope: Scope, key_hashes: Sequence[int]) -> dict[int, str]:
        """Platform ids of the live bindings among *key_hashes*."""
        found = _IDS.rows(self._connection, scope.columns, key_hashes)
        return {key_hash: platform_id for key_hash, platform_id in found}

    def owners(self, target: str, resource: str, platform_ids: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Id, namespace, key hash and key of the records that are bound to *platform_ids*, in no order."""
        return _OF_ID.rows(self._connection, {"target": target, "resource": resource}, platform_ids)

    def put(self, scope: Scope, items: Sequence[Binding], *, run_id: int, at: datetime) -> None:
        """Write what the target accepted."""
        if not items:
            return
        self._stamps.changed(scope, [_change(item) for item in items])
        columns = sql_statements.by_column(items, **_COLUMNS)
        columns["payload"] = [exact_json.dumps(payload).decode() for payload in columns["payload"]]
        self._put(columns, {**scope.columns, "run_id": run_id, "updated_at": at})

    def accept(self, items: Sequence[Accepted], *, run_id: int, at: datetime) -> None:
        """Write what the target accepted, of any scopes."""
        if not items:
            return
        scopes: dict[Scope, list[Change]] = defaultdict(list)
        for item in items:
            scopes[item.scope].append(_change(item))
        for scope, changes in scopes.items():
            self._stamps.changed(scope, changes)
        self._put(sql_statements.by_column(items, **_SCOPE, **_COLUMNS), {"run_id": run_id, "updated_at": at})

    def _put(self, columns: Mapping[str, list[Any]], fixed: Mapping[str, Any]) -> None:
        _PUT.run(self._connection, columns, {**fixed, "deleted_at": None})

    def bury(self, scope: Scope, key_hashes: Sequence[int], *, at: datetime) -> None:
        """Say that the target has these no longer; what is kept of them is their counter."""
        if key_hashes:
            self._stamps.changed(scope, [Change(key_hash, None, None, is_live=False) for key_hash in key_hashes])
        _BURY.run(self._connection, {"gone": key_hashes}, {**scope.columns, "at": at})

    def counters(self, scope: Scope, key_hashes: Sequence[int]) -> dict[int, int]:
        """The counters of all bindings among *key_hashes*, also of those that are no longer live."""
        found = _COUNTERS.rows(self._connection, scope.columns, key_hashes)
        return {key_hash: number for key_hash, number in found}

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
        query = select(table.c.resource, func.count()).where(_IS_LIVE).group_by(table.c.resource)
        return {resource: number for resource, number in self._connection.execute(query)}


def _change(item: Binding | Accepted) -> Change:
    return Change(item.key_hash, item.fingerprint, item.position)
