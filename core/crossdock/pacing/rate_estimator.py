"""A rate that nobody tells, from what is accepted and refused.

A request that a token bucket refuses shows that it is empty at that moment: an anchor. Between two anchors the bucket
gave out exactly what it gained, so the requests that it accepted meanwhile tell the rate, however unevenly they came.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

SHORTEST_S = 0.5  # between two anchors that tell a rate
SAME = 0.03  # estimates that differ by less agree
TELLING = 16  # requests from which on their rate is more than a hint
LONGEST_S = 60.0  # of the time that one estimate covers
LOWEST_PER_S = 0.1
EXCESS = ((0.10, 1.0), (0.02, 2.0), (0.002, 6.0))  # (share, seconds in which it doubles), by how many estimates agreed
SURE = len(EXCESS) - 1
SURPRISE = 0.05  # a rate from told levels is taken over when it differs by more
LEVELS_S = 3.0  # how long two told levels are apart, from which on they tell a rate


@dataclass(frozen=True, slots=True)
class Anchor:
    """The bucket had *level* tokens at *at*, on a monotonic clock, after *accepted* requests in all."""

    at: float
    accepted: int
    level: float = 0.0

    def rate_since(self, earlier: Anchor) -> float:
        """Tokens a second that came in between, if the bucket was never full."""
        gained = self.accepted - earlier.accepted + self.level - earlier.level
        return max(gained / (self.at - earlier.at), LOWEST_PER_S)


class RateEstimator:
    """Estimates the rate of one bucket.

    Attributes:
        rate_per_s: The latest estimate; None before the first.
        agreed: How many estimates agreed, one after the other.
        hasty: How many anchors came one after the other too soon to tell a rate.
        last: The latest anchor of an empty bucket.
    """

    def __init__(self) -> None:
        self.rate_per_s: float | None = None
        self.agreed = self.hasty = 0
        self.last: Anchor | None = None
        self._series: Anchor | None = None  # the first of those that came too soon one after the other
        self._regime: Anchor | None = None  # the first since when all estimates agreed
        self._levels: deque[Anchor] = deque(maxlen=8)

    def saw_empty(self, anchor: Anchor, latency_s: float) -> None:
        """The bucket was empty; anchors come in the order of time."""
        span = max(SHORTEST_S, 4 * latency_s)
        last, self.last = self.last, anchor
        if last is None or self._series is None:
            self._series = self._regime = anchor
            return
        soon = anchor.at - last.at < span
        self.hasty = self.hasty + 1 if soon else 0
        base = self._series if soon else last
        if anchor.at - base.at >= span:
            self._estimate(base, anchor, latency_s)
            self._series, self.hasty = anchor, 0

    def _estimate(self, base: Anchor, anchor: Anchor, latency_s: float) -> None:
        estimate = anchor.rate_since(base)
        noise = (3 + 0.2 * latency_s * estimate) / max(1, anchor.accepted - base.accepted)
        rate, regime = self.rate_per_s, self._regime
        if rate is None or regime is None or abs(estimate - rate) > (SAME + min(noise, 0.2)) * rate:
            self.rate_per_s, self.agreed, self._regime = estimate, 0, base
            return
        self.agreed += anchor.accepted - regime.accepted >= TELLING * (self.agreed + 1)
        if anchor.at - regime.at > LONGEST_S:
            regime = self._regime = base
        self.rate_per_s = anchor.rate_since(regime)

    def saw_level(self, anchor: Anchor, latency_s: float, burst: int) -> bool:
        """The server told a level that can be believed; true if the rate was found to be another."""
        if anchor.level > 0.95 * burst:
            self._levels.clear()  # what comes into a full bucket is lost
        if self._levels and anchor.at - self._levels[-1].at < LEVELS_S / 6:
            return False
        self._levels.append(anchor)
        base = self._levels[0]
        if anchor.at - base.at < LEVELS_S:
            return False
        estimate, rate = anchor.rate_since(base), self.rate_per_s
        noise = 2 / (estimate * (anchor.at - base.at)) + 0.3 * latency_s / (anchor.at - base.at)
        if rate is not None and abs(estimate - rate) <= (SURPRISE + noise) * rate:
            return False
        self.rate_per_s, self.agreed = estimate, 0
        self._levels.clear()
        return True


def excess(agreed: int, quiet_s: float) -> float:
    """By which share to exceed a rate, *quiet_s* seconds after the last refusal, to see whether it is still true.

    A rate on which *agreed* estimates agree is exceeded by two thousandths, so that a refusal is rare; the longer none
    comes, the more.
    """
    share, doubling_s = EXCESS[min(agreed, SURE)]
    return share * math.pow(2, min(quiet_s / doubling_s, 12))
