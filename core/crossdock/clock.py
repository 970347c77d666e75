"""Time as an argument: everything that reads or spends time is given a clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What crossdock needs of time."""

    def now(self) -> datetime:
        """The present instant, aware, in UTC."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start that never run backwards."""

    def sleep(self, seconds: float) -> None:
        """Return after *seconds*, at once for zero and less."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            time.sleep(seconds)
