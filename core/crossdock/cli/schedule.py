"""``crossdock schedule``."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli.service import (
    ListenAddress,
    ServiceOptions,
    address_option,
    health_option,
    interruptible_service,
    log_format_option,
    serve,
)
from crossdock.cli.shared_options import as_json, config_option, example, fleet_base, fleet_option, load, say

if TYPE_CHECKING:
    from crossdock.clock import Clock
    from crossdock.project.project import Project
    from crossdock.runs.timings import Timings
    from crossdock.scheduler.stderr_log import LogFormat
    from crossdock.state import DueRun


AT_ONCE, MOST_AT_ONCE = 4, 16


@click.command(
    epilog=example(
        "crossdock schedule",
        "crossdock schedule --listen 8090",
        "crossdock schedule --preview 7",
        "crossdock schedule --once 2026-11-20 --job nightly",
        "crossdock schedule --fleet 'tenants/*.yaml' --executor processes",
    )
)
@click.option("--once", "once", metavar="DATE", help="Run what is due for this business date, and exit.")
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
@click.option(
    "--allow-host",
    multiple=True,
    metavar="HOST[:PORT]",
    help="With --health: another host name of this machine that requests may use. Repeatable.",
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

    if allow_host and health is None:
        raise ConfigError(
            "--allow-host applies to the health endpoints, which are not served", hint="Add --health PORT."
        )
    if fleet is not None:
        from crossdock.cli import fleet_schedule

        others = {"--once": once, "--job": job, "--listen": listen}
        options = fleet_schedule.FleetOptions(log_format, executor or "threads", at_once, health, allow_host)
        return fleet_schedule.run(fleet, fleet_base(config), options, others, days, as_json=as_json)
    _check_options_of_one(executor, at_once)
    loaded = load(config)
    if not loaded.jobs:
        hint = "docs/schedule.md has an example"
        if listen is not None:
            hint += "; 'crossdock listen' receives webhooks without jobs"
        raise ConfigError("has no jobs", where=str(config), hint=hint)
    if days is not None:
        return _preview(loaded, days, as_json=as_json)
    if once is not None:
        return _once(loaded, once, job, log_format, as_json=as_json)
    return serve(loaded, config, ServiceOptions(log_format, at_once or AT_ONCE, health, allow_host, listen))


def _check_options_of_one(executor: str | None, at_once: int | None) -> None:
    """Refuse what only a fleet can do.

    Raises:
        ConfigError: If it is given.
    """
    from crossdock.errors import ConfigError

    if executor is not None:
        raise ConfigError("--executor applies to a fleet", hint="Add --fleet PATTERN.")
    if at_once is not None and at_once > MOST_AT_ONCE:
        hint = "With --fleet it is at most 1000."
        raise ConfigError(f"--at-once is at most {MOST_AT_ONCE} for one config", hint=hint)


def _preview(loaded: Project, days: int, *, as_json: bool) -> int:
    from crossdock.clock import SystemClock

    rows = preview_rows(loaded, SystemClock().now(), days)
    show_preview(rows, ("job", "date", "begins", "expected end", "requests"), days, as_json=as_json)
    return 0


def preview_rows(loaded: Project, now: datetime, days: int) -> list[dict[str, Any]]:
    """The runs of the next *days*, in order."""
    from crossdock.scheduler.due_jobs import DueJobs

    rows = []
    with loaded.look() as tx:
        expected = {name: tx.scheduled_runs.expected(name) for name in loaded.jobs}
    for name, due in DueJobs(loaded.jobs).preview(now, now + timedelta(days=days)):
        zone = loaded.jobs[name].schedule.zone
        seconds, requests = expected[name] or (None, None)
        ends = None if seconds is None else (due.instant + timedelta(seconds=seconds)).astimezone(zone)
        begins = due.instant.astimezone(zone)
        rows.append(
            {
                "job": name,
                "business_date": due.business_date,
                "begins": begins,
                "expected_end": ends,
                "expected_requests": requests,
            }
        )
    return rows


def show_preview(rows: list[dict[str, Any]], columns: tuple[str, ...], days: int, *, as_json: bool) -> None:
    """Show runs as a table, or as JSON."""
    from crossdock.cli import terminal_output

    if as_json:
        terminal_output.print_json(rows)
    else:
        terminal_output.print_rows(f"The next {days} day{'s' * (days > 1)}", columns, rows, numbers=("requests",))


def _once(loaded: Project, text: str, job: str | None, log_format: LogFormat, *, as_json: bool) -> int:
    from crossdock.clock import SystemClock
    from crossdock.errors import ConfigError
    from crossdock.observability.trace_export import traced
    from crossdock.scheduler import stderr_log
    from crossdock.scheduling.due_times import due
    from crossdock.state import DueRun
    from crossdock.targets.platform_access import check_clock

    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"--once {text!r} is not a date", hint="For example: --once 2026-11-20") from None
    if job is not None and job not in loaded.jobs:
        raise ConfigError(f"there is no job {job!r}", hint=f"known: {', '.join(loaded.jobs)}")
    clock = SystemClock()
    check_clock(loaded.platform, clock, loaded.probed[0])
    now, codes = clock.now(), [0]
    around = datetime.combine(day, datetime.min.time(), now.tzinfo)
    with stderr_log.logging_to_stderr(log_format), traced(stderr_log.warn) as trace:
        for name in [job] if job else loaded.jobs:
            found = due(loaded.jobs[name].schedule, around - timedelta(days=3), min(now, around + timedelta(days=40)))
            of_day = [each for each in found if each.business_date == day]
            if not of_day:
                _say_of(name, day, f"nothing is due{' yet' * (day > now.date())}", log_format)
            for one in of_day:
                due_run = DueRun(name, one.instant, one.business_date)
                codes.append(_run_once(loaded, due_run, trace, log_format, as_json=as_json))
    return max(codes)


def _run_once(
    loaded: Project, due_run: DueRun, trace: Callable[[Timings], None], log_format: LogFormat, *, as_json: bool
) -> int:
    """Execute a scheduled run and show it; its exit code."""
    from crossdock.cli import terminal_output
    from crossdock.clock import SystemClock
    from crossdock.errors import CrossdockError
    from crossdock.runs import runner, state_session
    from crossdock.runs.timings import Timings
    from crossdock.scheduler.stderr_log import RunLog

    clock, logged = SystemClock(), log_format == "json"
    log = RunLog(due_run.job, due_run.business_date)
    with ExitStack() as stack:
        if logged:
            timings = log.timings(clock)
        else:
            timings = Timings(clock, stack.enter_context(terminal_output.progress(wanted=not as_json)))
        interrupt = stack.enter_context(interruptible_service(log_format))
        try:
            with state_session.open_session(loaded, clock) as opened:
                report = runner.run_scheduled(opened, due_run, progress=timings, interrupt=interrupt)
            _apply_retention(loaded, clock, interrupt)
        except CrossdockError as error:
            if not logged:
                raise
            log.ended(None, str(error))
            raise SystemExit(error.exit_code) from error
        finally:
            trace(timings)
    if report is None:
        _say_of(due_run.job, due_run.business_date, _why_not(loaded, due_run), log_format)
        return 0
    if logged:
        log.ended(report)
    if as_json:
        terminal_output.print_json(report.as_json())
    else:
        terminal_output.show_run(terminal_output.out(), report.as_json())
    if not as_json and not logged:
        terminal_output.print_errors(report.errors)
    return report.exit_code


def _say_of(job: str, business_date: date, text: str, log_format: LogFormat) -> None:
    """Say on stderr why there is no run."""
    from crossdock.scheduler.stderr_log import RunLog

    if log_format == "json":
        RunLog(job, business_date).say(text)
    else:
        say(f"{job} for {business_date}: {text}", err=True)


def _apply_retention(loaded: Project, clock: Clock, interrupt: threading.Event) -> None:
    from crossdock.scheduler.retention_task import RetentionTask

    task = RetentionTask(clock)
    while not interrupt.is_set() and task.run(loaded):
        """More is left to remove."""


def _why_not(loaded: Project, due_run: DueRun) -> str:
    with loaded.look() as tx:
        run = tx.scheduled_runs.get(due_run.job, due_run.due, due_run.business_date)
    return "not run: older than the retention period" if run is None else "has already been run"
