"""``crossdock records``: lists records that are open, with the reasons, and replays, drops and resolves them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from crossdock.cli import terminal_output
from crossdock.cli.project_and_state import FleetStates, load_project
from crossdock.cli.shared_options_messages_and_signals import (
    MOST,
    CommandGroup,
    UtcTime,
    ask_or_raise_not_confirmed,
    common_options,
    explicitly_given_fleet_base_files,
    fleet_option,
    help_example,
    help_meanings,
    print_counts_if_not_all_shown,
    print_sentences,
    raise_if_value_not_utf8,
    stop_event_set_by_signals,
    yes_option,
)
from crossdock.errors import ConfigError
from crossdock.values.clock import SystemClock
from crossdock.values.run_states_and_tally import BY_URGENCY, RecordState
from crossdock.values.texts_of_numbers_and_times import count_with_noun, instant_text

if TYPE_CHECKING:
    from crossdock.config.project.project import Project
    from crossdock.runs.audit_log import AuditedChange
    from crossdock.runs.open_records import Item
    from crossdock.state import DeadLetter, Intent, RecordFilter, Transaction, WaitingRecord

    Chosen = tuple[list[DeadLetter], list[WaitingRecord], list[Intent]]
    from crossdock.runs.doubtful_operation_look_ups import CandidateRecord

INBOX, UNVERIFIED = RecordState.INBOX.option_value, RecordState.UNVERIFIED.option_value
HANDED_OVER, OVERDUE = RecordState.HANDED_OVER.option_value, RecordState.OVERDUE.option_value
OPEN = (RecordState.REJECTED.option_value, RecordState.WAITING.option_value, RecordState.IN_DOUBT.option_value, OVERDUE)
_LISTED_BY_DEFAULT = (*OPEN, RecordState.PENDING.option_value, UNVERIFIED)
_STATES = tuple(state.option_value for state in BY_URGENCY)
_COLUMNS = ("state", "stream", "key", "why", "pointer", "at", "since")

stream_option = click.option(
    "--stream",
    metavar="STREAM",
    help="Only records of this stream, or of this connection.",
    callback=raise_if_value_not_utf8,
)


@click.command(
    "list",
    epilog=help_example(
        "crossdock records list --state rejected",
        "crossdock records list --stream wms.products --reason bad_value",
        "crossdock -C base.yaml records list --fleet 'tenants/*.yaml'",
    )
    + help_meanings("States", RecordState, options=True),
)
@click.option(
    "--state",
    type=click.Choice(_STATES),
    metavar="STATE",
    help="Only these; default: all but handed-over, dropped and inbox.",
)
@stream_option
@click.option("--reason", metavar="CODE", help="Only those rejected for this reason, such as bad_value.")
@click.option("--key", metavar="KEY", help="Only this record key.", callback=raise_if_value_not_utf8)
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
def list_open_records(
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
    from crossdock.runs.open_records import record_filter_from_options

    choice, kinds = (
        record_filter_from_options(stream, key, reason, None),
        _LISTED_BY_DEFAULT if state is None else (state,),
    )
    read = partial(_open_records_of_tenant, choice=choice, kinds=kinds, limit=limit, every=every, as_json=as_json)
    states = None if fleet is None else FleetStates(fleet, explicitly_given_fleet_base_files(config))
    listed = [("", read(load_project(config)))] if states is None else list(states.read_each_tenant(read))
    items = [({"tenant": name} if name else {}) | item for name, each in listed for item in each.items]
    totals = {kind: sum(each.totals[kind] for _, each in listed) for kind in _STATES}
    if as_json:
        terminal_output.print_json(items)
    else:
        columns = (*(() if fleet is None else ("tenant",)), *_COLUMNS)
        _print_table_and_counts(items, kinds, totals, columns, is_narrowed=(stream, reason, key) != (None, None, None))
    reasons = sum((each.reasons for _, each in listed), Counter[tuple[str, str]]())
    _say_hidden_records(items, kinds, totals, reasons, err=as_json)
    return 0 if states is None else states.exit_code


def _say_hidden_records(
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
        print_counts_if_not_all_shown(shown[kind], totals[kind], f"{kind.replace('-', ' ')} records", err=err)
        if kind == "rejected" and shown[kind] < totals[kind]:
            for (stream, code), number in reasons.most_common():
                print_sentences(
                    f"  {number:,} {code}: crossdock records list --stream {stream} --reason {code}", err=err
                )


class _Listed(Struct, frozen=True):
    items: list[Item]
    totals: Mapping[str, int]
    reasons: Counter[tuple[str, str]]


def _open_records_of_tenant(
    loaded: Project, choice: RecordFilter, kinds: Sequence[str], limit: int, *, every: bool, as_json: bool
) -> _Listed:
    from crossdock.runs import open_records
    from crossdock.runs.open_records import open_record_item_without_data, open_record_items_in_states

    with loaded.read_state() as tx:
        scopes = open_records.stream_by_unverified_scope(loaded, choice)
        totals = open_records.counts_by_state(tx, choice, scopes)
        if choice.stream is not None and not any(totals.values()):
            loaded.selected_streams([choice.stream])  # an unknown one is an error, unless records of it are left
        reasons = Counter({(stream, code): number for stream, code, number in tx.dead_letters.reason_counts(choice)})
        not_known = open_records.list_unverified_records(loaded, tx, choice, limit) if UNVERIFIED in kinds else []
        if as_json:
            every_item = [*open_record_items_in_states(tx, choice, kinds, limit), *not_known]
            return _Listed([open_record_item_without_data(item) for item in every_item], totals, reasons)
        items = [
            *open_record_items_in_states(tx, choice, [kind for kind in kinds if every or kind != "waiting"], limit),
            *not_known,
        ]
        is_grouped = not every and "waiting" in kinds and not choice.code
        groups = open_records.waiting_groups_as_items(loaded, tx, choice, limit) if is_grouped else []
    return _Listed(
        sorted([*map(open_record_item_without_data, items), *groups], key=lambda item: kinds.index(item["state"])),
        totals,
        reasons,
    )


def _print_table_and_counts(
    shown: list[Item], kinds: Iterable[str], totals: Mapping[str, int], columns: tuple[str, ...], *, is_narrowed: bool
) -> None:
    console, which = terminal_output.output_console(), "such record" if is_narrowed else "record"
    elsewhere = {kind: totals[kind] for kind in (HANDED_OVER, "dropped", INBOX) if kind not in kinds and totals[kind]}
    if shown:
        rows = [tuple(item.get(name, "") for name in columns) for item in shown]
        console.print(terminal_output.make_fitting_table("Records", columns, rows))
        numbers = ", ".join(f"{totals[kind]:,} {kind.replace('-', ' ')}" for kind in kinds if totals[kind])
        terminal_output.print_lines(console, f"\n{numbers}")
    else:
        *first, last = (kind.replace("-", " ") for kind in kinds)
        states = f"{', '.join(first)} or {last}" if first else last
        terminal_output.print_lines(console, f"no {which} is {states}")
    for kind, number in elsewhere.items():
        place = {INBOX: "in the inbox", HANDED_OVER: "handed over"}.get(kind, kind)
        terminal_output.print_lines(
            console, f"{count_with_noun(number, 'record')} {place}: crossdock records list --state {kind}"
        )


@click.command(
    "resolve",
    epilog=help_example(
        "crossdock records resolve wms.invoices 70013",
        "crossdock records resolve wms.invoices 70013 --delivered-as inv_4711",
        "crossdock records resolve wms.invoices --not-delivered",
    ),
)
@click.argument("stream", callback=raise_if_value_not_utf8, required=False)
@click.argument("key", callback=raise_if_value_not_utf8, required=False)
@click.option(
    "--delivered-as",
    metavar="ID",
    help="Delivered; ID is the record's id on the platform.",
    callback=raise_if_value_not_utf8,
)
@click.option("--delivered", is_flag=True, help="Delivered; for updates, whose id is known.")
@click.option("--not-delivered", is_flag=True, help="Not delivered: the next sync sends it.")
@click.option("--no-lookup", is_flag=True, help="Do not look ID up on the platform; only its form is checked.")
@yes_option
@common_options
def resolve_doubtful_records(
    stream: str | None,
    key: str | None,
    delivered_as: str | None,
    config: Path,
    *,
    delivered: bool,
    not_delivered: bool,
    no_lookup: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Settle records in doubt or overdue, after checking the platform.

    Applies to all records in doubt or overdue of STREAM, which may be a connection, or to the one with KEY. With KEY
    and no decision, list what the platform has that may be this record. 'crossdock records reopen' reverses a decision.
    """
    from crossdock.runs.audit_log import audited_change_in_one_transaction
    from crossdock.runs.open_records import record_filter_from_options
    from crossdock.writing.delivery import operator_decisions

    if stream is None:
        raise ConfigError(
            "name a stream, and a key unless you mean all its records in doubt", code="options_incomplete"
        )
    decisions = [delivered_as is not None, delivered, not_delivered].count(True)
    if decisions > 1 or (decisions == 0 and key is None):
        raise ConfigError(
            "give exactly one of --delivered-as ID, --delivered and --not-delivered", code="options_conflict"
        )
    loaded = load_project(config)
    if key is not None:
        stream = loaded.stream_of_record(stream)
    choice = record_filter_from_options(stream, key, None, None)
    if decisions == 0:
        _show_candidates(loaded, _doubtful_intents_or_raise(loaded, choice)[0], as_json=as_json)
        return
    subject = f"stream {stream}" if choice.key is None else f"record {stream} {choice.key}"
    with audited_change_in_one_transaction(loaded, "records resolve", subject, clock=SystemClock()) as change:
        intents = _doubtful_intents_or_raise(loaded, choice)
        if not not_delivered:
            operator_decisions.raise_if_target_id_impossible(intents, delivered_as)
        if delivered_as is not None:
            text = _look_up_and_describe_id(loaded, intents, delivered_as, no_lookup=no_lookup)
            ask_or_raise_not_confirmed(f"record that {text}", yes=yes)
        elif key is None:
            what = "delivered" if delivered else "not delivered, so that the next sync sends them"
            ask_or_raise_not_confirmed(
                f"record {count_with_noun(len(intents), 'operation')} of {stream} as {what}", yes=yes
            )
        _store_decision_about_doubtful(loaded, choice, intents, delivered_as, change, not_delivered=not_delivered)
    number = len(intents)
    terminal_output.print_result({"resolved": number}, f"resolved {count_with_noun(number, 'record')}", as_json=as_json)


