"""Finds a record by any of its names, and returns its history, also in words."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from crossdock.config.project.project import Project
from crossdock.delta.fingerprint import key_hashes
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.state import FoundRecord, Scope, Transaction
from crossdock.state.tables.intents_and_stored_batches import ACKNOWLEDGED
from crossdock.values import exact_json
from crossdock.values.record_keys import key_text
from crossdock.values.texts_of_numbers_and_times import awaited_records_text, instant_text, place_text
from crossdock.writing.targets.payload_comparison import member_differences

_LINE = re.compile("[0-9]{1,18}")  # databases accept no number of 20 digits


class RecordHistory(Struct, frozen=True):
    """Everything the state knows about one record; rows by column name, without the record's data.

    Attributes:
        streams: The streams that read it, or may read it; usually one.
        scope: None for a dead letter or waiting record of a stream that is unknown otherwise.
        operations: Oldest first, each with its attempts as ``sendings``.
    """

    streams: tuple[str, ...]
    scope: Scope | None
    bindings: list[dict[str, Any]]
    operations: list[dict[str, Any]]
    dead_letters: list[dict[str, Any]]
    waits: list[dict[str, Any]]

    @property
    def key(self) -> str:
        rows = (*self.bindings, *self.operations, *self.dead_letters, *self.waits)
        return str(rows[0]["key"])

    @property
    def key_hash(self) -> int:
        rows = (*self.bindings, *self.operations, *self.dead_letters, *self.waits)
        return int(rows[0]["key_hash"])

    @property
    def is_known(self) -> bool:
        return bool(self.bindings or self.operations or self.dead_letters or self.waits)


class RecordSearch:
    """Searches the state of a project, also for records of streams that are not in *scopes*."""

    def __init__(self, tx: Transaction, scopes: Mapping[str, Scope]) -> None:
        self._tx, self._scopes = tx, scopes

    def find(self, name: str) -> tuple[list[RecordHistory], int | None]:
        """Find the records that *name* means, and return their histories, by stream and key.

        *name* is a key as in the source or in text form, an ``externalId``, an id at the target, an idempotency key, or
        ``FILE:LINE``. If no record begins at that line, the nearest record above it is found, and the line where it
        begins is returned.
        """
        found = self._tx.record_history.records_by_id_or_idempotency_key(name) | self._by_key(name)
        if found:
            return self._histories(found), None
        source, _, line = name.rpartition(":")
        if source and _LINE.fullmatch(line):
            for file in (source, source.rpartition("/")[2]):
                first_line, found = self._tx.record_history.nearest_records_up_to_line(file, int(line))
                if found:
                    return self._histories(found), None if first_line == int(line) else first_line
        return [], None

    def find_key_in_stream(self, stream: str, key: str) -> list[RecordHistory]:
        """Return the record of *stream* with this key, as in the source or in text form; empty if there is none."""
        hashes = key_hashes([key, key_text([key])]).values()
        return self._histories({FoundRecord(None, stream, each) for each in hashes})

    def find_key_in_scopes(
        self, key: str, *, target: str = "", resource: str = "", namespace: str = ""
    ) -> list[RecordHistory]:
        """Return the records with this key in the scopes with these names; an empty name stands for any."""
        wanted = {"target": target, "resource": resource, "namespace": namespace}.items()
        known = {*self._scopes.values(), *self._tx.record_history.all_scopes_in_state()}
        scopes = [scope for scope in known if all(not name or scope.columns[part] == name for part, name in wanted)]
        hashes = key_hashes([key, key_text([key])]).values()
        return self._histories({FoundRecord(scope, None, key_hash) for scope in scopes for key_hash in hashes})

    def _by_key(self, name: str) -> set[FoundRecord]:
        tracing = self._tx.record_history
        scopes, streams = (
            {*self._scopes.values(), *tracing.all_scopes_in_state()},
            {*self._scopes, *tracing.all_streams_with_undelivered_records()},
        )
        hashes = key_hashes([name, key_text([name])])
        found = tracing.records_with_keys(scopes, streams, hashes.values())
        namespace, _, key = name.partition(":")
        named = {scope for scope in scopes if scope.namespace == namespace}
        if key and named:
            hashes = key_hashes([key, key_text([key])])
            its_streams = [stream for stream, scope in self._scopes.items() if scope in named]
            found |= tracing.records_with_keys(named, its_streams, hashes.values())
        return found

    def _histories(self, found: set[FoundRecord]) -> list[RecordHistory]:
        records: dict[tuple[Scope | str, int], set[str]] = defaultdict(set)
        for each in found:
            records[self._scope_or_stream_of_record(each), each.key_hash].update([each.stream] if each.stream else [])
        histories = [self._history(*record, streams) for record, streams in records.items()]
        return sorted((each for each in histories if each.is_known), key=lambda each: (each.streams, each.key))

    def _scope_or_stream_of_record(self, found: FoundRecord) -> Scope | str:
        """Return the scope in which a record's key is unique, or its stream if the scope is unknown."""
        if found.scope is not None:
            return found.scope
        assert found.stream is not None
        if configured := self._scopes.get(found.stream):
            return configured
        for scope in self._tx.record_history.all_scopes_in_state():  # the stream is no longer configured
            if any(row["stream"] == found.stream for row in self._tx.record_history.operations(scope, found.key_hash)):
                return scope
        return found.stream

    def _history(self, place: Scope | str, key_hash: int, found_in: set[str]) -> RecordHistory:
        tracing, scope = self._tx.record_history, None if isinstance(place, str) else place
        operations = tracing.operations(scope, key_hash) if scope else []
        configured = {name for name, its_scope in self._scopes.items() if its_scope == scope}
        streams = tuple(sorted(found_in | configured | {row["stream"] for row in operations}))
        return RecordHistory(
            streams,
            scope,
            tracing.bindings(scope, key_hash) if scope else [],
            operations,
            [row for stream in streams for row in tracing.dead_letters(stream, key_hash)],
            [row for stream in streams for row in tracing.waits_of_record(stream, key_hash)],
        )


