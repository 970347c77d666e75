"""What a person sees: progress on stderr, tables on stdout."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from crossdock.progress import Progress as Listener
from crossdock.progress import Silent


def out() -> Console:
    return Console(highlight=False)


def print_json(document: Any) -> None:
    click.echo(json.dumps(document, indent=2, ensure_ascii=False, default=str))


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, numbers: Sequence[str] = ()) -> Table:
    """A plain table; *numbers* names the columns that align right. Cells are shown as they are, never as markup."""
    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
    for column in columns:
        right = column in numbers
        made.add_column(column, justify="right" if right else "left", no_wrap=right, overflow="fold")
    for row in rows:
        made.add_row(*(Text(f"{cell:,}" if isinstance(cell, int) else str(cell)) for cell in row))
    return made


class _Bars:
    """Shows one stage at a time."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._task: TaskID | None = None

    def begin(self, stage: str, total: int | None) -> None:
        if self._task is not None:
            self._bars.remove_task(self._task)
        self._task = self._bars.add_task(stage, total=total, rate="")

    def advance(self, steps: int = 1) -> None:
        if self._task is not None:
            self._bars.advance(self._task, steps)
            task = self._bars.tasks[-1]
            if task.speed:
                self._bars.update(self._task, rate=f"{task.speed:,.0f}/s")

    def note(self, text: str) -> None:
        self._bars.console.print(text)


@contextmanager
def progress(*, wanted: bool) -> Iterator[Listener]:
    """Bars with rate and time to go while a person looks on; silence otherwise."""
    console = Console(stderr=True)
    if not (wanted and console.is_terminal):
        yield Silent()
        return
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    ) as bars:
        yield _Bars(bars)


def show_run(console: Console, report: Mapping[str, Any]) -> None:
    """The accounts of a run, as `crossdock.sync.runner.Report.as_json` gives them."""
    streams: Mapping[str, Any] = report["streams"]
    rows = [_row_account(name, stream["rows"]) for name, stream in streams.items()]
    numbers = ("read", "filtered", "superseded", "rejected", "in records")
    console.print(table("Rows", ("stream", *numbers, "filters"), rows, numbers=numbers))
    console.print()
    terms = ("read", "unchanged", "created", "updated", "suppressed", "rejected", "waiting or in doubt")
    rows = [_record_account(name, stream["records"]) for name, stream in streams.items()]
    console.print(table("Records", ("stream", *terms, "others"), rows, numbers=terms))
    console.print()
    balanced = "the tally balances" if report["balanced"] else "THE TALLY DOES NOT BALANCE"
    console.print(
        f"run {report['run']}: {report['status']}, {report['requests']:,} requests"
        f" ({report['throttled']:,} throttled) in {report['seconds']:.1f} s; {balanced}"
    )


def _row_account(name: str, rows: Mapping[str, Any]) -> tuple[Any, ...]:
    filtered: Mapping[str, int] = rows["filtered"]
    named = ", ".join(f"{number:,} {filter_name}" for filter_name, number in filtered.items())
    return name, rows["read"], sum(filtered.values()), rows["superseded"], rows["rejected"], rows["in_records"], named


def _record_account(name: str, records: Mapping[str, int]) -> tuple[Any, ...]:
    shown = ("read", "unchanged", "created", "updated", "suppressed", "rejected", "carried_on")
    others = [
        f"{records[term]:,} {term.replace('_', ' ')}"
        for term in ("carried_over", "gone", "deleted", "replaced", "ignored", "dropped")
        if records[term]
    ]
    return name, *(records[term] for term in shown), ", ".join(others)
