"""What is known of a limit, from whom, and how sure it is."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from crossdock.pacing.token_bucket import Bucket

Origin = Literal["set", "documented", "told", "learned", "guessed", "unknown"]
UNLIMITED = 10**9  # the burst of a bucket whose bottom nobody has seen
CAREFUL = 0.99  # so much of a learned burst is spent at once: the estimate is good to a percent
FIRST_GUESS_PER_S = 10_000 / 60  # until anything is known; only a refused request makes it matter


@dataclass(frozen=True, slots=True)
class LimitEstimate:
    """A rate and a burst.

    Attributes:
        rate_per_s: Tokens a second; None while nobody has said or seen it.
        burst: Tokens when full; None while nobody has said or seen it.
        agreed: How many estimates of a learned rate agreed, one after the other.
        most_per_s: What a person has set: nothing that is told or learned exceeds it.
        most_at_once: The same for the burst.

    Raises:
        ValueError: If the rate is not positive and finite, or the burst below one.
    """

    rate_per_s: float | None = None
    rate_from: Origin = "unknown"
    burst: int | None = None
    burst_from: Origin = "unknown"
    agreed: int = 0
    most_per_s: float = math.inf
    most_at_once: int = UNLIMITED

    def __post_init__(self) -> None:
        rate_per_s = FIRST_GUESS_PER_S if self.rate_per_s is None else self.rate_per_s
        Bucket(rate_per_s, 1 if self.burst is None else self.burst)

    def with_rate(self, rate_per_s: float, origin: Origin, agreed: int = 0) -> LimitEstimate:
        """The same with another rate, as far as a person allows it."""
        return replace(self, rate_per_s=min(rate_per_s, self.most_per_s), rate_from=origin, agreed=agreed)

    def with_burst(self, burst: int, origin: Origin) -> LimitEstimate:
        """The same with another burst, at least 1, as far as a person allows it."""
        return replace(self, burst=max(1, min(burst, self.most_at_once)), burst_from=origin)

    @property
    def spendable(self) -> int:
        """How much of the burst to spend at once; `UNLIMITED` while it is unknown."""
        if self.burst is None:
            return UNLIMITED
        return max(1, int(self.burst * CAREFUL)) if self.burst_from == "learned" else self.burst

    def bucket(self, spent_until: float = -math.inf) -> Bucket:
        """A bucket of this size that is full again at *spent_until*, on the caller's clock."""
        return Bucket(self.rate_per_s or FIRST_GUESS_PER_S, self.spendable, spent_until)
