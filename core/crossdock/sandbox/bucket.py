"""The rate limit: tokens and the instant of the last refill, one bucket for each tenant and credential."""

from __future__ import annotations

import math
from dataclasses import dataclass

from crossdock.sandbox.answers import QUOTA_EXCEEDED, ProblemError
from crossdock.sandbox.auth import Caller
from crossdock.sandbox.settings import SandboxSettings

_ROUNDING = 1e-9  # so that who waits exactly long enough is not refused for the last bit of a float


@dataclass(slots=True)
class TokenBucket:
    """Tokens grow by *rate* a second up to *burst*; a request takes one, a refused request none."""

    rate: float
    burst: int
    tokens: float
    filled_at: float

    def take(self, now: float) -> float:
        """Take one token if there is one.

        Returns:
            0.0 when it was taken, otherwise the seconds until there is one.
        """
        elapsed = max(0.0, now - self.filled_at)
        self.tokens = min(float(self.burst), self.tokens + elapsed * self.rate)
        self.filled_at = now
        if self.tokens >= 1 - _ROUNDING:
            self.tokens = max(0.0, self.tokens - 1)
            return 0.0
        return self.seconds_to_next()

    def seconds_to_next(self) -> float:
        """Seconds until the number of whole tokens grows."""
        return (1 - self.tokens % 1) / self.rate


class Limits:
    """All buckets, and the header fields of draft-ietf-httpapi-ratelimit-headers-10 that tell of them."""

    def __init__(self, settings: SandboxSettings) -> None:
        self._rate = settings.rate_per_min / 60
        self._burst = settings.burst
        self._buckets: dict[Caller, TokenBucket] = {}
        self.policy = {"ratelimit-policy": f'"default";q={self._burst};w={math.ceil(self._burst / self._rate)}'}

    def take(self, caller: Caller, now: float) -> dict[str, str]:
        """Take one token of *caller* and tell what is left, as header fields.

        Raises:
            ProblemError: With 429 when there was none.
        """
        bucket = self._buckets.get(caller)
        if bucket is None:
            bucket = self._buckets[caller] = TokenBucket(self._rate, self._burst, self._burst, now)
        wait_s = bucket.take(now)
        more_in_s = max(1, math.ceil(wait_s or bucket.seconds_to_next()))
        told = {**self.policy, "ratelimit": f'"default";r={int(bucket.tokens + _ROUNDING)};t={more_in_s}'}
        if wait_s:
            headers = {**told, "retry-after": str(more_in_s)}
            raise ProblemError(429, "The request quota is used up.", headers=headers, kind=QUOTA_EXCEEDED)
        return told
