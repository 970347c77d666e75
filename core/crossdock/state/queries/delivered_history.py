"""What runs have delivered of each record, for an undo."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, exists, func, select

from crossdock.state.db import bulk_writes_and_key_queries
from crossdock.state.db.schema import attempts, intents
from crossdock.state.tables.delivery_intents import UNSETTLED
from crossdock.state.tables.record_identity_and_scope import CONTRIBUTION, Scope, Step, in_scope
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
        query = select(intents.c.key_hash).distinct().where(in_scope(intents, scope), intents.c.status == "delivered")
        query = query.where(intents.c.run_id.in_(run_ids))
        if after is not None:
            query = query.where(intents.c.key_hash > after)
        return list(self._connection.execute(query.order_by(intents.c.key_hash).limit(limit)).scalars())

    def operations_of_records(self, scope: Scope, key_hashes: Sequence[int]) -> dict[int, list[DeliveredOperation]]:
        """Return what any run has delivered for each of *key_hashes*, oldest first, as far as retention keeps it."""
        names = ("key_hash", "key", "run_id", "operation", "step", "before", "untouched", "status")
        own = attempts.c.intent_id == intents.c.id, attempts.c.outcome == "in_doubt"
        content = intents.c.after, intents.c.body
        query = select(*content, *(intents.c[name] for name in names), exists().where(*own)).where(
            in_scope(intents, scope), intents.c.status.in_(("delivered", "replaced"))
        )
        found: dict[int, list[DeliveredOperation]] = {key_hash: [] for key_hash in key_hashes}
        retried: set[int] = set()
        for part in bulk_writes_and_key_queries.chunks(key_hashes):
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

    def contributing_runs(self, scope: Scope, target_ids: Sequence[str]) -> dict[str, list[int]]:
        """Return the runs that have delivered contributions to *target_ids*, records of *scope*, in their order."""
        of_resource = intents.c.target == scope.target, intents.c.resource == scope.resource
        is_written = intents.c.status == "delivered", intents.c.untouched.is_not(True)
        query = select(intents.c.target_id, intents.c.run_id).distinct().where(*of_resource, *is_written)
        query = query.where(intents.c.namespace.contains(CONTRIBUTION, autoescape=True)).order_by(intents.c.run_id)
        found = defaultdict[str, list[int]](list)
        for part in bulk_writes_and_key_queries.chunks(target_ids):
            for target_id, run_id in self._connection.execute(query.where(intents.c.target_id.in_(part))):
                found[target_id].append(run_id)
        return found

    def counts_by_stream_and_operation(self, run_ids: Sequence[int]) -> list[tuple[str, str, int]]:
        """Return how often *run_ids* have delivered each operation to a target, by stream."""
        columns = (intents.c.stream, intents.c.operation)
        query = (
            select(*columns, func.count())
            .where(*_written_by_runs_conditions(run_ids))
            .group_by(*columns)
            .order_by(*columns)
        )
        return [(stream, operation, number) for stream, operation, number in self._connection.execute(query)]

    def operations_of_run(
        self, run_id: int, *, stream: str | None, operation: str | None, after: int, limit: int
    ) -> list[DeliveredOperationFacts]:
        """Return at most *limit* delivered operations of a run with an id *after* this one, in their order."""
        names = ("id", "stream", "key", "operation", "settled_at", "target", "target_id", "source", "line")
        query = select(*(intents.c[name] for name in names)).where(*_written_by_runs_conditions([run_id]))
        for name, value in (("stream", stream), ("operation", operation)):
            query = query if value is None else query.where(intents.c[name] == value)
        order = bulk_writes_and_key_queries.order_without_index(self._connection, intents.c.id)
        rows = self._connection.execute(query.where(intents.c.id > after).order_by(order).limit(limit))
        return [DeliveredOperationFacts(*row) for row in rows]

    def count_unsettled(self, run_ids: Sequence[int]) -> int:
        query = select(func.count()).select_from(intents)
        query = query.where(intents.c.run_id.in_(run_ids), intents.c.status.in_(UNSETTLED))
        return int(self._connection.execute(query).scalar_one())

    def kept_record_counts(self, run_id: int) -> dict[str, int]:
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
    status = bulk_writes_and_key_queries.without_index(intents.c.status)  # most operations have it
    return [intents.c.run_id.in_(run_ids), status == "delivered", intents.c.untouched.is_not(True)]
