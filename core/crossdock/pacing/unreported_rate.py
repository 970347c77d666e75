"""Estimates the rate of a token bucket that is not reported, from accepted and refused requests.

A refused request shows that the bucket is empty at that moment. Between two such moments the bucket gave out exactly
the tokens that were added, so the requests accepted in between yield the rate, however unevenly they were sent.
"""

from __future__ import annotations

import math
from collections import deque

from crossdock.pacing.limit_estimate import LimitEstimate
from crossdock.pacing.samples import Sample

MIN_SPAN_S = 0.5  # between two samples of an empty bucket that yield an estimate
TOLERANCE = 0.03  # estimates that differ by less agree
MIN_REQUESTS = 16  # accepted requests per estimate that count as a confirmation
MAX_SPAN_S = 60.0  # covered by one estimate
LEVEL_TOLERANCE = 0.05  # a rate from reported levels replaces the estimate if it differs by more
LEVEL_SPAN_S = 3.0  # between two reported levels that yield a rate
EXCESS = ((0.10, 1.0), (0.02, 2.0), (0.002, 6.0))  # (share, seconds until it doubles), by number of confirmations
SURE = len(EXCESS) - 1
PROBE_INTERVAL_S = 0.1


class RateEstimator:
    """Estimates the rate of one bucket from samples in the order of time.

    Attributes:
        rate_per_s: The latest estimate; None before the first.
        agreed: Number of consecutive estimates that agreed.
        too_soon: Number of consecutive samples that were too close to the one before.
    """

    def __init__(self) -> None:
        self.rate_per_s: float | None = None
        self.agreed = self.too_soon = 0
        self._last: Sample | None = None
        self._series: Sample | None = None  # the first of consecutive samples that were too close
        self._agreed_since: Sample | None = None
        self._levels: deque[Sample] = deque(maxlen=8)

    def adopt(self, estimate: LimitEstimate) -> None:
        if estimate.rate_per_s != self.rate_per_s:
            self.rate_per_s, self.agreed = estimate.rate_per_s, estimate.agreed

    def add_empty(self, sample: Sample, latency_s: float) -> None:
        span = max(MIN_SPAN_S, 4 * latency_s)
        last, self._last = self._last, sample
        if last is None or self._series is None:
            self._series = self._agreed_since = sample
            return
        soon = sample.at - last.at < span
        self.too_soon = self.too_soon + 1 if soon else 0
        base = self._series if soon else last
        if sample.at - base.at >= span:
            self._estimate(base, sample, latency_s)
            self._series, self.too_soon = sample, 0

    def _estimate(self, base: Sample, sample: Sample, latency_s: float) -> None:
        estimate = sample.rate_since(base)
        noise = (3 + 0.2 * latency_s * estimate) / max(1, sample.accepted - base.accepted)
        rate, since = self.rate_per_s, self._agreed_since
        if rate is None or since is None or abs(estimate - rate) > (TOLERANCE + min(noise, 0.2)) * rate:
            self.rate_per_s, self.agreed, self._agreed_since = estimate, 0, base
            return
        self.agreed += sample.accepted - since.accepted >= MIN_REQUESTS * (self.agreed + 1)
        if sample.at - since.at > MAX_SPAN_S:
            since = self._agreed_since = base
        self.rate_per_s = sample.rate_since(since)

    def add_level(self, sample: Sample, latency_s: float, burst: int) -> bool:
        """Record a trusted level that the server reported. Return whether the estimate has changed."""
        if sample.level > 0.95 * burst:
            self._levels.clear()  # tokens added to a full bucket are lost
        if self._levels and sample.at - self._levels[-1].at < LEVEL_SPAN_S / 6:
            return False
        self._levels.append(sample)
        base = self._levels[0]
        span = sample.at - base.at
        if span < LEVEL_SPAN_S:
            return False
        estimate, rate = sample.rate_since(base), self.rate_per_s
        noise = 2 / (estimate * span) + 0.3 * latency_s / span
        if rate is not None and abs(estimate - rate) <= (LEVEL_TOLERANCE + noise) * rate:
            return False
        self.rate_per_s, self.agreed = estimate, 0
        self._levels.clear()
        return True


class RateProbe:
    """Exceeds a learned rate slightly, to find out whether the limit has been raised.

    Two confirmations lower the excess to 0.2 %, so that refusals are rare; it doubles while no request is refused.
    """

    def __init__(self, now: float) -> None:
        self._quiet_since, self._latest_at = now, -math.inf

    def refused(self, now: float) -> None:
        self._quiet_since = now

    def factor(self, now: float, agreed: int) -> float | None:
        """Return the factor for the speed from now on; None if that was decided less than 0.1 s ago."""
        if now - self._latest_at < PROBE_INTERVAL_S:
            return None
        self._latest_at = now
        share, doubling_s = EXCESS[min(agreed, SURE)]
        return 1 + share * math.pow(2, min((now - self._quiet_since) / doubling_s, 12))
