"""Waiting for what will come true."""

from __future__ import annotations

import time
from collections.abc import Callable

WITHIN_S = 300.0


def eventually(holds: Callable[[], bool], within_s: float = WITHIN_S) -> None:
    """Wait until something is true, or fail."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, f"it did not come true within {within_s:.0f} s"
        time.sleep(0.02)
