"""``crossdock stop``: asks a run of another process to stop in order."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from crossdock.cli import terminal_output
from crossdock.cli.project_and_state import load_project
from crossdock.cli.shared_options_messages_and_signals import MOST, common_options, help_example


@click.command(epilog=help_example("crossdock stop", "crossdock stop 17"))
@click.argument("run", type=click.IntRange(1, MOST), required=False)
@common_options
def stop(run: int | None, config: Path, *, as_json: bool) -> None:
    """Ask the run that is in progress to stop in order: it settles what it has sent.

    RUN is its number; then nothing is done if another one is in progress by now. The next run continues. A scheduler
    starts the run of a job again, unless the job is paused before: 'crossdock jobs pause'.
    """
    from crossdock.runs.audit_log import audited_change_in_one_transaction
    from crossdock.runs.run_start_and_stop_requests import request_stop
    from crossdock.values.clock import SystemClock

    loaded, subject = load_project(config), "run" if run is None else f"run {run}"
    with (
        audited_change_in_one_transaction(loaded, "stop", subject, clock=SystemClock()) as change,
        closing(loaded.open_state()) as state,
        state.begin() as tx,
    ):
        found = request_stop(tx, run)
        change.store_audit_entry(tx, subject=f"run {found.id}", before="running", after="asked to stop")
    again = f"; 'crossdock jobs pause {found.job}' keeps its scheduler from starting it again" if found.job else ""
    terminal_output.print_result({"run": found.id}, f"run {found.id} was asked to stop{again}", as_json=as_json)
