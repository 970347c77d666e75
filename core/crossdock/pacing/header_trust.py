"""Checks whether reported levels can be trusted: some proxies invent them, some platforms report another bucket's."""

from __future__ import annotations

import math
from collections import deque

from crossdock.pacing.samples import Sample

WINDOW = 50  # reported levels
MAX_LEAPS = 3  # of them that rise faster than a bucket fills
LEAP = 3.0  # times the known rate
MAX_EMPTY = 30  # consecutive reports of an empty bucket without a refusal
BAN_S = 60.0  # doubles each time
FRESH_S = 2.0


class HeaderTrust:
    """Checks the reported levels of one bucket, on the monotonic clock."""

    def __init__(self) -> None:
        self._latest: Sample | None = None
        self._leaps: deque[bool] = deque(maxlen=WINDOW)
        self._empty = 0
        self._bans = 0
        self._banned_until = self._trusted_at = -math.inf

    def trusted(self, now: float) -> bool:
        return now >= self._banned_until

    def fresh(self, now: float) -> bool:
        """Return whether a level was trusted in the last two seconds."""
        return now - self._trusted_at < FRESH_S and self.trusted(now)

    def refused(self) -> None:
        self._empty = 0

    def check(self, reported: Sample, rate_per_s: float, latency_s: float, now: float) -> bool:
        """Return whether the reported level is newer than the latest and can be trusted."""
        latest = self._latest
        if not self.trusted(now) or (latest is not None and reported.at <= latest.at):
            return False
        self._latest = reported
        if latest is not None:
            gained = reported.level - latest.level + reported.accepted - latest.accepted
            self._leaps.append(gained > LEAP * rate_per_s * (reported.at - latest.at + latency_s) + 3)
        self._empty = self._empty + 1 if reported.level < 1 else 0
        if self._leaps.count(True) < MAX_LEAPS and self._empty < MAX_EMPTY:
            self._trusted_at = now
            return True
        self._ban(now)
        return False

    def _ban(self, now: float) -> None:
        self._banned_until = now + BAN_S * 2.0 ** min(self._bans, 6)
        self._bans += 1
        self._latest, self._empty = None, 0
        self._leaps.clear()