@click.command("reopen", epilog=help_example("crossdock records reopen wms.invoices 70013"))
@click.argument("stream", callback=raise_if_value_not_utf8)
@click.argument("key", callback=raise_if_value_not_utf8)
@common_options
def reopen_resolved_record(stream: str, key: str, config: Path, *, as_json: bool) -> None:
    """Reverse 'records resolve': the record is in doubt again.

    Possible until a later operation depends on the decision, or its data is purged.
    """
    from crossdock.delta.fingerprint import key_hashes
    from crossdock.runs.audit_log import change_state_exclusively_with_audit
    from crossdock.values.record_keys import key_text_of_input
    from crossdock.writing.delivery import operator_decisions

    loaded, at, known = load_project(config), SystemClock().now(), key_text_of_input(key)
    (stream,) = loaded.selected_streams([loaded.stream_of_record(stream)])
    scope, key_hash = loaded.scope_by_stream[stream], key_hashes([known])[known]

    def reopen(tx: Transaction, change: AuditedChange) -> Intent:
        before = [each.status for each in tx.intents.intents_of_record(scope, key_hash)[-1:]]
        intent = operator_decisions.return_last_operation_to_doubt(tx, scope, key_hash, at=at)
        change.store_audit_entry(tx, before={"state": before[0]}, after={"state": intent.status})
        return intent

    intent = change_state_exclusively_with_audit(
        loaded, "records reopen", f"record {stream} {known}", reopen, clock=SystemClock()
    )
    text = f"reopened: the {intent.operation} of {stream} {known} is in doubt again"
    terminal_output.print_result({"reopened": 1}, text, as_json=as_json)


