"""A token bucket as an immutable value: the generic cell rate algorithm (ITU-T I.371, virtual scheduling).

Its only state is the instant until which tokens are spent, so it is exact and easy to share.
"""

from __future__ import annotations

import math

from msgspec import Struct, structs

ROUNDING = 1e-6  # of a token, or of a second


class Bucket(Struct, frozen=True):
    """*burst* tokens when full; one is added every ``1 / rate_per_s`` seconds.

    Attributes:
        spent_until: Seconds on the caller's clock; the bucket is full again at this instant.

    Raises:
        ValueError: If the rate is not positive and finite, or the burst is below one.
    """

    rate_per_s: float
    burst: int
    spent_until: float = -math.inf

    def __post_init__(self) -> None:
        if not 0 < self.rate_per_s < math.inf:
            raise ValueError(f"a rate of {self.rate_per_s} per second is not positive and finite")
        if self.burst < 1:
            raise ValueError(f"a burst of {self.burst} is below one")

    def level(self, now: float) -> float:
        """Return the tokens at *now*, with fractions, at most *burst*; negative for a debt.

        A clock that is set back yields no token twice.
        """
        return min(float(self.burst), self.burst - (self.spent_until - now) * self.rate_per_s)

    def tokens(self, now: float) -> int:
        return max(0, math.floor(self.level(now) + ROUNDING))

    def after_taking_tokens(self, now: float, cost: int) -> Bucket:
        """Return the bucket without *cost* tokens, which may leave a debt."""
        return structs.replace(self, spent_until=max(self.spent_until, now) + cost / self.rate_per_s)

    def wait_s(self, now: float, cost: int = 1) -> float:
        """Return the seconds from *now* until *cost* tokens are available; 0.0 if they are.

        Raises:
            ValueError: If *cost* exceeds *burst*, so that no wait is long enough.
        """
        if cost > self.burst:
            raise ValueError(f"{cost} tokens exceed a burst of {self.burst}")
        return max(0.0, self.spent_until - now - (self.burst - cost) / self.rate_per_s)

    def with_level(self, now: float, level: float) -> Bucket:
        """Return the bucket with *level* tokens at *now*, capped at *burst*."""
        return structs.replace(self, spent_until=now + (self.burst - min(level, self.burst)) / self.rate_per_s)

    def resized_with_same_level(self, now: float, rate_per_s: float, burst: int) -> Bucket:
        """Return a bucket of another rate and burst with the same level at *now*."""
        return Bucket(rate_per_s, burst).with_level(now, self.level(now))
