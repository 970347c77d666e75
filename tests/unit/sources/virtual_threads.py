"""Threads in virtual time, which passes when all of them sleep."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

from crossdock.testing.manual_clock import ManualClock

_DEADLINE_S = 60.0  # of real time, for one sleep; then the test has hung


class VirtualThreads:
    """A `crossdock.values.clock.Clock`, and threads whose sleeps it counts."""

    def __init__(self) -> None:
        self._clock, self._changed = ManualClock(), threading.Condition()
        self._running, self._wakes = 0, list[float]()

    def now(self) -> datetime:
        return self._clock.now()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            return
        with self._changed:
            # as exact as the clock, which rounds to microseconds
            until = self._clock.monotonic() + max(1e-6, timedelta(seconds=seconds).total_seconds()) - 5e-7
            self._wakes.append(until)
            self._pass()
            if not self._changed.wait_for(lambda: self._clock.monotonic() >= until, _DEADLINE_S):
                raise AssertionError("virtual time stands still")
            self._wakes.remove(until)

    def run(self, calls: Sequence[Callable[[], None]]) -> None:
        """Make *calls*, each in a thread of its own."""
        self._running = len(calls)
        with ThreadPoolExecutor(len(calls)) as pool:
            for done in [pool.submit(self._call, call) for call in calls]:
                done.result()

    def _call(self, call: Callable[[], None]) -> None:
        try:
            call()
        finally:
            with self._changed:
                self._running -= 1
                self._pass()

    def _pass(self) -> None:
        """Let time pass until the first thread wakes, if all of them sleep."""
        if self._wakes and len(self._wakes) == self._running:
            self._clock.advance(max(0.0, min(self._wakes) - self._clock.monotonic()) + 1e-6)
            self._changed.notify_all()
