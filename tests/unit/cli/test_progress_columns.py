"""Durations beside a progress bar."""

from __future__ import annotations

import io

from rich.console import Console
from rich.progress import Progress

from crossdock.cli.progress_columns import Elapsed, Remaining


def test_durations_have_the_form_of_all_other_output() -> None:
    """Elapsed and remaining time; nothing remains of a stage of unknown size or without a known speed."""
    now = 0.0
    progress = Progress(console=Console(file=io.StringIO()), get_time=lambda: now, auto_refresh=False)
    known, unknown = progress.add_task("sending", total=100), progress.add_task("reading", total=None)
    tasks = {task.id: task for task in progress.tasks}
    assert str(Remaining().render(tasks[known])) == ""
    for now in (60.0, 120.0):
        progress.advance(known, 10)
        progress.advance(unknown, 10)
    assert [str(Elapsed().render(task)) for task in tasks.values()] == ["2 min 0 s", "2 min 0 s"]
    assert str(Remaining().render(tasks[known])) == "8 min 0 s left"
    assert str(Remaining().render(tasks[unknown])) == ""
