"""``crossdock sync`` and ``crossdock apply``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossdock.cli import terminal_output
from crossdock.cli.project_and_state import load_project
from crossdock.cli.shared_options_messages_and_signals import (
    as_json,
    check_each_value_is_utf8,
    common_options,
    config_option,
    help_example,
    overriding_config_files,
    print_sentences,
    print_warning,
    stop_event_set_by_signals,
)
from crossdock.values.clock import SystemClock
from crossdock.values.texts_of_numbers_and_times import count_with_noun

if TYPE_CHECKING:
    from crossdock.config.project.project import Project
    from crossdock.runs.named_record_delivery import Key
    from crossdock.runs.plan_and_apply import PlanFile
    from crossdock.runs.run_report import Report
    from crossdock.values.json_documents.plans_and_runs import EndedUndo


@click.command(
    epilog=help_example("crossdock sync", "crossdock sync wms.invoices --json", "crossdock sync shop.orders --key 1001")
)
@click.argument("streams", nargs=-1, metavar="[CONNECTION[.STREAM]]...")
@config_option
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="KEY",
    callback=check_each_value_is_utf8,
    help="Only this record of the named stream, read now from its source. Repeatable.",
)
@click.option("--live", is_flag=True, help="Take priority over batch syncs that share the allowance.")
@click.option("--wait", is_flag=True, help="Wait for late files where the config says so, as scheduled runs do.")
@as_json
def sync(
    streams: tuple[str, ...], config: Path, *, keys: tuple[str, ...], live: bool, wait: bool, as_json: bool
) -> int:
    """Deliver what is new or changed to the platform.

    Reads all streams, or those named.

    Exit codes: 0 all delivered or unchanged; 1 records of these streams are open (rejected, waiting, pending or in
    doubt), also if only an earlier run read them; 2 wrong usage or config; 3 could not run or finish, or an expected
    file is missing; 4 refused for safety: a source, removals or updates beyond the limits, or a mapping that fails too
    often; 70 the tally does not balance; 130 interrupted.
    """
    from crossdock.runs.init_plan_run_for_programs import run
    from crossdock.runs.run_report import Timings
    from crossdock.services.observability.optional_trace_export import open_trace_export

    with open_trace_export(print_warning) as trace:
        with stop_event_set_by_signals() as interrupt, terminal_output.show_progress(wanted=not as_json) as progress:
            timings = Timings(SystemClock(), progress)
            try:
                report = run(
                    [config, *overriding_config_files(config)],
                    () if keys else streams,
                    keys=_keys_by_stream(streams, keys),
                    priority="live" if live else "batch",
                    wait=wait,
                    progress=timings,
                    interrupt=interrupt,
                )
            finally:
                trace(timings)
        return print_report_and_return_exit_code(report, as_json=as_json)


def _keys_by_stream(streams: Sequence[str], keys: Sequence[str]) -> dict[str, list[Key]] | None:
    if not keys:
        return None
    from crossdock.values.record_keys import key_parts_of

    if len(streams) != 1 or "." not in streams[0]:
        raise click.UsageError("--key needs one stream: crossdock sync CONNECTION.STREAM --key KEY")
    return {streams[0]: [key_parts_of(key) for key in keys]}


@click.command(
    epilog=help_example("crossdock plan -o daily.plan", "crossdock apply daily.plan", "crossdock apply --resume")
)
@click.argument("plan", type=click.Path(path_type=Path, dir_okay=False), required=False)
@click.option("--resume", is_flag=True, help="Send what earlier runs left, and complete an interrupted undo.")
@click.option("--give-up", is_flag=True, help="End an interrupted undo as it is.")
@common_options
def apply(plan: Path | None, config: Path, *, resume: bool, give_up: bool, as_json: bool) -> int:
    """Execute a saved plan exactly, or do nothing.

    PLAN is from 'crossdock plan', a repair from 'crossdock reconcile', or from 'crossdock undo'. While an undo has
    begun and not ended, its streams are not synced. The same PLAN, or --resume, completes it. --resume reads no source.

    Exit codes are those of 'crossdock sync'; 4 if a source, the state or the config has changed since the plan, or the
    platform since a repair or an undo was planned, or if another undo has not ended.
    """
    from crossdock.runs import plan_and_apply
    from crossdock.runs.undo import undo_application

    if (plan is not None) + resume + give_up != 1:
        raise click.UsageError("apply needs a PLAN, or --resume, or --give-up")
    loaded = load_project(config)
    if give_up:
        return _give_up_undo(loaded, as_json=as_json)
    if plan is not None:
        return execute_plan_and_show(loaded, plan_and_apply.PlanFile.load(plan), as_json=as_json)
    with stop_event_set_by_signals() as interrupt, terminal_output.show_progress(wanted=not as_json) as progress:
        report = undo_application.settle_and_complete_begun_undo(
            loaded, clock=SystemClock(), progress=progress, interrupt=interrupt
        )
    return print_report_and_return_exit_code(report, as_json=as_json)


def execute_plan_and_show(loaded: Project, approved: PlanFile, *, as_json: bool) -> int:
    """Execute a plan, show the run, and return its exit code."""
    from crossdock.runs import plan_and_apply
    from crossdock.runs.reconciliation import reconcile_and_repair
    from crossdock.runs.undo import undo_application

    ways = {
        "sync": plan_and_apply.apply_sync_plan_if_unchanged,
        "repair": reconcile_and_repair.apply_repair_if_unchanged,
        "undo": undo_application.apply_undo_if_unchanged,
    }
    with stop_event_set_by_signals() as interrupt, terminal_output.show_progress(wanted=not as_json) as progress:
        report = ways[approved.kind](loaded, approved, clock=SystemClock(), progress=progress, interrupt=interrupt)
    return print_report_and_return_exit_code(report, as_json=as_json)


def _give_up_undo(loaded: Project, *, as_json: bool) -> int:
    from crossdock.runs.undo import undo_application

    ended = undo_application.give_up_begun_undo(loaded, clock=SystemClock())
    facts: EndedUndo = {"streams": ended.streams, "unsent": ended.unsent, "unanswered": ended.unanswered}
    text = (
        f"gave up the undo of {', '.join(ended.streams)}: what it has done stays; "
        f"{count_with_noun(ended.unsent, 'operation')} "
        f"not sent, {ended.unanswered:,} sent without an answer, which the next run settles. A record that it has "
        "deleted is created again when its source names it"
    )
    terminal_output.print_result(facts, text, as_json=as_json)
    return 0


def print_report_and_return_exit_code(report: Report, *, as_json: bool) -> int:
    terminal_output.print_error_messages(report.messages)
    if as_json:
        terminal_output.print_json(report.as_json())
    else:
        terminal_output.print_run_report(terminal_output.output_console(), report.as_json())
        if report.all_open.total:
            print_sentences("'crossdock records list' shows what is open", err=True)
    return report.exit_code
