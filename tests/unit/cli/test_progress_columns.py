"""Durations beside a progress bar."""

from __future__ import annotations

import io
from datetime import UTC, datetime

from rich.console import Console
from rich.progress import Progress

from crossdock.cli.progress_columns import Elapsed, Remaining
from crossdock.testing.manual_clock import ManualClock


def test_durations_have_the_form_of_all_other_output() -> None:
    """Elapsed and remaining time; nothing remains of a stage of unknown size or without a known speed."""
    clock = ManualClock(datetime(2026, 3, 1, tzinfo=UTC))
    progress = Progress(console=Console(file=io.StringIO()), get_time=clock.monotonic, auto_refresh=False)
    known, unknown = progress.add_task("sending", total=100), progress.add_task("reading", total=None)
    tasks = {task.id: task for task in progress.tasks}
    assert str(Remaining().render(tasks[known])) == ""
    for _ in range(2):
        clock.advance(10)
        progress.advance(known, 10)
        progress.advance(unknown, 10)
    assert [str(Elapsed().render(task)) for task in tasks.values()] == ["20.0 s", "20.0 s"]
    assert str(Remaining().render(tasks[known])) == "1 min 20 s left"
    assert str(Remaining().render(tasks[unknown])) == ""
