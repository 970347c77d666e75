"""The history of one record in the state, found by any of its names through an index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Table, and_, literal, select, tuple_

from crossdock.state.db.schema import (
    attempts,
    bindings,
    dead_letters,
    intents,
    source_equals_condition,
    waiting_records,
)
from crossdock.state.tables.intents_and_stored_batches import StoredBatches
from crossdock.state.tables.record_identity_and_scope import Scope, scope_condition
from crossdock.values import exact_json

if TYPE_CHECKING:
    from crossdock.resources import ResourceName

_DATA = {"body", "before", "after", "raw", "payload", "mapped"}
_SCOPED = (bindings, intents)
_STREAMED = (dead_letters, waiting_records)
_LAST_HASH = (1 << 128) - 1


class FoundRecord(NamedTuple):
    """The record to which a row belongs: a binding has no *stream*, a dead or waiting record no *scope*."""

    scope: Scope | None
    stream: str | None
    key_hash: int


class DeliveredContent(NamedTuple):
    """What a target held once an operation was delivered, *at* that time.

    Attributes:
        before: What it held until then; None for a create, empty if it was unknown.
        after: None if the record was deleted, empty if retention has removed it.
    """

    intent_id: int
    run_id: int
    operation: str
    at: datetime
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class RecordHistory:
    """Each query uses an index, so its time does not grow with the number of records."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all_scopes_in_state(self) -> set[Scope]:
        names = Scope.__struct_fields__
        return {Scope(*row) for table in _SCOPED for row in self._distinct_index_values(table, names)}

    def all_streams_with_undelivered_records(self) -> set[str]:
        return {stream for table in _STREAMED for (stream,) in self._distinct_index_values(table, ("stream",))}

    def records_by_id_or_idempotency_key(self, name: str) -> set[FoundRecord]:
        """Return the records with this id at their target, now or earlier, or with this idempotency key."""
        conditions = (
            (bindings, bindings.c.target_id == name),
            (intents, intents.c.target_id == name),
            (intents, intents.c.idempotency_key == name),
        )
        return {found for table, condition in conditions for found in self._found_records(table, condition)}

    def records_with_keys(
        self, scopes: Iterable[Scope], streams: Iterable[str], key_hashes: Iterable[int]
    ) -> set[FoundRecord]:
        keys = list(key_hashes)
        places = [(table, scope_condition(table, scope)) for scope in scopes for table in _SCOPED]
        places += [(table, table.c.stream == stream) for stream in streams for table in _STREAMED]
        return {
            found
            for table, place in places
            for found in self._found_records(table, and_(place, table.c.key_hash.in_(keys)))
        }

    def nearest_records_up_to_line(self, source: str, line: int) -> tuple[int, set[FoundRecord]]:
        """Return the last line up to *line* at which known records begin, and these; 0 if there is none."""
        tables = (intents, dead_letters, waiting_records)
        of_source = {table: source_equals_condition(table, source) for table in tables}
        lines = {table: self._last_source_line_up_to(table, condition, line) for table, condition in of_source.items()}
        first_line = max(lines.values())
        found: set[FoundRecord] = set()
        for table, condition in of_source.items():
            if first_line and lines[table] == first_line:
                found.update(self._found_records(table, and_(condition, table.c.line == first_line)))
        return first_line, found

    def bindings(self, scope: Scope, key_hash: int) -> list[dict[str, Any]]:
        return self._rows_without_payloads(
            bindings, and_(scope_condition(bindings, scope), bindings.c.key_hash == key_hash)
        )

    def dead_letters(self, stream: str, key_hash: int) -> list[dict[str, Any]]:
        return self._rows_without_payloads(dead_letters, _is_record_of_stream(dead_letters, stream, key_hash))

    def waits_of_record(self, stream: str, key_hash: int) -> list[dict[str, Any]]:
        return self._rows_without_payloads(waiting_records, _is_record_of_stream(waiting_records, stream, key_hash))

    def operations(self, scope: Scope, key_hash: int) -> list[dict[str, Any]]:
        """Return the record's intents, oldest first, each with its attempts as ``sendings``, and its stored batch as
        ``file``.
        """
        found = self._rows_without_payloads(
            intents, and_(scope_condition(intents, scope), intents.c.key_hash == key_hash)
        )
        files = StoredBatches(self._connection).facts_by_id(
            {row["batch_id"] for row in found if row["batch_id"] is not None}
        )
        for row in found:
            row["file"] = files.get(row["batch_id"])
            row["sendings"] = self._rows_without_payloads(attempts, attempts.c.intent_id == row["id"])
        return sorted(found, key=lambda row: row["id"])

    def payloads_of_updates(self, scope: Scope, key_hash: int) -> dict[int, tuple[dict[str, Any], dict[str, Any]]]:
        """Return the payloads before and after each update, by the id of its intent. They contain personal data."""
        fields = intents.c.id, intents.c.before, intents.c.after
        query = select(*fields).where(scope_condition(intents, scope), intents.c.key_hash == key_hash)
        return {
            number: (before, after) for number, before, after in self._connection.execute(query) if before and after
        }

    def delivered_contents(self, scope: Scope, key_hash: int) -> list[DeliveredContent]:
        """Return what the target held after each delivered operation, oldest first. It contains personal data."""
        names = ("id", "run_id", "operation", "settled_at", "before", "after", "body")
        query = select(*(intents.c[name] for name in names)).where(scope_condition(intents, scope))
        delivered = query.where(intents.c.key_hash == key_hash, intents.c.status == "delivered").order_by(intents.c.id)
        found = list[DeliveredContent]()
        for number, run_id, operation, at, before, after, body in self._connection.execute(delivered):
            held = exact_json.loads(body or b"{}") if after is None else after
            known = None if operation == "delete" else held
            found.append(DeliveredContent(number, run_id, operation, at, before, known))
        return found

    def _distinct_index_values(self, table: Table, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yield the distinct values of the columns before ``key_hash`` in an index, with one step in it for each.

        Each step begins after the last key hash: SQLite would read all rows with the same values to find the next.
        """
        columns, last = [table.c[name] for name in names], ("",) * len(names)
        order = tuple_(*columns, table.c.key_hash)
        while True:
            place = tuple_(*last, literal(_LAST_HASH, table.c.key_hash.type))
            query = select(*columns).where(order > place).order_by(*columns, table.c.key_hash).limit(1)
            row = self._connection.execute(query).first()
            if row is None:
                return
            last = tuple(row)
            yield last

    def _last_source_line_up_to(self, table: Table, condition: ColumnElement[bool], line: int) -> int:
        query = select(table.c.line).where(condition, table.c.line <= line)
        return self._connection.execute(query.order_by(table.c.line.desc()).limit(1)).scalar() or 0

    def _found_records(self, table: Table, condition: ColumnElement[bool]) -> Iterator[FoundRecord]:
        names = [name for name in (*Scope.__struct_fields__, "stream") if name in table.c]
        query = select(*(table.c[name] for name in names), table.c.key_hash).where(condition).distinct()
        for row in self._connection.execute(query).mappings():
            resource: ResourceName | None = row.get("resource")
            scope = Scope(row["target"], resource, row["namespace"]) if resource else None
            yield FoundRecord(scope, row.get("stream"), row["key_hash"])

    def _rows_without_payloads(self, table: Table, condition: ColumnElement[bool]) -> list[dict[str, Any]]:
        columns = [column for column in table.c if column.name not in _DATA]
        return [dict(row) for row in self._connection.execute(select(*columns).where(condition)).mappings()]


def _is_record_of_stream(table: Table, stream: str, key_hash: int) -> ColumnElement[bool]:
    return and_(table.c.stream == stream, table.c.key_hash == key_hash)
