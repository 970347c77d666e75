"""Distinguishes an empty bucket from a 429 with another cause.

A client that treats each 429 as an empty bucket becomes very slow if a platform refuses one request in fifty at random.
So an unexpected 429 is verified: a few requests are sent at once, and an empty bucket refuses those too.
"""

from __future__ import annotations

from collections import deque

CHECKS = 4
FAILING_CHECKS = 3
LATEST = 6
FAILING_LATEST = 5  # among many requests no check is needed
FREQUENT = 200  # answers per false alarm, at most
REMEMBERED = 4_000  # answers


class Unexpected429s:
    def __init__(self) -> None:
        self._answered = self._false_alarms = 0
        self.clear()

    def clear(self) -> None:
        self._latest: deque[bool] = deque(maxlen=LATEST)
        self._checks: list[bool] = []
        self._first: int | None = None

    def verify(self, spent: int) -> None:
        """Verify with the requests that take the tokens after the first *spent*."""
        if self._first is None:
            self._first, self._checks = spent + 1, []

    def checks_left(self, spent: int) -> int:
        """Return the tokens that may be taken for checks beyond those in the bucket."""
        return 0 if self._first is None else max(0, self._first + CHECKS - 1 - spent)

    def answered(self, number: int, *, accepted: bool) -> None:
        self._latest.append(accepted)
        self._answered += 1
        if self._answered == REMEMBERED:
            self._answered, self._false_alarms = self._answered // 2, self._false_alarms // 2
        if self._first is not None and self._first <= number < self._first + CHECKS:
            self._checks.append(accepted)
            if len(self._checks) == CHECKS and not self._confirmed():
                self._first = None
                self._false_alarms += 1

    def is_credible(self, *, expected: bool) -> bool:
        """Return whether a 429 means an empty bucket. If false alarms are frequent, even an expected one needs
        proof.
        """
        frequent = self._false_alarms >= 2 and self._false_alarms * FREQUENT > self._answered
        return self._confirmed() or (expected and not frequent)

    def _confirmed(self) -> bool:
        return self._latest.count(False) >= FAILING_LATEST or self._checks.count(False) >= FAILING_CHECKS