def _doubtful_intents_or_raise(loaded: Project, choice: RecordFilter) -> list[Intent]:
    from crossdock.writing.delivery import operator_decisions

    with loaded.open_state_exclusively() as state, state.begin_read_only() as tx:  # while no run changes them
        intents = operator_decisions.intents_for_person_to_decide(tx, choice)
    if not intents:
        hint = "'crossdock records list' lists them, and --state handed-over what is not due yet"
        raise ConfigError("no such record is in doubt or overdue", hint=hint, code="record_unknown")
    return _with_ids_at_unreadable_targets(loaded, intents)


def _with_ids_at_unreadable_targets(loaded: Project, intents: list[Intent]) -> list[Intent]:
    """Give creates at a target that cannot be asked, as one that takes files, their id there: the external id."""
    if nameless := [each for each in intents if each.operation == "create" and each.target_id is None]:
        targets = loaded.targets(SystemClock())
        for each in nameless:
            target = targets.get(each.scope.target)
            if target is not None and not target.resources[each.resource].endpoint.reads:
                each.target_id = target.name_of(each.resource, each.scope.namespace, each.identity.key)
    return intents


def _store_decision_about_doubtful(
    loaded: Project,
    choice: RecordFilter,
    shown: list[Intent],
    delivered_as: str | None,
    change: AuditedChange,
    *,
    not_delivered: bool,
) -> None:
    from crossdock.writing.delivery import operator_decisions

    at = SystemClock().now()

    def resolve(tx: Transaction) -> None:
        intents = operator_decisions.intents_for_person_to_decide(tx, choice)
        if [each.id for each in intents] != [each.id for each in shown]:
            raise ConfigError(
                "other records are in doubt by now; nothing was changed", hint="try again", code="selection_changed"
            )
        before = Counter(each.status for each in intents)
        for intent, named in zip(intents, shown, strict=True):
            intent.target_id = intent.target_id or named.target_id
        if not_delivered:
            operator_decisions.settle_intents_as_not_delivered(tx, intents, at=at)
        else:
            operator_decisions.settle_intents_as_delivered(tx, intents, delivered_as, at=at)
        decision = {"not delivered" if not_delivered else "delivered": len(intents)}
        change.store_audit_entry(tx, before=before, after=decision | ({"id": delivered_as} if delivered_as else {}))

    with loaded.open_state_exclusively() as state:
        state.run_transaction(resolve)


