"""``crossdock schedule``."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import date, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from crossdock.cli.shared_options import as_json, config_option, example, interruptible, say

if TYPE_CHECKING:
    from crossdock.clock import Clock
    from crossdock.notifications.notifier import Notifier
    from crossdock.project.project import Project
    from crossdock.runs.timings import Timings
    from crossdock.scheduler.run_log import LogFormat
    from crossdock.state import DueRun


@click.command(
    epilog=example(
        "crossdock schedule", "crossdock schedule --preview 7", "crossdock schedule --once 2026-11-20 --job nightly"
    )
)
@click.option("--once", "once", metavar="DATE", help="Run the nights of this business date that are due, and end.")
@click.option("--preview", "days", type=click.IntRange(1, 366), metavar="DAYS", help="Show the nights of so many days.")
@click.option("--job", help="With --once: only this one.")
@click.option(
    "--at-once",
    type=click.IntRange(1, 16),
    default=4,
    show_default=True,
    help="Most jobs that run side by side; those with a connection in common never do.",
)
@click.option("--health", metavar="PORT", type=click.IntRange(0, 65_535), help="Serve /healthz, /readyz and /metrics.")
@click.option(
    "--allow-host",
    multiple=True,
    metavar="HOST[:PORT]",
    help="Repeatable, with --health: a name, besides this machine's own, by which it may be asked.",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="What stderr is told: sentences, or one JSON object a line.",
)
@config_option
@as_json
def schedule(
    config: Path,
    *,
    once: str | None,
    days: int | None,
    job: str | None,
    at_once: int,
    health: int | None,
    allow_host: tuple[str, ...],
    log_format: LogFormat,
    as_json: bool,
) -> int:
    """Run the jobs of the config when they are due, each night once, until SIGTERM.

    Several schedulers may watch one state: one of them runs a night, and another takes over where one was killed.
    SIGTERM ends it once what is on its way is settled; SIGHUP reads the config again and keeps the old one where the
    new one is wrong.
    """
    from crossdock.errors import ConfigError
    from crossdock.project import project

    if allow_host and health is None:
        raise ConfigError(
            "--allow-host names the host of the health page, which is not served", hint="Add --health PORT."
        )
    loaded = project.load(config)
    if not loaded.jobs:
        raise ConfigError("names no jobs", where=str(config), hint="docs/schedule.md has an example")
    if days is not None:
        return _preview(loaded, days, as_json=as_json)
    if once is not None:
        return _once(loaded, once, job, log_format, as_json=as_json)
    return _forever(loaded, config, at_once, health, allow_host, log_format)


def _preview(loaded: Project, days: int, *, as_json: bool) -> int:
    from crossdock.cli import terminal_output
    from crossdock.clock import SystemClock
    from crossdock.scheduler.due_jobs import DueJobs

    now = SystemClock().now()
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
                "business_date": due.business_date.isoformat(),
                "begins": begins.isoformat(timespec="minutes"),
                "expected_end": ends and ends.isoformat(timespec="minutes"),
                "expected_requests": requests,
            }
        )
    if as_json:
        terminal_output.print_json(rows)
    else:
        columns = ("job", "date", "begins", "expected end", "requests")
        terminal_output.print_rows(f"The next {days} days", columns, rows, numbers=("requests",))
    return 0


def _once(loaded: Project, text: str, job: str | None, log_format: LogFormat, *, as_json: bool) -> int:
    from crossdock.cli.trace_export import traced
    from crossdock.clock import SystemClock
    from crossdock.errors import ConfigError
    from crossdock.platform.access_check import check_clock
    from crossdock.scheduler import run_log
    from crossdock.scheduling.due_times import due
    from crossdock.state import DueRun

    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"--once {text!r} is no date", hint="for example --once 2026-11-20") from None
    if job is not None and job not in loaded.jobs:
        raise ConfigError(f"there is no job {job!r}", hint=f"known: {', '.join(loaded.jobs)}")
    clock = SystemClock()
    check_clock(loaded.platform, clock)
    now, codes = clock.now(), [0]
    around = datetime.combine(day, datetime.min.time(), now.tzinfo)
    with run_log.shown(log_format), traced(run_log.warn) as trace:
        for name in [job] if job else loaded.jobs:
            found = due(loaded.jobs[name].schedule, around - timedelta(days=3), min(now, around + timedelta(days=40)))
            for one in (each for each in found if each.business_date == day):
                due_run = DueRun(name, one.instant, one.business_date)
                codes.append(_night(loaded, due_run, trace, log_format, as_json=as_json))
    return max(codes)


def _night(
    loaded: Project, due_run: DueRun, trace: Callable[[Timings], None], log_format: LogFormat, *, as_json: bool
) -> int:
    """Run a night and show it; its exit code."""
    from crossdock.cli import terminal_output
    from crossdock.clock import SystemClock
    from crossdock.errors import CrossdockError
    from crossdock.runs import runner, session
    from crossdock.runs.timings import Timings
    from crossdock.scheduler.run_log import RunLog

    clock, logged = SystemClock(), log_format == "json"
    log = RunLog(due_run.job, due_run.business_date)
    with ExitStack() as stack:
        if logged:
            timings = log.timings(clock)
        else:
            timings = Timings(clock, stack.enter_context(terminal_output.progress(wanted=not as_json)))
        interrupt = stack.enter_context(_ending(log_format))
        try:
            with session.opened(loaded, clock) as held:
                report = runner.night(held, due_run, progress=timings, interrupt=interrupt)
            _keep_up(loaded, clock, interrupt)
        except CrossdockError as error:
            if not logged:
                raise
            log.ended(None, str(error))
            raise SystemExit(error.exit_code) from error
        finally:
            trace(timings)
    if report is None:
        said = _why_not(loaded, due_run)
        if logged:
            log.say(said)
        else:
            say(f"{due_run.job} for {due_run.business_date}: {said}", err=True)
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


def _keep_up(loaded: Project, clock: Clock, interrupt: threading.Event) -> None:
    from crossdock.scheduler.retention_task import RetentionTask

    upkeep = RetentionTask(clock)
    while not interrupt.is_set() and upkeep.turn(loaded):
        """There is more."""


def _why_not(loaded: Project, due_run: DueRun) -> str:
    with loaded.look() as tx:
        night = tx.scheduled_runs.get(due_run.job, due_run.due, due_run.business_date)
    return "is not run: it is longer ago than 'retention' keeps nights" if night is None else "has been run already"


def _forever(
    loaded: Project,
    config: Path,
    at_once: int,
    health: int | None,
    allowed_hosts: tuple[str, ...],
    log_format: LogFormat,
) -> int:
    from concurrent.futures import ThreadPoolExecutor

    from crossdock.cli.trace_export import traced
    from crossdock.clock import SystemClock
    from crossdock.observability.health import serve
    from crossdock.observability.metrics import Metrics
    from crossdock.scheduler import run_log
    from crossdock.scheduler.service import Service

    clock, log = SystemClock(), run_log.LOGGER
    metrics, notifier = Metrics(clock), _notifier(config)
    with run_log.shown(log_format), traced(run_log.warn) as trace, ExitStack() as stack:
        interrupt = stack.enter_context(_ending(log_format))
        if health is not None:
            base_url = stack.enter_context(serve(metrics, port=health, allowed_hosts=allowed_hosts))
            log.info("serving %s", base_url)
        reloaded = stack.enter_context(_hangups(config))
        log.info("watching %s", ", ".join(loaded.jobs))
        threads = ThreadPoolExecutor(at_once, "night")
        service = Service(
            loaded, clock, interrupt, metrics, notifier=notifier, trace=trace, executor=threads, at_once=at_once
        )
        try:
            service.run(reloaded)
        except KeyboardInterrupt:  # asked twice: a thread cannot be ended, and a state is made to survive worse
            os._exit(130)
        threads.shutdown()
    return 0


def _ending(log_format: LogFormat) -> AbstractContextManager[threading.Event]:
    """As `interruptible`, for a process whose threads log; in a log of objects the signal is one, too."""
    from crossdock.scheduler.run_log import LOGGER, beside

    return interruptible(LOGGER.info if log_format == "json" else beside)


def _notifier(config: Path) -> Notifier | None:
    from crossdock import config_file as configs
    from crossdock.clock import SystemClock
    from crossdock.notifications.notifier import Notifier, notify_config

    told = notify_config(configs.read(config))
    return None if told is None else Notifier(told, SystemClock())


@contextmanager
def _hangups(config: Path) -> Iterator[Callable[[], Project | None]]:
    """Gives the config anew after SIGHUP; one that is wrong is told, and the old one stays."""
    from crossdock.errors import ConfigError
    from crossdock.project import project
    from crossdock.scheduler.run_log import LOGGER

    asked = threading.Event()

    def ask(_number: int, _frame: FrameType | None) -> None:
        asked.set()

    def reloaded() -> Project | None:
        if not asked.is_set():
            return None
        asked.clear()
        try:
            fresh = project.load(config)
        except ConfigError as error:
            LOGGER.error("SIGHUP: the config is not read again: %s", error)
            return None
        LOGGER.info("SIGHUP: watching %s", ", ".join(fresh.jobs))
        return fresh

    before = signal.signal(signal.SIGHUP, ask)
    try:
        yield reloaded
    finally:
        signal.signal(signal.SIGHUP, before)
