"""``crossdock trace``: the history of a record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli import terminal_output
from crossdock.cli.config_loading import load
from crossdock.cli.plain_text import say
from crossdock.cli.records_list import selection
from crossdock.cli.records_show import value_text
from crossdock.cli.shared_options import common_options, example, utf8
from crossdock.errors import ConfigError
from crossdock.values.display_texts import parents_text, place_of
from crossdock.values.display_times import instant_text

if TYPE_CHECKING:
    from crossdock.config.project.project import Project
    from crossdock.runs.record_trace import History
    from crossdock.state import Transaction


@click.command(
    epilog=example(
        "crossdock trace 536365",
        "crossdock trace wms:gid%3A%2F%2F7",
        "crossdock trace inv_4711",
        "crossdock trace INV_20260301.txt:118",
    )
)
@click.argument("name", metavar="ID", callback=utf8)
@click.option("--stream", metavar="STREAM", help="Only the record of this stream.", callback=utf8)
@common_options
def trace(name: str, config: Path, *, stream: str | None, as_json: bool) -> None:
    """Show the history of a record, with every attempt.

    ID is its key, its externalId or its id on the platform, the idempotency key of an operation, or FILE:LINE of its
    source. Records of several streams may have the same key; each is shown with its stream. Of the record's data, only
    what an update changed is shown, without personal values.
    """
    from crossdock.runs.record_trace import RecordSearch

    loaded = load(config)
    with loaded.read_state() as tx:
        in_inbox = tx.inbox.count(selection(stream, name, None, None))
        found, first_line = RecordSearch(tx, loaded.scopes).find(name)
        for history in found:
            _compare(loaded, tx, history)
    histories = [each for each in found if stream is None or stream in each.streams]
    if not histories:
        raise _not_found(name, stream, found, in_inbox=in_inbox > 0)
    if as_json:
        terminal_output.print_json([_document(each) for each in histories])
        return
    if first_line is not None:
        say(f"nearest known record, which begins on line {first_line}:")
    for history in histories:
        for line in _lines(history):
            terminal_output.out().print(line, soft_wrap=True)


def _compare(loaded: Project, tx: Transaction, history: History) -> None:
    from crossdock.writing.delivery.operations import member_differences

    scope, rows = history.scope, history.operations
    changes = tx.tracing.changes(scope, rows[0]["key_hash"]) if scope and rows else {}
    for row in rows:
        payloads = changes.get(row["id"])
        personal = loaded.masks.personal_members(row["stream"], scope) if scope else frozenset()
        row["changed"] = [each._asdict() for each in member_differences(*payloads, personal)] if payloads else []


def _not_found(name: str, stream: str | None, elsewhere: list[History], *, in_inbox: bool) -> ConfigError:
    if in_inbox:
        why = f"crossdock records list --state inbox --key {name}"
        return ConfigError(f"a webhook has named {name!r}, which is not fetched yet", hint=f"'{why}' says why")
    if elsewhere:
        others = sorted({_owner(each) for each in elsewhere})
        return ConfigError(f"the state has no record {name!r} of {stream}", hint=f"it has one of {', '.join(others)}")
    hint = "give a record's key, its externalId or id on the platform, an idempotency key, or FILE:LINE"
    return ConfigError(f"the state has no record {name!r}", hint=hint)


def _owner(history: History) -> str:
    return ", ".join(history.streams) or f"namespace {history.scope.namespace if history.scope else '?'}"


def _document(history: History) -> dict[str, Any]:
    scope = history.scope
    return {
        "streams": list(history.streams),
        "target": scope.target if scope else None,
        "resource": scope.resource if scope else None,
        "namespace": scope.namespace if scope else None,
        "key": history.key,
        "bindings": [_plain(row) for row in history.bindings],
        "operations": [_plain(row) for row in history.operations],
        "rejected": [_plain(row) for row in history.dead_letters],
        "waiting": [_plain(row) for row in history.waits],
    }


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for name, value in row.items():
        if name in {"key_hash", "record_fp"}:
            shown[name] = None if value is None else f"{value:032x}"
        elif name == "sendings":
            shown[name] = [_plain(each) for each in value]
        elif name == "file":
            shown[name] = value and value._asdict()
        else:
            shown[name] = value
    return shown


def _lines(record: History) -> Iterator[str]:
    from crossdock.mapping.stream_facts import PLATFORM

    history = _document(record)
    yield f"record {record.key} of {_owner(record)}" + (f", {record.scope.resource}" if record.scope else "")
    for row in history["operations"]:
        created = instant_text(row["created_at"])
        yield (
            f"  {created}  run {row['run_id']}: {row['operation']} {row['resource']} no. {row['counter']}"
            f" from {place_of(row)}, key {row['idempotency_key']}"
        )
        for each in row["changed"]:
            yield f"    {each['pointer']}: {value_text(each['before'])} -> {value_text(each['after'])}"
        for attempt in row["sendings"]:
            result = f"{attempt['outcome']}{_http(attempt)} {attempt['message']}".rstrip()
            yield f"    {instant_text(attempt['ended_at'])}  attempt {attempt['number']}: {result}"
        if row["file"]:
            yield from _file_lines(row["file"], row["place"])
        if row["resolved_at"]:
            was = "" if row["settled_at"] == row["resolved_at"] else "not "
            yield f"    {instant_text(row['resolved_at'])}  resolved as {was}delivered"
        settled = instant_text(row["settled_at"]) if row["settled_at"] else "not settled"
        times = f", {row['attempts']} attempts" if row["attempts"] > 1 else ""
        yield f"    {settled:20}  {row['status']}{_http(row)}{times}"
    sending = {row["run_id"] for row in history["operations"]}
    is_acknowledged = any(row["file"] and row["status"] == "delivered" for row in history["operations"])
    for row in history["bindings"]:
        state = _accepted(row, was_sent=row["run_id"] in sending or is_acknowledged)
        place = "on the platform" if row["target"] == PLATFORM else f"in {row['target']}"
        yield f"  {row['resource']} {row['target_id']} {place}, {state} in run {row['run_id']}"
    for row in history["rejected"]:
        place = f"{place_of(row)} {row['pointer'] or ''}".rstrip()
        why = f"{row['code']} at {place}: {row['message']}"
        yield f"  {row['status']} {instant_text(row['refused_at'])} in run {row['run_id']}: {why}"
    for row in history["waiting"]:
        yield f"  waiting since {instant_text(row['since'])} for {parents_text(row['waits_for'])}"


def _file_lines(file: dict[str, Any], place: int) -> Iterator[str]:
    place_of_record = f"record {place + 1} of {file['records']:,} in {file['name']}, file number {file['number']}"
    yield f"    {instant_text(file['created_at'])}  {place_of_record}, SHA-256 {file['sha256'][:16]}"
    if file["handed_over_at"]:
        due = f", to be acknowledged by {instant_text(file['due_at'])}" if file["due_at"] else ""
        yield f"    {instant_text(file['handed_over_at'])}  handed over{due}"


def _accepted(row: dict[str, Any], *, was_sent: bool) -> str:
    """Describe an accepted operation: the target may already have held it, or the source may be unchanged."""
    if row["deleted_at"]:
        return f"deleted {instant_text(row['deleted_at'])}"
    return f"{'accepted' if was_sent else 'confirmed, with no operation stored,'} {instant_text(row['updated_at'])}"


def _http(row: dict[str, Any]) -> str:
    return f" (HTTP {row['http_status']})" if row["http_status"] else ""
