"""A percentage of a bucket's tokens for one of its users. Nothing here waits."""

from __future__ import annotations

from collections.abc import Callable

from crossdock.pacing.rate_limit import UNLIMITED
from crossdock.pacing.token_bucket import Bucket
from crossdock.values.clock import Clock

ASKED_AGAIN_S = 1.0  # while nothing may be taken, since the percentage may change


class BucketShare:
    """A percentage of the rate and burst of a bucket, for one thread.

    It is a second bucket, from which each token must be taken, too. It begins with its percentage of the whole bucket's
    tokens, so that a restarted run gets no additional burst.

    Args:
        percent: Returns the percentage of the whole bucket, 0 to 100. It is called each time, so the percentage may
            change.
    """

    def __init__(self, clock: Clock, percent: Callable[[], int]) -> None:
        self._clock, self._percent = clock, percent
        self._own: Bucket | None = None

    def available(self, wanted: int, whole: Bucket, level: float) -> int:
        """Return how many of *wanted* tokens may be taken from *whole*, which has *level* tokens now."""
        percent = self._percent()
        if percent >= 100:
            self._own = None
            return wanted
        if percent <= 0:
            return 0
        own = self._own_bucket(percent, whole, level)
        return min(wanted, own.tokens(self._clock.monotonic()))

    def take(self, count: int) -> None:
        if self._own is not None and count:
            self._own = self._own.take(self._clock.monotonic(), count)

    def wait_s(self, whole: Bucket, level: float) -> float:
        """Return seconds until a token is available, as long as the percentage is the same."""
        percent = self._percent()
        if percent >= 100:
            return 0.0
        if percent <= 0:
            return ASKED_AGAIN_S
        return self._own_bucket(percent, whole, level).wait_s(self._clock.monotonic())

    def _own_bucket(self, percent: int, whole: Bucket, level: float) -> Bucket:
        now, rate_per_s = self._clock.monotonic(), whole.rate_per_s * percent / 100
        # a burst that is unknown is reduced to what the rate gives in a second
        burst = max(1, int(rate_per_s if whole.burst == UNLIMITED else whole.burst * percent // 100))
        if self._own is None:
            part = burst if whole.burst == UNLIMITED else max(level, 0.0) * percent / 100
            self._own = Bucket(rate_per_s, burst).with_level(now, part)
        elif (self._own.rate_per_s, self._own.burst) != (rate_per_s, burst):
            self._own = self._own.resized(now, rate_per_s, burst)
        return self._own
