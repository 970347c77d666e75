"""``crossdock records``: what did not get through, and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli.options import as_json, config_option, example
from crossdock.errors import ConfigError

if TYPE_CHECKING:
    from crossdock.state import Transaction

State = click.Choice(["rejected", "waiting", "in-doubt"])


@click.group()
def records() -> None:
    """Look at records that were rejected, wait for another record, or are in doubt."""


@records.command("list", epilog=example("crossdock records list --state rejected"))
@click.option("--state", type=State, help="Only these.")
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="Records of each state.")
@config_option
@as_json
def list_(state: str | None, config: Path, *, limit: int, as_json: bool) -> None:
    """List records that did not get through, without their data."""
    from crossdock.cli import terminal

    found = [_public(item) for item in _found(config, state, limit)]
    if as_json:
        terminal.print_json(found)
        return
    columns = ("state", "stream", "key", "why", "pointer", "at")
    rows = [tuple(item.get(name, "") for name in columns) for item in found]
    console = terminal.out()
    console.print(terminal.table("Records", columns, rows))
    if not found:
        console.print("nothing is rejected, waits or is in doubt")


@records.command("show", epilog=example("crossdock records show wms.invoices 536365 --raw"))
@click.argument("stream")
@click.argument("key")
@click.option("--raw", is_flag=True, help="Also the record's data, which may be personal.")
@config_option
@as_json
def show_(stream: str, key: str, config: Path, *, raw: bool, as_json: bool) -> None:
    """Show one such record: reason, place, story; its data only with --raw."""
    from crossdock import wire
    from crossdock.cli import terminal
    from crossdock.records import key_text

    keys = {key, key_text([key])}  # as it is listed, or as it stands in the source
    found = [item for item in _found(config, None, None) if item["stream"] == stream and item["key"] in keys]
    if not found:
        raise ConfigError(f"no record {key!r} of stream {stream!r} was rejected, waits or is in doubt")
    shown = [_public(item) | ({"raw": item["raw"], "mapped": item.get("mapped")} if raw else {}) for item in found]
    if as_json:
        terminal.print_json(shown)
        return
    for item in shown:
        for name, value in item.items():
            text = value if isinstance(value, str) else wire.dumps(value).decode()
            terminal.out().print(f"{name:12} {text}", markup=False)


def _found(config: Path, state: str | None, limit: int | None) -> list[dict[str, Any]]:
    from crossdock.sync import project

    with project.load(config).look() as tx:
        return [
            item
            for kind in ("rejected", "waiting", "in-doubt")
            if state in {None, kind}
            for item in _KINDS[kind](tx, limit or 1_000_000)
        ]


def _rejected(tx: Transaction, limit: int) -> list[dict[str, Any]]:
    return [
        item
        | {
            "state": "rejected",
            "why": f"{item['code']}: {item['message']}",
            "since": item["refused_at"],
        }
        for item in tx.refused.listed(limit=limit)
    ]


def _waiting(tx: Transaction, limit: int) -> list[dict[str, Any]]:
    def why(item: dict[str, Any]) -> str:
        names = [f"{parent['resource']} {parent['namespace']}:{parent['key']}" for parent in item["waits_for"]]
        return f"waits for {', '.join(names)}"

    return [item | {"state": "waiting", "why": why(item)} for item in tx.waiting.listed(limit=limit)]


def _in_doubt(tx: Transaction, limit: int) -> list[dict[str, Any]]:
    return [
        {
            "state": "in-doubt",
            "stream": intent.stream,
            "key": intent.key,
            "why": f"{intent.operation} was sent {_times(intent.attempts)} without a clear answer",
            "source": intent.source,
            "line": intent.line,
            "since": intent.first_sent_at,
            "raw": intent.raw,
        }
        for intent in tx.intents.listed(("in_doubt",), limit=limit)
    ]


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


_KINDS = {"rejected": _rejected, "waiting": _waiting, "in-doubt": _in_doubt}


def _public(item: dict[str, Any]) -> dict[str, Any]:
    shown = {"state": item["state"], "stream": item["stream"], "key": item["key"], "why": item["why"]}
    shown |= {"at": f"{item['source']}:{item['line']}", "since": str(item["since"])}
    return shown | {name: item[name] for name in ("stage", "pointer", "attempts") if item.get(name) is not None}
