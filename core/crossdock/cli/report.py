"""``crossdock report``: a run, or a month, as a web page in one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossdock.cli import terminal_output
from crossdock.cli.project_and_state import load_project, read_state_of_config
from crossdock.cli.runs import run_or_newest
from crossdock.cli.shared_options_messages_and_signals import (
    MOST,
    common_options,
    help_example,
    print_sentences,
    print_warning,
)
from crossdock.errors import ConfigError
from crossdock.values.clock import SystemClock

if TYPE_CHECKING:
    from crossdock.runs.month_summary import MonthSummary


@click.command(
    epilog=help_example(
        "crossdock report 7 -o report.html",
        "crossdock report --month 2026-11 -o november.html",
        "crossdock report --month 2026-11 --json",
    )
)
@click.argument("run", type=click.IntRange(0, MOST), required=False)
@click.option("--month", metavar="YYYY-MM", help="Write about a month of business dates.")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    help="The file; default: run-7.html or 2026-11.html in this folder, none with --json.",
)
@common_options
def report(run: int | None, month: str | None, out: Path | None, config: Path, *, as_json: bool) -> None:
    """Write a web page about a run or a month that you can mail, open or print.

    The page of a run is that of the console, and lists what was not delivered and why. RUN is its number as listed by
    'crossdock runs'; default: the newest run. The page of a month has the calendar of the jobs, what was delivered, and
    what went wrong and for how long. Neither has record data.
    """
    if month is None:
        if as_json:
            raise ConfigError(
                "--json is for --month", hint="'crossdock show RUN --json' prints a run", code="options_conflict"
            )
        _write_run_report(run, out, config)
        return
    if run is not None:
        raise ConfigError("give either RUN or --month", code="options_conflict")
    _write_month_report(month, out, config, as_json=as_json)


def _write_run_report(run: int | None, out: Path | None, config: Path) -> None:
    from crossdock.console import page_rendering, run_and_fleet_report

    with read_state_of_config(config) as (tx, tenant):
        found = run_or_newest(tx, run)
        page = run_and_fleet_report.render_run_report_file(
            tx, found, at=SystemClock().now(), tenant=tenant, config=config
        )
    path = out or Path(f"run-{found.id}.html")
    page_rendering.write_page_file(path, page)
    print_sentences(f"run {found.id}: {found.status}; report written to {path}")


def _write_month_report(text: str, out: Path | None, config: Path, *, as_json: bool) -> None:
    from crossdock.console import month_summary_page, page_rendering
    from crossdock.runs.month_summary import first_day_or_none, month_document, month_summary
    from crossdock.values.texts_of_numbers_and_times import USABLE_YEARS_TEXT

    first = first_day_or_none(text)
    if first is None:
        raise ConfigError(
            f"{text!r} is not a month",
            hint=f"write it like 2026-11, in {USABLE_YEARS_TEXT}",
            code="option_value_invalid",
        )
    loaded, now = load_project(config), SystemClock().now()
    with loaded.read_state() as tx:
        month = month_summary(tx, loaded.jobs, loaded.resource_by_stream, first, now)
    path = out or (None if as_json else Path(f"{month.name}.html"))
    if path is not None:
        page_rendering.write_page_file(
            path, month_summary_page.render_month_file(month, tenant=loaded.platform.tenant, at=now)
        )
        print_sentences(f"{month.name}: {_month_totals_text(month)}; report written to {path}", err=as_json)
    if note := month_summary_page.removed_runs_note(month):
        print_warning(note)
    if as_json:
        terminal_output.print_json(month_document(month))


def _month_totals_text(month: MonthSummary) -> str:
    return ", ".join(
        f"{each.number:,} {each.name}" for each in month.totals if each.name in {"runs", "records delivered"}
    )
