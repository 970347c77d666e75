"""What a load says about its waves."""

from __future__ import annotations

from datetime import timedelta

import pytest

from crossdock.cli.migrate.load import LoadOutput, progress_sentence
from crossdock.cli.terminal_output import WarningsOnly
from crossdock.config.project.migration_config import Gate
from crossdock.migration.load_progress_and_duration import WaveProgress
from crossdock.migration.waves import NumberedWave

LOTS = NumberedWave("lots", 3, 7, frozenset({"wms.lots"}), Gate())
SOME, LONG = timedelta(seconds=184), timedelta(hours=2, minutes=5)


@pytest.mark.parametrize(
    ("progress", "expected"),
    [
        (WaveProgress(LOTS, 0, 0, None, None), "its records are being read"),
        (WaveProgress(LOTS, 0, 0, None, LONG), "2 h 5 min with later waves"),
        (WaveProgress(LOTS, 1_200, 5_000, None, None), "1,200 of 5,000 records"),
        (WaveProgress(LOTS, 1_200, 5_000, SOME, None), "1,200 of 5,000 records, 3 min 4 s left"),
        (
            WaveProgress(LOTS, 1_200, 5_000, SOME, LONG),
            "1,200 of 5,000 records, 3 min 4 s left (2 h 5 min with later waves)",
        ),
        (WaveProgress(LOTS, 5_000, 5_000, timedelta(), timedelta()), "5,000 of 5,000 records"),
    ],
)
def test_sentences(progress: WaveProgress, expected: str) -> None:
    """What is unknown is left out, and so is a time when nothing is left."""
    assert progress_sentence(progress) == f"wave 3 of 7: lots: {expected}"


class Bars(WarningsOnly):
    def __init__(self) -> None:
        self.wholes: list[tuple[str, int, int, str]] = []

    def show_overall_progress(self, name: str, done: int, total: int, note: str) -> None:
        self.wholes.append((name, done, total, note))


def test_a_wave_is_said_once_and_shown_always(capsys: pytest.CaptureFixture[str]) -> None:
    """One line on stderr when a wave begins; the bar follows each step. With ``--json`` nothing is said."""
    bars = Bars()
    for wanted in (True, False):
        output = LoadOutput(bars, wanted=wanted)
        output.show_progress(WaveProgress(LOTS, 1, 4, None, None))
        output.show_progress(WaveProgress(LOTS, 2, 4, None, None))
        output.show_message("waiting: paused")
        assert capsys.readouterr().err == ("wave 3 of 7: lots: 1 of 4 records\nwaiting: paused\n" if wanted else "")
    assert bars.wholes == 2 * [("wave 3 of 7: lots", 1, 4, ""), ("wave 3 of 7: lots", 2, 4, "")]
