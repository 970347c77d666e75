"""Estimates the burst of a token bucket that is not reported: what was accepted until it was first empty, less what
was added.
"""

from __future__ import annotations

import math
from itertools import pairwise

from crossdock.pacing.answered_requests import BucketSample

EACH, STEP_S = 1000, 0.2  # so many requests are all remembered, and later ones at this distance
ROUNDING = 0.05  # in tokens


class BurstEstimator:
    """Observes the bucket from the start of a run until it is first empty.

    Args:
        known: The burst that an earlier run learned or that is configured; None if unknown.
        full: Whether the bucket is full at the start, as far as is known.
    """

    def __init__(self, known: int | None = None, *, full: bool) -> None:
        self._known, self._full = known, full
        self._samples: list[BucketSample] = []
        self._empty: BucketSample | None = None

    @property
    def is_observing(self) -> bool:
        return self._full and self._empty is None

    def add_accepted(self, sample: BucketSample) -> None:
        """Record that a request was accepted; *sample* counts it."""
        if not self.is_observing:
            return
        if len(self._samples) < EACH or sample.at >= self._samples[-1].at + STEP_S:
            self._samples.append(sample)

    def add_empty(self, sample: BucketSample) -> None:
        """Record that the bucket was empty. Only the first time after an accepted request counts."""
        if self._empty is None and self._samples:
            self._empty = sample

    def fix_burst(self, rate_per_s: float) -> None:
        """Keep the burst that follows from this rate, whatever the rate becomes."""
        self._known, self._full = self.burst(rate_per_s), False

    def mean_accepted_per_s(self) -> float:
        """Return the rate of accepted requests, which is above the bucket's, or it would not be empty."""
        if self._empty is None or not self._samples or self._empty.at <= self._samples[0].at:
            return 1.0
        return self._empty.rate_since(self._samples[0])

    def burst(self, rate_per_s: float) -> int | None:
        """Return the burst of a bucket of this rate, at most the known one; None if it was not full at the start or
        has not been empty.

        After a slow start the bucket stays full for a while, so the highest level at any sample counts.
        """
        end = self._empty
        if end is None or not self._full:
            return self._known
        if self._known is not None and end.accepted - self._samples[0].accepted >= self._known:
            return self._known
        held = (end.accepted - one.accepted - rate_per_s * (end.at - one.at) for one in self._samples)
        gaps = [later.at - one.at for one, later in pairwise([*self._samples, end])]
        # a bucket of one token accepts no two requests as close to each other as ones of which it refused the second
        least = 2 if min(gaps[:-1], default=math.inf) <= gaps[-1] else 1
        return max(least, math.ceil(max(held) + 1 - ROUNDING))
