"""The inbox: received webhooks, the records to fetch because of them, and those that are fetched until they are final.

Many hints for one record are one row, whose number grows, so that a record which changes again while it is fetched is
fetched again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, NamedTuple

from msgspec import Struct
from sqlalchemy import Connection, Insert, bindparam, delete, func, literal, select, tuple_, update

from crossdock.state.db import sql_types_and_statements
from crossdock.state.db.schema import followed_records, hints, webhooks
from crossdock.state.tables.dead_letters_and_waiting_records import ALL_RECORDS, RecordFilter
from crossdock.state.tables.record_identity_and_scope import DeleteByStreamAndKey, stream_condition_with_parameter


class FollowedRecord(Struct, frozen=True):
    """A record that is not final. *missed* counts how many times in a row the source did not have it."""

    stream: str
    key_hash: int
    key: str
    read_at: datetime
    missed: int = 0


_FOLLOWED_FIELDS = tuple(followed_records.c[name] for name in FollowedRecord.__struct_fields__)
_DELETE_FOLLOWED = DeleteByStreamAndKey(followed_records)


class FollowedRecords:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def put(self, records: Iterable[FollowedRecord]) -> None:
        rows = [{name: getattr(each, name) for name in FollowedRecord.__struct_fields__} for each in records]
        sql_types_and_statements.upsert_rows(self._connection, followed_records, rows)

    def forget(self, stream: str, key_hashes: Sequence[int]) -> None:
        _DELETE_FOLLOWED.run(self._connection, stream, key_hashes)

    def least_recently_read(self, stream: str, limit: int) -> list[FollowedRecord]:
        query = (
            select(*_FOLLOWED_FIELDS)
            .where(followed_records.c.stream == stream)
            .order_by(followed_records.c.read_at, followed_records.c.key_hash)
        )
        return [FollowedRecord(*row) for row in self._connection.execute(query.limit(limit))]

    def key_hashes(self, stream: str) -> set[int]:
        return set(
            self._connection.execute(
                select(followed_records.c.key_hash).where(followed_records.c.stream == stream)
            ).scalars()
        )

    def count(self, stream: str) -> int:
        query = select(func.count()).select_from(followed_records).where(followed_records.c.stream == stream)
        return int(self._connection.execute(query).scalar_one())


REMOVED_AT_ONCE = 1_000  # webhooks in one transaction
LONGEST_PAUSE = timedelta(hours=1)  # before a record is fetched again


class NamedRecord(NamedTuple):
    """A record by its key as text (`crossdock.values.raw_rows_and_records.key_text`), and 128 bits of XXH3 over it."""

    stream: str
    key: str
    key_hash: int


class StreamAndKey(NamedTuple):
    """A record by its key as text. Its hash is computed with those of others: one alone takes as long as a thousand."""

    stream: str
    key: str


class ReceivedWebhook(Struct, frozen=True):
    """A received webhook, without its body. All copies of it share *delivery*."""

    connection: str
    delivery: str
    topic: str
    problem: str | None = None
    records: tuple[StreamAndKey, ...] = ()


class ReceivedCount(NamedTuple):
    """The webhooks of one connection since some time. *unreadable* ones are among them."""

    connection: str
    number: int
    unreadable: int
    last_at: datetime


class InboxCount(NamedTuple):
    """The records of one stream that are to be fetched. Fetching *failing* ones has failed."""

    stream: str
    number: int
    failing: int
    first_at: datetime


class UnreadableWebhook(NamedTuple):
    received_at: datetime
    connection: str
    topic: str
    problem: str


class InboxRecord(Struct, frozen=True):
    """A record to fetch. *number* grows with each hint, and *attempts* counts failures since the last one."""

    stream: str
    key: str
    key_hash: int
    number: int
    first_at: datetime
    last_at: datetime
    due_at: datetime
    attempts: int
    error: str | None

    @property
    def named_record(self) -> NamedRecord:
        return NamedRecord(self.stream, self.key, self.key_hash)


class InboxPlace(NamedTuple):
    """The place of a record in the order of `Inbox.records_to_fetch`."""

    first_at: datetime
    key: str
    stream: str


class InboxGroup(NamedTuple):
    """The records of one stream to fetch, the first *since* then, with the *error* of one of them."""

    stream: str
    number: int
    since: datetime
    error: str | None


_FIELDS = tuple(hints.c[name] for name in InboxRecord.__struct_fields__)
_NEW = (*NamedRecord._fields, "number", "first_at", "last_at", "due_at", "attempts")
_RECEIVED = tuple(column.name for column in webhooks.c)


def _receive_statement(insert: Any) -> Insert:
    statement = insert(webhooks)
    changes = {name: statement.excluded[name] for name in ("received_at", "topic", "problem")}
    keys = [column.name for column in webhooks.primary_key]
    received: Insert = statement.on_conflict_do_update(
        index_elements=keys, set_=changes, where=webhooks.c.problem.is_not(None)
    )
    return received


_RECEIVE = sql_types_and_statements.BulkStatement(_receive_statement, _RECEIVED)


def _upsert_hint_statement(insert: Any) -> Insert:
    statement = insert(hints)
    changes = {name: statement.excluded[name] for name in ("last_at", "due_at", "attempts")}
    keys = [column.name for column in hints.primary_key]
    hinted: Insert = statement.on_conflict_do_update(
        index_elements=keys, set_={**changes, "number": hints.c.number + 1}
    )
    return hinted


_HINT = sql_types_and_statements.BulkStatement(_upsert_hint_statement, _NEW)
_AMONG = sql_types_and_statements.QueryByKeys(
    select(hints.c.key_hash).where(stream_condition_with_parameter(hints)), hints.c.key_hash
)
_THIS = hints.c.stream == bindparam("of"), hints.c.key_hash == bindparam("this")
_SAME = *_THIS, hints.c.number == bindparam("fetched")  # without a new hint
_DONE = sql_types_and_statements.BulkStatement(delete(hints).where(*_SAME))
_AGAIN = sql_types_and_statements.BulkStatement(
    update(hints).where(*_SAME).values(due_at=bindparam("later"), attempts=bindparam("failed"), error=bindparam("why"))
)
_HASTEN = sql_types_and_statements.BulkStatement(update(hints).where(*_THIS).values(due_at=bindparam("now")))
_DELETE = DeleteByStreamAndKey(hints)


class Inbox:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    # ---- received

    def receive(self, received: Sequence[ReceivedWebhook], key_hashes: Mapping[str, int], *, at: datetime) -> None:
        """Store webhooks and their records. A copy only replaces one that could not be read.

        Args:
            key_hashes: By the keys of all their records.
        """
        new = (record for each in received if self._store_if_new(each, at) for record in each.records)
        self.schedule_fetch_of_records([NamedRecord(*record, key_hashes[record.key]) for record in new], at=at)

    def _store_if_new(self, received: ReceivedWebhook, at: datetime) -> bool:
        values = received.connection, received.delivery, at, received.topic, received.problem
        return (
            _RECEIVE.run(self._connection, {name: [value] for name, value in zip(_RECEIVED, values, strict=True)}) > 0
        )

    def schedule_fetch_of_records(self, records: Sequence[NamedRecord], *, at: datetime) -> None:
        """Schedule *records* to be fetched at once, even if earlier attempts failed."""
        columns = sql_types_and_statements.attributes_as_columns(dict.fromkeys(records), *NamedRecord._fields)
        _HINT.run(self._connection, columns, {"number": 1, "first_at": at, "last_at": at, "due_at": at, "attempts": 0})

    def has_readable_webhook(self, connection: str) -> bool:
        query = select(webhooks.c.delivery).where(webhooks.c.connection == connection, webhooks.c.problem.is_(None))
        return self._connection.execute(query.limit(1)).first() is not None

    def unreadable_webhooks(self, *, limit: int) -> list[UnreadableWebhook]:
        columns = (webhooks.c[name] for name in UnreadableWebhook._fields)
        query = select(*columns).where(webhooks.c.problem.is_not(None)).order_by(webhooks.c.received_at.desc())
        return [UnreadableWebhook(*row) for row in self._connection.execute(query.limit(limit))]

    def remove_old_webhooks(self, before: datetime) -> int:
        """Remove some webhooks that were received before then, and return their number."""
        old = select(webhooks.c.connection, webhooks.c.delivery).where(webhooks.c.received_at < before)
        rows = self._connection.execute(old.limit(REMOVED_AT_ONCE)).all()
        for name, delivery in rows:
            these = webhooks.c.connection == name, webhooks.c.delivery == delivery
            self._connection.execute(delete(webhooks).where(*these))
        return len(rows)

    # ---- to fetch

    def records_to_fetch_now(self, now: datetime, streams: Collection[str], *, limit: int) -> list[InboxRecord]:
        """Return at most *limit* records of *streams* to fetch now, longest due first.

        A record that is due later than after `LONGEST_PAUSE` got its time from a clock that was ahead.
        """
        found = list[InboxRecord]()
        for stream in streams:  # one after the other, so that each is read in the order of an index
            for is_due in (hints.c.due_at <= now, hints.c.due_at > now + LONGEST_PAUSE):
                query = select(*_FIELDS).where(hints.c.stream == stream, is_due)
                rows = self._connection.execute(query.order_by(hints.c.due_at).limit(limit))
                found += [InboxRecord(*row) for row in rows]
        return sorted(found, key=attrgetter("due_at", "key_hash"))[:limit]

    def due_streams(self, now: datetime) -> list[str]:
        """Return the streams with records to fetch now, longest due first."""
        first, after = select(func.min(hints.c.stream)), ""
        found = list[tuple[datetime, str]]()
        while (stream := self._connection.execute(first.where(hints.c.stream > after)).scalar()) is not None:
            after = stream
            if records := self.records_to_fetch_now(now, [stream], limit=1):
                found.append((records[0].due_at, stream))
        return [stream for _, stream in sorted(found)]

    def next_fetch_time(self, streams: Collection[str]) -> datetime | None:
        query = select(func.min(hints.c.due_at))
        found = (self._connection.execute(query.where(hints.c.stream == each)).scalar() for each in streams)
        return min((due for due in found if due is not None), default=None)

    def remove_fetched(self, done: Sequence[InboxRecord]) -> None:
        """Remove *done*, except those with a new hint."""
        columns = sql_types_and_statements.attributes_as_columns(done, of="stream", this="key_hash", fetched="number")
        _DONE.run(self._connection, columns)

    def store_next_fetch_times(self, failed: Sequence[InboxRecord]) -> None:
        """Store when *failed* are fetched again, except those with a new hint, which are due at once."""
        columns = sql_types_and_statements.attributes_as_columns(
            failed, of="stream", this="key_hash", fetched="number", later="due_at", failed="attempts", why="error"
        )
        _AGAIN.run(self._connection, columns)

    def make_records_due_now(self, stream: str, key_hashes: Sequence[int], *, at: datetime) -> None:
        """Make those of these records due *at* this time that are to be fetched anyway."""
        _HASTEN.run(self._connection, {"this": key_hashes}, {"of": stream, "now": at})

    def remove_records(self, stream: str, key_hashes: Sequence[int]) -> None:
        _DELETE.run(self._connection, stream, key_hashes)

    def key_hashes_among(self, stream: str, key_hashes: Sequence[int]) -> Collection[int]:
        return {key_hash for (key_hash,) in _AMONG.rows(self._connection, {"stream": stream}, key_hashes)}

    def records_to_fetch(
        self, *, limit: int, choice: RecordFilter = ALL_RECORDS, after: InboxPlace | None = None
    ) -> list[InboxRecord]:
        """Return at most *limit* records to fetch *after* a place, longest waiting first."""
        order = tuple(hints.c[name] for name in InboxPlace._fields)
        query = select(*_FIELDS).where(*choice.conditions(hints)).order_by(*order).limit(limit)
        if after is not None:
            query = query.where(tuple_(*order) > tuple_(literal(after.first_at, hints.c.first_at.type), *after[1:]))
        return [InboxRecord(*row) for row in self._connection.execute(query)]

    def count_records_to_fetch(self, choice: RecordFilter = ALL_RECORDS) -> int:
        query = select(func.count()).select_from(hints).where(*choice.conditions(hints))
        return int(self._connection.execute(query).scalar_one())

    def groups_by_stream(self, choice: RecordFilter) -> list[InboxGroup]:
        """Count the records of *choice* by stream, the most first."""
        number = func.count().label("number")
        query = select(hints.c.stream, number, func.min(hints.c.first_at), func.max(hints.c.error))
        query = query.where(*choice.conditions(hints)).group_by(hints.c.stream)
        rows = self._connection.execute(query.order_by(number.desc(), hints.c.stream))
        return [InboxGroup(*row) for row in rows]

    def record_counts_by_stream(self) -> list[InboxCount]:
        number, failing = func.count(), func.count(hints.c.error)
        query = select(hints.c.stream, number, failing, func.min(hints.c.first_at)).group_by(hints.c.stream)
        return [InboxCount(*row) for row in self._connection.execute(query.order_by(hints.c.stream))]

    def received_counts_since(self, at: datetime) -> list[ReceivedCount]:
        by, last_at = webhooks.c.connection, func.max(webhooks.c.received_at)
        query = select(by, func.count(), func.count(webhooks.c.problem), last_at).where(webhooks.c.received_at >= at)
        return [ReceivedCount(*row) for row in self._connection.execute(query.group_by(by).order_by(by))]
