"""``crossdock trace``: the history of a record."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli import terminal_output
from crossdock.cli.shared_options import common_options, example, load, parents_text, say, utf8
from crossdock.errors import ConfigError

if TYPE_CHECKING:
    from crossdock.state import Transaction

_LINE = re.compile("[0-9]{1,18}")  # databases accept no number of 20 digits


@click.command(
    epilog=example("crossdock trace 536365", "crossdock trace inv_4711", "crossdock trace INV_20260301.txt:118")
)
@click.argument("name", metavar="ID", callback=utf8)
@common_options
def trace(name: str, config: Path, *, as_json: bool) -> None:
    """Show the history of a record, with every attempt.

    ID is its key, its id on the platform, the idempotency key of an operation, or FILE:LINE of its source. The record's
    data is not shown.
    """
    with load(config).look() as tx:
        found, first_line = _find(tx, name)
        histories = [_history(tx, key_hash) for key_hash in sorted(found)]
    if not histories:
        hint = "give a record's key, its id on the platform, an idempotency key, or FILE:LINE"
        raise ConfigError(f"the state has no record {name!r}", hint=hint)
    if as_json:
        terminal_output.print_json(histories)
        return
    if first_line is not None:
        say(f"nearest known record, which begins on line {first_line}:")
    for history in histories:
        for line in _lines(history):
            terminal_output.out().print(line, soft_wrap=True)


def _find(tx: Transaction, name: str) -> tuple[set[int], int | None]:
    """The key hashes of the records, and the line where they begin if it is not the requested one."""
    from crossdock.records import key_text

    source, _, line = name.rpartition(":")
    found = tx.tracing.key_hashes(name, name) | tx.tracing.key_hashes(name, key_text([name]))
    if found or not (source and _LINE.fullmatch(line)):
        return found, None
    for file in (source, source.rpartition("/")[2]):
        first_line, found = tx.tracing.at(file, int(line))
        if found:
            return found, None if first_line == int(line) else first_line
    return set(), None


def _history(tx: Transaction, key_hash: int) -> dict[str, Any]:
    return {
        "bindings": [_plain(row) for row in tx.tracing.binding(key_hash)],
        "operations": [_plain(row) for row in tx.tracing.operations(key_hash)],
        "rejected": [_plain(row) for row in tx.tracing.dead_letters(key_hash)],
        "waiting": [_plain(row) for row in tx.tracing.waits(key_hash)],
    }


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Hashes as hex and times as text."""
    shown: dict[str, Any] = {}
    for name, value in row.items():
        if name in {"key_hash", "record_fp"}:
            shown[name] = None if value is None else f"{value:032x}"
        elif name == "sendings":
            shown[name] = [_plain(each) for each in value]
        else:
            shown[name] = value.isoformat(timespec="seconds") if hasattr(value, "isoformat") else value
    return shown


def _lines(history: dict[str, Any]) -> Iterator[str]:
    first = next(rows[0] for rows in history.values() if rows)
    yield f"record {first['key']}"
    for row in history["operations"]:
        yield (
            f"  {row['created_at']}  run {row['run_id']}: {row['operation']} {row['resource']} no. {row['counter']}"
            f" from {row['source']}:{row['line']}, key {row['idempotency_key']}"
        )
        for attempt in row["sendings"]:
            result = f"{attempt['outcome']}{_http(attempt)} {attempt['message']}".rstrip()
            yield f"    {attempt['ended_at']}  attempt {attempt['number']}: {result}"
        times = f", {row['attempts']} attempts" if row["attempts"] > 1 else ""
        yield f"    {row['settled_at'] or 'not settled':25}  {row['status']}{_http(row)}{times}"
    for row in history["bindings"]:
        state = f"deleted {row['deleted_at']}" if row["deleted_at"] else f"accepted {row['updated_at']}"
        yield f"  {row['resource']} {row['platform_id']} on the platform, {state} in run {row['run_id']}"
    for row in history["rejected"]:
        place = f"{row['source']}:{row['line']} {row['pointer'] or ''}".rstrip()
        why = f"{row['code']} at {place}: {row['message']}"
        yield f"  {row['status']} {row['refused_at']} in run {row['run_id']}: {why}"
    for row in history["waiting"]:
        yield f"  waiting since {row['since']} for {parents_text(row['waits_for'])}"


def _http(row: dict[str, Any]) -> str:
    return f" (HTTP {row['http_status']})" if row["http_status"] else ""
