"""Clocks, of which everything that reads the time or waits gets one as an argument, and calls that a thread repeats."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Protocol

from crossdock.errors import StoppedError


@contextmanager
def call_periodically_in_thread(call: Callable[[], bool], every_s: float, name: str) -> Iterator[None]:
    """Call *call* every *every_s* seconds in a thread, until it returns False or the block ends, which waits for it."""
    over = threading.Event()

    def repeat() -> None:
        goes_on = True
        while goes_on and not over.wait(every_s):
            goes_on = call()

    thread = threading.Thread(target=repeat, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


# macOS has no CLOCK_BOOTTIME; its CLOCK_MONOTONIC counts suspended time, unlike time.monotonic() there and on Linux
_SINCE_BOOT: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
POLL = timedelta(milliseconds=200)  # how quickly an interrupted wait ends
LEAST_S = 0.00001  # a shorter rest may be nothing for a clock that counts microseconds


class Clock(Protocol):
    def now(self) -> datetime:
        """Return the present instant, aware, in UTC."""

    def monotonic(self) -> float:
        """Return seconds from an arbitrary start. They never decrease, and include the time of a suspended machine."""

    def sleep(self, seconds: float) -> None:
        """Return after *seconds*, or at once if they are not positive."""


class SystemClock:
    """The machine's clock. `monotonic` is the time since its start, the same for all processes."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.clock_gettime(_SINCE_BOOT)

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            time.sleep(seconds)


class InterruptibleClock:
    """A clock whose waits can be interrupted: an API may ask a run for a pause of minutes."""

    def __init__(self, clock: Clock, interrupt: threading.Event) -> None:
        self._clock, self._interrupt = clock, interrupt
        self.now, self.monotonic = clock.now, clock.monotonic

    def sleep(self, seconds: float) -> None:
        """Wait as `Clock.sleep` does. Raises StoppedError if the run is interrupted."""
        until, left = self.monotonic() + seconds, seconds
        while True:
            if left > 0 and self._interrupt.is_set():
                raise StoppedError("stopped while waiting for a source", hint="run again to continue")
            self._clock.sleep(min(left, POLL.total_seconds()))
            left = until - self.monotonic()
            if left < LEAST_S:
                return