def _look_up_and_describe_id(loaded: Project, intents: list[Intent], target_id: str, *, no_lookup: bool) -> str:
    """Look up the id, and describe what would be recorded."""
    from crossdock.runs.doubtful_operation_look_ups import open_look_ups_at_target

    intent = intents[0]
    identity = intent.identity
    found = ""
    if not no_lookup:
        with open_look_ups_at_target(loaded, SystemClock(), intent.scope.target) as target:
            found = f" ({_candidate_text(target.look_up_candidate_or_refuse(intent, target_id))})"
    return f"the {intent.operation} of {identity.stream} {identity.key} was delivered as {target_id}{found}"


def _show_candidates(loaded: Project, intent: Intent, *, as_json: bool) -> None:
    from crossdock.runs.doubtful_operation_look_ups import open_look_ups_at_target

    if intent.batch_id is not None or (intent.operation == "create" and intent.target_id is not None):
        with loaded.read_state() as tx:
            files = tx.batches.facts_by_id([intent.batch_id or 0]).values()
        where = "".join(f" in {file.name}" for file in files)
        message = f"the {intent.operation} of {intent.target_id} was handed over{where}, or may have been"
        raise ConfigError(
            message,
            hint="ask the partner whether it has it, then give --delivered or --not-delivered",
            code="decision_impossible",
        )
    if intent.operation != "create":
        raise ConfigError(
            f"the {intent.operation} of {intent.target_id} is in doubt: compare the record at the target",
            hint="then give --delivered or --not-delivered",
            code="decision_impossible",
        )
    with open_look_ups_at_target(loaded, SystemClock(), intent.scope.target) as target:
        candidates, complete = target.find_possibly_created_records(intent)
    if as_json:
        terminal_output.print_json(
            {"candidates": [_candidate_document(each) for each in candidates], "complete": complete}
        )
        return
    stream, key = intent.identity.stream, intent.identity.key
    sent = f"first sent {instant_text(intent.first_sent_at)}" if intent.first_sent_at else "not known to be sent"
    print_sentences(f"create of {stream} {key}, {sent}, {count_with_noun(intent.attempts, 'attempt')}")
    for each in candidates:
        print_sentences(f"  {each.target_id}  {_candidate_text(each)}")
    if not candidates:
        print_sentences(
            f"  {intent.scope.target} has no such record"
            + ("" if complete else " among the first ones that were looked through")
        )
    elif not complete:
        print_sentences("  there may be others: only the first records since then were looked through")
    print_sentences(
        f"it arrived:    crossdock records resolve {stream} {key} --delivered-as ID",
        f"it did not:    crossdock records resolve {stream} {key} --not-delivered",
    )


