"""The levels that a server reports: whether they can be trusted, and the rate that they show.

Some proxies invent them, and some platforms report another bucket's.
"""

from __future__ import annotations

import math
from collections import deque

from crossdock.pacing.answered_requests import AnsweredRequest, BucketSample

WINDOW = 50  # reported levels
MAX_LEAPS = 3  # of them that rise faster than a bucket fills
LEAP = 3.0  # times the known rate
MAX_EMPTY = 30  # consecutive reports of an empty bucket without a refusal
MAX_CONTRADICTED = 2  # consecutive refused requests beside which tokens are reported
BAN_S = 60.0  # doubles each time
FRESH_S = 2.0
SHORTEST_S = 0.5  # a rate is measured over more time if requests overlap
LONGEST_S = 60.0  # and over one to two times this time


class ReportedLevels:
    """The reported levels of one bucket, on the monotonic clock.

    Attributes:
        misleading: Whether they describe another limit or none: tokens are reported where requests are refused, or
            none although requests are accepted.
    """

    def __init__(self) -> None:
        self.misleading = False
        self._contradicted = 0
        self._latest: BucketSample | None = None
        self._leaps: deque[bool] = deque(maxlen=WINDOW)
        self._empty = self._bans = 0
        self._banned_until = self._trusted_at = -math.inf
        self._base: BucketSample | None = None
        self._next: BucketSample | None = None
        self._rate_per_s: float | None = None

    def are_trusted(self, now: float) -> bool:
        return now >= self._banned_until and not self.misleading

    def were_trusted_recently(self, now: float) -> bool:
        """Return whether a level was trusted in the last two seconds."""
        return now - self._trusted_at < FRESH_S and self.are_trusted(now)

    def record_refused(self, remaining: float | None) -> None:
        """Record that a request was refused by an answer that reports *remaining* tokens."""
        self._empty = 0
        if remaining is not None:
            self._contradicted = self._contradicted + 1 if remaining >= 1 else 0
        self.misleading |= self._contradicted >= MAX_CONTRADICTED

    def check(self, reported: BucketSample, rate_per_s: float, latency_s: float, now: float) -> bool:
        """Return whether the reported level is newer than the latest and can be trusted."""
        latest = self._latest
        if not self.are_trusted(now) or (latest is not None and reported.at <= latest.at):
            return False
        self._latest = reported
        if latest is not None:
            gained = reported.level - latest.level + reported.accepted - latest.accepted
            self._leaps.append(gained > LEAP * rate_per_s * (reported.at - latest.at + latency_s) + 3)
        self._empty = self._empty + 1 if reported.level < 1 else 0
        self.misleading |= self._empty >= MAX_EMPTY
        if self._leaps.count(True) >= MAX_LEAPS:
            self._ban(now)
        if not self.are_trusted(now):
            return False
        self._trusted_at = now
        return True

    def _ban(self, now: float) -> None:
        self._banned_until = now + BAN_S * 2.0 ** min(self._bans, 6)
        self._bans += 1
        self._latest = None
        self._base = self._next = self._rate_per_s = None
        self._leaps.clear()

    def measured_rate(self, request: AnsweredRequest, reported: BucketSample, burst: int | None) -> float | None:
        """Return tokens per second, at most the real rate, or None while that is unknown.

        Levels are whole numbers, so the rate that they show is too low by up to one token, and never too high.
        """
        if self._base is None or self._next is None:
            self._base = self._next = reported
            return None
        gained = reported.accepted - self._base.accepted + reported.level - self._base.level - request.max_sample_error
        span = reported.at - self._base.at
        is_long = span > (SHORTEST_S if request.others else 0.0)
        rate_per_s = (gained - 1) / span if gained >= 2 and is_long else 0.0
        if burst is not None and reported.level >= burst - 1:  # tokens added to a full bucket are lost
            self._base = self._next = reported
            self._rate_per_s = max(self._rate_per_s or 0.0, rate_per_s) or None
            return self._rate_per_s
        if reported.at - self._next.at > LONGEST_S:
            self._base, self._next = self._next, reported
        self._rate_per_s = rate_per_s or self._rate_per_s
        return self._rate_per_s
