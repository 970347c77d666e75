"""``crossdock bindings``: which record has which id on the platform."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from crossdock.cli import terminal_output
from crossdock.cli.shared_options import common_options, config_option, counted, example, load
from crossdock.clock import SystemClock


@click.group(epilog=example("crossdock bindings export > bindings.csv", "crossdock bindings import bindings.csv"))
def bindings() -> None:
    """Export or import the bindings between records and platform ids."""


@bindings.command("export", epilog=example("crossdock bindings export > bindings.csv"))
@config_option
def export(config: Path) -> None:
    """Write all bindings as CSV: resource, namespace, key, platform_id."""
    from crossdock.planning import binding_import

    with load(config).look() as tx:
        binding_import.export(tx, sys.stdout)


@bindings.command("import", epilog=example("crossdock bindings import bindings.csv"))
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@common_options
def import_(file: Path, config: Path, *, as_json: bool) -> None:
    """Take over records that the platform already has.

    They are not created again. FILE is CSV as written by 'bindings export'. The next sync sends every field of a record
    that may be changed, because the platform's current values are unknown; an invoice counts as delivered.

    Nothing is imported unless all rows are. Exit codes: 0 imported; 2 the file must be corrected; 3 the state cannot be
    used; 4 an operation on one of the records is not settled.
    """
    from crossdock.planning import binding_import

    at = SystemClock().now()
    with load(config).alone() as state:
        number = state.apply(lambda tx: binding_import.import_bindings(tx, file, at=at))
    terminal_output.print_result({"bound": number}, f"imported {counted(number, 'binding')}", as_json=as_json)