def _candidate_text(candidate: CandidateRecord) -> str:
    parts = [
        "same content" if candidate.is_same else "different content",
        f"{candidate.currency or ''} {candidate.total}".strip() if candidate.total is not None else "",
        f"created {candidate.created_at}" if candidate.created_at else "",
        f"belongs to {candidate.bound_to}" if candidate.bound_to else "",
    ]
    return ", ".join(part for part in parts if part)


def _candidate_document(candidate: CandidateRecord) -> dict[str, Any]:
    return {
        "id": candidate.target_id,
        "created_at": candidate.created_at,
        "currency": candidate.currency,
        "total": None if candidate.total is None else str(candidate.total),
        "same_content": candidate.is_same,
        "belongs_to": candidate.bound_to,
    }


@click.command("show", epilog=help_example("crossdock records show wms.invoices 536365 --raw"))
@click.argument("stream", callback=raise_if_value_not_utf8)
@click.argument("key", callback=raise_if_value_not_utf8)
@click.option("--raw", is_flag=True, help="Include the record's data, which may be personal.")
@common_options
def show_undelivered_record(stream: str, key: str, config: Path, *, raw: bool, as_json: bool) -> None:
    """Show why a record was not delivered; its data only with --raw.

    For a record that changed after it was delivered, show each member that differs, personal ones only with --raw.
    """
    from crossdock.runs.open_records import (
        list_unverified_records,
        open_record_item_without_data,
        open_record_items_in_states,
    )
    from crossdock.state import RecordFilter
    from crossdock.values.record_keys import key_text

    loaded = load_project(config)
    keys = {key, key_text([key])}  # as listed, or as in the source
    with loaded.read_state() as tx:
        choices = [RecordFilter(stream, each) for each in sorted(keys)]
        items = [item for each in choices for item in open_record_items_in_states(tx, each, _SHOWN, 10)]
        items += [item for each in choices for item in list_unverified_records(loaded, tx, each, 10)]
        shown = [
            open_record_item_without_data(item) | _data_and_difference(loaded, tx, item, raw=raw) for item in items
        ]
    if not shown:
        raise ConfigError(
            f"no record {key!r} of stream {stream!r} is rejected, waiting, in doubt, pending, unverified, dropped or in"
            " the inbox",
            hint=f"'crossdock trace {key} --stream {stream}' shows the history of one that was delivered",
            code="record_unknown",
        )
    if as_json:
        terminal_output.print_json(shown)
        return
    for item in shown:
        for line in _lines(item):
            terminal_output.output_console().print(line, soft_wrap=True)


_SHOWN = (*OPEN, "pending", "dropped", INBOX)


def _data_and_difference(loaded: Project, tx: Transaction, item: Item, *, raw: bool) -> Item:
    from crossdock.runs.open_records import difference_from_delivered

    details: Item = {"raw": item.get("raw"), "mapped": item.get("mapped")} if raw else {}
    if "first_run_id" in item:
        details = {"run": item["run_id"], "first_run": item["first_run_id"]} | details
    if item.get("code") == "changed_after_delivery":
        details["difference"] = difference_from_delivered(loaded, tx, item, raw=raw)
    return details


def _lines(item: Item) -> Iterator[str]:
    from crossdock.runs.record_history import value_text
    from crossdock.values import exact_json

    for name, value in item.items():
        if name == "since" and value is not None:
            yield f"{name:12} {instant_text(value)}"
        elif name == "difference":
            yield "difference   delivered -> now"
            for each in value:
                yield f"  {each['pointer']}: {value_text(each['before'])} -> {value_text(each['after'])}"
        elif name != "since":
            text = value if isinstance(value, str) else exact_json.dumps(value).decode()
            yield f"{name:12} {text}"


