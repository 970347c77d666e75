"""Whether to believe what answers tell of a bucket's level. Some proxies make it up, some platforms tell another's."""

from __future__ import annotations

import math
from collections import deque

from crossdock.pacing.rate_estimator import Anchor

WATCHED = 50  # readings
LEAPS = 3  # among them, from which on they are not believed: a bucket fills steadily
FASTER = 3.0  # than known may a bucket fill without being called a leap
NOTHING_LEFT = 30  # readings of nothing left, one after the other without one refusal, that are not believed
BAN_S = 60.0  # the first time; twice as long each time after


class HeaderTrust:
    """Levels that one bucket's answers tell, on a monotonic clock."""

    def __init__(self) -> None:
        self._latest: Anchor | None = None
        self._leaps: deque[bool] = deque(maxlen=WATCHED)
        self._nothing_left = 0
        self._bans = 0
        self._banned_until = -math.inf
        self.latest_at = -math.inf

    def believed(self, now: float) -> bool:
        return now >= self._banned_until

    def refused(self) -> None:
        """The server has refused a request, so it does run out."""
        self._nothing_left = 0

    def told(self, anchor: Anchor, rate_per_s: float, latency_s: float, now: float) -> bool:
        """True if what was told is news that can be believed."""
        latest = self._latest
        if not self.believed(now) or (latest is not None and anchor.at <= latest.at):
            return False
        self._latest = anchor
        if latest is not None:
            grown = anchor.level - latest.level + anchor.accepted - latest.accepted
            possible = FASTER * rate_per_s * (anchor.at - latest.at + latency_s) + 3
            self._leaps.append(grown > possible)
        self._nothing_left = self._nothing_left + 1 if anchor.level < 1 else 0
        if self._leaps.count(True) < LEAPS and self._nothing_left < NOTHING_LEFT:
            self.latest_at = now
            return True
        self._banned_until = now + BAN_S * 2.0 ** min(self._bans, 6)
        self._bans += 1
        self._latest, self._nothing_left = None, 0
        self._leaps.clear()
        return False
