"""Allowances with a configured limit, for tests about something else."""

from __future__ import annotations

from crossdock.pacing.request_allowance import Priority, RequestAllowance
from crossdock.pacing.token_bucket import BucketState, LimitEstimate, MemoryBucketStore
from crossdock.values.clock import Clock


def configured(rate_per_s: float, burst: int) -> LimitEstimate:
    return LimitEstimate(rate_per_s, "set", burst, "set", most_per_s=rate_per_s, most_at_once=burst)


def allowance(
    clock: Clock, rate_per_s: float = 1e6, burst: int = 10**6, *, ceiling: int = 100, priority: Priority = "batch"
) -> RequestAllowance:
    """An allowance with a bucket of its own; without numbers it is never used up."""
    return RequestAllowance(
        clock,
        MemoryBucketStore(clock, BucketState.from_estimate(configured(rate_per_s, burst))),
        ceiling=ceiling,
        priority=priority,
    )