@click.group(
    cls=CommandGroup, epilog=help_example("crossdock records list", "crossdock records replay --reason bad_value")
)
def records() -> None:
    """List and fix records that were not delivered."""


for command in (list_open_records, show_undelivered_record, resolve_doubtful_records, reopen_resolved_record):
    records.add_command(command)

_key = click.argument("key", callback=raise_if_value_not_utf8, required=False)
_reason = click.option("--reason", metavar="CODE", help="Only those rejected for this reason, such as bad_value.")
_file = click.option(
    "--file", metavar="NAME", help="Only those that were read from this file.", callback=raise_if_value_not_utf8
)


@records.command(
    "replay",
    epilog=help_example("crossdock records replay wms.invoices 70013", "crossdock records replay --reason bad_value"),
)
@click.argument("stream", callback=raise_if_value_not_utf8, required=False)
@_key
@_reason
@_file
@click.option("--since", type=UtcTime(), help="Only those rejected since this time (UTC).")
@common_options
def replay_rejected_records(
    stream: str | None,
    key: str | None,
    reason: str | None,
    file: str | None,
    since: datetime | None,
    config: Path,
    *,
    as_json: bool,
) -> int:
    """Map rejected records again and deliver them.

    Without KEY, all of STREAM, or of a connection; by default all. The current mapping is used; no source is read. Exit
    codes are those of 'crossdock sync'.
    """
    from crossdock.cli.sync import print_report_and_return_exit_code
    from crossdock.runs import sync_and_replay
    from crossdock.runs.open_records import record_filter_from_options

    loaded, choice = load_project(config), record_filter_from_options(stream, key, reason, since, file)
    with stop_event_set_by_signals() as interrupt, terminal_output.show_progress(wanted=not as_json) as progress:
        report = sync_and_replay.replay(loaded, choice, clock=SystemClock(), progress=progress, interrupt=interrupt)
    return print_report_and_return_exit_code(report, as_json=as_json)


@records.command(
    "drop", epilog=help_example("crossdock records drop wms.invoices 70030", "crossdock records list --state dropped")
)
@click.argument("stream", callback=raise_if_value_not_utf8)
@_key
@_reason
@_file
@click.option("--state", type=click.Choice((*OPEN, INBOX)), help="Only these.")
@yes_option
@common_options
def drop_open_records(
    stream: str,
    key: str | None,
    reason: str | None,
    file: str | None,
    state: str | None,
    config: Path,
    *,
    yes: bool,
    as_json: bool,
) -> None:
    """Drop records; a new version from the source will be processed.

    Without KEY, all of STREAM, which may be a connection, that are rejected or waiting, after a confirmation; with KEY
    also one that is pending.
    What is in doubt cannot be dropped: settle it with 'crossdock records resolve'. Dropped records stay visible:
    'crossdock records list --state dropped'. Those of the inbox are not fetched, until another webhook comes.
    """
    from crossdock.runs.audit_log import audited_change_in_one_transaction
    from crossdock.runs.open_records import record_filter_from_options

    loaded = load_project(config)
    if key is not None:
        stream = loaded.stream_of_record(stream)
    choice = record_filter_from_options(stream, key, reason, None, file)
    subject = f"stream {stream}" if choice.key is None else f"record {stream} {choice.key}"
    with audited_change_in_one_transaction(loaded, "records drop", subject, clock=SystemClock()) as change:
        if state == INBOX:
            text = count_with_noun(number := _drop_from_inbox(loaded, choice, change, yes=yes), "record")
        else:
            number, text = _drop_records(loaded, choice, state, change, yes=yes)
    terminal_output.print_result({"dropped": number}, f"dropped {text}", as_json=as_json)


