"""``crossdock bindings``: which of our records is which of the platform's."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from crossdock.cli.shared_options import as_json, config_option, counted, example, say


@click.group()
def bindings() -> None:
    """Write or read the file of which record is which on the platform."""


@bindings.command("export", epilog=example("crossdock bindings export > bindings.csv"))
@config_option
def export(config: Path) -> None:
    """Write all bindings as CSV: resource, namespace, key, platform_id."""
    from crossdock.planning import binding_import
    from crossdock.project import project

    with project.load(config).look() as tx:
        binding_import.export(tx, sys.stdout)


@bindings.command("import", epilog=example("crossdock bindings import bindings.csv"))
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@config_option
@as_json
def import_(file: Path, config: Path, *, as_json: bool) -> None:
    """Take over records that the platform has already: they are not created again.

    FILE is CSV as 'bindings export' writes it. The next sync sends every field of a record that may be changed, since
    nobody knows what the platform holds; an invoice counts as delivered.
    """
    from crossdock.cli import terminal_output
    from crossdock.clock import SystemClock
    from crossdock.planning import binding_import
    from crossdock.project import project

    at = SystemClock().now()
    with project.load(config).alone() as state:
        number = state.apply(lambda tx: binding_import.import_bindings(tx, file, at=at))
    if as_json:
        terminal_output.print_json({"bound": number})
    else:
        say(f"bound {counted(number, 'record')}")
