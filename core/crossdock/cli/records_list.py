"""``crossdock records list``: undelivered records and the reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli import terminal_output
from crossdock.cli.config_loading import load
from crossdock.cli.plain_text import say, say_more
from crossdock.cli.shared_options import MOST, common_options, example, fleet_base, fleet_option, meanings, utf8
from crossdock.cli.tenant_states import FleetStates
from crossdock.errors import ConfigError
from crossdock.values.display_texts import counted, parents_text, place_of
from crossdock.values.display_times import instant_text
from crossdock.values.state_words import RecordState

if TYPE_CHECKING:
    from crossdock.config.project.project import Project
    from crossdock.runs.waiting_groups import WaitingGroup
    from crossdock.state import BatchFacts, DeadLetterFilter, Intent, Scope, Transaction

INBOX, UNVERIFIED = RecordState.INBOX.option, RecordState.UNVERIFIED.option
HANDED_OVER, OVERDUE = RecordState.HANDED_OVER.option, RecordState.OVERDUE.option
OPEN = (RecordState.REJECTED.option, RecordState.WAITING.option, RecordState.IN_DOUBT.option, OVERDUE)
_LISTED_BY_DEFAULT = (*OPEN, RecordState.PENDING.option, UNVERIFIED)
_STATES = (*_LISTED_BY_DEFAULT, HANDED_OVER, RecordState.DROPPED.option, INBOX)
_COLUMNS = ("state", "stream", "key", "why", "pointer", "at", "since")

Item = dict[str, Any]

stream_option = click.option("--stream", metavar="STREAM", help="Only records of this stream.", callback=utf8)


@click.command(
    "list",
    epilog=example(
        "crossdock records list --state rejected",
        "crossdock records list --stream wms.products --reason bad_value",
        "crossdock -C base.yaml records list --fleet 'tenants/*.yaml'",
    )
    + meanings("States", RecordState, options=True),
)
@click.option(
    "--state",
    type=click.Choice(_STATES),
    metavar="STATE",
    help="Only these; default: all but handed-over, dropped and inbox.",
)
@stream_option
@click.option("--reason", metavar="CODE", help="Only those rejected for this reason, such as bad_value.")
@click.option("--key", metavar="KEY", help="Only this record key.", callback=utf8)
@click.option("--all", "every", is_flag=True, help="List each waiting record, not one line for all that wait for one.")
@click.option(
    "--limit",
    type=click.IntRange(1, MOST),
    default=100,
    show_default=True,
    help="Maximum number of lines for each state.",
)
@fleet_option
@common_options
def list_(
    state: str | None,
    stream: str | None,
    reason: str | None,
    key: str | None,
    fleet: str | None,
    config: Path,
    *,
    every: bool,
    limit: int,
    as_json: bool,
) -> int:
    """List records that are open: not delivered, or not known to be.

    Records that wait for the same record are one line, and counted. A pending record is sent by the next sync, and an
    unverified one, of a restored state or an import, is compared with its target first. The
    inbox has the records that are to be fetched because of webhooks, and webhooks that cannot be read.
    """
    choice, kinds = selection(stream, key, reason, None), _LISTED_BY_DEFAULT if state is None else (state,)
    read = partial(_listed, choice=choice, kinds=kinds, limit=limit, every=every, as_json=as_json)
    states = None if fleet is None else FleetStates(fleet, fleet_base(config))
    listed = [("", read(load(config)))] if states is None else list(states.each(read))
    items = [({"tenant": name} if name else {}) | item for name, each in listed for item in each.items]
    totals = {kind: sum(each.totals[kind] for _, each in listed) for kind in _STATES}
    if as_json:
        terminal_output.print_json(items)
    else:
        columns = (*(() if fleet is None else ("tenant",)), *_COLUMNS)
        _print(items, kinds, totals, columns, is_narrowed=choice != selection(None, None, None, None))
    reasons = sum((each.reasons for _, each in listed), Counter[tuple[str, str]]())
    _say_more(items, kinds, totals, reasons, err=as_json)
    return 0 if states is None else states.exit_code


def _say_more(
    items: list[Item],
    kinds: Iterable[str],
    totals: Mapping[str, int],
    reasons: Counter[tuple[str, str]],
    *,
    err: bool,
) -> None:
    shown: Counter[str] = Counter()
    for item in items:
        shown[item["state"]] += item.get("records", 1)
    for kind in kinds:
        say_more(shown[kind], totals[kind], f"{kind.replace('-', ' ')} records", err=err)
        if kind == "rejected" and shown[kind] < totals[kind]:
            for (stream, code), number in reasons.most_common():
                say(f"  {number:,} {code}: crossdock records list --stream {stream} --reason {code}", err=err)


@dataclass(frozen=True, slots=True)
class _Listed:
    items: list[Item]
    totals: Mapping[str, int]
    reasons: Counter[tuple[str, str]]


def _listed(
    loaded: Project, choice: DeadLetterFilter, kinds: Sequence[str], limit: int, *, every: bool, as_json: bool
) -> _Listed:
    with loaded.read_state() as tx:
        scopes = _scopes(loaded, choice)
        totals = {kind: _count(tx, kind, choice, scopes) for kind in _STATES}
        if choice.stream is not None and not any(totals.values()):
            loaded.selected([choice.stream])  # an unknown one is an error, unless records of it are left
        reasons = Counter({(stream, code): number for stream, code, number in tx.dead_letters.reasons(choice)})
        not_known = unverified(loaded, tx, choice, limit) if UNVERIFIED in kinds else []
        if as_json:
            every_item = [*matching_items(tx, choice, kinds, limit), *not_known]
            return _Listed([public(item) for item in every_item], totals, reasons)
        items = [*matching_items(tx, choice, [kind for kind in kinds if every or kind != "waiting"], limit), *not_known]
        groups = [] if every or "waiting" not in kinds or choice.code else waiting_items(loaded, tx, choice, limit)
    return _Listed(sorted([*map(public, items), *groups], key=lambda item: kinds.index(item["state"])), totals, reasons)


def _print(
    shown: list[Item], kinds: Iterable[str], totals: Mapping[str, int], columns: tuple[str, ...], *, is_narrowed: bool
) -> None:
    console, which = terminal_output.out(), "such record" if is_narrowed else "record"
    elsewhere = {kind: totals[kind] for kind in (HANDED_OVER, "dropped", INBOX) if kind not in kinds and totals[kind]}
    if shown:
        rows = [tuple(item.get(name, "") for name in columns) for item in shown]
        console.print(terminal_output.table("Records", columns, rows))
        numbers = ", ".join(f"{totals[kind]:,} {kind.replace('-', ' ')}" for kind in kinds if totals[kind])
        terminal_output.print_lines(console, f"\n{numbers}")
    else:
        *first, last = (kind.replace("-", " ") for kind in kinds)
        states = f"{', '.join(first)} or {last}" if first else last
        terminal_output.print_lines(console, f"no {which} is {states}")
    for kind, number in elsewhere.items():
        place = {INBOX: "in the inbox", HANDED_OVER: "handed over"}.get(kind, kind)
        terminal_output.print_lines(
            console, f"{counted(number, 'record')} {place}: crossdock records list --state {kind}"
        )


def selection(
    stream: str | None, key: str | None, reason: str | None, since: datetime | None, file: str | None = None
) -> DeadLetterFilter:
    """Return the choice of the options. *key* is as in the source or as listed."""
    from datetime import UTC

    from crossdock.records import REASONS
    from crossdock.state import DeadLetterFilter
    from crossdock.values.record_keys import key_text

    if reason is not None and reason not in REASONS:
        raise ConfigError(f"unknown reason {reason!r}; known: {', '.join(sorted(REASONS))}")
    if key is not None and not {"%", "|"} & set(key):
        key = key_text([key])  # as in the source; otherwise it was copied from a list
    return DeadLetterFilter(stream, key, reason, since.replace(tzinfo=UTC) if since else None, file)


def matching_items(tx: Transaction, choice: DeadLetterFilter, kinds: Iterable[str], limit: int) -> list[Item]:
    """Return at most *limit* records of *choice* in each of the states *kinds*, with their data; no unverified ones."""
    listed = [kind for kind in kinds if kind in _with_reason(choice) and kind in _LISTS]
    return [item for kind in listed for item in _LISTS[kind](tx, choice, limit)]


def public(item: Item) -> Item:
    shown = {"state": item["state"], "stream": item["stream"], "key": item["key"], "why": item["why"]}
    shown |= {"at": place_of(item), "since": item["since"]}
    return shown | {name: item[name] for name in ("stage", "pointer", "attempts") if item.get(name) is not None}


def _with_reason(choice: DeadLetterFilter) -> tuple[str, ...]:
    return _STATES if choice.code is None else ("rejected", "dropped")


def _scopes(loaded: Project, choice: DeadLetterFilter) -> dict[Scope, str]:
    if choice.code is not None or choice.since is not None:
        return {}
    return {scope: name for name, scope in loaded.scopes.items() if choice.stream in {None, name}}


def _count(tx: Transaction, kind: str, choice: DeadLetterFilter, scopes: Mapping[Scope, str]) -> int:
    if kind not in _with_reason(choice):
        return 0
    if kind == UNVERIFIED:
        return tx.unverified.count(scopes, choice.key)
    if kind in {"rejected", "dropped"}:
        return tx.dead_letters.count(choice, status=kind)
    if kind == "waiting":
        return tx.waiting_records.count(choice)
    if kind == INBOX:
        return tx.inbox.count(choice)
    return tx.intents.count(_INTENTS[kind], choice)


def _rejected(tx: Transaction, choice: DeadLetterFilter, limit: int, state: str = "rejected") -> list[Item]:
    return [
        item | {"state": state, "why": f"{item['code']}: {item['message']}", "since": item["refused_at"]}
        for item in tx.dead_letters.listed(limit=limit, status=state, choice=choice)
    ]


def _waiting(tx: Transaction, choice: DeadLetterFilter, limit: int) -> list[Item]:
    return [
        item | {"state": "waiting", "why": f"waits for {parents_text(item['waits_for'])}"}
        for item in tx.waiting_records.listed(limit=limit, choice=choice)
    ]


def _unsettled(tx: Transaction, choice: DeadLetterFilter, limit: int, state: str) -> list[Item]:
    intents = tx.intents.listed(_INTENTS[state], limit=limit, choice=choice)
    messages = tx.intents.latest_messages(intents)
    loaded = _loaded_streams(tx) if state == "pending" else set()
    return [
        _intent_item(
            intent,
            state,
            _pending_why(intent, "load" if intent.identity.stream in loaded else "sync")
            if state == "pending"
            else _doubt_why(intent, messages.get(intent.id)),
        )
        for intent in intents
    ]


def _awaited(tx: Transaction, choice: DeadLetterFilter, limit: int, state: str) -> list[Item]:
    intents = tx.intents.listed(_INTENTS[state], limit=limit, choice=choice)
    files = tx.batches.facts({intent.batch_id for intent in intents if intent.batch_id is not None})
    return [_intent_item(intent, state, _awaited_why(intent, files.get(intent.batch_id or 0))) for intent in intents]


def _intent_item(intent: Intent, state: str, why: str) -> Item:
    identity = intent.identity
    return {
        "state": state,
        "stream": identity.stream,
        "key": identity.key,
        "why": why,
        "source": identity.source,
        "line": identity.line,
        "since": intent.first_sent_at,
        "raw": intent.raw,
        "intent": intent,
    }


def _awaited_why(intent: Intent, file: BatchFacts | None) -> str:
    if file is None:
        return f"{intent.operation} was handed over"
    due = f", not acknowledged by {instant_text(file.due_at)}" if file.due_at and intent.status == "overdue" else ""
    return f"{intent.operation} was handed over in {file.name}{due}"


def _loaded_streams(tx: Transaction) -> set[str]:
    """Return the streams for which the open migration has sent something. Its next load continues with them."""
    current = tx.migrations.current()
    if current is None:
        return set()
    waves = {run.wave for run in tx.migrations.runs(current.id) if run.wave is not None}
    return set().union(*(tx.migrations.sent_streams(current.id, wave) for wave in waves))


def _pending_why(intent: Intent, run: str) -> str:
    again = " again, or looks it up" if intent.status == "sending" else ""
    return f"the next {run} sends the {intent.operation}{again}"


def _doubt_why(intent: Intent, message: str | None) -> str:
    if not intent.attempts:
        return f"{intent.operation} may have been carried out before the state was restored"
    times = "once" if intent.attempts == 1 else f"{intent.attempts} times"
    sent = f"{intent.operation} was sent {times} without a clear answer"
    return f"{sent}: {message}" if message else sent


def unverified(loaded: Project, tx: Transaction, choice: DeadLetterFilter, limit: int) -> list[Item]:
    scopes = _scopes(loaded, choice)
    return [
        {
            "state": UNVERIFIED,
            "stream": scopes[each.scope],
            "key": each.key,
            "why": f"the next sync compares it with {each.target_id} at {each.scope.target}",
            "source": each.scope.target,
            "since": None,
        }
        for each in tx.unverified.listed(scopes, choice.key, limit=limit)
    ]


def _inbox(tx: Transaction, choice: DeadLetterFilter, limit: int) -> list[Item]:
    unreadable = tx.inbox.unreadable(limit=limit) if choice == selection(None, None, None, None) else []
    return [
        {
            "state": INBOX,
            "stream": hint.stream,
            "key": hint.key,
            "why": "is to be fetched" if hint.error is None else f"tried again after: {hint.error}",
            "source": "webhook",
            "since": hint.first_at,
            "attempts": hint.attempts or None,
            "raw": None,
        }
        for hint in tx.inbox.listed(limit=limit, choice=choice)
    ] + [
        {
            "state": INBOX,
            "stream": f"{webhook.connection}.",
            "key": "",
            "why": f"a webhook{f' {webhook.topic}' if webhook.topic else ''} cannot be read: {webhook.problem}",
            "source": "webhook",
            "since": webhook.received_at,
            "raw": None,
        }
        for webhook in unreadable
    ]


_INTENTS: Mapping[str, Any] = {
    "in-doubt": ("in_doubt",),
    "pending": ("pending", "sending"),
    HANDED_OVER: ("handed_over",),
    OVERDUE: ("overdue",),
}
_LISTS: Mapping[str, Callable[[Any, Any, int], list[Item]]] = {
    "rejected": _rejected,
    "waiting": _waiting,
    "in-doubt": partial(_unsettled, state="in-doubt"),
    "pending": partial(_unsettled, state="pending"),
    HANDED_OVER: partial(_awaited, state=HANDED_OVER),
    OVERDUE: partial(_awaited, state=OVERDUE),
    "dropped": partial(_rejected, state="dropped"),
    INBOX: _inbox,
}


_SHOWN_ROOTS = 3  # of a group that waits for many records


def waiting_items(loaded: Project, tx: Transaction, choice: DeadLetterFilter, limit: int) -> list[dict[str, Any]]:
    """Return items of ``crossdock records list``. ``records`` is the number of records of a line."""
    from crossdock.runs.waiting_groups import waiting_groups

    return [_item(each) for each in waiting_groups(tx, loaded.scopes, choice)[:limit]]


def _item(group: WaitingGroup) -> dict[str, Any]:
    key = group.first_key if group.number == 1 else f"{group.first_key} and {group.number - 1:,} more"
    roots = [
        f"{resource} {namespace}:{key}" + (f", which is rejected ({code})" if code else "")
        for resource, namespace, key in group.roots[:_SHOWN_ROOTS]
        for code in [group.rejected.get((resource, namespace, key))]
    ]
    more = len(group.roots) - len(roots)
    why = "; ".join(roots) + (f" and {more:,} more" if more else "")
    facts = {"state": "waiting", "stream": group.stream, "key": key, "why": f"waits for {why}"}
    return facts | {"since": group.since, "records": group.number}
