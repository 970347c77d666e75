"""``crossdock undo``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli import terminal_output
from crossdock.cli.project_and_state import load_project
from crossdock.cli.shared_options_messages_and_signals import (
    MOST,
    absolute_path,
    common_options,
    help_example,
    print_sentences,
    raise_if_not_writable,
)
from crossdock.cli.sync import execute_plan_and_show
from crossdock.values.clock import SystemClock
from crossdock.values.texts_of_numbers_and_times import count_with_noun

if TYPE_CHECKING:
    from collections.abc import Callable

    from crossdock.config.project.project import Project
    from crossdock.runs.session_shared_by_runs import Session
    from crossdock.runs.undo.undo_decisions import UndoneRecord
    from crossdock.runs.undo.undo_plan import UndoneRuns, UndoPlan
    from crossdock.values.json_documents import plans_and_runs as run_documents

_SHOWN = 50
_KINDS = ("delete", "restore", "left alone", "impossible")  # what is undone first, then what stays


def undo_options(command: Any) -> Any:
    out = click.option(
        "-o", "--out", type=click.Path(path_type=Path, dir_okay=False), help="Save the plan for 'crossdock apply'."
    )
    limit = click.option(
        "--limit", type=click.IntRange(0, MOST), default=_SHOWN, show_default=True, help="Records to show of each kind."
    )
    execute = click.option("--execute", is_flag=True, help="Execute the plan at once.")
    return out(limit(execute(common_options(command))))


@click.command(epilog=help_example("crossdock undo 17", "crossdock undo 17 -o undo.plan", "crossdock apply undo.plan"))
@click.argument("run", type=click.IntRange(1, MOST))
@undo_options
def undo(run: int, config: Path, **options: Any) -> int:
    """Plan to undo what RUN has done: delete what it created, restore what it changed.

    Reads the platform and changes nothing; 'crossdock apply', or --execute, executes the plan. Records that somebody
    else, or a later run, has changed since are listed and left alone, and so is what cannot be undone, such as an
    invoice, and what a record that stays refers to. The files that RUN has read are read again only if they are sent
    again or the mapping is changed; an API gives the records again when they change there, or in a full list.

    Exit codes: 0 everything can be undone; 1 some records stay as they are; 2 wrong usage or config; 3 the platform or
    the state cannot be read; 4 operations of the run are not settled, or retention has removed some. With --execute
    they are those of 'crossdock sync'.
    """
    from crossdock.runs.undo import undo_plan

    return plan_or_execute_undo(load_project(config), lambda session: undo_plan.run_to_undo(session, run), **options)


def plan_or_execute_undo(
    loaded: Project,
    undone_runs: Callable[[Session], UndoneRuns],
    *,
    out: Path | None,
    limit: int,
    execute: bool,
    as_json: bool,
) -> int:
    from crossdock.runs.session_shared_by_runs import open_session
    from crossdock.runs.undo import undo_plan as undoing

    if execute and out is not None:
        raise click.UsageError("a plan is saved with --out, or executed with --execute")
    raise_if_not_writable(place := absolute_path(out))
    by_kind: dict[str, list[UndoneRecord]] = {kind: [] for kind in _KINDS}

    def listed(each: UndoneRecord) -> None:
        if len(by_kind[each.undoing]) < limit:
            by_kind[each.undoing].append(each)

    with (
        open_session(loaded, SystemClock(), attempt=None) as session,
        terminal_output.show_progress(wanted=not as_json) as progress,
    ):
        found, plan = undoing.plan_undo_and_hash_decisions(session, undone_runs(session), listed, progress)
    shown = [each for kind in by_kind.values() for each in kind]
    is_executed = execute and bool(found.operation_counts.total())
    if not as_json:
        _print_undo_plan(found, shown)
    elif not is_executed:
        terminal_output.print_json(_undo_plan_document(found, shown))
    if is_executed:
        return execute_plan_and_show(loaded, plan, as_json=as_json)
    if out is not None and not sum(found.operation_counts.values()):
        print_sentences(f"not saved to {out}: there is nothing to undo", err=True)
    elif place is not None:
        plan.save(place)
        if not as_json:
            print_sentences(f"saved; undo with: crossdock apply {out}")
    return 1 if found.kept_count else 0


def _undo_plan_document(found: UndoPlan, shown: list[UndoneRecord]) -> run_documents.UndoPlan:
    return {
        "undone": found.undone.title,
        "runs": sorted(found.undone.runs),
        "operations": dict(found.operation_counts),
        "streams": {
            name: {undoing: number for (stream, undoing), number in found.counts.items() if stream == name}
            for name in found.streams
        },
        "kept": [
            {"stream": stream, "reason": reason, "records": number}
            for (stream, reason), number in sorted(found.kept.items())
        ],
        "shown": [
            {
                "do": each.undoing,
                "stream": each.stream,
                "key": each.key,
                "id": each.operation.binding.target_id if each.operation and each.operation.binding else None,
                "members": sorted(each.operation.changes) if each.operation else [],
                "reason": each.reason,
            }
            for each in shown
        ],
    }


def _print_undo_plan(found: UndoPlan, shown: list[UndoneRecord]) -> None:
    console = terminal_output.output_console()
    rows = [(each.undoing, each.stream, each.key, _reason_or_restored_members(each)) for each in shown]
    if rows:
        console.print(
            terminal_output.make_fitting_table(f"undo of {found.undone.title}", ("do", "stream", "key", "what"), rows)
        )
        listed = Counter[str](each.undoing for each in shown)
        for kind in _KINDS:
            number = sum(each for (_, undoing), each in found.counts.items() if undoing == kind) - listed[kind]
            if number:
                console.print(f"and {number:,} more {kind} (--limit)")
        console.print()
    for (stream, reason), number in sorted(found.kept.items()):
        console.print(f"{stream}: {count_with_noun(number, 'record')} left as they are: {reason}", soft_wrap=True)
    counts = ", ".join(f"{number:,} {kind}" for kind, number in sorted(found.operation_counts.items()))
    print_sentences(f"undo of {found.undone.title}: {counts or 'nothing to do'}")


def _reason_or_restored_members(each: UndoneRecord) -> str:
    return each.reason or (", ".join(sorted(each.operation.changes)) if each.operation else "")
