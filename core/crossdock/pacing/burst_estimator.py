"""A burst that nobody tells: what is accepted until the first refusal, less what came in meanwhile."""

from __future__ import annotations

from crossdock.pacing.rate_estimator import Anchor

STEP_S = 0.2


class BurstEstimator:
    """The time from the first request of a run until its bucket is empty for the first time.

    Args:
        full: The bucket was full when it began, as far as anybody knows.

    Attributes:
        empty: The first anchor.
    """

    def __init__(self, *, full: bool) -> None:
        self._full = full
        self._points: list[Anchor] = []
        self.empty: Anchor | None = None

    @property
    def under_way(self) -> bool:
        return self._full and self.empty is None

    def passed(self, anchor: Anchor) -> None:
        """So many requests were accepted by then."""
        if self.under_way and (not self._points or anchor.at >= self._points[-1].at + STEP_S):
            self._points.append(anchor)

    def ended(self, anchor: Anchor) -> None:
        """The bucket was empty."""
        if self.empty is None:
            self.empty = anchor

    def mean_per_s(self) -> float:
        """What was accepted a second: more than the rate, or the bucket would not be empty."""
        if self.empty is None or not self._points or self.empty.at <= self._points[0].at:
            return 1.0
        return self.empty.rate_since(self._points[0])

    def burst(self, rate_per_s: float) -> int | None:
        """What the bucket held; None where it was not full at first, or its bottom has not been seen.

        Slow beginnings leave it full for a while, so the most that it held at any point counts.
        """
        if self.empty is None or not self._full:
            return None
        held = (self.empty.accepted - p.accepted - rate_per_s * (self.empty.at - p.at) for p in self._points)
        return max(1, round(max(held, default=1.0)))
