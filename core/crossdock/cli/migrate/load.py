"""``crossdock migrate load``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli import project_and_state, terminal_output
from crossdock.cli.shared_options_messages_and_signals import (
    common_options,
    help_example,
    person_name_option,
    print_sentences,
    raise_if_value_not_utf8,
    stop_event_set_by_signals,
)
from crossdock.cli.terminal_output import WarningsOnly
from crossdock.values.run_progress_and_messages import error_documents
from crossdock.values.texts_of_numbers_and_times import duration_text

if TYPE_CHECKING:
    from crossdock.migration.load_progress_and_duration import WaveProgress
    from crossdock.migration.wave_loading import LoadResult
    from crossdock.values.run_progress_and_messages import Unit


def progress_sentence(progress: WaveProgress) -> str:
    """Describe the progress of a wave, such as ``wave 2 of 3: lots: 120 of 5,000 records, 30 min 0 s left``."""
    parts = [f"{progress.done:,} of {progress.expected:,} records"] if progress.expected else []
    parts += filter(None, [remaining_time_text(progress)])
    return f"{progress.wave}: {', '.join(parts) or 'its records are being read'}"


def remaining_time_text(progress: WaveProgress) -> str:
    left = f"{duration_text(progress.left)} left" if progress.left else ""
    later = f"{duration_text(progress.all_left)} with later waves" if progress.all_left else ""
    return f"{left} ({later})" if left and later else left or later


class LoadOutput:
    def __init__(self, shown: WarningsOnly, *, wanted: bool) -> None:
        self._shown, self._wanted = shown, wanted
        self._wave = 0

    def show_progress(self, progress: WaveProgress) -> None:
        self._shown.show_overall_progress(
            str(progress.wave), progress.done, progress.expected, remaining_time_text(progress)
        )
        if self._wave != progress.wave.number and self._wanted:
            self._wave = progress.wave.number
            print_sentences(progress_sentence(progress), err=True)

    def show_message(self, text: str) -> None:
        if self._wanted:
            print_sentences(text, err=True)

    def begin(self, stage: str, total: int | None, unit: Unit = "records") -> None:
        self._shown.begin(stage, total, unit)

    def advance(self, steps: int = 1) -> None:
        self._shown.advance(steps)

    def allowance(self, tokens: int | None) -> None:
        self._shown.allowance(tokens)

    def waiting(self, wait: timedelta) -> None:
        self._shown.waiting(wait)

    def warn(self, text: str) -> None:
        self._shown.warn(text)


@contextmanager
def load_progress_output(*, wanted: bool) -> Iterator[LoadOutput]:
    with terminal_output.show_progress(wanted=wanted) as shown:
        yield LoadOutput(shown, wanted=wanted)


@click.command(
    epilog=help_example("crossdock migrate load --rehearsal acme.rehearsal", "crossdock migrate load --until lots")
)
@click.option(
    "--until", metavar="WAVE", callback=raise_if_value_not_utf8, help="Load up to this wave, and not those after it."
)
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
@person_name_option
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
    from crossdock.migration.rehearsal_file_and_load_check import Rehearsal
    from crossdock.migration.wave_loading import LoadChoice
    from crossdock.migration.wave_loading import load_migration_waves as load_waves
    from crossdock.values.clock import SystemClock

    project = project_and_state.load_project(config)
    rehearsed = Rehearsal.load(rehearsal) if rehearsal is not None else None
    choice = LoadChoice(by, until, percent, rehearsed, again)
    with stop_event_set_by_signals() as interrupt, load_progress_output(wanted=not as_json) as shown:
        loaded = load_waves(project, choice, clock=SystemClock(), listener=shown, interrupt=interrupt)
    return _print_load_result(loaded, as_json=as_json)


def _print_load_result(loaded: LoadResult, *, as_json: bool) -> int:
    if loaded.error is not None:
        terminal_output.print_errors({"" if loaded.wave is None else str(loaded.wave): loaded.error})
    elif loaded.wave is not None:
        terminal_output.print_error_messages(loaded.runs[-1].report.messages)
        print_sentences(f"crossdock: {loaded.wave}: did not reach its end, and no later wave was begun", err=True)
    if as_json:
        terminal_output.print_json(_load_result_document(loaded))
        return loaded.exit_code
    for each in loaded.runs:
        print_sentences(str(each.status.wave))
        terminal_output.print_run_report(terminal_output.output_console(), each.report.as_json())
    if loaded.total_open_counts.total and loaded.error is None:
        print_sentences("'crossdock records list' shows what is open", err=True)
    return loaded.exit_code


def _load_result_document(loaded: LoadResult) -> dict[str, Any]:
    from crossdock.migration.migration_status import wave_status_as_json

    return {
        "runs": [wave_status_as_json(each.status) | {"report": each.report.as_json()} for each in loaded.runs],
        "ended_at": loaded.wave and loaded.wave.name,
        "error": loaded.error and str(loaded.error),
        "messages": error_documents({"": loaded.error} if loaded.error else {}),
    }
