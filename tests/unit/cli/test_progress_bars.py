"""Durations beside a progress bar."""

from __future__ import annotations

import io
import re
from datetime import UTC, datetime

import pytest
from rich.console import Console
from rich.progress import Progress

from crossdock.cli.progress_bars import Elapsed, FittingBars, Remaining
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


@pytest.mark.parametrize(
    ("width", "left_out"), [(200, ""), (80, "bar"), (60, "bar elapsed rate"), (45, "bar elapsed rate allowance")]
)
def test_no_word_is_broken(width: int, left_out: str) -> None:
    """A line has the width of the terminal at most; what is left out is left out as a whole."""
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    bars = FittingBars(console)
    task = bars.add_task("sending wms.inventory_lots", total=1_000_000, rate="1,234/s", tokens="allowance 2,000")
    bars.update(task, completed=500_000)
    console.print(bars.make_tasks_table(bars.tasks))
    written = console.file
    assert isinstance(written, io.StringIO)
    (line,) = written.getvalue().splitlines()
    assert len(line) <= width
    words = {"bar": "━", "elapsed": "0.0 s", "rate": "1,234/s", "allowance": "allowance 2,000"}
    for name, word in words.items():
        assert (word in line) is (name not in left_out.split()), name
    assert re.match(r"sending wms.inventory_lots .*500000/1000000", line)
