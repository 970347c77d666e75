"""What runs have delivered, rejected and left, for their reports and for an undo."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any, NamedTuple

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Table, and_, exists, func, select, true

from crossdock.state.db import sql_types_and_statements
from crossdock.state.db.schema import attempts, dead_letters, intents, runs, waiting_records
from crossdock.state.tables.intents_and_stored_batches import UNSETTLED
from crossdock.state.tables.record_identity_and_scope import CONTRIBUTION, Scope, Step, scope_condition
from crossdock.state.tables.run_history import RunRecord
from crossdock.values import exact_json


class DeliveredOperation(NamedTuple):
    """An operation that was delivered.

    Attributes:
        before: What the target held; None for a create, empty if it was unknown.
        was_decided_again: An earlier operation on the record may have been executed, and a new decision was made.
    """

    key_hash: int
    key: str
    run_id: int
    operation: str
    step: Step
    before: dict[str, Any] | None
    untouched: bool
    was_decided_again: bool
    after: dict[str, Any]


class DeliveredOperationFacts(NamedTuple):
    """An operation that a target has confirmed *at* some time, without its data."""

    id: int
    stream: str
    key: str
    operation: str
    at: datetime
    target: str
    target_id: str | None
    source: str
    line: int


class DeliveredHistory:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def delivered_key_hashes(self, scope: Scope, run_ids: Sequence[int], *, after: int | None, limit: int) -> list[int]:
        """Return the next *limit* key hashes *after* one, ascending, for which one of *run_ids* delivered something."""
        query = (
            select(intents.c.key_hash)
            .distinct()
            .where(scope_condition(intents, scope), intents.c.status == "delivered")
        )
        query = query.where(intents.c.run_id.in_(run_ids))
        if after is not None:
            query = query.where(intents.c.key_hash > after)
        return list(self._connection.execute(query.order_by(intents.c.key_hash).limit(limit)).scalars())

    def delivered_operations_of_records(
        self, scope: Scope, key_hashes: Sequence[int]
    ) -> dict[int, list[DeliveredOperation]]:
        """Return what any run has delivered for each of *key_hashes*, oldest first, as far as retention keeps it."""
        names = ("key_hash", "key", "run_id", "operation", "step", "before", "untouched", "status")
        own = attempts.c.intent_id == intents.c.id, attempts.c.outcome == "in_doubt"
        content = intents.c.after, intents.c.body
        query = select(*content, *(intents.c[name] for name in names), exists().where(*own)).where(
            scope_condition(intents, scope), intents.c.status.in_(("delivered", "replaced"))
        )
        found: dict[int, list[DeliveredOperation]] = {key_hash: [] for key_hash in key_hashes}
        retried: set[int] = set()
        for part in sql_types_and_statements.chunks_of_in_list(key_hashes):
            among = query.where(intents.c.key_hash.in_(part)).order_by(intents.c.id)
            for after, body, *facts, untouched, status, was_ambiguous in self._connection.execute(among):
                key_hash = facts[0]
                if status == "delivered":
                    held = exact_json.loads(body or b"{}") if after is None else after
                    more = bool(untouched), key_hash in retried, held
                    found[key_hash].append(DeliveredOperation._make([*facts, *more]))
                    retried.discard(key_hash)
                elif was_ambiguous:
                    retried.add(key_hash)
        return found

    def run_ids_contributing_to_records(self, scope: Scope, target_ids: Sequence[str]) -> dict[str, list[int]]:
        """Return the runs that have delivered contributions to *target_ids*, records of *scope*, in their order."""
        of_resource = intents.c.target == scope.target, intents.c.resource == scope.resource
        is_written = intents.c.status == "delivered", intents.c.untouched.is_not(True)
        query = select(intents.c.target_id, intents.c.run_id).distinct().where(*of_resource, *is_written)
        query = query.where(intents.c.namespace.contains(CONTRIBUTION, autoescape=True)).order_by(intents.c.run_id)
        found = defaultdict[str, list[int]](list)
        for part in sql_types_and_statements.chunks_of_in_list(target_ids):
            for target_id, run_id in self._connection.execute(query.where(intents.c.target_id.in_(part))):
                found[target_id].append(run_id)
        return found

    def delivered_counts_by_stream_and_operation(self, run_ids: Sequence[int]) -> list[tuple[str, str, int]]:
        """Return how often *run_ids* have delivered each operation to a target, by stream."""
        columns = (intents.c.stream, intents.c.operation)
        query = (
            select(*columns, func.count())
            .where(*_written_by_runs_conditions(run_ids))
            .group_by(*columns)
            .order_by(*columns)
        )
        return [(stream, operation, number) for stream, operation, number in self._connection.execute(query)]

    def delivered_operations_of_run(
        self, run_id: int, *, stream: str | None, operation: str | None, after: int, limit: int
    ) -> list[DeliveredOperationFacts]:
        """Return at most *limit* delivered operations of a run with an id *after* this one, in their order."""
        names = ("id", "stream", "key", "operation", "settled_at", "target", "target_id", "source", "line")
        query = select(*(intents.c[name] for name in names)).where(*_written_by_runs_conditions([run_id]))
        for name, value in (("stream", stream), ("operation", operation)):
            query = query if value is None else query.where(intents.c[name] == value)
        order = sql_types_and_statements.id_order_without_index(self._connection, intents.c.id)
        rows = self._connection.execute(query.where(intents.c.id > after).order_by(order).limit(limit))
        return [DeliveredOperationFacts(*row) for row in rows]

    def count_unsettled_operations_of_runs(self, run_ids: Sequence[int]) -> int:
        query = select(func.count()).select_from(intents)
        query = query.where(intents.c.run_id.in_(run_ids), intents.c.status.in_(UNSETTLED))
        return int(self._connection.execute(query).scalar_one())

    def counts_of_records_with_kept_operations(self, run_id: int) -> dict[str, int]:
        """Count the records of which operations of a run are kept, by stream, whatever became of the operations."""
        number = func.count(intents.c.key_hash.distinct())
        query = select(intents.c.stream, number).where(intents.c.run_id == run_id).group_by(intents.c.stream)
        return {stream: count for stream, count in self._connection.execute(query)}

    def counts_of_earlier_runs_settled_since(self, run_id: int, since: datetime) -> dict[str, int]:
        """Count the operations that runs before *run_id* have left and that were settled *since* a time, by stream."""
        query = select(intents.c.stream, func.count()).where(intents.c.run_id < run_id, intents.c.settled_at >= since)
        return {stream: count for stream, count in self._connection.execute(query.group_by(intents.c.stream))}

    def streams_and_scopes_of_runs(self, run_ids: Sequence[int]) -> set[tuple[str, Scope]]:
        names = (intents.c[name] for name in ("stream", *Scope.__struct_fields__))
        query = select(*names).distinct().where(intents.c.run_id.in_(run_ids), intents.c.status == "delivered")
        return {(stream, Scope(*rest)) for stream, *rest in self._connection.execute(query)}


def _written_by_runs_conditions(run_ids: Sequence[int]) -> list[ColumnElement[bool]]:
    status = sql_types_and_statements.column_without_index(intents.c.status)  # most operations have it
    return [intents.c.run_id.in_(run_ids), status == "delivered", intents.c.untouched.is_not(True)]


Row = dict[str, Any]


class ReasonCount(Struct, frozen=True):
    """The dead letters with one reason code. The run itself rejected *own* of them."""

    code: str
    records: int
    own: int


class StreamReasonCount(Struct, frozen=True):
    """The dead letters of one stream with one reason code, as in `ReasonCount`."""

    stream: str
    code: str
    records: int
    own: int


class DeliveredUpdate(Struct, frozen=True):
    """A delivered update with the payloads before and after it, which may contain personal data."""

    stream: str
    scope: Scope
    key: str
    before: dict[str, Any]
    after: dict[str, Any]


class FirstOperations(Struct, frozen=True):
    """What the first operations of a run updated. The run has no others if *are_all*."""

    number: int
    are_all: bool
    updates: Sequence[DeliveredUpdate]


class StreamDelivery(Struct, frozen=True):
    """The settled operations of one stream, from the first write to the last settlement."""

    stream: str
    operations: int
    began: datetime
    ended: datetime


def summed_by_reason_code(found: Iterable[StreamReasonCount]) -> list[ReasonCount]:
    """Sum up *found* over all streams, the most frequent reason first."""
    records, own = Counter[str](), Counter[str]()
    for each in found:
        records[each.code] += each.records
        own[each.code] += each.own
    return [
        ReasonCount(code, records[code], own[code]) for code in sorted(records, key=lambda code: (-records[code], code))
    ]


class RunDetails:
    """The details of runs. All but `delivery_times_by_stream` describe the present: dead letters delivered since are
    gone.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def rejections_by_reason_until_run(self, run_id: int) -> list[ReasonCount]:
        """Count the dead letters of *run_id* and earlier runs by reason, the most frequent first."""
        return summed_by_reason_code(self.rejections_by_stream_until_run(run_id))

    def rejections_by_stream_until_run(self, run_id: int) -> list[StreamReasonCount]:
        """Do the same as `rejections_by_reason_until_run`, by stream and reason. It reads all dead letters: there is no
        index by reason.
        """
        by = dead_letters.c.stream, dead_letters.c.code
        records, own = func.count(), func.count().filter(dead_letters.c.run_id == run_id)
        query = (
            select(*by, records, own)
            .where(_rejected_until_run_condition(run_id))
            .group_by(*by)
            .order_by(records.desc(), *by)
        )
        return [StreamReasonCount(*row) for row in self._connection.execute(query)]

    def rejection_counts_by_month(self, first: date, last: date) -> dict[tuple[str, str], int]:
        """Count what runs for the business dates from *first* to *last* rejected, by month and reason.

        What was delivered or dropped since is not counted. All dead letters are read, as in
        `rejections_by_stream_until_run`.
        """
        month = func.substr(runs.c.business_date, 1, len("2026-11"))
        by = month, dead_letters.c.code
        query = select(*by, func.count()).join_from(dead_letters, runs, dead_letters.c.run_id == runs.c.id)
        dates = runs.c.business_date.between(first.isoformat(), last.isoformat())
        query = query.where(dead_letters.c.status == "rejected", dates).group_by(*by)
        return {(of, code): number for of, code, number in self._connection.execute(query)}

    def dead_letters_with_reason_until_run(self, run_id: int, code: str, *, limit: int) -> list[Row]:
        """Return at most *limit* dead letters of *run_id* and earlier runs with one reason, the run's own first."""
        order = (dead_letters.c.run_id.desc(), *(dead_letters.c[name] for name in ("stream", "source", "line", "key")))
        names = ("stream", "key", "stage", "pointer", "message", "source", "line", "run_id")
        return self._rows(
            dead_letters, names, and_(_rejected_until_run_condition(run_id), dead_letters.c.code == code), order, limit
        )

    def count_rejected_records_of_runs_after(self, run_id: int) -> int:
        return self._count(dead_letters, and_(dead_letters.c.run_id > run_id, dead_letters.c.status == "rejected"))

    def count_and_list_oldest_waiting(self, *, limit: int) -> tuple[int, list[Row]]:
        names = ("stream", "key", "waits_for", "source", "line", "since")
        order = (waiting_records.c.since, waiting_records.c.stream, waiting_records.c.key)
        return self._count(waiting_records, true()), self._rows(waiting_records, names, true(), order, limit)

    def count_and_list_oldest_unsettled(self, status: str, *, limit: int) -> tuple[int, list[Row]]:
        """Return the number of operations that are ``in_doubt`` or ``overdue``, and the oldest ones."""
        names = ("stream", "key", "operation", "attempts", "source", "line", "first_sent_at")
        unsettled = intents.c.status == status
        return self._count(intents, unsettled), self._rows(intents, names, unsettled, (intents.c.id,), limit)

    def count_all_unsent_operations(self) -> int:
        """Count the operations that the next run sends, or sends again."""
        return self._count(intents, intents.c.status.in_(("pending", "sending")))

    def updates_among_first_operations(self, run_id: int, *, limit: int) -> FirstOperations:
        """Return what the first *limit* operations of a run updated, as far as retention keeps their payloads."""
        of_run = select(intents.c.id).where(intents.c.run_id == run_id)
        of_run = of_run.order_by(sql_types_and_statements.id_order_without_index(self._connection, intents.c.id))
        ids = list(self._connection.execute(of_run.limit(limit + 1)).scalars())
        number = min(len(ids), limit)
        if not number:
            return FirstOperations(0, True, [])
        names = ("target", "resource", "namespace", "stream", "key", "before", "after", "body")
        query = select(*(intents.c[name] for name in names)).where(
            intents.c.run_id == run_id,
            intents.c.id <= ids[number - 1],
            intents.c.operation == "update",
            sql_types_and_statements.column_without_index(intents.c.status) == "delivered",
        )
        found = self._connection.execute(query.order_by(intents.c.id))
        return FirstOperations(
            number, len(ids) == number, [each for row in found if (each := _delivered_update_of_row(*row))]
        )

    def delivery_times_by_stream(self, run: RunRecord) -> list[StreamDelivery]:
        """Return what *run* settled, by stream, slowest first, without operations that were purged since."""
        settled = and_(intents.c.run_id == run.id, intents.c.settled_at.is_not(None))
        if run.finished_at is not None:
            settled = and_(settled, intents.c.settled_at <= run.finished_at)  # settled later by an operator
        times = func.min(intents.c.created_at), func.max(intents.c.settled_at)
        query = select(intents.c.stream, func.count(), *times).where(settled).group_by(intents.c.stream)
        found = [StreamDelivery(*row) for row in self._connection.execute(query)]
        return sorted(found, key=lambda each: (each.began - each.ended, each.stream))

    def _count(self, table: Table, condition: ColumnElement[bool]) -> int:
        return int(self._connection.execute(select(func.count()).select_from(table).where(condition)).scalar_one())

    def _rows(
        self,
        table: Table,
        names: tuple[str, ...],
        condition: ColumnElement[bool],
        order: tuple[ColumnElement[Any], ...],
        limit: int,
    ) -> list[Row]:
        query = select(*(table.c[name] for name in names)).where(condition).order_by(*order).limit(limit)
        return [dict(row) for row in self._connection.execute(query).mappings()]


def _delivered_update_of_row(
    target: str,
    resource: str,
    namespace: str,
    stream: str,
    key: str,
    before: dict[str, Any] | None,
    after: dict[str, Any] | None,
    body: bytes | None,
) -> DeliveredUpdate | None:
    held = exact_json.loads(body) if after is None and body else after
    return DeliveredUpdate(stream, Scope(target, resource, namespace), key, before, held) if before and held else None


def _rejected_until_run_condition(run_id: int) -> ColumnElement[bool]:
    return and_(dead_letters.c.run_id <= run_id, dead_letters.c.status == "rejected")
