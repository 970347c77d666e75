"""``crossdock records resolve`` and ``reopen``: decisions of a person about operations in doubt."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli import terminal_output
from crossdock.cli.project_and_state import load_project
from crossdock.cli.sentence_printing import say
from crossdock.cli.shared_options import check_value_is_utf8, common_options, confirm, help_example, yes_option
from crossdock.errors import ConfigError
from crossdock.values.clock import SystemClock
from crossdock.values.texts_of_numbers_and_times import count_with_noun, instant_text

if TYPE_CHECKING:
    from crossdock.config.project.project import Project
    from crossdock.runs.audited_changes import Change
    from crossdock.runs.doubtful_operation_look_ups import Candidate
    from crossdock.state import Intent, RecordFilter, Transaction


@click.command(
    "resolve",
    epilog=help_example(
        "crossdock records resolve wms.invoices 70013",
        "crossdock records resolve wms.invoices 70013 --delivered-as inv_4711",
        "crossdock records resolve wms.invoices --not-delivered",
    ),
)
@click.argument("stream", callback=check_value_is_utf8, required=False)
@click.argument("key", callback=check_value_is_utf8, required=False)
@click.option(
    "--delivered-as",
    metavar="ID",
    help="Delivered; ID is the record's id on the platform.",
    callback=check_value_is_utf8,
)
@click.option("--delivered", is_flag=True, help="Delivered; for updates, whose id is known.")
@click.option("--not-delivered", is_flag=True, help="Not delivered: the next sync sends it.")
@click.option("--no-lookup", is_flag=True, help="Do not look ID up on the platform; only its form is checked.")
@yes_option
@common_options
def resolve_(
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
    from crossdock.runs.audited_changes import change_with_failure_logged
    from crossdock.runs.open_record_lists import filter_of_options
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
    choice = filter_of_options(stream, key, None, None)
    if decisions == 0:
        _show_candidates(loaded, _intents_in_doubt(loaded, choice)[0], as_json=as_json)
        return
    subject = f"stream {stream}" if choice.key is None else f"record {stream} {choice.key}"
    with change_with_failure_logged(loaded, "records resolve", subject, clock=SystemClock()) as change:
        intents = _intents_in_doubt(loaded, choice)
        if not not_delivered:
            operator_decisions.raise_if_target_id_impossible(intents, delivered_as)
        if delivered_as is not None:
            text = _look_up_and_describe_id(loaded, intents, delivered_as, no_lookup=no_lookup)
            confirm(f"record that {text}", yes=yes)
        elif key is None:
            what = "delivered" if delivered else "not delivered, so that the next sync sends them"
            confirm(f"record {count_with_noun(len(intents), 'operation')} of {stream} as {what}", yes=yes)
        _resolve(loaded, choice, intents, delivered_as, change, not_delivered=not_delivered)
    number = len(intents)
    terminal_output.print_result({"resolved": number}, f"resolved {count_with_noun(number, 'record')}", as_json=as_json)


@click.command("reopen", epilog=help_example("crossdock records reopen wms.invoices 70013"))
@click.argument("stream", callback=check_value_is_utf8)
@click.argument("key", callback=check_value_is_utf8)
@common_options
def reopen_(stream: str, key: str, config: Path, *, as_json: bool) -> None:
    """Reverse 'records resolve': the record is in doubt again.

    Possible until a later operation depends on the decision, or its data is purged.
    """
    from crossdock.delta.fingerprint import key_hashes
    from crossdock.runs.audited_changes import change_exclusively
    from crossdock.values.record_keys import key_text_of_input
    from crossdock.writing.delivery import operator_decisions

    loaded, at, known = load_project(config), SystemClock().now(), key_text_of_input(key)
    (stream,) = loaded.selected_streams([loaded.stream_of_record(stream)])
    scope, key_hash = loaded.scope_by_stream[stream], key_hashes([known])[known]

    def reopen(tx: Transaction, change: Change) -> Intent:
        before = [each.status for each in tx.intents.intents_of_record(scope, key_hash)[-1:]]
        intent = operator_decisions.return_last_operation_to_doubt(tx, scope, key_hash, at=at)
        change.store_audit_entry(tx, before={"state": before[0]}, after={"state": intent.status})
        return intent

    intent = change_exclusively(loaded, "records reopen", f"record {stream} {known}", reopen, clock=SystemClock())
    text = f"reopened: the {intent.operation} of {stream} {known} is in doubt again"
    terminal_output.print_result({"reopened": 1}, text, as_json=as_json)


def _intents_in_doubt(loaded: Project, choice: RecordFilter) -> list[Intent]:
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


def _resolve(
    loaded: Project,
    choice: RecordFilter,
    shown: list[Intent],
    delivered_as: str | None,
    change: Change,
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
    from crossdock.runs.doubtful_operation_look_ups import begin_look_ups_at_target

    intent = intents[0]
    identity = intent.identity
    found = ""
    if not no_lookup:
        with begin_look_ups_at_target(loaded, SystemClock(), intent.scope.target) as target:
            found = f" ({_candidate_text(target.look_up_candidate_or_refuse(intent, target_id))})"
    return f"the {intent.operation} of {identity.stream} {identity.key} was delivered as {target_id}{found}"


def _show_candidates(loaded: Project, intent: Intent, *, as_json: bool) -> None:
    from crossdock.runs.doubtful_operation_look_ups import begin_look_ups_at_target

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
    with begin_look_ups_at_target(loaded, SystemClock(), intent.scope.target) as target:
        candidates, complete = target.find_possibly_created_records(intent)
    if as_json:
        terminal_output.print_json(
            {"candidates": [_candidate_document(each) for each in candidates], "complete": complete}
        )
        return
    stream, key = intent.identity.stream, intent.identity.key
    sent = f"first sent {instant_text(intent.first_sent_at)}" if intent.first_sent_at else "not known to be sent"
    say(f"create of {stream} {key}, {sent}, {count_with_noun(intent.attempts, 'attempt')}")
    for each in candidates:
        say(f"  {each.target_id}  {_candidate_text(each)}")
    if not candidates:
        say(
            f"  {intent.scope.target} has no such record"
            + ("" if complete else " among the first ones that were looked through")
        )
    elif not complete:
        say("  there may be others: only the first records since then were looked through")
    say(
        f"it arrived:    crossdock records resolve {stream} {key} --delivered-as ID",
        f"it did not:    crossdock records resolve {stream} {key} --not-delivered",
    )


def _candidate_text(candidate: Candidate) -> str:
    parts = [
        "same content" if candidate.is_same else "different content",
        f"{candidate.currency or ''} {candidate.total}".strip() if candidate.total is not None else "",
        f"created {candidate.created_at}" if candidate.created_at else "",
        f"belongs to {candidate.bound_to}" if candidate.bound_to else "",
    ]
    return ", ".join(part for part in parts if part)


def _candidate_document(candidate: Candidate) -> dict[str, Any]:
    return {
        "id": candidate.target_id,
        "created_at": candidate.created_at,
        "currency": candidate.currency,
        "total": None if candidate.total is None else str(candidate.total),
        "same_content": candidate.is_same,
        "belongs_to": candidate.bound_to,
    }
