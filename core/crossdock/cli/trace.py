"""``crossdock trace``: the whole story of a record."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli.shared_options import as_json, config_option, example, say, utf8
from crossdock.errors import ConfigError

if TYPE_CHECKING:
    from crossdock.state import Transaction

_LINE = re.compile("[0-9]{1,18}")  # databases take no number of 20 digits


@click.command(
    epilog=example("crossdock trace 536365", "crossdock trace inv_4711", "crossdock trace INV_20260301.txt:118")
)
@click.argument("name", metavar="ID", callback=utf8)
@config_option
@as_json
def trace(name: str, config: Path, *, as_json: bool) -> None:
    """Tell what was done about a record, every attempt included, and what is left to do, without its data.

    ID is its key, its id on the platform, the idempotency key of an operation, or FILE:LINE of its source.
    """
    from crossdock.cli import terminal_output
    from crossdock.project import project

    with project.load(config).look() as tx:
        meant, began = _meant(tx, name)
        stories = [_story(tx, key_hash) for key_hash in sorted(meant)]
    if not stories:
        hint = "a record's key, its id on the platform, an idempotency key, or FILE:LINE"
        raise ConfigError(f"the state knows nothing of {name!r}", hint=hint)
    if as_json:
        terminal_output.print_json(stories)
        return
    if began is not None:
        say(f"the nearest record that is known begins in line {began}:")
    for story in stories:
        for line in _lines(story):
            terminal_output.out().print(line, soft_wrap=True)


def _meant(tx: Transaction, name: str) -> tuple[set[int], int | None]:
    """Which records, and where they begin if that is not the line that was asked for."""
    from crossdock.records import key_text

    source, _, line = name.rpartition(":")
    found = tx.tracing.key_hashes(name, name) | tx.tracing.key_hashes(name, key_text([name]))
    if found or not (source and _LINE.fullmatch(line)):
        return found, None
    for file in (source, source.rpartition("/")[2]):
        began, found = tx.tracing.at(file, int(line))
        if found:
            return found, None if began == int(line) else began
    return set(), None


def _story(tx: Transaction, key_hash: int) -> dict[str, Any]:
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


def _lines(story: dict[str, Any]) -> Iterator[str]:
    first = next(rows[0] for rows in story.values() if rows)
    yield f"record {first['key']}"
    for row in story["operations"]:
        yield (
            f"  {row['created_at']}  run {row['run_id']}: {row['operation']} {row['resource']} no. {row['counter']}"
            f" from {row['source']}:{row['line']}, key {row['idempotency_key']}"
        )
        for sent in row["sendings"]:
            status = f" (HTTP {sent['http_status']})" if sent["http_status"] else ""
            told = f"{sent['outcome']}{status} {sent['message']}".rstrip()
            yield f"    {sent['ended_at']}  sending {sent['number']}: {told}"
        answer = f" (HTTP {row['http_status']})" if row["http_status"] else ""
        times = f", sent {row['attempts']} times" if row["attempts"] > 1 else ""
        yield f"    {row['settled_at'] or 'not settled':25}  {row['status']}{answer}{times}"
    for row in story["bindings"]:
        state = f"deleted {row['deleted_at']}" if row["deleted_at"] else f"accepted {row['updated_at']}"
        yield f"  is {row['resource']} {row['platform_id']} on the platform, {state} in run {row['run_id']}"
    for row in story["rejected"]:
        place = f"{row['source']}:{row['line']} {row['pointer'] or ''}".rstrip()
        why = f"{row['code']} at {place}: {row['message']}"
        yield f"  {row['status']} {row['refused_at']} in run {row['run_id']}: {why}"
    for row in story["waiting"]:
        parents = ", ".join(f"{each['resource']} {each['namespace']}:{each['key']}" for each in row["waits_for"])
        yield f"  waits since {row['since']} for {parents}"
