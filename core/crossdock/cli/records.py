"""``crossdock records``: undelivered records, the reasons, and how to fix them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossdock.cli import terminal_output
from crossdock.cli.interrupts import interruptible
from crossdock.cli.open_records_list import INBOX, OPEN, list_
from crossdock.cli.project_and_state import load_project
from crossdock.cli.records_resolve import reopen_, resolve_
from crossdock.cli.shared_options import (
    MOST,
    CommandGroup,
    UtcTime,
    check_value_is_utf8,
    common_options,
    confirm,
    help_example,
    yes_option,
)
from crossdock.errors import ConfigError
from crossdock.values.clock import SystemClock
from crossdock.values.state_words import RecordState
from crossdock.values.texts_of_numbers_and_times import count_with_noun, instant_text

if TYPE_CHECKING:
    from crossdock.config.project.project import Project
    from crossdock.runs.audited_changes import Change
    from crossdock.runs.open_record_lists import Item
    from crossdock.state import DeadLetter, Intent, RecordFilter, Transaction, WaitingRecord

    Chosen = tuple[list[DeadLetter], list[WaitingRecord], list[Intent]]


@click.command("show", epilog=help_example("crossdock records show wms.invoices 536365 --raw"))
@click.argument("stream", callback=check_value_is_utf8)
@click.argument("key", callback=check_value_is_utf8)
@click.option("--raw", is_flag=True, help="Include the record's data, which may be personal.")
@common_options
def show_(stream: str, key: str, config: Path, *, raw: bool, as_json: bool) -> None:
    """Show why a record was not delivered; its data only with --raw.

    For a record that changed after it was delivered, show each member that differs, personal ones only with --raw.
    """
    from crossdock.runs.open_record_lists import list_unverified_records, matching_items, without_data
    from crossdock.state import RecordFilter
    from crossdock.values.record_keys import key_text

    loaded = load_project(config)
    keys = {key, key_text([key])}  # as listed, or as in the source
    with loaded.read_state() as tx:
        choices = [RecordFilter(stream, each) for each in sorted(keys)]
        items = [item for each in choices for item in matching_items(tx, each, _SHOWN, 10)]
        items += [item for each in choices for item in list_unverified_records(loaded, tx, each, 10)]
        shown = [without_data(item) | _data_and_difference(loaded, tx, item, raw=raw) for item in items]
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
    from crossdock.runs.open_record_lists import difference_from_delivered

    details: Item = {"raw": item.get("raw"), "mapped": item.get("mapped")} if raw else {}
    if "first_run_id" in item:
        details = {"run": item["run_id"], "first_run": item["first_run_id"]} | details
    if item.get("code") == "changed_after_delivery":
        details["difference"] = difference_from_delivered(loaded, tx, item, raw=raw)
    return details


def _lines(item: Item) -> Iterator[str]:
    from crossdock.runs.record_history_lines import value_text
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


for command in (list_, show_, resolve_, reopen_):
    records.add_command(command)

_key = click.argument("key", callback=check_value_is_utf8, required=False)
_reason = click.option("--reason", metavar="CODE", help="Only those rejected for this reason, such as bad_value.")
_file = click.option(
    "--file", metavar="NAME", help="Only those that were read from this file.", callback=check_value_is_utf8
)


@records.command(
    "replay",
    epilog=help_example("crossdock records replay wms.invoices 70013", "crossdock records replay --reason bad_value"),
)
@click.argument("stream", callback=check_value_is_utf8, required=False)
@_key
@_reason
@_file
@click.option("--since", type=UtcTime(), help="Only those rejected since this time (UTC).")
@common_options
def replay_(
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
    from crossdock.cli.sync import show_report
    from crossdock.runs import sync_and_replay
    from crossdock.runs.open_record_lists import filter_of_options

    loaded, choice = load_project(config), filter_of_options(stream, key, reason, since, file)
    with interruptible() as interrupt, terminal_output.progress(wanted=not as_json) as progress:
        report = sync_and_replay.replay(loaded, choice, clock=SystemClock(), progress=progress, interrupt=interrupt)
    return show_report(report, as_json=as_json)


@records.command(
    "drop", epilog=help_example("crossdock records drop wms.invoices 70030", "crossdock records list --state dropped")
)
@click.argument("stream", callback=check_value_is_utf8)
@_key
@_reason
@_file
@click.option("--state", type=click.Choice((*OPEN, INBOX)), help="Only these.")
@yes_option
@common_options
def drop_(
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
    from crossdock.runs.audited_changes import change_with_failure_logged
    from crossdock.runs.open_record_lists import filter_of_options

    loaded = load_project(config)
    if key is not None:
        stream = loaded.stream_of_record(stream)
    choice = filter_of_options(stream, key, reason, None, file)
    subject = f"stream {stream}" if choice.key is None else f"record {stream} {choice.key}"
    with change_with_failure_logged(loaded, "records drop", subject, clock=SystemClock()) as change:
        if state == INBOX:
            text = count_with_noun(number := _drop_from_inbox(loaded, choice, change, yes=yes), "record")
        else:
            number, text = _drop_records(loaded, choice, state, change, yes=yes)
    terminal_output.print_result({"dropped": number}, f"dropped {text}", as_json=as_json)


def _drop_records(
    loaded: Project, choice: RecordFilter, state: str | None, change: Change, *, yes: bool
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
        confirm(
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


def _drop_from_inbox(loaded: Project, choice: RecordFilter, change: Change, *, yes: bool) -> int:
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
            confirm(f"drop {count_with_noun(len(hints), 'record')} of {choice.stream} from the inbox", yes=yes)
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
