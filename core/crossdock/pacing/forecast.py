"""When work will be done: what the bucket holds goes at once, the rest at its rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crossdock.pacing.bucket_store import BucketState


@dataclass(frozen=True, slots=True)
class Forecast:
    """What so many *requests* need.

    Attributes:
        at_once: How many of them may leave now; None while nobody knows.
        rate_per_s: At which the others leave; None while nobody knows.
        seconds: Until the last of them may leave; None while nobody knows.
    """

    requests: int
    at_once: int | None
    rate_per_s: float | None
    seconds: float | None


def forecast(bucket_state: BucketState, requests: int, now: float) -> Forecast:
    """What *requests* need from *now* on, in seconds on the clock of *bucket_state*."""
    known = bucket_state.known
    if known.burst is None or known.rate_per_s is None:
        return Forecast(requests, None, known.rate_per_s, None)
    level = bucket_state.bucket.level(now)
    wait_s = max(0.0, bucket_state.frozen_until - now) if requests else 0.0
    seconds = max(wait_s, (requests - level) / known.rate_per_s, 0.0)
    return Forecast(requests, min(requests, max(0, int(level))), known.rate_per_s, seconds)


@dataclass(frozen=True, slots=True)
class Slot:
    """When one of several works is done: *ends_s* seconds from now, None while nobody knows the limit."""

    name: str
    ends_s: float | None
    in_time: bool


def timetable(bucket_state: BucketState, works: Sequence[tuple[str, int]], now: float, within_s: float) -> list[Slot]:
    """Which *works*, of so many requests each, are done within *within_s* seconds, one after the other.

    The most important first: one that does not fit is left out, and can wait, and a smaller one after it may still fit.
    While the limit is unknown everything is in time.
    """
    slots, requests = [], 0
    for name, size in works:
        needed = forecast(bucket_state, requests + size, now).seconds
        in_time = needed is None or needed <= within_s
        requests += size if in_time else 0
        slots.append(Slot(name, needed, in_time))
    return slots
