"""Learns the rate of a bucket from the levels that an API reports."""

from __future__ import annotations

import math

from crossdock.pacing.header_trust import HeaderTrust
from crossdock.pacing.samples import Sample

LONGEST_S = 60.0  # a rate is measured over one to two times this time
UNTRUSTED_AFTER = 2  # requests refused although tokens were reported


class ReportedLevels:
    """The reported levels of one bucket.

    Levels are whole numbers, so the rate that they show is too low by up to one token, and never too high.

    Attributes:
        misleading: Whether they describe another limit or none: tokens are reported where requests are refused, or
            always zero although requests are accepted.
    """

    def __init__(self) -> None:
        self._trust = HeaderTrust()
        self._contradicted = 0
        self.misleading = False
        self._base: Sample | None = None
        self._next: Sample | None = None
        self._rate_per_s: float | None = None

    def refused(self, remaining: float | None) -> None:
        """Record that a request was refused by an answer that reports *remaining* tokens."""
        self._trust.refused()
        self._contradicted += remaining is not None and remaining >= 1
        self.misleading |= self._contradicted >= UNTRUSTED_AFTER

    def check(self, sample: Sample) -> None:
        """Record that a request was accepted by an answer that reports this level."""
        self._trust.check(sample, math.inf, 0.0, sample.at)
        self.misleading |= not self._trust.trusted(sample.at)

    def rate(self, sample: Sample, burst: int | None) -> float | None:
        """Return tokens per second, at most the real rate, or None while that is unknown."""
        if self._base is None or self._next is None:
            self._base = self._next = sample
            return None
        gained = sample.accepted - self._base.accepted + sample.level - self._base.level
        rate_per_s = (gained - 1) / (sample.at - self._base.at) if gained >= 2 and sample.at > self._base.at else 0.0
        if burst is not None and sample.level >= burst - 1:  # tokens added to a full bucket are lost
            self._base = self._next = sample
            self._rate_per_s = max(self._rate_per_s or 0.0, rate_per_s) or None
            return self._rate_per_s
        if sample.at - self._next.at > LONGEST_S:
            self._base, self._next = self._next, sample
        self._rate_per_s = rate_per_s or self._rate_per_s
        return self._rate_per_s
