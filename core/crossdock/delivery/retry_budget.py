"""Exponential backoff with full jitter, and a budget for retries."""

from __future__ import annotations

import random

DOUBLINGS = 60  # more would overflow a float in an outage of hours


def pause_s(attempt: int, *, base_s: float, cap_s: float, rng: random.Random) -> float:
    """Seconds to wait after the *attempt*-th failure, counted from 1.

    Drawn evenly from zero to ``base_s * 2 ** (attempt - 1)``, at most *cap_s* ("full jitter", AWS architecture blog).
    """
    return rng.uniform(0.0, min(cap_s, base_s * 2.0 ** min(attempt - 1, DOUBLINGS)))


class RetryBudget:
    """How many retries a run may send: a tenth of its first attempts (Google SRE book, chapter 21) and some a second.

    Without a budget, every record of an outage is sent several times, and a recovering platform receives a multiple of
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
