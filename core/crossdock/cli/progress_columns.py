"""Columns of a progress bar with durations in the form of all other output."""

from __future__ import annotations

from rich.progress import ProgressColumn, Task
from rich.text import Text

from crossdock.times_in_text import duration_text


class Elapsed(ProgressColumn):
    """How long a stage has lasted."""

    def render(self, task: Task) -> Text:
        return Text(duration_text(task.elapsed or 0))


class Remaining(ProgressColumn):
    """How long a stage will presumably last from now; empty if that is unknown, or if the task itself tells."""

    max_refresh = 0.5  # seconds

    def render(self, task: Task) -> Text:
        remaining = task.time_remaining if task.total and not task.fields.get("tells") else None
        return Text(f"{duration_text(remaining)} left" if remaining else "")
