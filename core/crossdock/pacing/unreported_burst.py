"""Estimates a burst that is not reported: requests accepted until the first refusal, less tokens added meanwhile."""

from __future__ import annotations

from crossdock.pacing.samples import Sample

STEP_S = 0.2


class BurstEstimator:
    """Observes the bucket from the start of a run until it is first empty.

    Args:
        full: Whether the bucket is full at the start, as far as is known.
    """

    def __init__(self, *, full: bool) -> None:
        self._full = full
        self._samples: list[Sample] = []
        self._empty: Sample | None = None

    @property
    def under_way(self) -> bool:
        return self._full and self._empty is None

    def add(self, sample: Sample) -> None:
        if self.under_way and (not self._samples or sample.at >= self._samples[-1].at + STEP_S):
            self._samples.append(sample)

    def add_empty(self, sample: Sample) -> None:
        """Record that the bucket was empty. Only the first time counts."""
        if self._empty is None:
            self._empty = sample

    def mean_per_s(self) -> float:
        """Return the rate of accepted requests, which is above the bucket's, or it would not be empty."""
        if self._empty is None or not self._samples or self._empty.at <= self._samples[0].at:
            return 1.0
        return self._empty.rate_since(self._samples[0])

    def burst(self, rate_per_s: float) -> int | None:
        """Return the burst of a bucket of this rate; None if it was not full at the start or has not been empty.

        After a slow start the bucket stays full for a while, so the highest level at any sample counts.
        """
        if self._empty is None or not self._full:
            return None
        held = (self._empty.accepted - s.accepted - rate_per_s * (self._empty.at - s.at) for s in self._samples)
        return max(1, round(max(held, default=1.0)))
