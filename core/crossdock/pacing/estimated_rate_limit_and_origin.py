"""The estimated rate limit, with the origin of each part, for commands that load no config models too."""

from __future__ import annotations

import math
from typing import Literal

from msgspec import Struct, structs

from crossdock.pacing.token_bucket import Bucket

Origin = Literal["set", "documented", "reported", "learned", "guessed", "unknown"]
UNSURE: frozenset[Origin] = frozenset({"learned", "guessed", "unknown"})
UNLIMITED = 10**9  # the burst of a bucket that has never been empty
LEARNED_SHARE = 0.99  # of a learned burst is spent at once: the estimate is accurate to one percent
DEFAULT_PER_S = 10_000 / 60  # while no rate is known; it matters only once a request is refused


class LimitEstimate(Struct, frozen=True):
    """A rate and a burst.

    Attributes:
        rate_per_s: Tokens per second; None if unknown.
        burst: Tokens in a full bucket; None if unknown.
        agreed: Number of consecutive estimates that confirmed a learned rate.
        most_per_s: Configured maximum of the rate, which no reported or learned rate exceeds.
        most_at_once: Configured maximum of the burst.

    Raises:
        ValueError: If the rate is not positive and finite, or the burst is below one.
    """

    rate_per_s: float | None = None
    rate_from: Origin = "unknown"
    burst: int | None = None
    burst_from: Origin = "unknown"
    agreed: int = 0
    most_per_s: float = math.inf
    most_at_once: int = UNLIMITED

    def __post_init__(self) -> None:
        rate_per_s = DEFAULT_PER_S if self.rate_per_s is None else self.rate_per_s
        Bucket(rate_per_s, 1 if self.burst is None else self.burst)

    def with_rate(self, rate_per_s: float, origin: Origin, agreed: int = 0) -> LimitEstimate:
        """Return the same with another rate, capped at the configured one."""
        return structs.replace(self, rate_per_s=min(rate_per_s, self.most_per_s), rate_from=origin, agreed=agreed)

    def with_burst(self, burst: int, origin: Origin) -> LimitEstimate:
        """Return the same with another burst, at least 1 and capped at the configured one."""
        return structs.replace(self, burst=max(1, min(burst, self.most_at_once)), burst_from=origin)

    def with_earlier_findings(self, earlier: LimitEstimate | None) -> LimitEstimate:
        """Return the same with the reported or learned rate and burst of *earlier*."""
        estimate = self
        if earlier is not None and earlier.rate_per_s is not None and earlier.rate_from in {"reported", "learned"}:
            estimate = estimate.with_rate(earlier.rate_per_s, earlier.rate_from, earlier.agreed)
        if earlier is not None and earlier.burst is not None and earlier.burst_from in {"reported", "learned"}:
            estimate = estimate.with_burst(earlier.burst, earlier.burst_from)
        return estimate

    @property
    def burst_with_safety_margin(self) -> int:
        """The part of the burst to spend at once; `UNLIMITED` while the burst is unknown."""
        if self.burst is None:
            return UNLIMITED
        return max(1, int(self.burst * LEARNED_SHARE)) if self.burst_from == "learned" else self.burst

    def configured_limit(self) -> LimitEstimate:
        """Return what is configured, without anything that was documented, reported or learned."""
        estimate = LimitEstimate(most_per_s=self.most_per_s, most_at_once=self.most_at_once)
        if self.most_per_s < math.inf:
            estimate = estimate.with_rate(self.most_per_s, "set").with_burst(1, "documented")
        return estimate if self.most_at_once == UNLIMITED else estimate.with_burst(self.most_at_once, "set")

    def configured_bucket(self) -> Bucket | None:
        """Return a full bucket of the configured maxima, or None without any. A missing maximum is the known value."""
        if self.most_per_s == math.inf and self.most_at_once == UNLIMITED:
            return None
        rate_per_s = self.most_per_s if self.most_per_s < math.inf else self.rate_per_s or DEFAULT_PER_S
        return Bucket(rate_per_s, self.burst_with_safety_margin)

    def bucket(self, full_again_at: float = -math.inf) -> Bucket:
        """Return a bucket of this size that is full again at *full_again_at*, on the caller's clock."""
        return Bucket(self.rate_per_s or DEFAULT_PER_S, self.burst_with_safety_margin, full_again_at)


def limit_text(known: LimitEstimate) -> str:
    """Describe a limit for people: its rate and burst, and how each is known."""
    sure = f", {known.agreed + 1} estimates agree" if known.rate_from == "learned" and known.agreed else ""
    rate = f"{known.rate_per_s * 60:,.0f} a minute ({known.rate_from}{sure})" if known.rate_per_s else "rate unknown"
    burst = f"burst {known.burst:,} ({known.burst_from})" if known.burst else "burst unknown"
    learning = "" if known.rate_per_s and known.burst else "; it is learned from answers"
    return f"{rate}, {burst}{learning}"
