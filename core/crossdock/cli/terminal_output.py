"""What a person sees: progress on stderr, tables on stdout."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli import tally_lines
from crossdock.cli.shared_options import counted, say, warn
from crossdock.printable import printable, printable_json
from crossdock.progress import Progress as Listener
from crossdock.progress import Silent

if TYPE_CHECKING:  # scripts ask for JSON, and need not wait for what draws tables and bars
    from rich.console import Console
    from rich.progress import Progress, TaskID
    from rich.table import Table


def out() -> Console:
    """Standard output: each text that is printed or stands in a table is `crossdock.printable`, and never markup."""
    from crossdock.cli.safe_console import PlainConsole

    return PlainConsole()


def print_json(document: Any) -> None:
    """Write a document exactly; what no terminal should obey is escaped, as JSON has it."""
    click.echo(printable_json(json.dumps(document, indent=2, ensure_ascii=False, default=str)))


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, numbers: Sequence[str] = ()) -> Table:
    """A plain table for `out`; *numbers* names the columns that align right."""
    from rich.table import Table

    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
    for column in columns:
        right = column in numbers
        made.add_column(column, justify="right" if right else "left", overflow="fold", no_wrap=column == "stream")
    for row in rows:
        made.add_row(*(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row))
    return made


def print_lines(console: Console, text: str) -> None:
    """Write text of several lines; none is wrapped."""
    console.print(*text.split("\n"), sep="\n", soft_wrap=True)


def print_rows(
    title: str, columns: Sequence[str], rows: Iterable[Mapping[str, Any]], *, numbers: Sequence[str]
) -> None:
    """Show the values of *rows* under *columns*, as `table` does; what is None stays empty."""
    lines = [tuple("" if value is None else value for value in row.values()) for row in rows]
    out().print(table(title, columns, lines, numbers=numbers))


class _Warnings(Silent):
    """Nobody looks on, but warnings are kept in logs."""

    def warn(self, text: str) -> None:
        warn(text)


class _Bars(_Warnings):
    """Shows one stage at a time."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._task: TaskID | None = None

    def begin(self, stage: str, total: int | None) -> None:
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


@contextmanager
def progress(*, wanted: bool) -> Iterator[Listener]:
    """Bars with rate and time to go while a person looks on; otherwise warnings only."""
    if not wanted:
        yield _Warnings()
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from crossdock.cli.safe_console import PlainConsole

    console = PlainConsole(stderr=True)
    if not console.is_terminal:
        yield _Warnings()
        return
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]} {task.fields[tokens]}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    ) as bars:
        yield _Bars(bars)


def print_errors(errors: Mapping[str, Exception]) -> None:
    """Say each error once, with the streams that it stopped."""
    streams: dict[str, list[str]] = {}
    for name, error in errors.items():
        streams.setdefault(str(error), []).append(name)
    for text, names in streams.items():
        first, *others = text.split("\n")
        say(f"crossdock: {', '.join(names) + ': ' if any(names) else ''}{first}", *others, err=True)


def show_run(console: Console, report: Mapping[str, Any]) -> None:
    """The tally of a run, as `Report.as_json` gives it; terms that are zero are left out."""
    for account in tally_lines.of(report["streams"]):
        console.print(table(account.title, account.columns, account.lines, numbers=account.columns[1:]))
        console.print()
    for name, stream in report["streams"].items():
        for note in stream.get("notes", ()):
            console.print(f"{name}: {note}")
    balanced = "the tally balances" if report["balanced"] else "THE TALLY DOES NOT BALANCE"
    console.print(
        f"run {report['run']}: {report['status']}, {counted(report['requests'], 'request')}"
        f" ({report['throttled']:,} throttled) in {report['seconds']:.1f} s; {balanced}"
    )
