"""Intents: operations from before they are sent until after they are settled (law 2), and the batches of some.

The bytes of a stored batch are made once, with a number that is never used again: a file that is handed over.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Row, Select, and_, bindparam, func, literal, or_, select, update

from crossdock.errors import InternalError
from crossdock.state.db import sql_types_and_statements
from crossdock.state.db.schema import attempts, batches, intents, sequences
from crossdock.state.tables.dead_letters_and_waiting_records import ALL_RECORDS, RecordFilter
from crossdock.state.tables.record_identity_and_scope import IDENTITY_COLUMNS as IDENTITY
from crossdock.state.tables.record_identity_and_scope import (
    RecordIdentity,
    Scope,
    Step,
    scope_condition,
    scope_condition_with_parameters,
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

    def mark_as_sending(self, at: datetime) -> None:
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
_IDS = sql_types_and_statements.IdAllocator(intents)
_ADD = sql_types_and_statements.insert_or_ignore_statement(
    intents, (*_COLUMNS, "run_id", "fence", "created_at"), unique_column="idempotency_key"
)
_THIS = intents.c.id == bindparam("row")
_SENDING = ("method", "path", "attempts", "first_sent_at", "http_status")
_MARK = sql_types_and_statements.BulkStatement(
    update(intents).where(_THIS).values(status="sending", **{name: bindparam(f"new_{name}") for name in _SENDING})
)
_RESULT = ("status", "http_status", "target_id", "first_sent_at", "untouched", "resolved_at", "batch_id", "place")
_MOVED: dict[str, Any] = {name: bindparam(f"new_{name}") for name in (*_RESULT, "settled_at")}
_MOVE = sql_types_and_statements.BulkStatement(update(intents).where(_THIS).values(_MOVED))
_FINISH = sql_types_and_statements.BulkStatement(update(intents).where(_THIS).values({**_MOVED, "raw": {}}))
_COUNTERS = sql_types_and_statements.QueryByKeys(
    select(intents.c.key_hash, func.max(intents.c.counter))
    .where(scope_condition_with_parameters(intents))
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
        if _ADD.run(self._connection, sql_types_and_statements.attributes_as_columns(items, **_COLUMNS), fixed) < len(
            items
        ):
            self._set_ids_of_stored_intents(items)
            self.write_as_sending([item for item in items if item.status == "sending"])

    def _set_ids_of_stored_intents(self, items: Sequence[Intent]) -> None:
        """Set the ids of *items*, which all exist. Idempotency keys of different records must differ."""
        ids: dict[tuple[str, int], int] = {}
        for part in sql_types_and_statements.chunks_of_in_list([item.idempotency_key for item in items]):
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
        """Write *items*, which were marked by `Intent.mark_as_sending`; they may be sent once this is committed."""
        columns = sql_types_and_statements.attributes_as_columns(
            items, row="id", **{f"new_{name}": name for name in _SENDING}
        )
        _MARK.run(self._connection, columns)

    def write_outcomes(self, items: Sequence[Intent], *, at: datetime) -> None:
        """Write status and result of *items*. The raw form of a delivered or replaced one is deleted."""
        for statement, is_done in ((_FINISH, True), (_MOVE, False)):
            group = [item for item in items if (item.status in _DONE) is is_done]
            columns = sql_types_and_statements.attributes_as_columns(
                group, row="id", **{f"new_{name}": name for name in _RESULT}
            )
            columns["new_settled_at"] = [None if item.status in UNSETTLED else at for item in group]
            statement.run(self._connection, columns)

    def intents_to_send(self, target: str) -> list[Intent]:
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
        query = (
            select(*_BARE)
            .where(intents.c.status.in_(UNSETTLED), scope_condition(intents, scope))
            .order_by(intents.c.id)
        )
        if among is None:
            return self._read(query)
        parts = (
            self._read(query.where(intents.c.key_hash.in_(part)))
            for part in sql_types_and_statements.chunks_of_in_list(among)
        )
        return sorted((intent for part in parts for intent in part), key=lambda intent: intent.id)

    def read_again_with_data(self, items: Sequence[Intent]) -> list[Intent]:
        """Read intents again that were read without their data, in the same order."""
        return self.intents_with_ids([item.id for item in items])

    def intents_with_ids(self, numbers: Sequence[int]) -> list[Intent]:
        """Return the intents with these ids, in their order."""
        found = dict[int, Intent]()
        for part in sql_types_and_statements.chunks_of_in_list(numbers):
            found |= {each.id: each for each in self._read(select(*_FIELDS).where(intents.c.id.in_(part)))}
        return [found[number] for number in numbers]

    def intents_of_record(self, scope: Scope, key_hash: int) -> list[Intent]:
        query = select(*_FIELDS).where(scope_condition(intents, scope), intents.c.key_hash == key_hash)
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
        sql_types_and_statements.upsert_rows(self._connection, attempts, rows)

    def latest_attempt_messages(self, items: Sequence[Intent]) -> dict[int, str]:
        found: dict[int, str] = {}
        for part in sql_types_and_statements.chunks_of_in_list([item.id for item in items]):
            query = select(attempts.c.intent_id, attempts.c.message).where(attempts.c.intent_id.in_(part))
            rows = self._connection.execute(query.order_by(attempts.c.number))
            found.update((row.intent_id, row.message) for row in rows)
        return found

    def idempotency_counters(self, scope: Scope, key_hashes: Sequence[int]) -> dict[int, int]:
        """Return the highest counter of each of *key_hashes* that has intents."""
        return dict(_COUNTERS.rows(self._connection, scope.columns, key_hashes))

    def page_with_statuses(
        self, statuses: Iterable[Status], *, limit: int, choice: RecordFilter = ALL_RECORDS, after: int = 0
    ) -> list[Intent]:
        """Return at most *limit* intents of *choice* with an id *after* this one, oldest first."""
        query = select(*_FIELDS).where(intents.c.id > after, *choice.conditions(intents))
        query = query.order_by(sql_types_and_statements.id_order_without_index(self._connection, intents.c.id)).limit(
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


_ANY = ""  # the last number that is left out for targets that have no file yet
GAP = 1_000  # numbers that are left out at least after a backup was restored, whose files since then are unknown
_MOST_TIMES_AS_MANY = 10  # files since the backup as in as long a time before


class StoredBatch(Struct, frozen=True):
    """A batch with its exact bytes.

    Attributes:
        number: Its number in the sequence of the target, from 1.
        name: Such as that of a file.
        destination: Where it is handed over, as the target describes it.
        records: The number of its operations.
        receipt: What its target answered to earlier parts, and needs for the next ones, such as the id of a job.
    """

    id: int
    target: str
    resource: str
    number: int
    name: str
    destination: str
    body: bytes
    records: int
    receipt: str = ""


class BatchFacts(NamedTuple):
    """A stored batch without its bytes."""

    name: str
    number: int
    sha256: str
    records: int
    created_at: datetime
    handed_over_at: datetime | None
    due_at: datetime | None


class OverdueBatch(NamedTuple):
    """A stored batch of which *records* of *stream* were not acknowledged by *due_at*."""

    stream: str
    target: str
    name: str
    due_at: datetime
    records: int


_BATCH_FIELDS = tuple(batches.c[name] for name in StoredBatch.__struct_fields__)
_IS_INTENT_IN_ROW = intents.c.id == bindparam("row")
_MEMBER = ("batch_id", "place", "target_id")
_ASSIGN = sql_types_and_statements.BulkStatement(
    update(intents).where(_IS_INTENT_IN_ROW).values({name: bindparam(f"new_{name}") for name in _MEMBER})
)


class StoredBatches:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def next_unused_number(self, target: str, at_least: int) -> int:
        """Return the number of the next batch of *target*, at least *at_least*."""
        return max(at_least, 1 + self._last_number((target, _ANY)))

    def _last_number(self, targets: Sequence[str]) -> int:
        last = select(func.max(sequences.c.last)).where(sequences.c.target.in_(targets))
        return self._connection.execute(last).scalar() or 0

    def last_numbers_by_target(self) -> dict[str, int]:
        """Return the last number that was used, or left out, of each target that has one."""
        targets = select(sequences.c.target).where(sequences.c.target != _ANY).order_by(sequences.c.target)
        return {each: self._last_number((each, _ANY)) for each in self._connection.execute(targets).scalars()}

    def use_up_numbers_to(self, target: str, number: int) -> None:
        """Use no number up to *number* for *target*: another state has used them."""
        last = max(number, self._last_number((target,)))
        sql_types_and_statements.upsert_rows(self._connection, sequences, [{"target": target, "last": last}])

    def leave_gap_in_numbers(self, at: datetime) -> None:
        """Leave out numbers of each target: a restored backup does not know which were used since, until *at*.

        They are `GAP`, or more for a target that has used many in as long a time before its last known batch.
        """
        sql_types_and_statements.upsert_rows(
            self._connection, sequences, [{"target": _ANY, "last": self._last_number((_ANY,))}]
        )
        for target in [_ANY, *self.last_numbers_by_target()]:
            gap = max(GAP, _MOST_TIMES_AS_MANY * self._expected_number_since_last(target, at))
            own = update(sequences).where(sequences.c.target == target)
            self._connection.execute(own.values(last=sequences.c.last + gap))

    def _expected_number_since_last(self, target: str, at: datetime) -> int:
        """Return how many batches *target* gets from its last known one until *at*, as many a day as it got before."""
        own = batches.c.target == target
        first, last = self._connection.execute(
            select(func.min(batches.c.created_at), func.max(batches.c.created_at)).where(own)
        ).one()
        if last is None or last >= at:
            return 0
        span: timedelta = at - last
        begin: datetime = max(first, last - span)
        known = select(func.count()).where(own, batches.c.created_at >= begin)
        number = int(self._connection.execute(known).scalar_one())
        known_time: timedelta = max(last - begin, timedelta(days=1))
        return -(number * -span // known_time)  # rounded up

    def batch_added_under_key(self, key: str) -> StoredBatch | None:
        """Return the batch that was added with *key*, or None."""
        row = self._connection.execute(select(*_BATCH_FIELDS).where(batches.c.key == key)).first()
        return None if row is None else StoredBatch(*row)

    def add(self, batch: StoredBatch, key: str, *, run_id: int, at: datetime) -> StoredBatch:
        """Store a batch and use its number up. Return it with its id."""
        sql_types_and_statements.upsert_rows(
            self._connection, sequences, [{"target": batch.target, "last": batch.number}]
        )
        facts = {name: getattr(batch, name) for name in StoredBatch.__struct_fields__ if name != "id"}
        facts |= {"run_id": run_id, "created_at": at, "key": key}
        facts["sha256"] = hashlib.sha256(batch.body).hexdigest()
        added = self._connection.execute(batches.insert().values(facts).returning(batches.c.id)).scalar_one()
        return StoredBatch(added, *(getattr(batch, name) for name in StoredBatch.__struct_fields__ if name != "id"))

    def assign_operations(self, batch: StoredBatch, members: Sequence[Intent]) -> None:
        """Make *members*, which are stored, the operations of *batch*, in this order, and write their ids."""
        for place, intent in enumerate(members):
            intent.batch_id, intent.place = batch.id, place
        columns = sql_types_and_statements.attributes_as_columns(
            members, row="id", **{f"new_{name}": name for name in _MEMBER}
        )
        _ASSIGN.run(self._connection, columns)

    def batches_by_id(self, ids: Collection[int]) -> Mapping[int, StoredBatch]:
        """Return the batches with these ids."""
        found = dict[int, StoredBatch]()
        for part in sql_types_and_statements.chunks_of_in_list(list(ids)):
            rows = self._connection.execute(select(*_BATCH_FIELDS).where(batches.c.id.in_(part)))
            found.update((row.id, StoredBatch(*row)) for row in rows)
        return found

    def facts_by_id(self, ids: Collection[int]) -> Mapping[int, BatchFacts]:
        """Return the facts about the batches with these ids."""
        found = dict[int, BatchFacts]()
        for part in sql_types_and_statements.chunks_of_in_list(list(ids)):
            query = select(batches.c.id, *(batches.c[name] for name in BatchFacts._fields))
            rows = self._connection.execute(query.where(batches.c.id.in_(part)))
            found.update((number, BatchFacts(*facts)) for number, *facts in rows)
        return found

    def mark_handed_over(self, ids: Collection[int], *, at: datetime, due_at: datetime | None) -> None:
        """Store when batches were handed over, once, and when their acknowledgement is due."""
        for part in sql_types_and_statements.chunks_of_in_list(list(ids)):
            first = batches.c.id.in_(part), batches.c.handed_over_at.is_(None)
            self._connection.execute(update(batches).where(*first).values(handed_over_at=at, due_at=due_at))

    def store_receipt(self, batch: int, receipt: str) -> None:
        self._connection.execute(update(batches).where(batches.c.id == batch).values(receipt=receipt))

    def mark_late_operations_overdue(self, *, at: datetime) -> None:
        """Mark the operations whose acknowledgement is late."""
        late = select(batches.c.id).where(batches.c.due_at < at)
        is_late = intents.c.status == "handed_over", intents.c.batch_id.in_(late)
        self._connection.execute(update(intents).where(*is_late).values(status="overdue"))

    def overdue_batches(self) -> list[OverdueBatch]:
        """Return the batches with operations that are overdue, oldest first."""
        own = intents.c.batch_id == batches.c.id, intents.c.status == "overdue"
        fields = intents.c.stream, batches.c.target, batches.c.name, batches.c.due_at
        query = select(*fields, func.count()).where(*own).group_by(*fields, batches.c.id).order_by(batches.c.id)
        return [OverdueBatch(*row) for row in self._connection.execute(query)]

    def late_batches(self, *, at: datetime, limit: int) -> list[tuple[OverdueBatch, bool]]:
        """Return the first batches whose acknowledgement is late *at*, and whether a run has marked them as overdue."""
        own = intents.c.batch_id == batches.c.id, intents.c.status.in_(AWAITED), batches.c.due_at < at
        fields = intents.c.stream, batches.c.target, batches.c.name, batches.c.due_at
        query = select(*fields, func.count(), func.max(intents.c.status)).where(*own).group_by(*fields, batches.c.id)
        rows = self._connection.execute(query.order_by(batches.c.due_at, batches.c.id).limit(limit))
        return [(OverdueBatch(*row), status == "overdue") for *row, status in rows]

    def id_by_name_or_number(self, target: str, wanted: str | int) -> int | None:
        """Return the id of the batch of *target* with this name, in upper or lower case, or this number."""
        exact = batches.c.name if isinstance(wanted, str) else batches.c.number
        query = select(func.max(batches.c.id)).where(batches.c.target == target)
        found: int | None = self._connection.execute(query.where(exact == wanted)).scalar()
        if found is None and isinstance(wanted, str):  # no two names of a target differ in their case alone
            found = self._connection.execute(query.where(func.lower(exact) == wanted.lower())).scalar()
        return found
