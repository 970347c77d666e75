"""Intents: operations from before they are sent until after they are settled (law 2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Row, Select, and_, bindparam, func, literal, or_, select, update

from crossdock.errors import InternalError
from crossdock.state.db import bulk_writes_and_key_queries
from crossdock.state.db.schema import attempts, intents
from crossdock.state.tables.dead_letters import ALL, RecordFilter
from crossdock.state.tables.record_identity_and_scope import COLUMNS as IDENTITY
from crossdock.state.tables.record_identity_and_scope import (
    RecordIdentity,
    Scope,
    Step,
    in_scope,
    in_scope_of_parameters,
)

Status = Literal[
    "pending", "sending", "in_doubt", "handed_over", "overdue", "delivered", "rejected", "replaced", "dropped"
]
Unchanged = Literal["record", "members"]
TO_SEND: tuple[Status, ...] = ("pending", "sending", "in_doubt")
ACKNOWLEDGED = "acknowledged"
"""The outcome of an attempt whose message says which row has acknowledged it."""
AWAITED: tuple[Status, ...] = ("handed_over", "overdue")
"""Operations that the target has, and has not acknowledged yet."""
UNSETTLED: tuple[Status, ...] = (*TO_SEND, *AWAITED)


class Intent(Struct):
    """One operation with its exact bytes.

    Attributes:
        after: The payload that the target will hold; None if *body* is that payload.
        raw: The record it was mapped from, kept until the target has accepted it.
        status: ``replaced`` by a new decision if the target held something else; ``dropped`` by an operator.
        only_unchanged: Reject an update or delete if others have changed any part of the ``record``, or ``members``
            that we write, whichever run sends it; None to decide about the record again.
        resolved_at: When a person or a complete list of the target resolved what was in doubt, or what a restored
            backup would send again.
        batch_id: The stored batch that it is a part of, at *place*; None for a request of its own.
        id: 0 until it is written.
    """

    identity: RecordIdentity
    scope: Scope
    operation: str
    step: Step
    counter: int
    idempotency_key: str
    method: str
    path: str
    body: bytes | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    raw: dict[str, Any]
    if_match: str | None = None
    status: Status = "pending"
    attempts: int = 0
    target_id: str | None = None
    http_status: int | None = None
    first_sent_at: datetime | None = None
    untouched: bool | None = None
    only_unchanged: Unchanged | None = None
    resolved_at: datetime | None = None
    batch_id: int | None = None
    place: int | None = None
    id: int = 0

    @property
    def resource(self) -> str:
        return self.scope.resource

    @property
    def awaits_acknowledgement(self) -> bool:
        """Whether it is one of a stored batch that was, or may have been, handed over, and is not acknowledged."""
        return self.status in AWAITED or (self.status == "in_doubt" and self.batch_id is not None)

    @property
    def is_to_be_sent_again(self) -> bool:
        """Whether a person has settled that its batch was not delivered, so that it goes into another one."""
        return self.status == "pending" and self.batch_id is not None and self.place is None

    def mark_sending(self, at: datetime) -> None:
        self.status, self.attempts, self.http_status = "sending", self.attempts + 1, None
        self.first_sent_at = self.first_sent_at or at


class Attempt(Struct, frozen=True):
    """One attempt to send an intent, recorded if it failed or was not the first. *number* counts over all runs."""

    intent_id: int
    number: int
    ended_at: datetime
    outcome: str
    http_status: int | None
    message: str


class IntentGroup(NamedTuple):
    """Operations of one stream, in one stored batch or in none, of which *first_id* was stored first, at *since*."""

    stream: str
    batch_id: int | None
    number: int
    since: datetime
    first_id: int


_PLAIN = tuple(name for name in Intent.__struct_fields__ if name not in {"identity", "scope"})
_COLUMNS = IDENTITY | {name: f"scope.{name}" for name in Scope.__struct_fields__} | {name: name for name in _PLAIN}
_FIELDS = tuple(intents.c[name] for name in _COLUMNS)
_NO_DATA: Mapping[str, Any] = {"body": None, "before": None, "after": None, "raw": {}}
_BARE = tuple(intents.c[name] for name in _COLUMNS if name not in _NO_DATA)
_IDS = bulk_writes_and_key_queries.IdAllocator(intents)
_ADD = bulk_writes_and_key_queries.insert_or_ignore_statement(
    intents, (*_COLUMNS, "run_id", "fence", "created_at"), unique_column="idempotency_key"
)
_THIS = intents.c.id == bindparam("row")
_SENDING = ("method", "path", "attempts", "first_sent_at", "http_status")
_MARK = bulk_writes_and_key_queries.BulkStatement(
    update(intents).where(_THIS).values(status="sending", **{name: bindparam(f"new_{name}") for name in _SENDING})
)
_RESULT = ("status", "http_status", "target_id", "first_sent_at", "untouched", "resolved_at", "batch_id", "place")
_MOVED: dict[str, Any] = {name: bindparam(f"new_{name}") for name in (*_RESULT, "settled_at")}
_MOVE = bulk_writes_and_key_queries.BulkStatement(update(intents).where(_THIS).values(_MOVED))
_FINISH = bulk_writes_and_key_queries.BulkStatement(update(intents).where(_THIS).values({**_MOVED, "raw": {}}))
_COUNTERS = bulk_writes_and_key_queries.QueryByKeys(
    select(intents.c.key_hash, func.max(intents.c.counter))
    .where(in_scope_of_parameters(intents))
    .group_by(intents.c.key_hash),
    intents.c.key_hash,
)
_DONE: frozenset[Status] = frozenset({"delivered", "replaced"})  # their raw form is not needed any more


class Intents:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, items: Sequence[Intent], *, run_id: int, fence: int, at: datetime) -> None:
        """Insert intents and set their ids. An existing one is not changed, but marked if it is sending."""
        if not items:
            return
        for item, number in zip(items, _IDS.allocate_ids(self._connection, len(items)), strict=True):
            item.id = number
        fixed = {"run_id": run_id, "fence": fence, "created_at": at}
        if _ADD.run(self._connection, bulk_writes_and_key_queries.as_columns(items, **_COLUMNS), fixed) < len(items):
            self._set_ids_of_stored_intents(items)
            self.write_as_sending([item for item in items if item.status == "sending"])

    def _set_ids_of_stored_intents(self, items: Sequence[Intent]) -> None:
        """Set the ids of *items*, which all exist. Idempotency keys of different records must differ."""
        ids: dict[tuple[str, int], int] = {}
        for part in bulk_writes_and_key_queries.chunks([item.idempotency_key for item in items]):
            fields = (intents.c.idempotency_key, intents.c.key_hash, intents.c.id)
            query = select(*fields).where(intents.c.idempotency_key.in_(part))
            ids.update(((key, key_hash), number) for key, key_hash, number in self._connection.execute(query))
        for item in items:
            known = ids.get((item.idempotency_key, item.identity.key_hash))
            if known is None:
                raise InternalError(
                    "two operations share an idempotency key",
                    where=f"{item.identity.stream} {item.identity.key}",
                    code="idempotency_key_repeated",
                )
            item.id = known

    def write_as_sending(self, items: Sequence[Intent]) -> None:
        """Write *items*, which were marked by `Intent.mark_sending`; they may be sent once this is committed."""
        columns = bulk_writes_and_key_queries.as_columns(items, row="id", **{f"new_{name}": name for name in _SENDING})
        _MARK.run(self._connection, columns)

    def write_outcomes(self, items: Sequence[Intent], *, at: datetime) -> None:
        """Write status and result of *items*. The raw form of a delivered or replaced one is deleted."""
        for statement, is_done in ((_FINISH, True), (_MOVE, False)):
            group = [item for item in items if (item.status in _DONE) is is_done]
            columns = bulk_writes_and_key_queries.as_columns(
                group, row="id", **{f"new_{name}": name for name in _RESULT}
            )
            columns["new_settled_at"] = [None if item.status in UNSETTLED else at for item in group]
            statement.run(self._connection, columns)

    def to_send(self, target: str) -> list[Intent]:
        """Return the intents of all scopes of *target* that are to be sent, oldest first.

        One of a stored batch that is in doubt is not: an acknowledgement, or a person, decides about it.
        """
        return [each for each in self._intents_of_target(target, TO_SEND, _FIELDS) if not each.awaits_acknowledgement]

    def awaiting_acknowledgement(self, target: str) -> list[Intent]:
        """Return the intents of *target* whose batch was, or may have been, handed over, oldest first.

        Those that a person has settled as not delivered are among them, until they are sent again. There may be many of
        them, so they come without their data; see `read_again_with_data`.
        """
        of_batch = and_(intents.c.batch_id.is_not(None), or_(intents.c.status == "in_doubt", intents.c.place.is_(None)))
        wanted = or_(intents.c.status.in_(AWAITED), of_batch)
        return self._intents_of_target(target, (*AWAITED, "in_doubt", "pending"), _BARE, wanted)

    def settled_in_batch(self, batch: int) -> list[Intent]:
        """Return the settled intents of a stored batch, without their data."""
        return self._read(select(*_BARE).where(intents.c.batch_id == batch, intents.c.status.not_in(UNSETTLED)))

    def settled_on_record(self, target: str, target_id: str) -> list[Intent]:
        """Return the settled intents of stored batches of *target* on the record with this id, without their data."""
        of_record = intents.c.target == target, intents.c.target_id == target_id, intents.c.batch_id.is_not(None)
        return self._read(select(*_BARE).where(*of_record, intents.c.status.not_in(UNSETTLED)))

    def was_acknowledged_by(self, target: str, target_id: str, said_by: str) -> bool:
        """Return whether this row has acknowledged an earlier operation on the record of *target* with this id."""
        query = select(literal(1)).join(attempts, attempts.c.intent_id == intents.c.id)
        query = query.where(intents.c.target == target, intents.c.target_id == target_id)
        query = query.where(attempts.c.outcome == ACKNOWLEDGED, attempts.c.message == said_by).limit(1)
        return self._connection.execute(query).first() is not None

    def _intents_of_target(
        self,
        target: str,
        statuses: Iterable[Status],
        fields: Sequence[ColumnElement[Any]],
        *conditions: ColumnElement[bool],
    ) -> list[Intent]:
        query = select(*fields).where(intents.c.status.in_(list(statuses)), intents.c.target == target, *conditions)
        return self._read(query.order_by(intents.c.id))

    def to_send_counts_by_target(self) -> dict[str, int]:
        """Return the number of intents that are to be sent to each target that has some."""
        query = select(intents.c.target, func.count()).where(intents.c.status.in_(TO_SEND)).group_by(intents.c.target)
        return {target: number for target, number in self._connection.execute(query)}

    def unsettled(self) -> list[Intent]:
        """Return the unsettled intents of all scopes, oldest first."""
        return self._read(select(*_FIELDS).where(intents.c.status.in_(UNSETTLED)).order_by(intents.c.id))

    def unsettled_in_scope(self, scope: Scope, among: Sequence[int] | None = None) -> list[Intent]:
        """Return the unsettled intents of *scope*, or of its key hashes *among*, oldest first, without their data."""
        query = select(*_BARE).where(intents.c.status.in_(UNSETTLED), in_scope(intents, scope)).order_by(intents.c.id)
        if among is None:
            return self._read(query)
        parts = (
            self._read(query.where(intents.c.key_hash.in_(part))) for part in bulk_writes_and_key_queries.chunks(among)
        )
        return sorted((intent for part in parts for intent in part), key=lambda intent: intent.id)

    def read_again_with_data(self, items: Sequence[Intent]) -> list[Intent]:
        """Read intents again that were read without their data, in the same order."""
        return self.intents_with_ids([item.id for item in items])

    def intents_with_ids(self, numbers: Sequence[int]) -> list[Intent]:
        """Return the intents with these ids, in their order."""
        found = dict[int, Intent]()
        for part in bulk_writes_and_key_queries.chunks(numbers):
            found |= {each.id: each for each in self._read(select(*_FIELDS).where(intents.c.id.in_(part)))}
        return [found[number] for number in numbers]

    def intents_of_record(self, scope: Scope, key_hash: int) -> list[Intent]:
        query = select(*_FIELDS).where(in_scope(intents, scope), intents.c.key_hash == key_hash)
        return self._read(query.order_by(intents.c.id))

    def write_raw_records_again(self, items: Sequence[Intent]) -> None:
        """Write the raw form of *items* again after `write_outcomes`, so that their settlement can be reversed."""
        for item in items:
            self._connection.execute(update(intents).where(intents.c.id == item.id).values(raw=item.raw))

    def bodies_of_all_later_intents(self, item: Intent) -> Iterator[bytes]:
        query = select(intents.c.body).where(intents.c.id > item.id, intents.c.body.is_not(None))
        yield from self._connection.execute(query.execution_options(yield_per=1_000)).scalars()

    def first_attempt_at(self, item: Intent) -> datetime | None:
        query = select(func.min(attempts.c.ended_at)).where(attempts.c.intent_id == item.id)
        return self._connection.execute(query).scalar()

    def store_attempt_results(self, items: Sequence[Attempt]) -> None:
        rows = [{name: getattr(item, name) for name in Attempt.__struct_fields__} for item in items]
        bulk_writes_and_key_queries.upsert_rows(self._connection, attempts, rows)

    def latest_attempt_messages(self, items: Sequence[Intent]) -> dict[int, str]:
        found: dict[int, str] = {}
        for part in bulk_writes_and_key_queries.chunks([item.id for item in items]):
            query = select(attempts.c.intent_id, attempts.c.message).where(attempts.c.intent_id.in_(part))
            rows = self._connection.execute(query.order_by(attempts.c.number))
            found.update((row.intent_id, row.message) for row in rows)
        return found

    def idempotency_counters(self, scope: Scope, key_hashes: Sequence[int]) -> dict[int, int]:
        """Return the highest counter of each of *key_hashes* that has intents."""
        return dict(_COUNTERS.rows(self._connection, scope.columns, key_hashes))

    def page_with_statuses(
        self, statuses: Iterable[Status], *, limit: int, choice: RecordFilter = ALL, after: int = 0
    ) -> list[Intent]:
        """Return at most *limit* intents of *choice* with an id *after* this one, oldest first."""
        query = select(*_FIELDS).where(intents.c.id > after, *choice.conditions(intents))
        query = query.order_by(bulk_writes_and_key_queries.order_without_index(self._connection, intents.c.id)).limit(
            limit
        )
        found = [
            each for status in statuses for each in self._read(query.where(choice.status_column(intents) == status))
        ]
        return sorted(found, key=lambda each: each.id)[:limit]

    def groups_by_stored_batch(
        self, statuses: Iterable[Status], choice: RecordFilter, *, limit: int
    ) -> list[IntentGroup]:
        """Count the intents of *choice* by stream and stored batch, the largest groups first."""
        by = intents.c.stream, intents.c.batch_id
        number = func.count().label("number")
        query = select(*by, number, func.min(intents.c.created_at), func.min(intents.c.id))
        query = query.where(choice.status_column(intents).in_(list(statuses)), *choice.conditions(intents)).group_by(
            *by
        )
        rows = self._connection.execute(query.order_by(number.desc(), *by).limit(limit))
        return [IntentGroup(*row) for row in rows]

    def count(self, statuses: Iterable[Status], choice: RecordFilter) -> int:
        query = select(func.count()).select_from(intents)
        query = query.where(choice.status_column(intents).in_(list(statuses)), *choice.conditions(intents))
        return int(self._connection.execute(query).scalar_one())

    def unsettled_counts_by_status(self, choice: RecordFilter) -> dict[str, int]:
        """Count the unsettled intents of *choice* by status."""
        status = choice.status_column(intents)
        query = select(status, func.count()).where(status.in_(UNSETTLED), *choice.conditions(intents)).group_by(status)
        return {name: number for name, number in self._connection.execute(query)}

    def counts_of_run(self, run_id: int) -> dict[str, int]:
        """Count a run's operations by result. Operations that are being sent count as ``pending``."""
        query = select(intents.c.status, func.count()).where(intents.c.run_id == run_id).group_by(intents.c.status)
        found: dict[str, int] = {}
        for status, number in self._connection.execute(query.order_by(intents.c.status)):
            name = "pending" if status == "sending" else status
            found[name] = found.get(name, 0) + number
        return found

    def _read(self, query: Select[Any]) -> list[Intent]:
        return [
            Intent(
                identity=RecordIdentity.of_table_row(row),
                scope=Scope(row.target, row.resource, row.namespace),
                **_plain_attributes_of_row(row),
            )
            for row in self._connection.execute(query)
        ]


def _plain_attributes_of_row(row: Row[Any]) -> dict[str, Any]:
    return {name: getattr(row, name, _NO_DATA.get(name)) for name in _PLAIN}
