"""``crossdock jobs``."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import click

from crossdock.cli.project_and_state import load_project, read_state_of_config
from crossdock.cli.shared_options_messages_and_signals import (
    MOST,
    CommandGroup,
    as_json,
    config_option,
    help_example,
    help_meanings,
    print_counts_if_not_all_shown,
    print_sentences,
)
from crossdock.values.run_states_and_tally import RunState

_COLUMNS = ("job", "business_date", "due", "status", "run", "attempts")


@click.group(
    cls=CommandGroup,
    epilog=help_example("crossdock jobs list", "crossdock jobs pause nightly", "crossdock jobs resume nightly"),
)
def jobs() -> None:
    """List scheduled runs, and pause and resume jobs."""


@jobs.command(name="list", epilog=help_example("crossdock jobs list --limit 30") + help_meanings("Status", RunState))
@click.option(
    "--limit", type=click.IntRange(1, MOST), default=20, show_default=True, help="Maximum number of runs to show."
)
@config_option
@as_json
def list_scheduled_runs(config: Path, *, limit: int, as_json: bool) -> None:
    """List scheduled runs, newest first."""
    from crossdock.cli import terminal_output
    from crossdock.runs.audit_log import job_paused_by_sentence
    from crossdock.values.run_progress_and_messages import error_texts

    with read_state_of_config(config) as (tx, _):
        scheduled_runs = tx.scheduled_runs.listed(limit=limit)
        paused = {job: job_paused_by_sentence(tx, job) for job in sorted(tx.scheduled_runs.paused_jobs())}
        total = tx.scheduled_runs.count_all()
        messages = {run.run_id: tx.runs.messages(run.run_id) for run in scheduled_runs if run.run_id}
    rows: list[dict[str, Any]] = [
        {
            "job": run.job,
            "business_date": run.business_date,
            "due": run.due,
            "status": run.status,
            "run": run.run_id,
            "attempts": run.attempts,
            "note": "\n".join(error_texts(said)) or run.note,
            "messages": [each.as_json() for each in said],
        }
        for run in scheduled_runs
        for said in [messages.get(run.run_id or 0, ())]
    ]
    if as_json:
        terminal_output.print_json({"paused": list(paused), "nights": rows})
        print_counts_if_not_all_shown(len(rows), total, "runs", err=True)
        return
    columns = ("job", "date", "due", "status", "run", "attempts", "note")
    shown = [(*(row[name] for name in _COLUMNS), " ".join((row["note"] or "").split())) for row in rows]
    terminal_output.output_console().print(
        terminal_output.make_fitting_table("Scheduled runs", columns, shown, numbers=("run", "attempts"))
    )
    print_counts_if_not_all_shown(len(shown), total, "runs")
    for job, text in paused.items():
        print_sentences(f"paused: {job}{text and f' ({text})'}")


@jobs.command(epilog=help_example("crossdock jobs pause nightly"))
@click.argument("job")
@config_option
def pause(job: str, config: Path) -> None:
    """Start no runs of JOB until it is resumed. Its schedule decides which of them are then caught up with."""
    _set_paused(job, config, paused=True)


@jobs.command(epilog=help_example("crossdock jobs resume nightly"))
@click.argument("job")
@config_option
def resume(job: str, config: Path) -> None:
    """Let runs of JOB start again."""
    _set_paused(job, config, paused=False)


def _set_paused(job: str, config: Path, *, paused: bool) -> None:
    from crossdock.errors import ConfigError
    from crossdock.runs.audit_log import audited_change_in_one_transaction
    from crossdock.values.clock import SystemClock

    loaded = load_project(config)
    if job not in loaded.jobs:
        raise ConfigError(
            f"there is no job {job!r}", hint=f"known: {', '.join(loaded.jobs) or 'none'}", code="job_unknown"
        )
    clock, action, states = SystemClock(), "pause" if paused else "resume", ("active", "paused")
    with (
        audited_change_in_one_transaction(loaded, f"jobs {action}", f"job {job}", clock=clock) as change,
        closing(loaded.open_state()) as state,
        state.begin() as tx,
    ):
        was_paused = job in tx.scheduled_runs.paused_jobs()
        tx.scheduled_runs.set_paused(job, clock.now(), paused=paused)
        change.store_audit_entry(tx, before=states[was_paused], after=states[paused])
    print_sentences(f"{job}: {'paused' if paused else 'resumed'}")
