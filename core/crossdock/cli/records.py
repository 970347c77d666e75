"""``crossdock records``: what was not delivered, why, and how to fix it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli import terminal_output
from crossdock.cli.shared_options import MOST, common_options, counted, example, interruptible, load, parents_text, utf8
from crossdock.clock import SystemClock
from crossdock.errors import ConfigError

if TYPE_CHECKING:
    from crossdock.state import DeadLetterFilter, Intent, Transaction
    from crossdock.state.tables.intents import Status

_DECIDABLE = ("rejected", "waiting", "in-doubt")
_OPEN = (*_DECIDABLE, "pending")
_ALL = (*_OPEN, "dropped")


@click.group(epilog=example("crossdock records list", "crossdock records replay --reason bad_value"))
def records() -> None:
    """List and fix records that were not delivered."""


@records.command("list", epilog=example("crossdock records list --state rejected"))
@click.option("--state", type=click.Choice(_ALL), help="Only these; default: all but dropped.")
@click.option(
    "--limit",
    type=click.IntRange(1, MOST),
    default=100,
    show_default=True,
    help="Maximum number of records for each state.",
)
@common_options
def list_(state: str | None, config: Path, *, limit: int, as_json: bool) -> None:
    """List open records, with the reason for each.

    They were rejected, are waiting, are pending (the next run sends a stored operation) or are in doubt.
    """
    found = [_public(item) for item in _found(config, state, limit)]
    if as_json:
        terminal_output.print_json(found)
        return
    console = terminal_output.out()
    if not found:
        console.print("no record is open" if state is None else f"no record is {state}")
        return
    columns = ("state", "stream", "key", "why", "pointer", "at")
    rows = [tuple(item.get(name, "") for name in columns) for item in found]
    console.print(terminal_output.table("Records", columns, rows))


@records.command("show", epilog=example("crossdock records show wms.invoices 536365 --raw"))
@click.argument("stream", callback=utf8)
@click.argument("key", callback=utf8)
@click.option("--raw", is_flag=True, help="Include the record's data, which may be personal.")
@common_options
def show_(stream: str, key: str, config: Path, *, raw: bool, as_json: bool) -> None:
    """Show why a record was not delivered; its data only with --raw."""
    from crossdock import exact_json
    from crossdock.records import key_text

    keys = {key, key_text([key])}  # as listed, or as in the source
    found = [item for item in _found(config, None, None) if item["stream"] == stream and item["key"] in keys]
    if not found:
        raise ConfigError(f"no record {key!r} of stream {stream!r} is open")
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
_reason = click.option("--reason", metavar="CODE", help="Only those rejected for this reason, such as bad_value.")


@records.command(
    "replay",
    epilog=example("crossdock records replay wms.invoices 70013", "crossdock records replay --reason bad_value"),
)
@_stream
@_key
@_reason
@click.option("--since", type=click.DateTime(), help="Only those rejected since this time (UTC).")
@common_options
def replay_(
    stream: str | None, key: str | None, reason: str | None, since: datetime | None, config: Path, *, as_json: bool
) -> int:
    """Map rejected records again and deliver them.

    The current mapping is used; no source is read. Exit codes are those of 'crossdock sync'.
    """
    from crossdock.cli.sync import show_report
    from crossdock.runs import runner

    loaded, selection = load(config), _selection(stream, key, reason, since)
    with interruptible() as interrupt, terminal_output.progress(wanted=not as_json) as progress:
        report = runner.replay(loaded, selection, clock=SystemClock(), progress=progress, interrupt=interrupt)
    return show_report(report, as_json=as_json)


@records.command(
    "resolve",
    epilog=example(
        "crossdock records resolve wms.invoices 70013 --delivered-as inv_4711",
        "crossdock records resolve wms.invoices --not-delivered",
    ),
)
@_stream
@_key
@click.option("--delivered-as", metavar="ID", help="Delivered; ID is the record's id on the platform.")
@click.option("--delivered", is_flag=True, help="Delivered; for updates, whose id is known.")
@click.option("--not-delivered", is_flag=True, help="Not delivered: the next sync sends it.")
@common_options
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
    """Settle records in doubt, after checking the platform.

    Applies to all records in doubt of STREAM, or to the one with KEY.
    """
    if stream is None:
        raise ConfigError("name a stream, and a key unless you mean all its records in doubt")
    from crossdock.delivery import operator_actions

    if [delivered_as is not None, delivered, not_delivered].count(True) != 1:
        raise ConfigError("give exactly one of --delivered-as ID, --delivered and --not-delivered")
    selection = _selection(stream, key, None, None)

    def resolve(tx: Transaction, at: datetime) -> int:
        found = operator_actions.in_doubt(tx, selection)
        if not_delivered:
            operator_actions.not_delivered(tx, found, at=at)
        else:
            operator_actions.delivered(tx, found, delivered_as, at=at)
        return len(found)

    _change(config, resolve, "resolved", as_json=as_json)


@records.command("drop", epilog=example("crossdock records drop wms.invoices 70030"))
@click.argument("stream", callback=utf8)
@_key
@_reason
@click.option("--state", type=click.Choice(_DECIDABLE), help="Only these.")
@common_options
def drop_(stream: str, key: str | None, reason: str | None, state: str | None, config: Path, *, as_json: bool) -> None:
    """Drop records; a new version from the source will be processed."""
    from crossdock.delivery import operator_actions

    selection = _selection(stream, key, reason, None)

    def drop(tx: Transaction, at: datetime) -> int:
        dead_letters = tx.dead_letters.chosen(selection) if state in {None, "rejected"} else []
        waiting = tx.waiting_records.chosen(selection) if state in {None, "waiting"} and reason is None else []
        intents = operator_actions.in_doubt(tx, selection) if state in {None, "in-doubt"} and reason is None else []
        operator_actions.drop(tx, dead_letters, waiting, intents, at=at)
        return len(dead_letters) + len(waiting) + len(intents)

    _change(config, drop, "dropped", as_json=as_json)


def _selection(stream: str | None, key: str | None, reason: str | None, since: datetime | None) -> DeadLetterFilter:
    from crossdock.records import REASONS, key_text
    from crossdock.state import DeadLetterFilter

    if reason is not None and reason not in REASONS:
        raise ConfigError(f"unknown reason {reason!r}; known: {', '.join(sorted(REASONS))}")
    if key is not None and not {"%", "|"} & set(key):
        key = key_text([key])  # as in the source; otherwise it was copied from a list
    return DeadLetterFilter(stream, key, reason, since.replace(tzinfo=UTC) if since else None)


def _change(config: Path, work: Callable[[Transaction, datetime], int], done: str, *, as_json: bool) -> None:
    """Change the state while no run is active."""
    at = SystemClock().now()
    with load(config).alone() as state:
        number = state.apply(lambda tx: work(tx, at))
    if not number:
        raise ConfigError("no such record", hint="'crossdock records list' shows the existing ones")
    terminal_output.print_result({done: number}, f"{done} {counted(number, 'record')}", as_json=as_json)


def _found(config: Path, state: str | None, limit: int | None) -> list[dict[str, Any]]:
    kinds = _OPEN if state is None else (state,)
    with load(config).look() as tx:
        return [item for kind in kinds for item in _LISTS[kind](tx, limit or 1_000_000)]


def _rejected(tx: Transaction, limit: int, state: str = "rejected") -> list[dict[str, Any]]:
    status = "dropped" if state == "dropped" else "rejected"
    return [
        item | {"state": state, "why": f"{item['code']}: {item['message']}", "since": item["refused_at"]}
        for item in tx.dead_letters.listed(limit=limit, status=status)
    ]


def _waiting(tx: Transaction, limit: int) -> list[dict[str, Any]]:
    return [
        item | {"state": "waiting", "why": f"waits for {parents_text(item['waits_for'])}"}
        for item in tx.waiting_records.listed(limit=limit)
    ]


def _pending(tx: Transaction, limit: int) -> list[dict[str, Any]]:
    """Operations that the next run sends, or sends again; while a run is active, also what it is sending."""

    def why(intent: Intent, message: str | None) -> str:
        again = "is sent or looked up again" if intent.status == "sending" else "is sent"
        return f"{intent.operation} {again} by the next run{f': {message}' if message else ''}"

    return _operations(tx, ("pending", "sending"), "pending", why, limit)


def _in_doubt(tx: Transaction, limit: int) -> list[dict[str, Any]]:

    def why(intent: Intent, message: str | None) -> str:
        if not intent.attempts:
            return f"{intent.operation} may have been carried out before the state was restored"
        times = "once" if intent.attempts == 1 else f"{intent.attempts} times"
        sent = f"{intent.operation} was sent {times} without a clear answer"
        return f"{sent}: {message}" if message else sent

    return _operations(tx, ("in_doubt",), "in-doubt", why, limit)


def _operations(
    tx: Transaction, statuses: Sequence[Status], state: str, why: Callable[[Intent, str | None], str], limit: int
) -> list[dict[str, Any]]:
    intents = tx.intents.listed(statuses, limit=limit)
    messages = tx.intents.latest_messages(intents)
    return [
        {
            "state": state,
            "stream": intent.identity.stream,
            "key": intent.identity.key,
            "why": why(intent, messages.get(intent.id)),
            "source": intent.identity.source,
            "line": intent.identity.line,
            "since": intent.first_sent_at,
            "raw": intent.raw,
        }
        for intent in intents
    ]


_LISTS: dict[str, Callable[[Transaction, int], list[dict[str, Any]]]] = {
    "rejected": _rejected,
    "waiting": _waiting,
    "in-doubt": _in_doubt,
    "pending": _pending,
    "dropped": partial(_rejected, state="dropped"),
}


def _public(item: dict[str, Any]) -> dict[str, Any]:
    shown = {"state": item["state"], "stream": item["stream"], "key": item["key"], "why": item["why"]}
    shown |= {"at": f"{item['source']}:{item['line']}", "since": str(item["since"])}
    return shown | {name: item[name] for name in ("stage", "pointer", "attempts") if item.get(name) is not None}
