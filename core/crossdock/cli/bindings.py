"""``crossdock bindings``: the ids of records at their targets."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossdock.cli import terminal_output
from crossdock.cli.project_and_state import load_project, read_state_of_config
from crossdock.cli.shared_options_messages_and_signals import (
    CommandGroup,
    common_options,
    config_option,
    help_example,
    print_sentences,
)
from crossdock.values.clock import SystemClock
from crossdock.values.texts_of_numbers_and_times import count_with_noun

if TYPE_CHECKING:
    from crossdock.runs.audit_log import AuditedChange
    from crossdock.state import Transaction


@click.group(
    cls=CommandGroup,
    epilog=help_example("crossdock bindings export > bindings.csv", "crossdock bindings import bindings.csv"),
)
def bindings() -> None:
    """Export or import which record has which id at its target."""


@bindings.command("export", epilog=help_example("crossdock bindings export > bindings.csv"))
@click.option("--raw", is_flag=True, help="Without apostrophes before formulas. Do not open it in a spreadsheet.")
@config_option
def export(config: Path, *, raw: bool) -> None:
    """Write all bindings as CSV.

    What a spreadsheet would take for a formula, such as an id that begins with =, is written with an apostrophe before
    it. 'bindings import' removes it. What the state knows besides is not in the file: records that are open or dropped
    are counted on standard error.
    """
    from crossdock.runs.open_records import counts_by_state
    from crossdock.runs.planning import binding_csv
    from crossdock.state import RecordFilter

    with read_state_of_config(config) as (tx, _):
        binding_csv.export_bindings(tx, sys.stdout, raw=raw)
        left = counts_by_state(tx, RecordFilter(), ())
    _print_counts_left_out_of_file({state: number for state, number in left.items() if number})


def _print_counts_left_out_of_file(left: Mapping[str, int]) -> None:
    if not left:
        return
    counts = ", ".join(f"{number:,} {state.replace('-', ' ')}" for state, number in left.items())
    print_sentences(
        f"not in the file: {counts}. A state that imports it delivers those that their sources still have, dropped ones"
        " too: settle what is open, and leave what was given up out by 'skip'",
        err=True,
    )


@bindings.command("import", epilog=help_example("crossdock bindings import bindings.csv"))
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--raw", is_flag=True, help="FILE was written with --raw, or by another program: keep apostrophes.")
@common_options
def import_(file: Path, config: Path, *, raw: bool, as_json: bool) -> None:
    """Take over records that a target already has.

    They are not created again. FILE is CSV as written by 'bindings export'; keys of one column may also be as in the
    source. The next sync sends every field of a record that may be changed, because its current values are unknown; an
    invoice counts as delivered, and an order that was handed over in a file is unchanged if its source is.

    Nothing is imported unless all rows are. Exit codes: 0 imported; 2 the file must be corrected; 3 the state cannot be
    used; 4 an operation on one of the records is not settled.
    """
    from crossdock.config.project.project import known_namespaces
    from crossdock.runs.audit_log import change_state_exclusively_with_audit
    from crossdock.runs.planning import binding_csv

    loaded, clock = load_project(config), SystemClock()
    targets, at, namespaces = loaded.targets(clock), clock.now(), known_namespaces(loaded)

    def import_all(tx: Transaction, change: AuditedChange) -> int:
        number = binding_csv.import_bindings(tx, file, targets, at=at, raw=raw, namespaces=namespaces)
        change.store_audit_entry(tx, after={"bound": number})
        return number

    number = change_state_exclusively_with_audit(loaded, "bindings import", "bindings", import_all, clock=clock)
    terminal_output.print_result({"bound": number}, f"imported {count_with_noun(number, 'binding')}", as_json=as_json)