Row = dict[str, Any]


class RecordEvent(Struct, frozen=True):
    """What happened to a record *at* some time.

    Attributes:
        row: The operation, dead letter or waiting record that it is a part of.
        is_first: Whether it is what an operation begins with.
    """

    at: datetime | None
    text: str
    row: Row
    is_first: bool = False
    status: str = ""


def add_changed_members_to_operations(loaded: Project, tx: Transaction, history: RecordHistory) -> None:
    """Add to each operation of *history* the members that it ``changed``, without personal values."""
    scope, rows = history.scope, history.operations
    changes = tx.record_history.payloads_of_updates(scope, rows[0]["key_hash"]) if scope and rows else {}
    masks = loaded.personal_data_masks
    for row in rows:
        payloads = changes.get(row["id"])
        personal = masks.personal_members(row["stream"], scope) if scope else frozenset()
        row["changed"] = [each._asdict() for each in member_differences(*payloads, personal)] if payloads else []


def streams_or_namespace_text(history: RecordHistory) -> str:
    """Return the streams that read a record, or else its namespace."""
    return ", ".join(history.streams) or f"namespace {history.scope.namespace if history.scope else '?'}"


def history_document(history: RecordHistory) -> dict[str, Any]:
    """Return *history* as ``crossdock trace --json`` prints it."""
    scope = history.scope
    return {
        "streams": list(history.streams),
        "target": scope.target if scope else None,
        "resource": scope.resource if scope else None,
        "namespace": scope.namespace if scope else None,
        "key": history.key,
        "bindings": [_json_row(row) for row in history.bindings],
        "operations": [_json_row(row) for row in history.operations],
        "rejected": [_json_row(row) for row in history.dead_letters],
        "waiting": [_json_row(row) for row in history.waits],
    }


def _json_row(row: Row) -> Row:
    shown: Row = {}
    for name, value in row.items():
        if name in {"key_hash", "record_fp"}:
            shown[name] = None if value is None else f"{value:032x}"
        elif name == "sendings":
            shown[name] = [_json_row(each) for each in value]
        elif name == "file":
            shown[name] = value and value._asdict()
        else:
            shown[name] = value
    return shown


def history_lines(history: RecordHistory) -> Iterator[str]:
    """Yield the lines of ``crossdock trace``."""
    yield f"record {history.key} of {streams_or_namespace_text(history)}" + (
        f", {history.scope.resource}" if history.scope else ""
    )
    for row in history.operations:
        for event in events_of_operation(row):
            if event.is_first:
                yield f"  {instant_text(row['created_at'])}  {event.text}"
                yield from (f"    {text}" for text in changed_lines(row))
            else:
                at = "not settled" if event.at is None else instant_text(event.at)
                yield f"    {at:20}  {event.text}"
    yield from (f"  {text}" for text in binding_lines(history))
    for row in history.dead_letters:
        when = f"{instant_text(row['refused_at'])} in run {row['run_id']}"
        yield f"  {row['status']} {when}: {dead_letter_reason_text(row)}"
    for row in history.waits:
        yield f"  waiting since {instant_text(row['since'])} for {awaited_records_text(row['waits_for'])}"