def _drop_records(
    loaded: Project, choice: RecordFilter, state: str | None, change: AuditedChange, *, yes: bool
) -> tuple[int, str]:
    from crossdock.writing.delivery import operator_decisions

    with loaded.open_state_exclusively() as opened, opened.begin_read_only() as tx:  # while no run changes them
        chosen, doubtful = _records_to_drop(tx, choice, state), _intents_in_doubt(tx, choice, state)
        number = _number_to_drop(chosen)
        if choice.key is not None and not number and not doubtful:
            operator_decisions.raise_if_sent_without_answer(tx, choice)
    if choice.key is not None or not number:
        operator_decisions.raise_if_any_in_doubt(doubtful)
    if not number:
        raise ConfigError(
            "no such record", hint="'crossdock records list' shows the existing ones", code="record_unknown"
        )
    if choice.key is None:
        ask_or_raise_not_confirmed(
            f"drop {count_with_noun(number, 'record')} of {choice.stream} ({_numbers_by_state_text(chosen)})", yes=yes
        )
    at = SystemClock().now()

    def drop(tx: Transaction) -> None:
        now = _records_to_drop(tx, choice, state)
        if now != chosen:
            raise ConfigError(
                "the records changed meanwhile; nothing was dropped",
                hint="list them and try again",
                code="selection_changed",
            )
        operator_decisions.drop_records(tx, *now, at=at)
        only = {"reason": choice.code, "file": choice.source}
        before = _numbers_by_state(chosen) | {name: value for name, value in only.items() if value}
        change.store_audit_entry(tx, before=before, after={"dropped": number})

    with loaded.open_state_exclusively() as opened:
        opened.run_transaction(drop)
    text = count_with_noun(number, "record")
    if doubtful:
        text += f"; {len(doubtful):,} in doubt not dropped: crossdock records resolve {choice.stream}"
    return number, text


def _drop_from_inbox(loaded: Project, choice: RecordFilter, change: AuditedChange, *, yes: bool) -> int:
    """Remove records from the inbox, even while the service runs."""
    with closing(loaded.open_state()) as state:
        hints = state.run_read_only(lambda tx: tx.inbox.records_to_fetch(limit=MOST, choice=choice))
        if not hints:
            raise ConfigError(
                "no such record",
                hint="'crossdock records list --state inbox' shows the existing ones",
                code="record_unknown",
            )
        if choice.key is None:
            ask_or_raise_not_confirmed(
                f"drop {count_with_noun(len(hints), 'record')} of {choice.stream} from the inbox", yes=yes
            )
        number = len(hints)

        def drop(tx: Transaction) -> None:
            for stream in {hint.stream for hint in hints}:
                tx.inbox.remove_records(stream, [hint.key_hash for hint in hints if hint.stream == stream])
            change.store_audit_entry(tx, before={INBOX: number}, after={"dropped": number})

        state.run_transaction(drop)
    return number


def _number_to_drop(chosen: Chosen) -> int:
    dead_letters, waiting, intents = chosen
    return len(dead_letters) + len(waiting) + len(intents)


def _numbers_by_state(chosen: Chosen) -> dict[str, int]:
    dead_letters, waiting, intents = chosen
    numbers = {"rejected": len(dead_letters), "waiting": len(waiting), "pending": len(intents)}
    return {state: number for state, number in numbers.items() if number}


def _numbers_by_state_text(chosen: Chosen) -> str:
    return ", ".join(f"{number:,} {state}" for state, number in _numbers_by_state(chosen).items())


def _records_to_drop(tx: Transaction, choice: RecordFilter, state: str | None) -> Chosen:
    """Return what to drop: a pending operation only by its key, and no waiting record whose first step is in doubt."""
    from crossdock.writing.delivery import operator_decisions

    others = choice.code is None
    doubtful = {
        (each.identity.stream, each.identity.key)
        for each in operator_decisions.intents_for_person_to_decide(tx, choice)
    }
    waiting = tx.waiting_records.matching(choice) if state in {None, "waiting"} and others else []
    found = (
        tx.dead_letters.rejected_matching(choice) if state in {None, "rejected"} else [],
        [each for each in waiting if (each.identity.stream, each.identity.key) not in doubtful],
    )
    if any(found) or choice.key is None or state is not None or not others:
        return *found, []
    return [], [], operator_decisions.filtered_pending_intents(tx, choice)


def _intents_in_doubt(tx: Transaction, choice: RecordFilter, state: str | None) -> list[Intent]:
    from crossdock.writing.delivery import operator_decisions

    is_meant = choice.code is None and state in {None, RecordState.IN_DOUBT.option_value}
    return operator_decisions.intents_for_person_to_decide(tx, choice) if is_meant else []
