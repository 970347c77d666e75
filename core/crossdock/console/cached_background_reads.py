"""Readings of a state that may take longer than a page: they are made in a thread, once for all who ask."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import Struct

from crossdock.errors import CrossdockError
from crossdock.values.clock import Clock, SystemClock

T = TypeVar("T")
WAIT_S = 0.1  # before a page shows what is known
FRESH_S = 5.0
SHARE = 20  # a reading is shown for at least this many times as long as it took, so that it burdens no run


class _Known(Struct):
    found: Any = None
    error: CrossdockError | None = None
    fresh_until: float = 0.0
    thread: threading.Thread | None = None


class CachedBackgroundReads:
    """The last result of each reading, by its name. Any thread may use it."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._known: dict[tuple[str, ...], _Known] = {}

    def read_or_cached_if_slow(
        self, name: tuple[str, ...], read: Callable[[], T], *, wait_s: float = WAIT_S
    ) -> T | None:
        """Return the result of *read*, of an earlier call if a new one takes longer than *wait_s*; None at first.

        Raises the CrossdockError of the last call.
        """
        with self._lock:
            known = self._known.setdefault(name, _Known())
            if known.thread is None and self._clock.monotonic() >= known.fresh_until:
                known.thread = threading.Thread(
                    target=self._read_and_cache, args=(known, read), name="reading", daemon=True
                )
                known.thread.start()
            thread = known.thread
        if thread is not None:
            thread.join(wait_s)
        with self._lock:
            if known.error is not None:
                raise known.error
            found: T | None = known.found
            return found

    def wait_for_reads_in_progress(self) -> None:
        """Wait for the readings in progress: one that is cut off at the end of the process can make it crash."""
        with self._lock:
            threads = [each.thread for each in self._known.values() if each.thread is not None]
        for thread in threads:
            thread.join()

    def _read_and_cache(self, known: _Known, read: Callable[[], Any]) -> None:
        began = self._clock.monotonic()
        found, failed = None, None
        try:
            found = read()
        except CrossdockError as error:
            failed = error
        finally:
            with self._lock:
                ended = self._clock.monotonic()
                known.found, known.error, known.thread = found, failed, None
                known.fresh_until = ended + max(FRESH_S, SHARE * (ended - began))
