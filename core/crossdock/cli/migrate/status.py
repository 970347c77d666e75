"""``crossdock migrate status``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossdock.cli import terminal_output
from crossdock.cli.project_and_state import load_project
from crossdock.cli.shared_options_messages_and_signals import common_options, help_example, print_sentences
from crossdock.values.texts_of_numbers_and_times import instant_text

if TYPE_CHECKING:
    from crossdock.migration.migration_status import MigrationStatus
    from crossdock.migration.waves import WaveStatus

COLUMNS = ("wave", "state", "run", "delivered", "open", "gate")
NUMBERS = ("run", "delivered", "open")


@click.command(epilog=help_example("crossdock migrate status", "crossdock migrate status --json"))
@common_options
def status(config: Path, *, as_json: bool) -> None:
    """Show how far the migration is.

    Its waves with their gates, what people decided, and the last checks.
    """
    from crossdock.migration.migration_status import migration_status
    from crossdock.values.clock import SystemClock

    loaded = load_project(config)
    with loaded.read_state() as tx:
        found = migration_status(tx, loaded, SystemClock().now())
    if as_json:
        terminal_output.print_json(found.as_json())
    else:
        _print_migration_status(found)


def _print_migration_status(found: MigrationStatus) -> None:
    print_sentences(*found.decision_and_check_sentences)
    rows = [
        (
            each.wave.name,
            each.state,
            each.run and each.run.id,
            each.delivered,
            each.open.total,
            each.gate and each.gate.display_word,
        )
        for each in found.waves
    ]
    terminal_output.output_console().print(terminal_output.make_fitting_table("Waves", COLUMNS, rows, numbers=NUMBERS))
    for each in found.waves:
        print_sentences(f"{each.wave.name}: {', '.join(sorted(each.wave.streams))}", *_run_and_gate_lines(each))
    print_sentences(
        "all waves are done"
        if found.first_wave_not_past_gate is None
        else f"next: {found.first_wave_not_past_gate.wave}"
    )
    if found.remaining_requests_and_duration_text:
        print_sentences(found.remaining_requests_and_duration_text)


def _run_and_gate_lines(status: WaveStatus) -> list[str]:
    lines = []
    if status.run is not None:
        ended, is_running = status.run.finished_at, status.run.status == "running"
        when = f"ended {instant_text(ended)}" if ended else "is running" if is_running else "was killed"
        lines.append(f"  run {status.run.id} {when} ({status.run.status})")
    if status.gate is not None:
        lines.append(f"  gate {status.gate.display_word}: {status.gate.why}")
    return lines
