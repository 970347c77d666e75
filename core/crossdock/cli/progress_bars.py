"""A progress bar that breaks no word, with durations in the same form as all other output."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Column, Table
from rich.text import Text

from crossdock.values.texts_of_numbers_and_times import duration_text

_BAR, _LEAST_BAR = 40, 10  # widths


class Elapsed(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(duration_text(task.elapsed or 0))


class Remaining(ProgressColumn):
    """The estimated remaining time of a stage; empty if it is unknown, or if the task itself shows it."""

    max_refresh = 0.5  # seconds

    def render(self, task: Task) -> Text:
        remaining = task.time_remaining if task.total and not task.fields.get("tells") else None
        return Text(f"{duration_text(remaining)} left" if remaining else "")


class FittingBars(Progress):
    """Progress of stages. On a narrow terminal the bar is shorter, and the least important parts are left out."""

    def __init__(self, console: Console) -> None:
        self._screen = console
        self._stage, self._rate, self._tokens = map(_text_column, ("description", "fields[rate]", "fields[tokens]"))
        self._bar = BarColumn(None, table_column=Column(max_width=_BAR))
        self._done = MofNCompleteColumn(table_column=_unwrapped_column())
        self._elapsed, self._remaining = Elapsed(_unwrapped_column()), Remaining(_unwrapped_column())
        shown = self._stage, self._bar, self._done, self._rate, self._tokens, self._elapsed, self._remaining
        super().__init__(*shown, console=console, transient=True)

    def make_tasks_table(self, tasks: Iterable[Task]) -> Table:
        shown, listed = list(self.columns), list(tasks)
        every = self.columns
        for column in (self._bar, self._elapsed, self._rate, self._remaining, self._tokens):
            if self._needed_width(shown, listed) <= self._screen.width:
                break
            shown.remove(column)
        self.columns = tuple(shown)
        try:
            return super().make_tasks_table(listed)
        finally:
            self.columns = every

    def _needed_width(self, shown: Iterable[str | ProgressColumn], tasks: list[Task]) -> int:
        columns = [column for column in shown if isinstance(column, ProgressColumn)]
        visible = [task for task in tasks if task.visible]
        least = (
            _LEAST_BAR
            if column is self._bar
            else max((self._screen.measure(column(task)).maximum for task in visible), default=0)
            for column in columns
        )
        return sum(least) + max(0, len(columns) - 1)


def _text_column(name: str) -> TextColumn:
    return TextColumn(f"{{task.{name}}}", markup=False, table_column=_unwrapped_column())


def _unwrapped_column() -> Column:
    return Column(no_wrap=True, overflow="ellipsis")
