"""``crossdock records``: what did not get through, and why."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli.shared_options import MOST, as_json, config_option, counted, example, interruptible, say, utf8
from crossdock.errors import ConfigError

if TYPE_CHECKING:
    from crossdock.state import DeadLetterFilter, Intent, Transaction

State = click.Choice(["rejected", "waiting", "in-doubt"])
SHOWN = ("rejected", "waiting", "in-doubt", "dropped")


@click.group()
def records() -> None:
    """Look at and mend records that were rejected, wait for another record, or are in doubt."""


@records.command("list", epilog=example("crossdock records list --state rejected"))
@click.option("--state", type=click.Choice(SHOWN), help="Only these; all but the dropped ones without it.")
@click.option("--limit", type=click.IntRange(1, MOST), default=100, show_default=True, help="Records of each state.")
@config_option
@as_json
def list_(state: str | None, config: Path, *, limit: int, as_json: bool) -> None:
    """List records that did not get through, without their data."""
    from crossdock.cli import terminal_output

    found = [_public(item) for item in _found(config, state, limit)]
    if as_json:
        terminal_output.print_json(found)
        return
    columns = ("state", "stream", "key", "why", "pointer", "at")
    rows = [tuple(item.get(name, "") for name in columns) for item in found]
    console = terminal_output.out()
    console.print(terminal_output.table("Records", columns, rows))
    if not found:
        console.print("nothing is rejected, waits or is in doubt")


@records.command("show", epilog=example("crossdock records show wms.invoices 536365 --raw"))
@click.argument("stream", callback=utf8)
@click.argument("key", callback=utf8)
@click.option("--raw", is_flag=True, help="Also the record's data, which may be personal.")
@config_option
@as_json
def show_(stream: str, key: str, config: Path, *, raw: bool, as_json: bool) -> None:
    """Show one such record: reason, place, story; its data only with --raw."""
    from crossdock import exact_json
    from crossdock.cli import terminal_output
    from crossdock.records import key_text

    keys = {key, key_text([key])}  # as it is listed, or as it stands in the source
    found = [item for item in _found(config, None, None) if item["stream"] == stream and item["key"] in keys]
    if not found:
        raise ConfigError(f"no record {key!r} of stream {stream!r} was rejected, waits or is in doubt")
    shown = [_public(item) | ({"raw": item["raw"], "mapped": item.get("mapped")} if raw else {}) for item in found]
    if as_json:
        terminal_output.print_json(shown)
        return
    for item in shown:
        for name, value in item.items():
            text = value if isinstance(value, str) else exact_json.dumps(value).decode()
            terminal_output.out().print(f"{name:12} {text}")


_stream = click.argument("stream", callback=utf8, required=False)
_key = click.argument("key", callback=utf8, required=False)
_reason = click.option("--reason", metavar="CODE", help="Only those refused for this reason, such as bad_value.")


@records.command(
    "replay",
    epilog=example("crossdock records replay wms.invoices 70013", "crossdock records replay --reason bad_value"),
)
@_stream
@_key
@_reason
@click.option("--since", type=click.DateTime(), help="Only those refused at this time (UTC) or later.")
@config_option
@as_json
def replay_(
    stream: str | None, key: str | None, reason: str | None, since: datetime | None, config: Path, *, as_json: bool
) -> int:
    """Map rejected records again, as the mapping is today, and deliver them; no source is read.

    Exit codes are those of 'crossdock sync'.
    """
    from crossdock.cli import terminal_output
    from crossdock.cli.sync import told
    from crossdock.clock import SystemClock
    from crossdock.project import project
    from crossdock.runs import runner

    loaded, choice = project.load(config), _choice(stream, key, reason, since)
    with interruptible() as interrupt, terminal_output.progress(wanted=not as_json) as progress:
        report = runner.replay(loaded, choice, clock=SystemClock(), progress=progress, interrupt=interrupt)
    return told(report, as_json=as_json)


@records.command(
    "resolve",
    epilog=example(
        "crossdock records resolve wms.invoices 70013 --delivered-as inv_4711",
        "crossdock records resolve wms.invoices --not-delivered",
    ),
)
@_stream
@_key
@click.option("--delivered-as", metavar="ID", help="It happened, and this is the record's id on the platform.")
@click.option("--delivered", is_flag=True, help="It happened; enough for updates, whose id is known.")
@click.option("--not-delivered", is_flag=True, help="It did not happen: the next sync sends it.")
@config_option
@as_json
def resolve_(
    stream: str | None,
    key: str | None,
    delivered_as: str | None,
    config: Path,
    *,
    delivered: bool,
    not_delivered: bool,
    as_json: bool,
) -> None:
    """Say what became of records in doubt, after a look at the platform; all of a STREAM, or one KEY."""
    if stream is None:
        raise ConfigError("name the stream, and the key unless all its records in doubt are meant")
    from crossdock.delivery import operator_actions

    if [delivered_as is not None, delivered, not_delivered].count(True) != 1:
        raise ConfigError("say one of --delivered-as ID, --delivered and --not-delivered")
    choice = _choice(stream, key, None, None)

    def resolve(tx: Transaction, at: datetime) -> int:
        found = operator_actions.in_doubt(tx, choice)
        if not_delivered:
            operator_actions.not_delivered(tx, found, at=at)
        else:
            operator_actions.delivered(tx, found, delivered_as, at=at)
        return len(found)

    _mend(config, resolve, "resolved", as_json=as_json)


@records.command("drop", epilog=example("crossdock records drop wms.invoices 70030"))
@click.argument("stream", callback=utf8)
@_key
@_reason
@click.option("--state", type=State, help="Only these.")
@config_option
@as_json
def drop_(stream: str, key: str | None, reason: str | None, state: str | None, config: Path, *, as_json: bool) -> None:
    """Give records up: they come to nothing as they read now. One that its source changes is looked at anew."""
    from crossdock.delivery import operator_actions

    choice = _choice(stream, key, reason, None)

    def drop(tx: Transaction, at: datetime) -> int:
        dead_letters = tx.dead_letters.chosen(choice) if state in {None, "rejected"} else []
        waiting = tx.waiting_records.chosen(choice) if state in {None, "waiting"} and reason is None else []
        intents = operator_actions.in_doubt(tx, choice) if state in {None, "in-doubt"} and reason is None else []
        operator_actions.drop(tx, dead_letters, waiting, intents, at=at)
        return len(dead_letters) + len(waiting) + len(intents)

    _mend(config, drop, "dropped", as_json=as_json)


def _choice(stream: str | None, key: str | None, reason: str | None, since: datetime | None) -> DeadLetterFilter:
    from crossdock.records import REASONS, key_text
    from crossdock.state import DeadLetterFilter

    if reason is not None and reason not in REASONS:
        raise ConfigError(f"there is no reason {reason!r}; there are {', '.join(sorted(REASONS))}")
    if key is not None and not {"%", "|"} & set(key):
        key = key_text([key])  # as it stands in the source; else it was copied from a list
    return DeadLetterFilter(stream, key, reason, since.replace(tzinfo=UTC) if since else None)


def _mend(config: Path, work: Callable[[Transaction, datetime], int], done: str, *, as_json: bool) -> None:
    """Change the state while no run is at work on it."""
    from crossdock.cli import terminal_output
    from crossdock.clock import SystemClock
    from crossdock.project import project

    at = SystemClock().now()
    with project.load(config).alone() as state:
        number = state.apply(lambda tx: work(tx, at))
    if not number:
        raise ConfigError("no such record", hint="'crossdock records list' shows what there is")
    if as_json:
        terminal_output.print_json({done: number})
    else:
        say(f"{done} {counted(number, 'record')}")


def _found(config: Path, state: str | None, limit: int | None) -> list[dict[str, Any]]:
    from crossdock.project import project

    with project.load(config).look() as tx:
        return [
            item
            for kind in SHOWN
            if kind == state or (state is None and kind != "dropped")
            for item in _KINDS[kind](tx, limit or 1_000_000)
        ]


def _rejected(tx: Transaction, limit: int, state: str = "rejected") -> list[dict[str, Any]]:
    status = "dropped" if state == "dropped" else "rejected"
    return [
        item | {"state": state, "why": f"{item['code']}: {item['message']}", "since": item["refused_at"]}
        for item in tx.dead_letters.listed(limit=limit, status=status)
    ]


def _waiting(tx: Transaction, limit: int) -> list[dict[str, Any]]:
    def why(item: dict[str, Any]) -> str:
        names = [f"{parent['resource']} {parent['namespace']}:{parent['key']}" for parent in item["waits_for"]]
        return f"waits for {', '.join(names)}"

    return [item | {"state": "waiting", "why": why(item)} for item in tx.waiting_records.listed(limit=limit)]


def _in_doubt(tx: Transaction, limit: int) -> list[dict[str, Any]]:
    intents = tx.intents.listed(("in_doubt",), limit=limit)
    messages = tx.intents.latest_messages(intents)

    def why(intent: Intent) -> str:
        if not intent.attempts:
            return f"{intent.operation} may have happened before the state was restored"
        sent = f"{intent.operation} was sent {_times(intent.attempts)} without a clear answer"
        return f"{sent}: {messages[intent.id]}" if messages.get(intent.id) else sent

    return [
        {
            "state": "in-doubt",
            "stream": intent.identity.stream,
            "key": intent.identity.key,
            "why": why(intent),
            "source": intent.identity.source,
            "line": intent.identity.line,
            "since": intent.first_sent_at,
            "raw": intent.raw,
        }
        for intent in intents
    ]


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


_KINDS: dict[str, Callable[[Transaction, int], list[dict[str, Any]]]] = {
    "rejected": _rejected,
    "waiting": _waiting,
    "in-doubt": _in_doubt,
    "dropped": partial(_rejected, state="dropped"),
}


def _public(item: dict[str, Any]) -> dict[str, Any]:
    shown = {"state": item["state"], "stream": item["stream"], "key": item["key"], "why": item["why"]}
    shown |= {"at": f"{item['source']}:{item['line']}", "since": str(item["since"])}
    return shown | {name: item[name] for name in ("stage", "pointer", "attempts") if item.get(name) is not None}
