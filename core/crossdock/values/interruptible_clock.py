"""A clock whose waits end when the run is interrupted."""

from __future__ import annotations

import threading
from datetime import timedelta

from crossdock.errors import StoppedError
from crossdock.values.clock import Clock

POLL = timedelta(milliseconds=200)  # how quickly an interrupted wait ends
LEAST_S = 0.00001  # a shorter rest may be nothing for a clock that counts microseconds


class InterruptibleClock:
    """*clock* for what a run reads: an API may ask for a pause of minutes, in which the run can be stopped.

    Args:
        interrupt: Set to end the run early.
    """

    def __init__(self, clock: Clock, interrupt: threading.Event) -> None:
        self._clock, self._interrupt = clock, interrupt
        self.now, self.monotonic = clock.now, clock.monotonic

    def sleep(self, seconds: float) -> None:
        """Wait as `Clock.sleep` does.

        Raises:
            StoppedError: If the run is interrupted.
        """
        until, left = self.monotonic() + seconds, seconds
        while True:
            if left > 0 and self._interrupt.is_set():
                raise StoppedError("stopped while waiting for a source", hint="run again to continue")
            self._clock.sleep(min(left, POLL.total_seconds()))
            left = until - self.monotonic()
            if left < LEAST_S:
                return
