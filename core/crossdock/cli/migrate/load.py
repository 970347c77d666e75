"""``crossdock migrate load``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli import project_and_state, terminal_output
from crossdock.cli.interrupts import interruptible
from crossdock.cli.migrate.by_option import by_option
from crossdock.cli.migrate.load_output import load_output
from crossdock.cli.printed_sentences import say
from crossdock.cli.shared_options import check_utf8, common_options, help_example
from crossdock.values.run_messages import error_documents

if TYPE_CHECKING:
    from crossdock.migration.load import LoadResult


@click.command(
    epilog=help_example("crossdock migrate load --rehearsal acme.rehearsal", "crossdock migrate load --until lots")
)
@click.option("--until", metavar="WAVE", callback=check_utf8, help="Load up to this wave, and not those after it.")
@click.option(
    "--rehearsal",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Refuse a wave whose sources are not what was rehearsed.",
)
@click.option(
    "--percent", type=click.IntRange(1, 100), default=100, metavar="N", help="Use at most so much of the allowance."
)
@click.option("--again", is_flag=True, help="Begin another migration after one that is signed off.")
@by_option
@common_options
def load(
    until: str | None,
    rehearsal: Path | None,
    percent: int,
    *,
    again: bool,
    by: str,
    config: Path,
    as_json: bool,
) -> int:
    """Load all waves in order, or go on with them.

    The same command continues after an interruption, and loads what has changed since: waves that are done are only
    compared. A wave is followed by the next one if its gate passes.

    Exit codes: 0 all waves are loaded; 1 the same, but records are open within the limits of the gates; 2 wrong usage
    or config; 3 could not run or finish; 4 refused: a gate is closed, a source is not what was rehearsed, or a reason
    of 'crossdock sync'; 70 a tally does not balance; 130 interrupted.
    """
    from crossdock.migration.load import LoadChoice
    from crossdock.migration.load import load as load_waves
    from crossdock.migration.rehearsal_file import Rehearsal
    from crossdock.values.clock import SystemClock

    project = project_and_state.load(config)
    rehearsed = Rehearsal.load(rehearsal) if rehearsal is not None else None
    choice = LoadChoice(by, until, percent, rehearsed, again)
    with interruptible() as interrupt, load_output(wanted=not as_json) as shown:
        loaded = load_waves(project, choice, clock=SystemClock(), listener=shown, interrupt=interrupt)
    return _show(loaded, as_json=as_json)


def _show(loaded: LoadResult, *, as_json: bool) -> int:
    if loaded.error is not None:
        terminal_output.print_errors({"" if loaded.wave is None else str(loaded.wave): loaded.error})
    elif loaded.wave is not None:
        terminal_output.print_messages(loaded.runs[-1].report.messages)
        say(f"crossdock: {loaded.wave}: did not reach its end, and no later wave was begun", err=True)
    if as_json:
        terminal_output.print_json(_document(loaded))
        return loaded.exit_code
    for each in loaded.runs:
        say(str(each.status.wave))
        terminal_output.show_run(terminal_output.output_console(), each.report.as_json())
    if loaded.open.total and loaded.error is None:
        say("'crossdock records list' shows what is open", err=True)
    return loaded.exit_code


def _document(loaded: LoadResult) -> dict[str, Any]:
    from crossdock.migration.migration_status import wave_document

    return {
        "runs": [wave_document(each.status) | {"report": each.report.as_json()} for each in loaded.runs],
        "ended_at": loaded.wave and loaded.wave.name,
        "error": loaded.error and str(loaded.error),
        "messages": error_documents({"": loaded.error} if loaded.error else {}),
    }
