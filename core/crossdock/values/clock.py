"""Clocks: everything that reads the time or waits gets one as an argument."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """A source of time."""

    def now(self) -> datetime:
        """Return the present instant, aware, in UTC."""

    def monotonic(self) -> float:
        """Return seconds from an arbitrary start. They never decrease, and include time while the machine is
        suspended.
        """

    def sleep(self, seconds: float) -> None:
        """Return after *seconds*, or at once if they are not positive."""


# macOS has no CLOCK_BOOTTIME; its CLOCK_MONOTONIC counts suspended time, unlike time.monotonic() there and on Linux
_SINCE_BOOT: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """The machine's clock. `monotonic` is the time since its start, the same for all processes."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.clock_gettime(_SINCE_BOOT)

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            time.sleep(seconds)
