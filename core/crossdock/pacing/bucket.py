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

    def tokens(self, now: float) -> int:
        """Whole tokens there at *now*, 0 to *burst*. A clock that ran back gives no token twice."""
        if self.spent_until <= now:
            return self.burst
        missing = (self.spent_until - now) * self.rate_per_s
        return max(0, math.floor(self.burst - missing + 1e-9))

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

    def empty_until(self, instant: float) -> Bucket:
        """The bucket that has its next single token at *instant*, for a server that said so."""
        return replace(self, spent_until=max(self.spent_until, instant + (self.burst - 1) / self.rate_per_s))
