"""``crossdock schedule``, and the runs of the next days as a table or as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli.console_options import ConsoleOptions, beside_option, console_options
from crossdock.cli.listen_addresses import ListenAddress, address_option
from crossdock.cli.project_and_state import load
from crossdock.cli.service import ServiceOptions, health_option, log_format_option, serve
from crossdock.cli.shared_options import as_json, config_option, fleet_base, fleet_option, help_example

if TYPE_CHECKING:
    from crossdock.config.project.project import Project
    from crossdock.services.scheduler.stderr_log import LogFormat
AT_ONCE, MOST_AT_ONCE = 4, 16


@click.command(
    epilog=help_example(
        "crossdock schedule",
        "crossdock schedule --listen 8090",
        "crossdock schedule --preview 7",
        "crossdock schedule --once latest",
        "crossdock schedule --once 2026-11-20 --job nightly",
        "crossdock schedule --fleet 'tenants/*.yaml' --executor processes",
    )
)
@click.option(
    "--once",
    "once",
    metavar="DATE",
    help="Run what is due for this business date and not done yet, and exit; 'latest': what was due last.",
)
@click.option(
    "--preview", "days", type=click.IntRange(1, 366), metavar="DAYS", help="Show the runs of the next DAYS days."
)
@click.option("--job", help="With --once: run only this job.")
@click.option(
    "--at-once",
    type=click.IntRange(1, 1000),
    help="Maximum number of jobs that run at the same time; jobs that share a connection never do. Default: 4, or with "
    "--fleet what the base file says.",
)
@fleet_option
@click.option(
    "--executor",
    metavar="NAME[=ADDRESS]",
    help="With --fleet: where runs are executed: threads (default), processes, or dask=tcp://HOST:PORT.",
)
@address_option(
    "--listen",
    help="Also receive webhooks, as 'crossdock listen' does; by default on 127.0.0.1 only.",
)
@health_option
@console_options(beside_option)
@click.option(
    "--allow-host",
    multiple=True,
    metavar="HOST[:PORT]",
    help="With --health or --console: another host name of this machine that requests may use. Repeatable.",
)
@log_format_option
@config_option
@as_json
def schedule(
    config: Path,
    *,
    once: str | None,
    days: int | None,
    job: str | None,
    at_once: int | None,
    fleet: str | None,
    executor: str | None,
    listen: ListenAddress | None,
    health: ListenAddress | None,
    console: ConsoleOptions,
    allow_host: tuple[str, ...],
    log_format: LogFormat,
    as_json: bool,
) -> int:
    """Run the jobs in the config when they are due, until SIGTERM is received.

    Each scheduled run is executed once, even if several schedulers share one state; if one is killed, another takes
    over. On SIGTERM, requests in flight are settled before it exits; a second SIGTERM ends it at once. On SIGHUP it
    reloads the config, unless the new one is invalid.
    """
    from crossdock.errors import ConfigError

    if allow_host and health is None and console.address is None:
        message = "--allow-host applies to the health endpoints and the console, which are not served"
        raise ConfigError(message, hint="Add --health PORT or --console PORT.", code="options_conflict")
    if fleet is not None:
        from crossdock.cli import fleet_schedule

        others = {"--once": once, "--job": job, "--listen": listen}
        options = fleet_schedule.FleetOptions(log_format, executor or "threads", at_once, health, allow_host, console)
        return fleet_schedule.serve_or_preview(fleet, fleet_base(config), options, others, days, as_json=as_json)
    _check_single_tenant_options(executor, at_once)
    loaded = load(config)
    if not loaded.jobs:
        hint = "docs/how_to/schedule/jobs.md has an example"
        if listen is not None:
            hint += "; 'crossdock listen' receives webhooks without jobs"
        raise ConfigError("has no jobs", where=str(config), hint=hint, code="jobs_missing")
    if days is not None:
        return _preview(loaded, days, as_json=as_json)
    if once is not None:
        from crossdock.cli import schedule_once

        return schedule_once.run(loaded, once, job, log_format, as_json=as_json)
    return serve(
        loaded, config, ServiceOptions(log_format, at_once or AT_ONCE, health, allow_host, listen, console=console)
    )


def _check_single_tenant_options(executor: str | None, at_once: int | None) -> None:
    from crossdock.errors import ConfigError

    if executor is not None:
        raise ConfigError("--executor applies to a fleet", hint="Add --fleet PATTERN.", code="options_conflict")
    if at_once is not None and at_once > MOST_AT_ONCE:
        hint = "With --fleet it is at most 1000."
        raise ConfigError(f"--at-once is at most {MOST_AT_ONCE} for one config", hint=hint, code="option_value_invalid")


def _preview(loaded: Project, days: int, *, as_json: bool) -> int:
    from crossdock.services.scheduler.schedule_preview import preview_rows
    from crossdock.values.clock import SystemClock

    with loaded.read_state() as tx:
        rows = preview_rows(tx, loaded.jobs, SystemClock().now(), days)
    show_preview(rows, ("job", "date", "begins", "expected end", "requests"), days, as_json=as_json)
    return 0


def show_preview(rows: list[dict[str, Any]], columns: tuple[str, ...], days: int, *, as_json: bool) -> None:
    from crossdock.cli import terminal_output

    if as_json:
        terminal_output.print_json(rows)
    else:
        terminal_output.print_rows(f"The next {days} day{'s' * (days > 1)}", columns, rows, numbers=("requests",))
