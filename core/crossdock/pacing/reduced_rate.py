"""A percentage of a bucket's tokens for one of its users, which leaves the others to the rest. Nothing here sleeps."""

from __future__ import annotations

from collections.abc import Callable

from crossdock.pacing.limit_estimate import UNLIMITED
from crossdock.pacing.token_bucket import Bucket
from crossdock.values.clock import Clock

ASKED_AGAIN_S = 1.0  # while nothing may be taken, since the percentage may change


class ReducedRate:
    """So many percent of the rate and of the burst of a bucket, for one thread.

    It is a second bucket, from which each token must be taken as well. At first it has its percentage of the tokens
    that the whole one has, so a run that is started again gets no other burst.

    Args:
        percent: Of the whole bucket, 0 to 100; asked each time, so it may change while tokens are taken.
    """

    def __init__(self, clock: Clock, percent: Callable[[], int]) -> None:
        self._clock, self._percent = clock, percent
        self._own: Bucket | None = None

    def available(self, wanted: int, whole: Bucket, level: float) -> int:
        """How many of *wanted* tokens may be taken from *whole*, which has *level* tokens now."""
        percent = self._percent()
        if percent >= 100:
            self._own = None
            return wanted
        if percent <= 0:
            return 0
        own = self._sized(percent, whole, level)
        return min(wanted, own.tokens(self._clock.monotonic()))

    def take(self, count: int) -> None:
        """*count* of the `available` tokens were taken."""
        if self._own is not None and count:
            self._own = self._own.take(self._clock.monotonic(), count)

    def wait_s(self, whole: Bucket, level: float) -> float:
        """Seconds until a token is available, as long as the percentage is the same."""
        percent = self._percent()
        if percent >= 100:
            return 0.0
        if percent <= 0:
            return ASKED_AGAIN_S
        return self._sized(percent, whole, level).wait_s(self._clock.monotonic())

    def _sized(self, percent: int, whole: Bucket, level: float) -> Bucket:
        """The own bucket, of the size that it has now."""
        now, rate_per_s = self._clock.monotonic(), whole.rate_per_s * percent / 100
        # a burst that is unknown is reduced to what the rate gives in a second
        burst = max(1, int(rate_per_s if whole.burst == UNLIMITED else whole.burst * percent // 100))
        if self._own is None:
            part = burst if whole.burst == UNLIMITED else max(level, 0.0) * percent / 100
            self._own = Bucket(rate_per_s, burst).with_level(now, part)
        elif (self._own.rate_per_s, self._own.burst) != (rate_per_s, burst):
            self._own = self._own.resized(now, rate_per_s, burst)
        return self._own
