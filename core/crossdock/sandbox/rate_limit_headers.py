"""The header fields about a rate limit in four dialects, or in none."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

Dialect = Literal["draft10", "draft07", "triple", "x-ratelimit", "none"]


class Quota(NamedTuple):
    """The state of a token bucket; times are whole seconds, rounded up."""

    burst: int
    left: int
    more_in_s: int  # until there is one more token
    full_in_s: int  # until the bucket is full, which most dialects call the reset
    now: float  # seconds since the epoch


def policy(dialect: Dialect, burst: int, window_s: int) -> dict[str, str]:
    match dialect:
        case "draft10":
            return {"ratelimit-policy": f'"default";q={burst};w={window_s}'}
        case "draft07":
            return {"ratelimit-policy": f"{burst};w={window_s}"}
    return {}


def remaining(dialect: Dialect, quota: Quota) -> dict[str, str]:
    match dialect:
        case "draft10":  # draft-ietf-httpapi-ratelimit-headers-10
            return {"ratelimit": f'"default";r={quota.left};t={quota.more_in_s}'}
        case "draft07":  # its version 07: one dictionary
            return {"ratelimit": f"limit={quota.burst}, remaining={quota.left}, reset={quota.full_in_s}"}
        case "triple":  # its versions up to 06: three fields
            return _triple("ratelimit", quota, quota.full_in_s)
        case "x-ratelimit":  # older and widespread: the reset is a time since the epoch
            return _triple("x-ratelimit", quota, math.ceil(quota.now) + quota.full_in_s)
        case "none":
            return {}


def _triple(prefix: str, quota: Quota, reset: int) -> dict[str, str]:
    values = {"limit": quota.burst, "remaining": quota.left, "reset": reset}
    return {f"{prefix}-{name}": str(value) for name, value in values.items()}
