"""The budget for the retries of a run."""

from __future__ import annotations


class RetryBudget:
    """The budget for retries: a tenth of the first attempts (Google SRE book, chapter 21) and some per second.

    Without a budget, every record of an outage is sent several times, and a recovering target receives a multiple of
    its load. The minimum allows retries on a poor network. In an outage the circuit breaker stops them. Not
    thread-safe.
    """

    FLOOR = 10
    FLOOR_PER_S = 10.0

    def __init__(self, now: float) -> None:
        self._began, self._firsts, self._spent = now, 0, 0

    def first(self, number: int) -> None:
        self._firsts += number

    def left(self, now: float) -> int:
        return max(0, int(self.FLOOR + self._firsts / 10 + (now - self._began) * self.FLOOR_PER_S) - self._spent)

    def spend(self, number: int) -> None:
        self._spent += number
