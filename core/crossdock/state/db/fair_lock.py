"""A lock that threads acquire in the order of their requests."""

from __future__ import annotations

import threading
from collections import deque


class FairLock:
    """A fair lock. `threading.Lock` lets a thread that releases and acquires again overtake one that has waited."""

    def __init__(self) -> None:
        self._inner = threading.Lock()
        self._is_held = False
        self._waiting: deque[threading.Lock] = deque()  # each is released when its thread may continue

    def acquire(self, timeout_s: float) -> bool:
        """Acquire the lock. Return False if it is not free within *timeout_s* seconds."""
        with self._inner:
            if not self._is_held:
                self._is_held = True
                return True
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        if turn.acquire(timeout=timeout_s):
            return True
        with self._inner:
            if turn not in self._waiting:
                return True  # the lock was released just now
            self._waiting.remove(turn)
            return False

    def release(self) -> None:
        """Release the lock to the thread that has waited longest."""
        with self._inner:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_held = False
