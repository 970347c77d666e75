"""The output of a running load: a bar of the wave above that of the run on a terminal, and sentences on stderr."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from crossdock.cli import terminal_output
from crossdock.cli.printed_sentences import say
from crossdock.cli.terminal_output import WarningsOnly
from crossdock.values.display_texts import duration_text

if TYPE_CHECKING:
    from crossdock.migration.load_progress import WaveProgress
    from crossdock.values.progress import Unit


def progress_sentence(progress: WaveProgress) -> str:
    """Describe the progress of a wave, such as ``wave 2 of 3: lots: 120 of 5,000 records, 30 min 0 s left``."""
    parts = [f"{progress.done:,} of {progress.expected:,} records"] if progress.expected else []
    parts += filter(None, [times_left(progress)])
    return f"{progress.wave}: {', '.join(parts) or 'its records are being read'}"


def times_left(progress: WaveProgress) -> str:
    left = f"{duration_text(progress.left)} left" if progress.left else ""
    later = f"{duration_text(progress.all_left)} with later waves" if progress.all_left else ""
    return f"{left} ({later})" if left and later else left or later


class LoadOutput:
    def __init__(self, shown: WarningsOnly, *, wanted: bool) -> None:
        self._shown, self._wanted = shown, wanted
        self._wave = 0

    def show_progress(self, progress: WaveProgress) -> None:
        self._shown.show_whole_progress(str(progress.wave), progress.done, progress.expected, times_left(progress))
        if self._wave != progress.wave.number and self._wanted:
            self._wave = progress.wave.number
            say(progress_sentence(progress), err=True)

    def show_message(self, text: str) -> None:
        if self._wanted:
            say(text, err=True)

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
def load_output(*, wanted: bool) -> Iterator[LoadOutput]:
    with terminal_output.progress(wanted=wanted) as shown:
        yield LoadOutput(shown, wanted=wanted)
