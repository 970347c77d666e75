"""``crossdock records list``: records that are not delivered, or not known to be, and the reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from crossdock.cli import terminal_output
from crossdock.cli.project_and_state import load_project
from crossdock.cli.sentence_printing import say, say_how_many_shown
from crossdock.cli.shared_options import (
    MOST,
    check_value_is_utf8,
    common_options,
    explicitly_given_fleet_base_files,
    fleet_option,
    help_example,
    help_meanings,
)
from crossdock.cli.tenant_states import FleetStates
from crossdock.values.state_words import BY_URGENCY, RecordState
from crossdock.values.texts_of_numbers_and_times import count_with_noun

if TYPE_CHECKING:
    from crossdock.config.project.project import Project
    from crossdock.runs.open_record_lists import Item
    from crossdock.state import RecordFilter

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
    callback=check_value_is_utf8,
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
@click.option("--key", metavar="KEY", help="Only this record key.", callback=check_value_is_utf8)
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
    from crossdock.runs.open_record_lists import filter_of_options

    choice, kinds = filter_of_options(stream, key, reason, None), _LISTED_BY_DEFAULT if state is None else (state,)
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
        say_how_many_shown(shown[kind], totals[kind], f"{kind.replace('-', ' ')} records", err=err)
        if kind == "rejected" and shown[kind] < totals[kind]:
            for (stream, code), number in reasons.most_common():
                say(f"  {number:,} {code}: crossdock records list --stream {stream} --reason {code}", err=err)


class _Listed(Struct, frozen=True):
    items: list[Item]
    totals: Mapping[str, int]
    reasons: Counter[tuple[str, str]]


def _open_records_of_tenant(
    loaded: Project, choice: RecordFilter, kinds: Sequence[str], limit: int, *, every: bool, as_json: bool
) -> _Listed:
    from crossdock.runs import open_record_lists
    from crossdock.runs.open_record_lists import matching_items, without_data

    with loaded.read_state() as tx:
        scopes = open_record_lists.stream_by_unverified_scope(loaded, choice)
        totals = open_record_lists.counts_by_state(tx, choice, scopes)
        if choice.stream is not None and not any(totals.values()):
            loaded.selected_streams([choice.stream])  # an unknown one is an error, unless records of it are left
        reasons = Counter({(stream, code): number for stream, code, number in tx.dead_letters.reason_counts(choice)})
        not_known = open_record_lists.list_unverified_records(loaded, tx, choice, limit) if UNVERIFIED in kinds else []
        if as_json:
            every_item = [*matching_items(tx, choice, kinds, limit), *not_known]
            return _Listed([without_data(item) for item in every_item], totals, reasons)
        items = [*matching_items(tx, choice, [kind for kind in kinds if every or kind != "waiting"], limit), *not_known]
        is_grouped = not every and "waiting" in kinds and not choice.code
        groups = open_record_lists.waiting_groups_as_items(loaded, tx, choice, limit) if is_grouped else []
    return _Listed(
        sorted([*map(without_data, items), *groups], key=lambda item: kinds.index(item["state"])), totals, reasons
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
