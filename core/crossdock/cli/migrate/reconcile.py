"""``crossdock migrate reconcile``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crossdock.cli.project_and_state import load_project
from crossdock.cli.reconcile import reconcile_options, reconcile_print_and_save
from crossdock.cli.shared_options_messages_and_signals import help_example


@click.command(epilog=help_example("crossdock migrate reconcile", "crossdock migrate reconcile -o repair.plan"))
@reconcile_options
def reconcile(config: Path, **options: Any) -> int:
    """Compare all streams of the waves with the platform, and keep the result for the sign-off.

    As 'crossdock reconcile', which explains the classes of differences.

    Exit codes: 0 no differences; 1 differences; 2 wrong usage or config; 3 a source, the platform or the state cannot
    be read.
    """
    from crossdock.migration.waves import streams_of_all_waves

    loaded = load_project(config)
    found, _ = reconcile_print_and_save(loaded, streams_of_all_waves(loaded), **options, for_migration=True)
    return found.exit_code
