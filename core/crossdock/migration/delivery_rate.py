"""The number of records per second that a load really delivers."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple, Self

WINDOW_S = 60.0
LEAST_S = 3.0  # shorter times say nothing
NEARLY = 0.9  # of the allowance; above that share, the allowance limits the load


class _Point(NamedTuple):
    at_s: float
    done: int


class DeliveryRate:
    """The rate at which records were settled in the last `WINDOW_S` of sending.

    Times in which sources are read, or the load waits for its hours, do not count.
    """

    def __init__(self) -> None:
        self._points = deque([_Point(0.0, 0)])

    @classmethod
    def of(cls, settled_at: Iterable[datetime]) -> Self:
        """Return the rate for records settled at these times, in any order, since the first of them."""
        rate, settled = cls(), sorted(Counter(settled_at).items())
        for (before, _), (at, records) in pairwise(settled):
            rate.add((at - before).total_seconds(), records)
        return rate

    def add(self, elapsed_s: float, records: int) -> None:
        last = self._points[-1]
        if elapsed_s <= 0 and records <= 0:
            return
        point = _Point(last.at_s + max(0.0, elapsed_s), last.done + records)
        if len(self._points) > 1 and point.at_s - self._points[-2].at_s < WINDOW_S / 60:
            self._points[-1] = point  # so that there are never more than about 60
        else:
            self._points.append(point)
        while point.at_s - self._points[1].at_s > WINDOW_S:
            self._points.popleft()

    def slower_than(self, allowed_per_s: float) -> float | None:
        """Return the rate if the target takes less than *allowed_per_s*; None if the allowance is the limit."""
        first, last = self._points[0], self._points[-1]
        lasted_s, done = last.at_s - first.at_s, last.done - first.done
        if lasted_s < LEAST_S or not done:
            return None
        per_s = done / lasted_s
        return per_s if per_s < allowed_per_s * NEARLY else None
