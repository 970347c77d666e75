"""``crossdock state``: housekeeping."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import asdict
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossdock.cli.shared_options import as_json, config_option, example, say

if TYPE_CHECKING:
    from datetime import datetime

    from crossdock.project.project import Project
    from crossdock.state.queries.state_size import Contents
    from crossdock.state.upkeep.expiry import Ages
    from crossdock.state.upkeep.retention import PurgeResult

_PREFIXES = "KMGTP"
_UNITS = {"d": timedelta(days=1), "h": timedelta(hours=1)}


def _age(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> timedelta | None:
    if value is None:
        return None
    from crossdock.state.upkeep.expiry import MAX_AGE

    found = re.fullmatch(r"([0-9]{1,6})([dh])", value)
    age = int(found[1]) * _UNITS[found[2]] if found else None
    if age is None or age > MAX_AGE:
        raise click.BadParameter(f"give days or hours, such as 90d or 36h, at most {MAX_AGE.days}d")
    return age


@click.group()
def state() -> None:
    """Look after the state."""


@state.command(epilog=example("crossdock state purge --dry-run", "crossdock state purge --older-than 30d"))
@click.option(
    "--older-than",
    callback=_age,
    help="Age in days (90d) or hours (36h); without it that of 'retention' in the config, or 90d where that is off.",
)
@click.option("--dry-run", is_flag=True, help="Count only.")
@config_option
@as_json
def purge(older_than: timedelta | None, config: Path, *, dry_run: bool, as_json: bool) -> None:
    """Remove what is no longer needed: of operations, rejected records, runs, nights and files of long ago.

    What is unsettled, what was delivered last of each record, and the reasons of rejections stay, and so does what
    tells a repeated or stale file. An operation stays for as long as the platform remembers its idempotency key.
    'crossdock schedule' does the same once a day; this also writes the file of a SQLite state anew, so that no remnant
    is left in it, which needs as much free disk as it is large.
    """
    from crossdock.cli import terminal_output
    from crossdock.clock import SystemClock
    from crossdock.project import project
    from crossdock.scheduling.times_and_durations import span

    loaded = project.load(config)
    older_than = (loaded.retention or span(project.KEPT)) if older_than is None else older_than
    ages = loaded.ages(older_than, SystemClock().now())
    done = _count(loaded, ages) if dry_run else _purge(loaded, ages)
    if as_json:
        terminal_output.print_json({"dry_run": dry_run, "before": ages.others.isoformat(), **asdict(done)})
        return
    console = terminal_output.out()
    terminal_output.print_lines(console, _told(done, ages.others, "would be" if dry_run else "were"))


@state.command(epilog=example("crossdock state restored"))
@config_option
@as_json
def restored(config: Path, *, as_json: bool) -> None:
    """Say that the state is a restored backup: nothing that may have been delivered since is sent blindly.

    Until a whole sync has read something and left nothing open, a record that looks new is looked up on the platform
    before it is created; an invoice, which cannot be looked up, is left in doubt: see 'crossdock records resolve'.
    """
    from crossdock.cli import terminal_output
    from crossdock.clock import SystemClock
    from crossdock.project import project

    at = SystemClock().now()
    with project.load(config).alone(restored=True) as opened:
        opened.apply(lambda tx: tx.runs.declare_restored(at=at))
    if as_json:
        terminal_output.print_json({"restored": True})
    else:
        say("the next whole sync looks before it creates; invoices that look new will be in doubt")


@state.command(epilog=example("crossdock state stats", "crossdock state stats --json"))
@config_option
@as_json
def stats(config: Path, *, as_json: bool) -> None:
    """Show how large the state is and what it holds: rows of each table, bindings, the oldest unsettled operation.

    It only looks, and no run waits for it. Numbers are exact, which takes some ten seconds for ten million records;
    only how much the rows of a SQLite state take is estimated.
    """
    from crossdock.cli import terminal_output
    from crossdock.project import project

    with project.load(config).look() as tx:
        contents = tx.statistics.contents()
    if as_json:
        terminal_output.print_json(asdict(contents))
        return
    console = terminal_output.out()
    rows = [(table.name, table.rows, size_text(table.size)) for table in contents.tables]
    console.print(
        terminal_output.table("Tables", ("table", "rows", "size of rows"), rows, numbers=("rows", "size of rows"))
    )
    console.print()
    bound = contents.bindings.items()
    console.print(terminal_output.table("Bindings", ("resource", "records"), bound, numbers=("records",)))
    console.print()
    terminal_output.print_lines(console, _summary(contents))


@state.command(epilog=example("crossdock state compact"))
@config_option
@as_json
def compact(config: Path, *, as_json: bool) -> None:
    """Give back the room of what is gone, and let the database look at what it holds.

    Worth it after a purge, or when 'crossdock state stats' tells of much free room. The file of a SQLite state is
    written anew, which needs twice as much free disk as it is large; on PostgreSQL this is VACUUM (ANALYZE). No run can
    work meanwhile, and it does not begin while one is at work.
    """
    from crossdock.cli import terminal_output
    from crossdock.project import project
    from crossdock.state.upkeep.compact import compact as compact_state

    loaded = project.load(config)
    with closing(loaded.open_state()) as opened:
        before = _size(loaded)
        compact_state(opened, loaded.state_url)
        after = _size(loaded)
    if as_json:
        terminal_output.print_json({"before": before, "after": after})
    else:
        say(f"compacted the state: {size_text(before)} before, {size_text(after)} after")


def size_text(size: int) -> str:
    """For example ``512 B`` and ``1.5 MiB``."""
    if size < 1024:
        return f"{size} B"
    power = min((size.bit_length() - 1) // 10, len(_PREFIXES))
    return f"{Decimal(size) / (1 << 10 * power):,.1f} {_PREFIXES[power - 1]}iB"


def _size(loaded: Project) -> int:
    with loaded.look() as tx:
        return tx.statistics.size()


def _summary(contents: Contents) -> str:
    free = "" if contents.free is None else f", {size_text(contents.free)} of it free ('crossdock state compact')"
    parts = [f"on disk: {size_text(contents.size)}{free}"]
    parts += [f"operations {status.replace('_', ' ')}: {number:,}" for status, number in contents.unsettled.items()]
    if contents.oldest is None:
        return "\n".join([*parts, "every operation is settled"])
    oldest = contents.oldest
    status, since = oldest.status.replace("_", " "), f"{oldest.since:%Y-%m-%d %H:%M}Z"
    return "\n".join([*parts, f"oldest unsettled operation: of {oldest.stream}, {status}, since {since}"])


def _count(loaded: Project, ages: Ages) -> PurgeResult:
    with loaded.look() as tx:
        return tx.retention.count(ages)


def _purge(loaded: Project, ages: Ages) -> PurgeResult:
    from crossdock.state.upkeep import purge

    with closing(loaded.open_state()) as opened:
        return purge.purge(opened, loaded.state_url, ages)


def _told(done: PurgeResult, before: datetime, were: str) -> str:
    return (
        f"ended before {before:%Y-%m-%d %H:%M}Z:\n"
        f"{done.operations_removed:,} settled operations {were} removed, {done.operations_emptied:,} emptied of data\n"
        f"{done.dead_letters_emptied:,} dead letters {were} emptied of data\n"
        f"{done.runs_removed:,} runs, {done.nights_removed:,} nights, {done.files_removed:,} files and"
        f" {done.snapshots_removed:,} snapshots {were} removed"
    )
