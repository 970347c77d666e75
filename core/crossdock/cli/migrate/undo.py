"""``crossdock migrate undo``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crossdock.cli.project_and_state import load_project
from crossdock.cli.shared_options_messages_and_signals import help_example
from crossdock.cli.undo import plan_or_execute_undo, undo_options


@click.command(
    epilog=help_example(
        "crossdock migrate undo -o undo.plan", "crossdock apply undo.plan", "crossdock migrate undo invoices --execute"
    )
)
@click.argument("wave", required=False)
@undo_options
def undo(wave: str | None, config: Path, **options: Any) -> int:
    """Plan to undo the migration, or a WAVE of it: delete what it created, restore what it changed.

    Reads the platform and changes nothing; 'crossdock apply', or --execute, executes the plan. Records that others
    have changed since are listed and left alone, and so is what cannot be undone, such as an invoice. After the undo
    the next load reads the sources from their beginning.

    Exit codes: 0 everything can be undone; 1 some records stay as they are; 2 wrong usage or config; 3 the platform or
    the state cannot be read; 4 operations are not settled, no migration has begun, or it is signed off. With
    --execute they are those of 'crossdock sync'.
    """
    from crossdock.runs.undo import undo_plan

    return plan_or_execute_undo(
        load_project(config), lambda session: undo_plan.migration_runs_to_undo(session, wave), **options
    )
