"""Output for people: progress on stderr, tables on stdout; and JSON for scripts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from crossdock.cli.shared_options_messages_and_signals import echo_document_text, print_sentences, print_warning
from crossdock.printable import printable, printable_json
from crossdock.runs import tables_and_sentences_of_run
from crossdock.values.run_progress_and_messages import (
    RunMessage,
    SilentProgress,
    Unit,
    error_texts,
    warning_and_note_texts,
)
from crossdock.values.texts_of_numbers_and_times import duration_text, instant_text, json_time_text

if TYPE_CHECKING:  # rich is imported when a table or a bar is drawn; JSON does not need it
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from crossdock.cli.safe_terminal_console import FittingTable
    from crossdock.errors import CrossdockError

SHOWN_WAIT, LONG_WAIT = (
    timedelta(milliseconds=100),
    timedelta(seconds=2),
)  # waits for a rate limit that are shown, and of which the duration is shown


def output_console() -> Console:
    from crossdock.cli.safe_terminal_console import PlainConsole

    return PlainConsole()


def print_json(document: Any) -> None:
    """Print a document exactly, with instants in UTC. Control characters are JSON escapes."""
    echo_document_text(printable_json(json.dumps(document, indent=2, ensure_ascii=False, default=_non_json_value_text)))


def _non_json_value_text(value: Any) -> str:
    return json_time_text(value) if isinstance(value, date) else str(value)


def print_result(document: Any, *lines: str, as_json: bool) -> None:
    """Print the result of a command: *document* with ``--json``, otherwise sentences."""
    if as_json:
        print_json(document)
    elif lines:
        print_sentences(*lines)


def make_fitting_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, numbers: Sequence[str] = ()
) -> FittingTable:
    """Return a table for `output_console`, which never breaks a value. *numbers* names the columns that align right."""
    from crossdock.cli.safe_terminal_console import FittingTable

    return FittingTable(title, columns, [[_cell_text(cell) for cell in row] for row in rows], numbers)


def _cell_text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, datetime):
        return instant_text(cell)
    if isinstance(cell, timedelta):
        return duration_text(cell)
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def print_lines(console: Console, text: str) -> None:
    console.print(*text.split("\n"), sep="\n", soft_wrap=True)


def print_rows(
    title: str, columns: Sequence[str], rows: Iterable[Mapping[str, Any]], *, numbers: Sequence[str]
) -> None:
    output_console().print(make_fitting_table(title, columns, [tuple(row.values()) for row in rows], numbers=numbers))


class WarningsOnly(SilentProgress):
    """Shows only warnings, for output that goes to a log."""

    def warn(self, text: str) -> None:
        print_warning(text)

    def show_overall_progress(self, name: str, done: int, total: int, note: str) -> None:
        """Show the progress of the whole work, of which the stages are a part. A log ignores it."""


class _ProgressBars(WarningsOnly):
    """Shows the current stage as a progress bar, below one of the whole work if that is known."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._task: TaskID | None = None
        self._whole: TaskID | None = None
        self._whole_name = ""

    def show_overall_progress(self, name: str, done: int, total: int, note: str) -> None:
        if self._whole is None or self._whole_name != name:  # a bar cannot forget its total
            if self._whole is not None:
                self._bars.remove_task(self._whole)
            self._whole_name = name
            self._whole = self._bars.add_task(printable(name), total=None, rate="", tokens="", tells=True)
        self._bars.update(self._whole, completed=done, total=total or None, tokens=note)

    def begin(self, stage: str, total: int | None, unit: Unit = "records") -> None:
        del unit  # the bar has a rate for all
        if self._task is not None:
            self._bars.remove_task(self._task)
        self._task = self._bars.add_task(printable(stage), total=total, rate="", tokens="")

    def advance(self, steps: int = 1) -> None:
        if self._task is not None:
            self._bars.advance(self._task, steps)
            task = self._bars.tasks[-1]
            if task.speed:
                self._bars.update(self._task, rate=f"{task.speed:,.0f}/s")

    def allowance(self, tokens: int | None) -> None:
        if self._task is not None and tokens is not None:
            self._bars.update(self._task, tokens=f"allowance {tokens:,}")

    def waiting(self, wait: timedelta) -> None:
        if self._task is not None:
            # the stage has the name of a stream, which begins with that of the connection
            lasts = f" {duration_text(wait)}" if wait >= LONG_WAIT else ""
            self._bars.update(self._task, tokens=f"API rate limit{lasts}" if wait >= SHOWN_WAIT else "")


@contextmanager
def show_progress(*, wanted: bool) -> Iterator[WarningsOnly]:
    """Show bars with rate and remaining time on a terminal; otherwise only warnings."""
    if not wanted:
        yield WarningsOnly()
        return
    from crossdock.cli.safe_terminal_console import PlainConsole

    console = PlainConsole(stderr=True)
    if not console.is_terminal:
        yield WarningsOnly()
        return
    from crossdock.cli.progress_bars import FittingBars

    with FittingBars(console) as bars:
        yield _ProgressBars(bars)


def print_errors(errors: Mapping[str, CrossdockError]) -> None:
    print_error_messages(RunMessage.of_error(name, error) for name, error in errors.items())


def print_error_messages(messages: Iterable[RunMessage]) -> None:
    """Print each error of a run once, with the streams that it stopped. The run has shown its warnings and notes."""
    for text in error_texts(messages):
        print_sentences(*f"crossdock: {text}".split("\n"), err=True)


def print_run_report(console: Console, report: Mapping[str, Any]) -> None:
    for account in tables_and_sentences_of_run.tally_tables(report["streams"]):
        if account.has_counts:
            console.print(
                make_fitting_table(account.title, account.columns, account.lines, numbers=account.columns[1:])
            )
            console.print()
    for name, stream in report["streams"].items():
        if found := tables_and_sentences_of_run.found_files_sentence(stream):
            console.print(f"{name}: {found}")
    for remark in warning_and_note_texts(RunMessage(**each) for each in report["messages"]):
        console.print(remark)
    for sentence in tables_and_sentences_of_run.api_usage_sentences(report.get("apis", {})):
        console.print(sentence)
    for sentence in tables_and_sentences_of_run.open_record_lines(report["streams"]):
        console.print(sentence)
    console.print(tables_and_sentences_of_run.run_sentence(report))
