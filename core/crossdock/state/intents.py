"""Operations from before they are sent until after they are settled (law 2). Only their status moves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection, bindparam, func, insert, select, update

from crossdock.resources import ResourceName
from crossdock.state import sql
from crossdock.state.bindings import Scope
from crossdock.state.schema import intents as table

Status = Literal["pending", "sending", "in_doubt", "delivered", "rejected"]
UNSETTLED: tuple[Status, ...] = ("pending", "sending", "in_doubt")


@dataclass(slots=True)
class Intent:
    """One operation with its exact bytes.

    Attributes:
        before: The payload that the target holds, None for a create.
        after: The payload it will hold, None where *body* is that payload.
        raw: The record it was made from, kept until the target has accepted it.
    """

    stream: str
    target: str
    resource: ResourceName
    namespace: str
    key_hash: int
    key: str
    operation: str
    counter: int
    idempotency_key: str
    method: str
    path: str
    body: bytes | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    record_fp: int
    fp_algorithm: str
    position: str | None
    raw: dict[str, Any]
    source: str
    line: int
    status: Status = "pending"
    attempts: int = 0
    platform_id: str | None = None
    http_status: int | None = None
    first_sent_at: datetime | None = None
    id: int = field(default=0, kw_only=True)

    @property
    def scope(self) -> Scope:
        return Scope(self.target, self.resource, self.namespace)


_FIELDS = tuple(table.c[name] for name in Intent.__slots__)
_NEW = tuple(name for name in Intent.__slots__ if name != "id")


class Intents:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, items: Sequence[Intent], *, run_id: int, fence: int, at: datetime) -> None:
        """Write new intents as pending; each item is given its id."""
        if not items:
            return
        fixed = {"run_id": run_id, "fence": fence, "created_at": at}
        rows = [fixed | {name: getattr(item, name) for name in _NEW} for item in items]
        self._connection.execute(insert(table), rows)
        keys = [item.idempotency_key for item in items]
        ids: dict[str, int] = {}
        for part in sql.chunks(keys):
            query = select(table.c.idempotency_key, table.c.id).where(table.c.idempotency_key.in_(part))
            ids.update((key, number) for key, number in self._connection.execute(query))
        for item in items:
            item.id = ids[item.idempotency_key]

    def mark_sending(self, items: Sequence[Intent], *, at: datetime) -> None:
        """Say that the bytes of *items* may leave as soon as this is committed."""
        if not items:
            return
        for item in items:
            item.status, item.attempts = "sending", item.attempts + 1
            item.first_sent_at = item.first_sent_at or at
        self._connection.execute(
            update(table)
            .where(table.c.id == bindparam("row"))
            .values(
                status="sending",
                attempts=bindparam("tries"),
                first_sent_at=bindparam("first", type_=table.c.first_sent_at.type),
            ),
            [{"row": item.id, "tries": item.attempts, "first": item.first_sent_at} for item in items],
        )

    def move(self, items: Sequence[Intent], *, at: datetime) -> None:
        """Write each item's status, HTTP status, platform id and first sending; *at* is when that was.

        A delivered one drops its raw form.
        """
        for delivered in (True, False):
            group = [item for item in items if (item.status == "delivered") is delivered]
            if not group:
                continue
            changes: dict[str, Any] = {
                "status": bindparam("new_status"),
                "http_status": bindparam("answer"),
                "platform_id": bindparam("given"),
                "first_sent_at": bindparam("first", type_=table.c.first_sent_at.type),
                "settled_at": bindparam("now", type_=table.c.settled_at.type),
            }
            if delivered:
                changes["raw"] = {}
            self._connection.execute(
                update(table).where(table.c.id == bindparam("row")).values(changes),
                [
                    {
                        "row": item.id,
                        "new_status": item.status,
                        "answer": item.http_status,
                        "given": item.platform_id,
                        "first": item.first_sent_at,
                        "now": None if item.status in UNSETTLED else at,
                    }
                    for item in group
                ],
            )

    def unsettled(self) -> list[Intent]:
        """What an earlier run left pending, sending or in doubt, oldest first."""
        query = select(*_FIELDS).where(table.c.status.in_(UNSETTLED)).order_by(table.c.id)
        return [Intent(**row._mapping) for row in self._connection.execute(query)]  # noqa: SLF001  its documented name

    def counters(self, scope: Scope, key_hashes: Sequence[int]) -> dict[int, int]:
        """The highest counter minted for each of *key_hashes*; absent where none was."""
        found: dict[int, int] = {}
        for part in sql.chunks(key_hashes):
            query = (
                select(table.c.key_hash, func.max(table.c.counter))
                .where(
                    table.c.target == scope.target,
                    table.c.resource == scope.resource,
                    table.c.namespace == scope.namespace,
                    table.c.key_hash.in_(part),
                )
                .group_by(table.c.key_hash)
            )
            found.update((key_hash, number) for key_hash, number in self._connection.execute(query))
        return found

    def listed(self, statuses: Iterable[Status], *, limit: int, after: int = 0) -> list[Intent]:
        """Intents of *statuses* with an id above *after*, in order of their ids, at most *limit*."""
        query = (
            select(*_FIELDS)
            .where(table.c.status.in_(list(statuses)), table.c.id > after)
            .order_by(table.c.id)
            .limit(limit)
        )
        return [Intent(**row._mapping) for row in self._connection.execute(query)]  # noqa: SLF001  its documented name
