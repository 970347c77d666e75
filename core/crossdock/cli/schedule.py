"""``crossdock schedule`` and ``crossdock jobs``."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import date, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli.options import as_json, config_option, example, interruptible

if TYPE_CHECKING:
    from crossdock.nightly.notify import Notifier
    from crossdock.sync.project import Project


@click.command(
    epilog=example(
        "crossdock schedule", "crossdock schedule --preview 7", "crossdock schedule --once 2026-11-20 --job nightly"
    )
)
@click.option("--once", "once", metavar="DATE", help="Run the nights of this business date that are due, and end.")
@click.option("--preview", "days", type=click.IntRange(1, 366), metavar="DAYS", help="Show the nights of so many days.")
@click.option("--job", help="With --once: only this one.")
@click.option("--health", metavar="PORT", type=click.IntRange(0, 65_535), help="Serve /healthz, /readyz and /metrics.")
@config_option
@as_json
def schedule(
    config: Path, *, once: str | None, days: int | None, job: str | None, health: int | None, as_json: bool
) -> int:
    """Run the jobs of the config when they are due, each night once, until SIGTERM.

    Several schedulers may watch one state: one of them runs a night, and another takes over where one was killed.
    SIGTERM ends it once what is on its way is settled; SIGHUP reads the config again and keeps the old one where the
    new one is wrong.
    """
    from crossdock.errors import ConfigError
    from crossdock.sync import project

    loaded = project.load(config)
    if not loaded.jobs:
        raise ConfigError("names no jobs", where=str(config), hint="docs/guide.md, 'Nights', shows one")
    if days is not None:
        return _preview(loaded, days, as_json=as_json)
    if once is not None:
        return _once(loaded, once, job, as_json=as_json)
    return _forever(loaded, config, health)


def _preview(loaded: Project, days: int, *, as_json: bool) -> int:
    from crossdock.cli import terminal
    from crossdock.clock import SystemClock
    from crossdock.nightly.agenda import Agenda

    now = SystemClock().now()
    rows = []
    with loaded.look() as tx:
        expected = {name: tx.nights.expected(name) for name in loaded.jobs}
    for name, due in Agenda(loaded.jobs).preview(now, now + timedelta(days=days)):
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
        terminal.print_json(rows)
    else:
        columns = ("job", "date", "begins", "expected end", "requests")
        _print_table(f"The next {days} days", columns, rows, numbers=("requests",))
    return 0


def _print_table(title: str, columns: Sequence[str], rows: list[dict[str, Any]], *, numbers: Sequence[str]) -> None:
    """Show the values of *rows* under *columns*; what is None stays empty."""
    from crossdock.cli import terminal

    lines = [tuple("" if value is None else value for value in row.values()) for row in rows]
    terminal.out().print(terminal.table(title, columns, lines, numbers=numbers))


def _once(loaded: Project, text: str, job: str | None, *, as_json: bool) -> int:
    from crossdock.cli import terminal
    from crossdock.clock import SystemClock
    from crossdock.errors import ConfigError
    from crossdock.scheduling.due import due
    from crossdock.state import Occasion
    from crossdock.sync import runner

    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"--once {text!r} is no date", hint="for example --once 2026-11-20") from None
    if job is not None and job not in loaded.jobs:
        raise ConfigError(f"there is no job {job!r}", hint=f"known: {', '.join(loaded.jobs)}")
    now, codes = SystemClock().now(), [0]
    around = datetime.combine(day, datetime.min.time(), now.tzinfo)
    for name in [job] if job else loaded.jobs:
        found = due(loaded.jobs[name].schedule, around - timedelta(days=3), min(now, around + timedelta(days=40)))
        for one in (each for each in found if each.business_date == day):
            with interruptible() as interrupt, terminal.progress(wanted=not as_json) as progress:
                occasion = Occasion(name, one.instant, one.business_date)
                report = runner.night(loaded, occasion, clock=SystemClock(), progress=progress, interrupt=interrupt)
            if report is None:
                click.echo(f"{name} for {day}: has been run already", err=True)
                continue
            codes.append(report.exit_code)
            if as_json:
                terminal.print_json(report.as_json())
            else:
                terminal.show_run(terminal.out(), report.as_json())
                terminal.print_errors(report.errors)
    return max(codes)


def _forever(loaded: Project, config: Path, health: int | None) -> int:
    from crossdock.cli import terminal
    from crossdock.clock import SystemClock
    from crossdock.nightly.health import serve
    from crossdock.nightly.service import Service
    from crossdock.nightly.vitals import Vitals

    clock = SystemClock()
    vitals, notifier = Vitals(clock), _notifier(config)
    with ExitStack() as stack:
        interrupt = stack.enter_context(interruptible())
        progress = stack.enter_context(terminal.progress(wanted=False))
        if health is not None:
            _log(f"serving {stack.enter_context(serve(vitals, port=health))}")
        reloaded = stack.enter_context(_hangups(config))
        _log(f"watching {', '.join(loaded.jobs)}")
        Service(loaded, clock, progress, interrupt, vitals, notifier=notifier, log=_log).run(reloaded)
    return 0


def _notifier(config: Path) -> Notifier | None:
    from crossdock import config as configs
    from crossdock.clock import SystemClock
    from crossdock.nightly.notify import Notifier, NotifyConfig

    document = configs.read(config)
    facts: Any = document.data.get("notify")
    return Notifier(document.check(NotifyConfig, facts, ("notify",)), SystemClock()) if facts is not None else None


@contextmanager
def _hangups(config: Path) -> Iterator[Callable[[], Project | None]]:
    """Gives the config anew after SIGHUP; one that is wrong is told, and the old one stays."""
    from crossdock.errors import ConfigError
    from crossdock.sync import project

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
            _log(f"SIGHUP: the config is not read again: {error}")
            return None
        _log(f"SIGHUP: watching {', '.join(fresh.jobs)}")
        return fresh

    before = signal.signal(signal.SIGHUP, ask)
    try:
        yield reloaded
    finally:
        signal.signal(signal.SIGHUP, before)


def _log(text: str) -> None:
    click.echo(f"crossdock: {text}", err=True)


@click.group(epilog=example("crossdock jobs list", "crossdock jobs pause nightly", "crossdock jobs resume nightly"))
def jobs() -> None:
    """Look at the nights of jobs, pause them and let them go on."""


@jobs.command(name="list", epilog=example("crossdock jobs list --limit 30"))
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="The latest nights to show.")
@config_option
@as_json
def list_(config: Path, *, limit: int, as_json: bool) -> None:
    """The latest nights, newest first."""
    from crossdock.cli import terminal
    from crossdock.sync import project

    loaded = project.load(config)
    with loaded.look() as tx:
        nights, paused = tx.nights.listed(limit=limit), tx.nights.paused()
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
        for night in nights
    ]
    if as_json:
        terminal.print_json({"paused": sorted(paused), "nights": rows})
        return
    columns = ("job", "date", "due", "status", "run", "attempts", "note")
    _print_table("Nights", columns, rows, numbers=("run", "attempts"))
    if paused:
        click.echo(f"paused: {', '.join(sorted(paused))}")


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
    from contextlib import closing

    from crossdock.clock import SystemClock
    from crossdock.errors import ConfigError
    from crossdock.sync import project

    loaded = project.load(config)
    if job not in loaded.jobs:
        raise ConfigError(f"there is no job {job!r}", hint=f"known: {', '.join(loaded.jobs) or 'none'}")
    with closing(loaded.open_state()) as state, state.begin() as tx:
        tx.nights.pause(job, SystemClock().now(), paused=paused)
    click.echo(f"{job}: {'paused' if paused else 'goes on'}")
