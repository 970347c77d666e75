"""``crossdock state``: size, retention and maintenance of the state."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import structs

from crossdock.cli import terminal_output
from crossdock.cli.project_and_state import load_project, read_state_of_config
from crossdock.cli.shared_options_messages_and_signals import CommandGroup, common_options, help_example
from crossdock.values.clock import SystemClock
from crossdock.values.texts_of_numbers_and_times import byte_size_text, count_with_noun, instant_text, json_time_text

if TYPE_CHECKING:
    from crossdock.config.project.project import Project
    from crossdock.runs.audit_log import AuditedChange
    from crossdock.state import Transaction
    from crossdock.state.queries.record_counts_and_state_size import StateContents
    from crossdock.state.retention import PurgeResult

_UNITS = {"d": timedelta(days=1), "h": timedelta(hours=1)}


def _parse_age(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> timedelta | None:
    if value is None:
        return None
    from crossdock.state.retention import MAX_AGE

    found = re.fullmatch(r"([0-9]{1,6})([dh])", value)
    age = int(found[1]) * _UNITS[found[2]] if found else None
    if age is None or age > MAX_AGE:
        raise click.BadParameter(f"give days or hours, such as 90d or 36h, at most {MAX_AGE.days}d")
    return age


@click.group(cls=CommandGroup, epilog=help_example("crossdock state stats", "crossdock state purge --dry-run"))
def state() -> None:
    """Inspect and maintain the state."""


@state.command(epilog=help_example("crossdock state purge --dry-run", "crossdock state purge --older-than 30d"))
@click.option(
    "--older-than",
    callback=_parse_age,
    metavar="AGE",
    help="Days (90d) or hours (36h); default: 'retention' from the config, or 90d if that is off.",
)
@click.option("--dry-run", is_flag=True, help="Only count.")
@common_options
def purge(older_than: timedelta | None, config: Path, *, dry_run: bool, as_json: bool) -> None:
    """Remove old data that is no longer needed.

    Removes settled operations, the data of rejected records, and old runs, files and snapshots. Keeps unsettled
    operations, what was last delivered for each record, the reasons for rejections, and what identifies a repeated or
    stale file. An operation is kept for as long as the platform remembers its idempotency key, and the audit log for at
    least a year. Nothing is removed if the clock of this machine and the platform's differ, or if the platform does not
    tell its time.

    'crossdock schedule' does the same once a day. This command also rewrites the file of a SQLite state, so that no
    remnant is left in it; that needs as much free disk space as the file has.
    """
    from crossdock.config.project.project import KEPT
    from crossdock.runs.audit_log import audited_change_with_begin_and_end
    from crossdock.state.purge_and_compaction import purge_rows_and_rewrite_file as purge_state
    from crossdock.values.config_base_types import parse_duration
    from crossdock.writing.targets.platform_access_and_clock_checks import raise_unless_clock_is_proved_right

    loaded = load_project(config)
    older_than = (loaded.retention or parse_duration(KEPT)) if older_than is None else older_than
    ages = loaded.purge_times(older_than, SystemClock().now())
    if dry_run:
        with loaded.read_state() as tx:
            done = tx.retention.count_removable(ages)
    else:
        with (
            audited_change_with_begin_and_end(loaded, "state purge", "state", clock=SystemClock()) as change,
            loaded.open_state_exclusively() as opened,
        ):
            raise_unless_clock_is_proved_right(loaded.platform, SystemClock(), loaded.access_test_resources[0])
            done = purge_state(opened, loaded.state_url, ages)
            removed = {name: number for name, number in structs.asdict(done).items() if number}
            change.set_before_and_after(
                before={"older_than": json_time_text(ages.others.replace(microsecond=0))}, after=removed
            )
    if as_json:
        terminal_output.print_json({"dry_run": dry_run, "before": ages.others, **structs.asdict(done)})
        return
    summary = _purge_summary(done, ages.others, "would be" if dry_run else "were")
    terminal_output.print_lines(terminal_output.output_console(), summary)


@state.command("restored", epilog=help_example("crossdock state restored"))
@common_options
def declare_restored(config: Path, *, as_json: bool) -> None:
    """Declare that the state was restored from a backup.

    What the state says is as old as the backup, so all records are unverified until they were compared with what their
    targets hold. The next sync does that before it sends anything: it reads the lists of the platform, and looks up the
    records of other targets one after the other, within their rate limits. Then it delivers what differs from the
    sources. An interrupted comparison is continued by the next sync; 'crossdock records list --state unverified' lists
    what is left.

    Files that were moved to an archive since the backup was made are read only if they are moved back first.
    """
    from crossdock.runs.audit_log import change_state_exclusively_with_audit
    from crossdock.runs.binding_verification import newest_platform_change_known_to_state, verifiable_resources

    clock, loaded = SystemClock(), load_project(config)
    resources = verifiable_resources(loaded.targets(clock).values())

    def declare(tx: Transaction, change: AuditedChange) -> int:
        tx.runs.declare_state_restored(at=clock.now(), newest_change=newest_platform_change_known_to_state(tx))
        tx.batches.leave_gap_in_numbers(clock.now())
        tx.unverified.mark_resources_and_streams(resources)
        tx.unrecorded_references.clear_marks_of_unfinished_readings()
        number = sum(number for _, number in tx.unverified.unverified_binding_counts_by_scope())
        change.store_audit_entry(tx, after={"restored": True, "unverified": number})
        return number

    number = change_state_exclusively_with_audit(loaded, "state restored", "state", declare, clock=clock, restored=True)
    text = (
        f"{count_with_noun(number, 'record')} unverified: the next sync compares them with their targets and sends what"
        " differs; files that were archived since the backup are read only if they are moved back first"
    )
    terminal_output.print_result({"restored": True, "unverified": number}, text, as_json=as_json)


@state.command("readmit", epilog=help_example("crossdock state readmit", "crossdock state readmit wms.stock"))
@click.argument("stream", required=False)
@common_options
def readmit_set_aside_inputs(stream: str | None, config: Path, *, as_json: bool) -> None:
    """List inputs that were set aside, or read those of STREAM again.

    An input is set aside if reading it has killed the process twice at the same place, or four times. Another file, or
    the same file with another content, is read without this command.
    """
    from crossdock.runs.audit_log import change_state_exclusively_with_audit

    loaded = load_project(config)
    if stream is not None:

        def readmit_all(tx: Transaction, change: AuditedChange) -> int:
            number = tx.crashing_inputs.readmit_inputs_of_stream(stream)
            change.store_audit_entry(tx, before={"set_aside": number}, after={"set_aside": 0})
            return number

        number = change_state_exclusively_with_audit(
            loaded, "state readmit", f"stream {stream}", readmit_all, clock=SystemClock()
        )
        text = f"the next run reads {number:,} inputs of {stream} once more"
        terminal_output.print_result({"readmitted": number}, text, as_json=as_json)
        return
    with loaded.read_state() as tx:
        found = tx.crashing_inputs.list_set_aside()
    if as_json:
        terminal_output.print_json({"set_aside": [structs.asdict(each) for each in found]})
        return
    rows = [(each.stream, each.name, each.killed, instant_text(each.at)) for each in found]
    terminal_output.output_console().print(
        terminal_output.make_fitting_table("Set aside", ("stream", "file", "killed", "last"), rows, numbers=("killed",))
    )


@state.command(epilog=help_example("crossdock state stats", "crossdock state stats --json"))
@common_options
def stats(config: Path, *, as_json: bool) -> None:
    """Show the size and contents of the state.

    Lists rows by table, bindings, and the oldest unsettled operation. Runs are not blocked. Counts are exact, which
    takes about ten seconds for ten million records; the size of the rows of a SQLite state is an estimate.
    """
    with read_state_of_config(config) as (tx, _):
        contents = tx.state_size.contents()
    if as_json:
        oldest, tables = contents.oldest, [structs.asdict(each) for each in contents.tables]
        nested = {"tables": tables, "oldest": oldest and structs.asdict(oldest)}
        terminal_output.print_json({**structs.asdict(contents), **nested})
        return
    console = terminal_output.output_console()
    rows = [(table.name, table.rows, byte_size_text(table.size)) for table in contents.tables]
    console.print(
        terminal_output.make_fitting_table(
            "Tables", ("table", "rows", "size of rows"), rows, numbers=("rows", "size of rows")
        )
    )
    console.print()
    bound = contents.bindings.items()
    console.print(terminal_output.make_fitting_table("Bindings", ("resource", "records"), bound, numbers=("records",)))
    console.print()
    terminal_output.print_lines(console, _contents_summary(contents))


@state.command(epilog=help_example("crossdock state compact"))
@common_options
def compact(config: Path, *, as_json: bool) -> None:
    """Return unused disk space.

    Useful after a purge, or when 'crossdock state stats' shows much free space. Rewrites the file of a SQLite state,
    which needs twice as much free disk space as the file has; on PostgreSQL this is VACUUM (ANALYZE). No run can be
    active meanwhile.
    """
    from crossdock.runs.audit_log import audited_change_with_begin_and_end
    from crossdock.state.purge_and_compaction import release_space_of_removed_rows as compact_state

    loaded = load_project(config)
    with audited_change_with_begin_and_end(loaded, "state compact", "state", clock=SystemClock()) as change:
        with loaded.open_state_exclusively():
            before = _state_size_in_bytes(loaded)
            compact_state(loaded.state_url)
            after = _state_size_in_bytes(loaded)
        change.set_before_and_after(before={"bytes": before}, after={"bytes": after})
    text = f"compacted the state: {byte_size_text(before)} before, {byte_size_text(after)} after"
    terminal_output.print_result({"before": before, "after": after}, text, as_json=as_json)


def _state_size_in_bytes(loaded: Project) -> int:
    with loaded.read_state() as tx:
        return tx.state_size.total_size()


def _contents_summary(contents: StateContents) -> str:
    free = "" if contents.free is None else f", {byte_size_text(contents.free)} of it free ('crossdock state compact')"
    parts = [f"on disk: {byte_size_text(contents.size)}{free}"]
    parts += [f"operations {status.replace('_', ' ')}: {number:,}" for status, number in contents.unsettled.items()]
    if contents.oldest is None:
        return "\n".join([*parts, "all operations are settled"])
    oldest = contents.oldest
    status, since = oldest.status.replace("_", " "), instant_text(oldest.since)
    return "\n".join([*parts, f"oldest unsettled operation: {oldest.stream}, {status} since {since}"])


def _purge_summary(done: PurgeResult, before: datetime, were: str) -> str:
    return (
        f"older than {instant_text(before)}:\n"
        f"{done.operations_removed:,} settled operations {were} removed, {done.operations_emptied:,} emptied of data\n"
        f"{done.dead_letters_emptied:,} dead letters {were} emptied of data\n"
        f"{done.runs_removed:,} runs, {done.nights_removed:,} scheduled runs, {done.files_removed:,} files,"
        f" {done.files_out_removed:,} files for partners, {done.snapshots_removed:,} snapshots and"
        f" {done.audit_entries_removed:,} entries of the audit log {were} removed"
    )
