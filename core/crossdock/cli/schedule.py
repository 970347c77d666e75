"""``crossdock schedule``, also for many tenants with ``--fleet``, and the runs of the next days."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from crossdock.cli.project_and_state import load_project
from crossdock.cli.scheduler_and_webhook_service import (
    ServiceOptions,
    health_option,
    log_format_option,
    serve_until_stopped,
    stop_event_with_logged_notice,
)
from crossdock.cli.shared_options_messages_and_signals import (
    ListenAddress,
    as_json,
    config_option,
    explicitly_given_fleet_base_files,
    fleet_option,
    help_example,
    listen_address_option,
)
from crossdock.cli.web_console_serving_options import WebConsoleOptions, console_address_option, web_console_options
from crossdock.errors import ConfigError

if TYPE_CHECKING:
    from crossdock.config.project.project import Project
    from crossdock.services.fleet.executor_kinds_by_entry_point import ChosenExecutor
    from crossdock.services.fleet.fleet_scheduler import FleetEventListener, FleetScheduler
    from crossdock.services.fleet.fleet_service import FleetService
    from crossdock.services.fleet.tenants_and_watched_configs import FleetBase
    from crossdock.services.notifications.mail_and_webhook_notifier import Notifier
    from crossdock.services.scheduler.stderr_log import LogFormat
    from crossdock.state.fleet_leadership_and_jobs import JobFacts
    from crossdock.values.clock import Clock

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
@listen_address_option(
    "--listen",
    help="Also receive webhooks, as 'crossdock listen' does; by default on 127.0.0.1 only.",
)
@health_option
@web_console_options(console_address_option)
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
    console: WebConsoleOptions,
    allow_host: tuple[str, ...],
    log_format: LogFormat,
    as_json: bool,
) -> int:
    """Run the jobs in the config when they are due, until SIGTERM is received.

    Each scheduled run is executed once, even if several schedulers share one state; if one is killed, another takes
    over. On SIGTERM, requests in flight are settled before it exits; a second SIGTERM ends it at once. On SIGHUP it
    reloads the config, unless the new one is invalid.
    """
    if allow_host and health is None and console.address is None:
        message = "--allow-host applies to the health endpoints and the console, which are not served"
        raise ConfigError(message, hint="Add --health PORT or --console PORT.", code="options_conflict")
    if fleet is not None:
        others = {"--once": once, "--job": job, "--listen": listen}
        options = FleetOptions(log_format, executor or "threads", at_once, health, allow_host, console)
        return _serve_or_preview_fleet(
            fleet, explicitly_given_fleet_base_files(config), options, others, days, as_json=as_json
        )
    _refuse_fleet_options_without_fleet(executor, at_once)
    loaded = load_project(config)
    if not loaded.jobs:
        from crossdock.config.schedules.job_and_schedule_config import JOBS_EXAMPLE

        hint = f"add {JOBS_EXAMPLE}"
        if listen is not None:
            hint += "; 'crossdock listen' receives webhooks without jobs"
        raise ConfigError("has no jobs", where=str(config), hint=hint, code="jobs_missing")
    if days is not None:
        return _preview(loaded, days, as_json=as_json)
    if once is not None:
        from crossdock.cli import job_execution_for_one_date

        return job_execution_for_one_date.run_jobs_due_for_date(loaded, once, job, log_format, as_json=as_json)
    return serve_until_stopped(
        loaded, config, ServiceOptions(log_format, at_once or AT_ONCE, health, allow_host, listen, console=console)
    )


def _refuse_fleet_options_without_fleet(executor: str | None, at_once: int | None) -> None:
    from crossdock.errors import ConfigError

    if executor is not None:
        raise ConfigError("--executor applies to a fleet", hint="Add --fleet PATTERN.", code="options_conflict")
    if at_once is not None and at_once > MOST_AT_ONCE:
        hint = "With --fleet it is at most 1000."
        raise ConfigError(f"--at-once is at most {MOST_AT_ONCE} for one config", hint=hint, code="option_value_invalid")


def _preview(loaded: Project, days: int, *, as_json: bool) -> int:
    from crossdock.services.scheduler.due_run_decisions_and_preview import preview_rows
    from crossdock.values.clock import SystemClock

    with loaded.read_state() as tx:
        rows = preview_rows(tx, loaded.jobs, SystemClock().now(), days)
    _show_preview(rows, ("job", "date", "begins", "expected end", "requests"), days, as_json=as_json)
    return 0


def _show_preview(rows: list[dict[str, Any]], columns: tuple[str, ...], days: int, *, as_json: bool) -> None:
    from crossdock.cli import terminal_output

    if as_json:
        terminal_output.print_json(rows)
    else:
        terminal_output.print_rows(f"The next {days} day{'s' * (days > 1)}", columns, rows, numbers=("requests",))


class FleetOptions(Struct, frozen=True):
    """Options of the service. *executor* is ``NAME`` or ``NAME=ADDRESS``; without *at_once*, the base file decides."""

    log_format: LogFormat
    executor: str
    at_once: int | None = None
    health: ListenAddress | None = None
    allowed_hosts: tuple[str, ...] = ()
    console: WebConsoleOptions | None = None


def _serve_or_preview_fleet(
    pattern: str,
    base_files: Sequence[Path],
    options: FleetOptions,
    others: Mapping[str, object],
    days: int | None,
    *,
    as_json: bool,
) -> int:
    """Run the service, or show the runs of the next *days*. *others* are options that ``--fleet`` refuses."""
    if given := [name for name, value in others.items() if value is not None]:
        hint = f"for one tenant: crossdock -C BASE -C TENANT schedule {given[0]}"
        raise ConfigError(f"{given[0]} does not go with --fleet", hint=hint, code="options_conflict")
    return (
        _serve_fleet(pattern, base_files, options)
        if days is None
        else _preview_fleet(pattern, base_files, days, as_json=as_json)
    )


def _serve_fleet(pattern: str, base_files: Sequence[Path], options: FleetOptions) -> int:
    from crossdock.services.fleet import executor_kinds_by_entry_point
    from crossdock.services.fleet.fleet_service import FleetService, GroupedNotices
    from crossdock.services.fleet.tenants_and_watched_configs import WatchedTenantConfigs, load_fleet_base
    from crossdock.services.observability.health_and_metrics import Metrics
    from crossdock.services.observability.monitoring_server import serve_monitoring_in_thread as serve_health
    from crossdock.services.scheduler import stderr_log
    from crossdock.services.scheduler.apscheduler_daemon import Daemon
    from crossdock.state.fleet_leadership_and_jobs import FleetDatabase
    from crossdock.values.clock import SystemClock

    base, executor = load_fleet_base(*base_files), executor_kinds_by_entry_point.parse_executor_option(options.executor)
    if executor.kind.on_other_hosts and base.database.drivername == "sqlite":
        message = "the database of the fleet is a file of one host, and runs may be on other hosts"
        raise ConfigError(
            message, where="fleet.database", hint="database: postgresql://user@host/database", code="fleet_state_local"
        )
    clock, daemon = SystemClock(), Daemon(1)
    metrics = Metrics(clock, of_fleet=True)
    files = WatchedTenantConfigs(
        pattern, base, on_other_hosts=executor.kind.on_other_hosts, loading=metrics.record_heartbeat
    )
    files.config_paths()  # a pattern that is the path of nothing is refused at once
    with stderr_log.logging_to_stderr(options.log_format), ExitStack() as stack:
        interrupt = stack.enter_context(stop_event_with_logged_notice(options.log_format))
        if options.health is not None:
            served = serve_health(metrics, *options.health, allowed_hosts=options.allowed_hosts)
            stderr_log.LOGGER.info("serving %s", stack.enter_context(served))
        if options.console is not None:
            hosts, warn = options.allowed_hosts, stderr_log.log_warning
            url = stack.enter_context(options.console.serve_console_in_own_process(base_files, pattern, hosts, warn))
            if url is not None:
                stderr_log.LOGGER.info("serving the console at %s", url)
        service = FleetService(
            files,
            lambda: FleetDatabase(base.database),
            clock,
            interrupt,
            metrics,
            GroupedNotices(_notifier(base)),
            _fleet_scheduler_factory(base, options, executor, clock, daemon.wake),
        )
        asked = stack.enter_context(_poll_for_reload_on_sighup(service))
        gc.freeze()  # what is imported stays
        try:
            daemon.run(service, interrupt, asked)
        except KeyboardInterrupt:  # the second signal; threads cannot be ended, and the states survive any kill
            os._exit(130)
    return 0


def _fleet_scheduler_factory(
    base: FleetBase, options: FleetOptions, executor: ChosenExecutor, clock: Clock, wake: Callable[[], None]
) -> Callable[[FleetEventListener, Callable[[str, Iterable[JobFacts]], None]], FleetScheduler]:
    from crossdock.services.fleet.fleet_scheduler import FleetScheduler, RunSlots

    slots = RunSlots(options.at_once or base.config.at_once, base.config.per_host)
    database = base.database.render_as_string(hide_password=False)  # it has no password: see `parse_database_url`

    def make(listener: FleetEventListener, known: Callable[[str, Iterable[JobFacts]], None]) -> FleetScheduler:
        return FleetScheduler(clock, slots, lambda: executor.open(slots.at_once), database, listener, known, wake)

    return make


def _preview_fleet(pattern: str, base_files: Sequence[Path], days: int, *, as_json: bool) -> int:
    from crossdock.cli.project_and_state import FleetStates
    from crossdock.services.scheduler.due_run_decisions_and_preview import preview_rows
    from crossdock.values.clock import SystemClock

    now, states = SystemClock().now(), FleetStates(pattern, base_files)

    def read(loaded: Project) -> list[dict[str, Any]]:
        with loaded.read_state() as tx:
            return preview_rows(tx, loaded.jobs, now, days)

    found = states.read_each_tenant(read)
    rows = [{"tenant": name, **row} for name, each in found for row in each]
    rows.sort(key=lambda row: (row["begins"], row["tenant"]))
    _show_preview(rows, ("tenant", "job", "date", "begins", "expected end", "requests"), days, as_json=as_json)
    return states.exit_code


def _notifier(base: FleetBase) -> Notifier | None:
    from crossdock.services.notifications.mail_and_webhook_notifier import Notifier
    from crossdock.values.clock import SystemClock

    return None if base.notify is None else Notifier(base.notify, SystemClock())


@contextmanager
def _poll_for_reload_on_sighup(service: FleetService) -> Iterator[Callable[[], Callable[[], None] | None]]:
    asked: list[Callable[[], None]] = []

    def ask(_number: int, _frame: FrameType | None) -> None:
        asked.append(service.request_reload)

    before = signal.signal(signal.SIGHUP, ask)
    try:
        yield lambda: asked.pop() if asked else None
    finally:
        signal.signal(signal.SIGHUP, before)
