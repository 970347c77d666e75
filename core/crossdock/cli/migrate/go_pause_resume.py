"""``crossdock migrate go``, ``pause`` and ``resume``: the decisions of people while a migration is loaded."""

from __future__ import annotations

from pathlib import Path

import click

from crossdock.cli.project_and_state import load_project
from crossdock.cli.shared_options_messages_and_signals import (
    config_option,
    help_example,
    person_name_option,
    print_sentences,
    raise_if_value_not_utf8,
)


@click.command(epilog=help_example("crossdock migrate go lots", "crossdock migrate go lots --by 'Ann, warehouse'"))
@click.argument("wave", callback=raise_if_value_not_utf8)
@person_name_option
@config_option
def go(wave: str, by: str, config: Path) -> None:
    """Let the migration go on after WAVE with what is open of it now.

    If more is open after a later load, the gate closes again.
    """
    from crossdock.migration import pause_resume_and_approve
    from crossdock.migration.waves import find_wave_or_raise, waves_numbered_in_config_order
    from crossdock.values.clock import SystemClock

    loaded = load_project(config)
    chosen = find_wave_or_raise(waves_numbered_in_config_order(loaded), wave)
    status = pause_resume_and_approve.approve_loaded_wave(loaded, chosen, clock=SystemClock(), by=by)
    print_sentences(f"{chosen}: {by} lets the migration go on with this open: {status.open}")


@click.command(epilog=help_example("crossdock migrate pause"))
@person_name_option
@config_option
def pause(by: str, config: Path) -> None:
    """Make the load wait until 'crossdock migrate resume'.

    A load that is running stops in order within about two seconds and waits; requests in flight are settled.
    """
    from crossdock.migration import pause_resume_and_approve
    from crossdock.values.clock import SystemClock

    migration = pause_resume_and_approve.pause_open_migration(load_project(config), clock=SystemClock(), by=by)
    print_sentences(f"{migration.name}: paused")


@click.command(epilog=help_example("crossdock migrate resume"))
@config_option
def resume(config: Path) -> None:
    """Let a load that waits go on, and later ones begin."""
    from crossdock.migration import pause_resume_and_approve
    from crossdock.values.clock import SystemClock

    migration = pause_resume_and_approve.resume_open_migration(load_project(config), clock=SystemClock())
    print_sentences(f"{migration.name}: resumed")
