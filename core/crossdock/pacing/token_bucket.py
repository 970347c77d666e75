"""A token bucket as a value: the generic cell rate algorithm (ITU-T I.371, virtual scheduling).

One number of state, the instant until which tokens are spent. Exact bursts, nothing to refill, easy to share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Bucket:
    """*burst* tokens, one more every ``1 / rate_per_s`` seconds.

    Attributes:
        spent_until: Seconds on the caller's clock; at this instant the bucket will be full again.

    Raises:
        ValueError: If the rate is not positive and finite, or the burst below one.
    """

    rate_per_s: float
    burst: int
    spent_until: float = -math.inf

    def __post_init__(self) -> None:
        if not 0 < self.rate_per_s < math.inf:
            raise ValueError(f"a rate of {self.rate_per_s} a second lets nothing through, or everything")
        if self.burst < 1:
            raise ValueError(f"a burst of {self.burst} never lets a request through")

    def level(self, now: float) -> float:
        """Tokens there at *now*, parts of one too, at most *burst*; below zero what is owed.

        A clock that ran back gives no token twice.
        """
        return min(float(self.burst), self.burst - (self.spent_until - now) * self.rate_per_s)

    def tokens(self, now: float) -> int:
        """Whole tokens there at *now*, 0 to *burst*."""
        return max(0, math.floor(self.level(now) + 1e-6))

    def take(self, now: float, cost: int) -> Bucket:
        """The bucket after *cost* tokens are taken, there or not."""
        return replace(self, spent_until=max(self.spent_until, now) + cost / self.rate_per_s)

    def wait_s(self, now: float, cost: int = 1) -> float:
        """Seconds from *now* until *cost* tokens are there; 0.0 when they are.

        Raises:
            ValueError: If *cost* exceeds *burst*, so no wait would ever be enough.
        """
        if cost > self.burst:
            raise ValueError(f"{cost} tokens never fit into a burst of {self.burst}")
        return max(0.0, self.spent_until - now - (self.burst - cost) / self.rate_per_s)

    def holding(self, now: float, level: float) -> Bucket:
        """The bucket that has *level* tokens at *now*, at most *burst*, whatever it had."""
        return replace(self, spent_until=now + (self.burst - min(level, self.burst)) / self.rate_per_s)

    def turned(self, now: float, rate_per_s: float, burst: int) -> Bucket:
        """The bucket with as many tokens at *now* that grows otherwise from there."""
        return Bucket(rate_per_s, burst).holding(now, self.level(now))
