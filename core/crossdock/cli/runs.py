"""``crossdock runs`` and ``crossdock show``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import structs

from crossdock.cli import terminal_output
from crossdock.cli.project_and_state import FleetStates, read_state_of_config
from crossdock.cli.shared_options_messages_and_signals import (
    MOST,
    common_options,
    explicitly_given_fleet_base_files,
    fleet_option,
    help_example,
    help_meanings,
    print_counts_if_not_all_shown,
    print_sentences,
)
from crossdock.errors import ConfigError, text_with_code
from crossdock.runs import tables_and_sentences_of_run
from crossdock.values.clock import SystemClock
from crossdock.values.run_progress_and_messages import error_texts
from crossdock.values.run_states_and_tally import RecordTerm, RowTerm, RunState
from crossdock.values.texts_of_numbers_and_times import count_with_noun, instant_text, instant_text_to_minute

if TYPE_CHECKING:
    from crossdock.config.project.project import Project
    from crossdock.state import RunRecord, Transaction


@click.command(
    epilog=help_example(
        "crossdock runs",
        "crossdock runs --limit 5 --json",
        "crossdock -C base.yaml runs --fleet 'tenants/*.yaml' -o fleet.html",
    )
    + help_meanings("Status", (state for state in RunState if state is not RunState.SKIPPED))
)
@click.option("--limit", type=click.IntRange(1, MOST), default=20, show_default=True, help="Runs to list.")
@fleet_option
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    help="With --fleet: write a web page about the newest run of each tenant.",
)
@common_options
def runs(config: Path, *, limit: int, fleet: str | None, out: Path | None, as_json: bool) -> int:
    """List runs, newest first."""
    if fleet is None:
        if out is not None:
            raise ConfigError(
                "-o is for --fleet",
                hint="'crossdock show RUN -o FILE' writes a page about one run",
                code="options_conflict",
            )
        with read_state_of_config(config) as (tx, _):
            found, total = tx.runs.listed(limit=limit), tx.runs.count_all()
        _print_runs([(None, run) for run in found], as_json=as_json)
        print_counts_if_not_all_shown(len(found), total, "runs", err=as_json)
        return 0
    from crossdock.console import page_rendering, run_and_fleet_report

    states = FleetStates(fleet, explicitly_given_fleet_base_files(config))
    counted_runs = dict(states.read_each_tenant(partial(_runs_and_total, limit=limit)))
    listed = {name: each for name, (each, _) in counted_runs.items()}
    of_fleet = [(name, run) for name, each in listed.items() for run in each]
    if out is not None:
        newest_of = {name: next(iter(each), None) for name, each in listed.items()}
        errors = {name: text_with_code(error) for name, error in states.errors.items()}
        page_rendering.write_page_file(
            out, run_and_fleet_report.render_fleet_report_file(newest_of, errors, at=SystemClock().now())
        )
        print_sentences(f"report written to {out}", err=as_json)
    newest = sorted(of_fleet, key=lambda each: (each[1].started_at, each[0], each[1].id), reverse=True)
    _print_runs(newest[:limit], as_json=as_json, of_fleet=True)
    print_counts_if_not_all_shown(
        len(newest[:limit]), sum(total for _, total in counted_runs.values()), "runs", err=as_json
    )
    return states.exit_code


def _runs_and_total(loaded: Project, limit: int) -> tuple[list[RunRecord], int]:
    with loaded.read_state() as tx:
        return tx.runs.listed(limit=limit), tx.runs.count_all()


def _print_runs(found: Sequence[tuple[str | None, RunRecord]], *, as_json: bool, of_fleet: bool = False) -> None:
    if as_json:
        document = [
            ({"tenant": tenant} if of_fleet else {}) | tables_and_sentences_of_run.run_document(run)
            for tenant, run in found
        ]
        terminal_output.print_json(document)
        return
    rows = [
        (
            *((tenant or "",) if of_fleet else ()),
            run.id,
            run.job or run.command or "",
            run.business_date,
            instant_text_to_minute(run.started_at),
            run.duration,
            run.status,
            "" if run.open_record_counts is None else run.open_record_counts.total,
        )
        for tenant, run in found
    ]
    columns = ("run", "what", "business date", "started", "duration", "status", "open")
    numbers = ("run", "duration", "open")
    shown = ("tenant", *columns) if of_fleet else columns
    terminal_output.output_console().print(terminal_output.make_fitting_table("Runs", shown, rows, numbers=numbers))


@click.command(
    epilog=help_example("crossdock show", "crossdock show 7", "crossdock show 7 -o report.html")
    + help_meanings("Terms of the rows", RowTerm)
    + help_meanings("Terms of the records", RecordTerm)
)
@click.argument("run", type=click.IntRange(0, MOST), required=False)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    help="Write a web page that you can mail or open; it also lists what was not delivered and why.",
)
@common_options
def show(run: int | None, out: Path | None, config: Path, *, as_json: bool) -> None:
    """Show a run: its errors, tally, slowest steps and allowance.

    RUN is its number as listed by 'crossdock runs'; default: the newest run.
    """
    with read_state_of_config(config) as (tx, tenant):
        found = run_or_newest(tx, run)
        operations = tx.intents.counts_of_run(found.id) if found.tally is None else None
        details = _rejections_and_changes_document(tx, found) if as_json else {}
        if out:
            from crossdock.console import page_rendering, run_and_fleet_report

            page = run_and_fleet_report.render_run_report_file(
                tx, found, at=SystemClock().now(), tenant=tenant, config=config
            )
    if out:
        page_rendering.write_page_file(out, page)
        print_sentences(f"run {found.id}: {found.status}; report written to {out}", err=as_json)
    if as_json:
        document = tables_and_sentences_of_run.run_document(
            found
        ) | tables_and_sentences_of_run.slowest_steps_and_allowance_document(found)
        terminal_output.print_json(document | {"operations": operations} | details)
    elif not out:
        _print_run(found, operations)


def _rejections_and_changes_document(tx: Transaction, run: RunRecord) -> dict[str, Any]:
    from crossdock.runs import counts_of_changed_members

    reasons = [structs.asdict(each) for each in tx.run_details.rejections_by_stream_until_run(run.id)]
    changes = counts_of_changed_members.count_members_changed_by_run(tx.run_details, run.id)
    return {
        "rejected_by_reason": reasons,
        "changed_members": counts_of_changed_members.changed_members_document(changes),
    }


def run_or_newest(tx: Transaction, run: int | None) -> RunRecord:
    """Return the run with this number, or the newest one. Raises ConfigError if there is none."""
    if run is None:
        newest = tx.runs.listed(limit=1)
        if not newest:
            raise ConfigError("there is no run yet", hint="start one with 'crossdock sync'", code="run_unknown")
        run = newest[0].id
    found = tx.runs.get(run)
    if found is None:
        raise ConfigError(f"there is no run {run}", hint="'crossdock runs' lists them", code="run_unknown")
    return found


def _print_run(run: RunRecord, operations: Mapping[str, int] | None) -> None:
    for error in error_texts(run.messages):
        print_sentences(*f"error: {error}".split("\n"), "")
    if run.tally is None:
        requests = count_with_noun(run.requests, "request")
        title = tables_and_sentences_of_run.run_title(tables_and_sentences_of_run.run_document(run))
        counts = ", ".join(f"{number:,} {status.replace('_', ' ')}" for status, number in (operations or {}).items())
        print_sentences(
            f"{title}, started at {instant_text(run.started_at)}, has no tally: {run.status}, {requests}",
            f"its operations: {counts or 'none'}",
        )
    else:
        terminal_output.print_run_report(
            terminal_output.output_console(),
            tables_and_sentences_of_run.run_document(run)
            | {"apis": tables_and_sentences_of_run.api_usage_by_connection(run)},
        )
    if steps := tables_and_sentences_of_run.slowest_steps(run):
        lines = [(step.name, step.lasted, f"{step.share:.0f} %") for step in steps]
        columns = ("step", "duration", "of the run")
        click.echo()
        terminal_output.output_console().print(
            terminal_output.make_fitting_table("Slowest steps", columns, lines, numbers=columns[1:])
        )
    if (tokens := tables_and_sentences_of_run.allowance_summary(run)) is not None:
        print_sentences(f"allowance: {tokens}")
