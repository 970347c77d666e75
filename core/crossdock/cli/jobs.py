"""``crossdock jobs``."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from crossdock.cli.shared_options import MOST, as_json, config_option, example, say


@click.group(epilog=example("crossdock jobs list", "crossdock jobs pause nightly", "crossdock jobs resume nightly"))
def jobs() -> None:
    """Look at the nights of jobs, pause them and let them go on."""


@jobs.command(name="list", epilog=example("crossdock jobs list --limit 30"))
@click.option("--limit", type=click.IntRange(1, MOST), default=20, show_default=True, help="The latest nights to show.")
@config_option
@as_json
def list_(config: Path, *, limit: int, as_json: bool) -> None:
    """The latest nights, newest first."""
    from crossdock.cli import terminal_output
    from crossdock.project import project

    loaded = project.load(config)
    with loaded.look() as tx:
        scheduled_runs, paused = tx.scheduled_runs.listed(limit=limit), tx.scheduled_runs.paused()
    rows = [
        {
            "job": night.job,
            "business_date": night.business_date.isoformat(),
            "due": night.due.isoformat(timespec="minutes"),
            "status": night.status,
            "run": night.run_id,
            "attempts": night.attempts,
            "note": night.note,
        }
        for night in scheduled_runs
    ]
    if as_json:
        terminal_output.print_json({"paused": sorted(paused), "nights": rows})
        return
    columns = ("job", "date", "due", "status", "run", "attempts", "note")
    terminal_output.print_rows("Nights", columns, rows, numbers=("run", "attempts"))
    if paused:
        say(f"paused: {', '.join(sorted(paused))}")


@jobs.command(epilog=example("crossdock jobs pause nightly"))
@click.argument("job")
@config_option
def pause(job: str, config: Path) -> None:
    """Start no night of JOB until it is resumed; they are caught up with then, as its schedule says."""
    _set_paused(job, config, paused=True)


@jobs.command(epilog=example("crossdock jobs resume nightly"))
@click.argument("job")
@config_option
def resume(job: str, config: Path) -> None:
    """Let the nights of JOB start again."""
    _set_paused(job, config, paused=False)


def _set_paused(job: str, config: Path, *, paused: bool) -> None:
    from crossdock.clock import SystemClock
    from crossdock.errors import ConfigError
    from crossdock.project import project

    loaded = project.load(config)
    if job not in loaded.jobs:
        raise ConfigError(f"there is no job {job!r}", hint=f"known: {', '.join(loaded.jobs) or 'none'}")
    with closing(loaded.open_state()) as state, state.begin() as tx:
        tx.scheduled_runs.pause(job, SystemClock().now(), paused=paused)
    say(f"{job}: {'paused' if paused else 'goes on'}")
