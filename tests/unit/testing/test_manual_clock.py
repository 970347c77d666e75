from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta, timezone

import pytest

from crossdock.testing.manual_clock import ManualClock
from crossdock.values.clock import Clock


def test_a_manual_clock_stands_still_until_advanced() -> None:
    """`advance` and `sleep` move both readings together, and never backwards."""
    manual = ManualClock(datetime(2026, 3, 29, 2, tzinfo=timezone(timedelta(hours=1))))
    clock: Clock = manual
    assert (clock.now(), clock.monotonic()) == (datetime(2026, 3, 29, 1, tzinfo=UTC), 0.0)
    clock.sleep(1.5)
    clock.sleep(-1)
    manual.advance(0.5)
    assert (clock.now(), clock.monotonic()) == (datetime(2026, 3, 29, 1, 0, 2, tzinfo=UTC), 2.0)
    with pytest.raises(ValueError, match="backwards"):
        manual.advance(-1)
    with pytest.raises(ValueError, match="zone"):
        ManualClock(datetime(2026, 1, 1))  # noqa: DTZ001


def test_concurrent_sleeps_add_up() -> None:
    """No step of any thread is lost."""
    clock = ManualClock()

    def sleep_often() -> None:
        for _ in range(500):
            clock.sleep(1)

    threads = [threading.Thread(target=sleep_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clock.monotonic() == 2000.0


def test_a_step_changes_the_time_of_day_alone() -> None:
    """Set forwards or back, the time of day moves and the monotonic time does not."""
    clock = ManualClock()
    start = clock.now()
    clock.advance(2)
    clock.step(-3600)
    assert (clock.now() - start, clock.monotonic()) == (timedelta(seconds=-3598), 2.0)
