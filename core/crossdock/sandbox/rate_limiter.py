"""The rate limit: a token bucket for each credential, and the headers that report it."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from msgspec import Struct

from crossdock.sandbox.access_control import Caller
from crossdock.sandbox.problem_errors import ProblemError

RateLimitHeaderDialect = Literal["draft10", "draft07", "triple", "x-ratelimit", "none"]


class ReportedQuota(NamedTuple):
    """The state of a token bucket; times are whole seconds, rounded up."""

    burst: int
    left: int
    more_in_s: int  # until there is one more token
    full_in_s: int  # until the bucket is full, which most dialects call the reset
    now: float  # seconds since the epoch


def policy_headers(dialect: RateLimitHeaderDialect, burst: int, window_s: int) -> dict[str, str]:
    match dialect:
        case "draft10":
            return {"ratelimit-policy": f'"default";q={burst};w={window_s}'}
        case "draft07":
            return {"ratelimit-policy": f"{burst};w={window_s}"}
    return {}


def remaining_headers(dialect: RateLimitHeaderDialect, quota: ReportedQuota) -> dict[str, str]:
    match dialect:
        case "draft10":  # draft-ietf-httpapi-ratelimit-headers-10
            return {"ratelimit": f'"default";r={quota.left};t={quota.more_in_s}'}
        case "draft07":  # its version 07: one dictionary
            return {"ratelimit": f"limit={quota.burst}, remaining={quota.left}, reset={quota.full_in_s}"}
        case "triple":  # its versions up to 06: three fields
            return _limit_remaining_reset_headers("ratelimit", quota, quota.full_in_s)
        case "x-ratelimit":  # older and widespread: the reset is a time since the epoch
            return _limit_remaining_reset_headers("x-ratelimit", quota, math.ceil(quota.now) + quota.full_in_s)
        case "none":
            return {}


def _limit_remaining_reset_headers(prefix: str, quota: ReportedQuota, reset: int) -> dict[str, str]:
    values = {"limit": quota.burst, "remaining": quota.left, "reset": reset}
    return {f"{prefix}-{name}": str(value) for name, value in values.items()}


_ROUNDING = 1e-9  # a client that waits exactly long enough is not refused for the last bit of a float


class TokenBucket(Struct):
    """Gains *rate* tokens a second up to *burst*. A request takes one token, a refused request none."""

    rate: float
    burst: int
    tokens: float
    filled_at: float

    def take(self, now: float) -> float:
        """Take a token and return 0.0, or return the seconds until there is one."""
        elapsed = max(0.0, now - self.filled_at)
        self.tokens = min(float(self.burst), self.tokens + elapsed * self.rate)
        self.filled_at = now
        if self.tokens < 1 - _ROUNDING:
            return self.seconds_to_next()
        self.tokens = max(0.0, self.tokens - 1)
        return 0.0

    def seconds_to_next(self) -> float:
        return (1 - self.tokens % 1) / self.rate


class RateLimiter:
    def __init__(self, rate_per_min: int, burst: int, dialect: RateLimitHeaderDialect) -> None:
        self._rate, self._burst, self._dialect = rate_per_min / 60, burst, dialect
        self._buckets: dict[str, TokenBucket] = {}
        self.policy_headers = policy_headers(dialect, burst, math.ceil(burst / self._rate))

    def take_token_or_refuse(self, caller: Caller, now: float) -> dict[str, str]:
        bucket = self._buckets.setdefault(caller.id, TokenBucket(self._rate, self._burst, self._burst, now))
        wait_s = bucket.take(now)
        more_in_s = max(1, math.ceil(wait_s or bucket.seconds_to_next()))
        full_in_s = math.ceil((self._burst - bucket.tokens) / self._rate)
        headers = self._headers(int(bucket.tokens + _ROUNDING), more_in_s, full_in_s, now)
        if wait_s:
            retry_after = {} if self._dialect == "none" else {"retry-after": str(more_in_s)}
            raise ProblemError(429, "The request quota is exhausted.", headers={**headers, **retry_after})
        return headers

    def false_headers(self, now: float, *, full: bool) -> dict[str, str]:
        """Return fields of a full bucket, or of one that is empty for an hour. Neither is ever true after a request."""
        return self._headers(self._burst, 1, 0, now) if full else self._headers(0, 3600, 3600, now)

    def _headers(self, left: int, more_in_s: int, full_in_s: int, now: float) -> dict[str, str]:
        quota = ReportedQuota(self._burst, left, more_in_s, full_in_s, now)
        return {**self.policy_headers, **remaining_headers(self._dialect, quota)}
