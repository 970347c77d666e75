"""How an answer tells of a rate limit: one truth in the header fields of four dialects, or in none."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

Dialect = Literal["draft10", "draft07", "triple", "x-ratelimit", "none"]


class Quota(NamedTuple):
    """What there is to tell of a token bucket; times are whole seconds, rounded up."""

    burst: int
    left: int
    more_in_s: int  # until there is a token more
    full_in_s: int  # until the bucket is full, which is what most dialects call the reset
    now: float  # seconds since the epoch


def policy(dialect: Dialect, burst: int, window_s: int) -> dict[str, str]:
    """What is true of every caller: so many requests at once, and again after so many seconds."""
    policies = {
        "draft10": {"ratelimit-policy": f'"default";q={burst};w={window_s}'},
        "draft07": {"ratelimit-policy": f"{burst};w={window_s}"},
    }
    return policies.get(dialect, {})


def told(dialect: Dialect, quota: Quota) -> dict[str, str]:
    return _TOLD[dialect](quota)


def _triple(prefix: str, quota: Quota, reset: int) -> dict[str, str]:
    values = {"limit": quota.burst, "remaining": quota.left, "reset": reset}
    return {f"{prefix}-{name}": str(value) for name, value in values.items()}


_TOLD: Mapping[Dialect, Callable[[Quota], dict[str, str]]] = {
    # draft-ietf-httpapi-ratelimit-headers-10
    "draft10": lambda quota: {"ratelimit": f'"default";r={quota.left};t={quota.more_in_s}'},
    # its version 07: one dictionary
    "draft07": lambda quota: {
        "ratelimit": f"limit={quota.burst}, remaining={quota.left}, reset={quota.full_in_s}",
    },
    # its versions up to 06: three fields
    "triple": lambda quota: _triple("ratelimit", quota, quota.full_in_s),
    # as many platforms had it before: the reset is a time since the epoch
    "x-ratelimit": lambda quota: _triple("x-ratelimit", quota, math.ceil(quota.now) + quota.full_in_s),
    "none": lambda _: {},
}
