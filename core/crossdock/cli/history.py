"""``crossdock runs`` and ``crossdock show``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli.options import as_json, config_option, example
from crossdock.errors import ConfigError

if TYPE_CHECKING:
    from crossdock.state import Run


@click.command(epilog=example("crossdock runs", "crossdock runs --limit 5 --json"))
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Runs to list.")
@config_option
@as_json
def runs(config: Path, *, limit: int, as_json: bool) -> None:
    """List runs, newest first."""
    from crossdock.cli import terminal
    from crossdock.sync import project

    with project.load(config).look() as tx:
        listed = tx.runs.listed(limit=limit)
    if as_json:
        terminal.print_json([_facts(run) for run in listed])
        return
    rows = [
        (run.id, run.business_date, f"{run.started_at:%Y-%m-%d %H:%M:%S}Z", _lasted(run), run.status, run.requests)
        for run in listed
    ]
    columns = ("run", "business date", "started", "lasted", "status", "requests")
    terminal.out().print(terminal.table("Runs", columns, rows, numbers=("run", "lasted", "requests")))


@click.command(epilog=example("crossdock show 7"))
@click.argument("run", type=int)
@config_option
@as_json
def show(run: int, config: Path, *, as_json: bool) -> None:
    """Show the accounts of one run."""
    from crossdock.cli import terminal
    from crossdock.sync import project

    with project.load(config).look() as tx:
        found = tx.runs.get(run)
    if found is None:
        raise ConfigError(f"there is no run {run}", hint="'crossdock runs' lists them")
    if as_json:
        terminal.print_json(_facts(found))
        return
    if found.tally is None:
        click.echo(f"run {found.id} began at {found.started_at:%Y-%m-%d %H:%M:%S}Z and has no accounts: {found.status}")
    else:
        terminal.show_run(terminal.out(), _facts(found))
    if found.error:
        click.echo(f"it ended with: {found.error}")


def _lasted(run: Run) -> str:
    return "" if run.finished_at is None else f"{(run.finished_at - run.started_at).total_seconds():.1f} s"


def _facts(run: Run) -> dict[str, Any]:
    tally = run.tally or {}
    ended = run.finished_at or run.started_at
    return {
        "run": run.id,
        "business_date": run.business_date,
        "started_at": run.started_at.isoformat(),
        "status": run.status,
        "seconds": (ended - run.started_at).total_seconds(),
        "requests": run.requests,
        "throttled": run.throttled,
        "balanced": run.tally is not None and all(stream["balanced"] for stream in tally.values()),
        "streams": tally,
        "error": run.error,
    }
