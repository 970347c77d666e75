"""How far a wave is and how long it takes, over all runs."""

from __future__ import annotations

from datetime import timedelta

from crossdock.config.project.migration_config import Gate, MigrationConfig
from crossdock.migration.load_progress_and_duration import (
    SHOWN_EVERY_S,
    DeliveryRate,
    LoadProgress,
    WaveCounts,
    WaveProgress,
)
from crossdock.migration.waves import NumberedWave
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.run_progress_and_messages import SilentProgress

CONFIG = MigrationConfig.model_validate({"waves": {"lots": {"streams": ["wms.lots"]}}})
LOTS = NumberedWave("lots", 3, 7, frozenset({"wms.lots"}), Gate())


class Listener(SilentProgress):
    def __init__(self) -> None:
        self.seen: list[WaveProgress] = []

    def show_progress(self, progress: WaveProgress) -> None:
        self.seen.append(progress)

    def show_message(self, text: str) -> None:
        raise AssertionError(text)


def begun(numbers: WaveCounts, rate_per_s: float | None = 10.0, most: int = 100) -> tuple[LoadProgress, ManualClock]:
    clock = ManualClock()
    arguments = Listener(), clock, CONFIG, LOTS, numbers, lambda: rate_per_s, DeliveryRate()
    return LoadProgress(*arguments, most=most), clock


def test_with_a_rehearsal() -> None:
    """What earlier runs delivered counts, and the waves that follow are part of the whole."""
    progress, _ = begun(WaveCounts(200, 1_000, 6_000))
    assert progress.current() == WaveProgress(LOTS, 200, 1_000, timedelta(seconds=80), timedelta(seconds=680))
    progress.begin("sending wms.lots", 800)
    progress.advance(300)
    assert progress.current() == WaveProgress(LOTS, 500, 1_000, timedelta(seconds=50), timedelta(seconds=650))


def test_without_a_rehearsal() -> None:
    """The records are known once they are read; the other waves are not."""
    progress, _ = begun(WaveCounts(200, 0, None))
    assert progress.current() == WaveProgress(LOTS, 200, 200, timedelta(), None)
    progress.begin("reading wms.lots", None)
    progress.advance(5_000)  # rows that are read are no records that are delivered
    progress.begin("sending wms.lots", 800)
    assert progress.current() == WaveProgress(LOTS, 200, 1_000, timedelta(seconds=80), None)


def test_bytes_are_no_records() -> None:
    """A file that is fetched, before or while records are sent, counts neither as delivered nor as expected."""
    progress, _ = begun(WaveCounts(0, 0, None))
    progress.begin("reading wms.lots", None)
    progress.begin("fetching LOTS.csv", 83_207, "bytes")
    progress.advance(83_207)
    progress.begin("sending wms.lots", 753)
    progress.begin("fetching LOTS.csv", 83_207, "bytes")
    progress.advance(83_207)
    progress.advance(3)
    assert progress.current() == WaveProgress(LOTS, 3, 753, timedelta(seconds=75), None)


def test_what_the_target_really_takes_counts() -> None:
    """Also in the waves that follow: not the allowance, of which a slow target leaves a part."""
    progress, clock = begun(WaveCounts(0, 1_000, 500))
    progress.begin("reading wms.lots", None)
    clock.advance(600)
    progress.begin("sending wms.lots", 1_000)
    assert progress.current().left == timedelta(seconds=100), "nothing is measured yet"
    for _ in range(100):
        clock.advance(0.5)
        progress.advance(2)
    assert progress.current() == WaveProgress(LOTS, 200, 1_000, timedelta(seconds=200), timedelta(seconds=325))


def test_a_wait_is_no_slowness() -> None:
    """Times in which nothing is sent are not measured, nor what is within the allowance."""
    progress, clock = begun(WaveCounts(0, 1_000, None))
    for _ in range(10):
        progress.begin("sending wms.lots", 50)
        clock.advance(5)
        progress.advance(50)
        progress.begin("reading wms.lots", None)
        clock.advance(100)
    assert progress.current().left == timedelta(seconds=50)


def test_without_a_rate_or_records() -> None:
    """What is unknown is not guessed."""
    assert begun(WaveCounts(0, 0, None))[0].current() == WaveProgress(LOTS, 0, 0, None, None)
    assert begun(WaveCounts(0, 100, 100), None)[0].current() == WaveProgress(LOTS, 0, 100, None, None)


def test_a_percentage_by_hand_takes_longer() -> None:
    """With half of the allowance the time is doubled."""
    assert begun(WaveCounts(0, 100, 0), most=50)[0].current().left == timedelta(seconds=20)


def test_it_is_shown_now_and_then() -> None:
    """At the begin of each stage, and every half a second."""
    listener, clock = Listener(), ManualClock()
    progress = LoadProgress(
        listener, clock, CONFIG, LOTS, WaveCounts(0, 0, None), lambda: 1.0, DeliveryRate(), most=100
    )
    progress.begin("sending wms.lots", 10)
    for _ in range(5):
        progress.advance()
    assert len(listener.seen) == 2
    clock.advance(SHOWN_EVERY_S)
    progress.advance()
    assert [each.done for each in listener.seen] == [0, 0, 6]
