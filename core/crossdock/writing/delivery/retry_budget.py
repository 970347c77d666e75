"""How many retries a run may send."""

from __future__ import annotations


class RetryBudget:
    """How many retries a run may send: a tenth of its first attempts (Google SRE book, chapter 21) and some a second.

    Without a budget, every record of an outage is sent several times, and a recovering target receives a multiple of
    its load. The floor allows retries on a poor network; in an outage the circuit breaker stops them. Not thread safe.
    """

    FLOOR = 10
    FLOOR_PER_S = 10.0

    def __init__(self, now: float) -> None:
        self._began, self._firsts, self._spent = now, 0, 0

    def first(self, number: int) -> None:
        """*number* requests were sent for the first time."""
        self._firsts += number

    def left(self, now: float) -> int:
        """How many retries may be sent at *now*, 0 or more."""
        return max(0, int(self.FLOOR + self._firsts / 10 + (now - self._began) * self.FLOOR_PER_S) - self._spent)

    def spend(self, number: int) -> None:
        self._spent += number
