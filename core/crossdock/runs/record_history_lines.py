"""The history of one record in words, for a command and a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from crossdock.config.project.project import Project
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.runs.record_history_search import RecordHistory
from crossdock.state import Transaction
from crossdock.state.tables.intents_and_stored_batches import ACKNOWLEDGED
from crossdock.values import exact_json
from crossdock.values.texts_of_numbers_and_times import awaited_records_text, instant_text, place_text
from crossdock.writing.targets.payload_comparison import member_differences

Row = dict[str, Any]


class Event(Struct, frozen=True):
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


def add_changed_members(loaded: Project, tx: Transaction, history: RecordHistory) -> None:
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


def events(history: RecordHistory) -> list[Event]:
    """Return all that happened to a record, the oldest first, and what is to happen last."""
    found = [event for row in history.operations for event in events_of_operation(row)]
    for row in history.dead_letters:
        attempts = f", {row['attempts']} times since run {row['first_run_id']}" if row["attempts"] > 1 else ""
        text = f"{row['status']}{attempts}: {dead_letter_reason_text(row)}"
        found.append(Event(row["refused_at"], text, row, status=row["status"]))
    found += [
        Event(row["since"], f"waiting for {awaited_records_text(row['waits_for'])}", row, status="waiting")
        for row in history.waits
    ]
    return sorted(found, key=lambda each: (each.at is None, each.at))


def events_of_operation(row: Row) -> Iterator[Event]:
    """Yield what happened to one operation, in the order of its steps."""
    text = f"run {row['run_id']}: {row['operation']} {row['resource']} no. {row['counter']}"
    text += f" from {place_text(row)}, key {row['idempotency_key']}"
    yield Event(row["created_at"], text, row, is_first=True)
    acknowledged = [each for each in row["sendings"] if each["outcome"] == ACKNOWLEDGED]
    for attempt in (each for each in row["sendings"] if each not in acknowledged):
        result = f"{attempt['outcome']}{_http_status_text(attempt)} {attempt['message']}".rstrip()
        yield Event(attempt["ended_at"], f"attempt {attempt['number']}: {result}", row)
    if file := row["file"]:
        place = f"record {row['place'] + 1} of {file.records:,} in {file.name}, file number {file.number}"
        yield Event(file.created_at, f"{place}, SHA-256 {file.sha256[:16]}", row)
        if file.handed_over_at:
            due = f", to be acknowledged by {instant_text(file.due_at)}" if file.due_at else ""
            yield Event(file.handed_over_at, f"handed over{due}", row)
    for each in acknowledged:
        yield Event(each["ended_at"], f"{ACKNOWLEDGED} {each['message']}", row)
    if row["resolved_at"]:
        was = "" if row["settled_at"] == row["resolved_at"] else "not "
        yield Event(row["resolved_at"], f"resolved as {was}delivered", row)
    times = f", {row['attempts']} attempts" if row["attempts"] > 1 else ""
    yield Event(row["settled_at"], f"{row['status']}{_http_status_text(row)}{times}", row, status=row["status"])


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
