"""A deadline for waits that a library cannot end by itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_TICK_S = 0.25


class Watchdog:
    """Cuts a connection when one wait on its peer lasts too long; the wait then fails by itself.

    Args:
        cut: Ends the connection. Called at most once, from another thread.
    """

    def __init__(self, cut: Callable[[], None]) -> None:
        self.expired = False
        self._cut = cut
        self._deadline = self._patience = float("inf")
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="crossdock-watchdog", daemon=True)
        self._thread.start()

    @contextmanager
    def waiting(self, seconds: float) -> Iterator[None]:
        """Allow *seconds* from here, and again from each `heard`."""
        self._patience = seconds
        self.heard()
        try:
            yield
        finally:
            self._deadline = float("inf")

    def heard(self) -> None:
        """The peer has made progress."""
        self._deadline = time.monotonic() + self._patience

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._closed.wait(_TICK_S):
            if time.monotonic() > self._deadline:
                self.expired = True
                self._cut()
                return
