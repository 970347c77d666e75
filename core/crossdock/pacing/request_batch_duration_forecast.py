"""The time that a number of requests takes: the tokens in the bucket at once, the others at its rate."""

from __future__ import annotations

from msgspec import Struct

from crossdock.pacing.token_bucket_store import BucketState


class Forecast(Struct, frozen=True):
    """The time that *requests* need.

    Attributes:
        at_once: How many can be sent now; None if the limit is unknown.
        rate_per_s: The rate of the others; None if unknown.
        seconds: Until the last of them can be sent; None if the limit is unknown.
    """

    requests: int
    at_once: int | None
    rate_per_s: float | None
    seconds: float | None


def forecast(bucket_state: BucketState, requests: int, now: float) -> Forecast:
    """Return the time that *requests* need from *now*, in seconds on the clock of *bucket_state*."""
    estimate = bucket_state.estimate
    if estimate.burst is None or estimate.rate_per_s is None:
        return Forecast(requests, None, estimate.rate_per_s, None)
    level = bucket_state.bucket.level(now)
    wait_s = max(0.0, bucket_state.frozen_until - now) if requests else 0.0
    seconds = max(wait_s, (requests - level) / estimate.rate_per_s, 0.0)
    return Forecast(requests, min(requests, max(0, int(level))), estimate.rate_per_s, seconds)
