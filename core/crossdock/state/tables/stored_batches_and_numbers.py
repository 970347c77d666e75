"""Batches whose bytes are made once, with a number that is never used again: files that are handed over (law 2)."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec import Struct
from sqlalchemy import Connection, bindparam, func, select, update

from crossdock.state.db import bulk_writes_and_key_queries
from crossdock.state.db.schema import batches, intents, sequences
from crossdock.state.tables.delivery_intents import AWAITED, Intent

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


_FIELDS = tuple(batches.c[name] for name in StoredBatch.__struct_fields__)
_THIS = intents.c.id == bindparam("row")
_MEMBER = ("batch_id", "place", "target_id")
_ASSIGN = bulk_writes_and_key_queries.BulkStatement(
    update(intents).where(_THIS).values({name: bindparam(f"new_{name}") for name in _MEMBER})
)


class Batches:
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
        bulk_writes_and_key_queries.upsert_rows(self._connection, sequences, [{"target": target, "last": last}])

    def leave_gap_in_numbers(self, at: datetime) -> None:
        """Leave out numbers of each target: a restored backup does not know which were used since, until *at*.

        They are `GAP`, or more for a target that has used many in as long a time before its last known batch.
        """
        bulk_writes_and_key_queries.upsert_rows(
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
        row = self._connection.execute(select(*_FIELDS).where(batches.c.key == key)).first()
        return None if row is None else StoredBatch(*row)

    def add(self, batch: StoredBatch, key: str, *, run_id: int, at: datetime) -> StoredBatch:
        """Store a batch and use its number up. Return it with its id."""
        bulk_writes_and_key_queries.upsert_rows(
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
        columns = bulk_writes_and_key_queries.as_columns(members, row="id", **{f"new_{name}": name for name in _MEMBER})
        _ASSIGN.run(self._connection, columns)

    def batches_by_id(self, ids: Collection[int]) -> Mapping[int, StoredBatch]:
        """Return the batches with these ids."""
        found = dict[int, StoredBatch]()
        for part in bulk_writes_and_key_queries.chunks(list(ids)):
            rows = self._connection.execute(select(*_FIELDS).where(batches.c.id.in_(part)))
            found.update((row.id, StoredBatch(*row)) for row in rows)
        return found

    def facts_by_id(self, ids: Collection[int]) -> Mapping[int, BatchFacts]:
        """Return the facts about the batches with these ids."""
        found = dict[int, BatchFacts]()
        for part in bulk_writes_and_key_queries.chunks(list(ids)):
            query = select(batches.c.id, *(batches.c[name] for name in BatchFacts._fields))
            rows = self._connection.execute(query.where(batches.c.id.in_(part)))
            found.update((number, BatchFacts(*facts)) for number, *facts in rows)
        return found

    def mark_handed_over(self, ids: Collection[int], *, at: datetime, due_at: datetime | None) -> None:
        """Store when batches were handed over, once, and when their acknowledgement is due."""
        for part in bulk_writes_and_key_queries.chunks(list(ids)):
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
