"""A clock for tests that is advanced by hand."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

_START = datetime(2026, 1, 1, tzinfo=UTC)


class ManualClock:
    """A thread-safe `crossdock.values.clock.Clock` that stands still until it is advanced. `sleep` advances it."""

    def __init__(self, start: datetime = _START) -> None:
        if start.tzinfo is None:
            raise ValueError("the start time has no time zone")
        self._start = start.astimezone(UTC)
        self._passed = timedelta()
        self._lock = threading.Lock()

    def now(self) -> datetime:
        with self._lock:
            return self._start + self._passed

    def monotonic(self) -> float:
        with self._lock:
            return self._passed.total_seconds()

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            self.advance(seconds)

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError("time cannot run backwards")
        with self._lock:
            self._passed += timedelta(seconds=seconds)

    def step(self, seconds: float) -> None:
        """Change the time of day by *seconds*, forwards or back, as NTP does. The monotonic time does not change."""
        with self._lock:
            self._start += timedelta(seconds=seconds)