def events_of_record(history: RecordHistory) -> list[RecordEvent]:
    """Return all that happened to a record, the oldest first, and what is to happen last."""
    found = [event for row in history.operations for event in events_of_operation(row)]
    for row in history.dead_letters:
        attempts = f", {row['attempts']} times since run {row['first_run_id']}" if row["attempts"] > 1 else ""
        text = f"{row['status']}{attempts}: {dead_letter_reason_text(row)}"
        found.append(RecordEvent(row["refused_at"], text, row, status=row["status"]))
    found += [
        RecordEvent(row["since"], f"waiting for {awaited_records_text(row['waits_for'])}", row, status="waiting")
        for row in history.waits
    ]
    return sorted(found, key=lambda each: (each.at is None, each.at))


def events_of_operation(row: Row) -> Iterator[RecordEvent]:
    """Yield what happened to one operation, in the order of its steps."""
    text = f"run {row['run_id']}: {row['operation']} {row['resource']} no. {row['counter']}"
    text += f" from {place_text(row)}, key {row['idempotency_key']}"
    yield RecordEvent(row["created_at"], text, row, is_first=True)
    acknowledged = [each for each in row["sendings"] if each["outcome"] == ACKNOWLEDGED]
    for attempt in (each for each in row["sendings"] if each not in acknowledged):
        result = f"{attempt['outcome']}{_http_status_text(attempt)} {attempt['message']}".rstrip()
        yield RecordEvent(attempt["ended_at"], f"attempt {attempt['number']}: {result}", row)
    if file := row["file"]:
        place = f"record {row['place'] + 1} of {file.records:,} in {file.name}, file number {file.number}"
        yield RecordEvent(file.created_at, f"{place}, SHA-256 {file.sha256[:16]}", row)
        if file.handed_over_at:
            due = f", to be acknowledged by {instant_text(file.due_at)}" if file.due_at else ""
            yield RecordEvent(file.handed_over_at, f"handed over{due}", row)
    for each in acknowledged:
        yield RecordEvent(each["ended_at"], f"{ACKNOWLEDGED} {each['message']}", row)
    if row["resolved_at"]:
        was = "" if row["settled_at"] == row["resolved_at"] else "not "
        yield RecordEvent(row["resolved_at"], f"resolved as {was}delivered", row)
    times = f", {row['attempts']} attempts" if row["attempts"] > 1 else ""
    yield RecordEvent(row["settled_at"], f"{row['status']}{_http_status_text(row)}{times}", row, status=row["status"])


def changed_lines(row: Row) -> Iterator[str]:
    """Yield the members that an operation changed, before and after."""
    for each in row["changed"]:
        yield f"{each['pointer']}: {value_text(each['before'])} -> {value_text(each['after'])}"


def binding_lines(history: RecordHistory) -> Iterator[str]:
    """Yield where the record is at its target, and since when."""
    sending = {row["run_id"] for row in history.operations}
    is_acknowledged = any(row["file"] and row["status"] == "delivered" for row in history.operations)
    for row in history.bindings:
        if row["deleted_at"]:
            state = _deleted_text(row, history.operations)
        else:
            state = _accepted_text(row, was_sent=row["run_id"] in sending or is_acknowledged)
        place = "on the platform" if row["target"] == PLATFORM else f"in {row['target']}"
        yield f"{row['resource']} {row['target_id']} {place}, {state}"


def dead_letter_reason_text(row: Row) -> str:
    """Return why and where a record was rejected."""
    place = f"{place_text(row)} {row['pointer'] or ''}".rstrip()
    return f"{row['code']} at {place}: {row['message']}"


def value_text(value: Any) -> str:
    """Return a JSON value as a short text."""
    if value is None:
        return "(none)"
    if isinstance(value, dict):
        return " ".join(f"{name}={value_text(member)}" for name, member in value.items())
    return value if isinstance(value, str) else exact_json.dumps(value).decode()


def _accepted_text(row: Row, *, was_sent: bool) -> str:
    """Describe an accepted operation: the target may already have held it, or the source may be unchanged."""
    how = "accepted" if was_sent else "confirmed, with no operation stored,"
    return f"{how} {instant_text(row['updated_at'])} in run {row['run_id']}"


def _deleted_text(row: Row, operations: Iterable[Row]) -> str:
    """Describe a deletion, with the run that made it; the run of the binding is the one before it."""
    made = [each["run_id"] for each in operations if each["operation"] == "delete" and each["status"] == "delivered"]
    return f"deleted {instant_text(row['deleted_at'])}" + (f" in run {made[-1]}" if made else "")


def _http_status_text(row: Mapping[str, Any]) -> str:
    return f" (HTTP {row['http_status']})" if row["http_status"] else ""
