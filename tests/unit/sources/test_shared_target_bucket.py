"""Requests that read a target spend the tokens of its delivery."""

from __future__ import annotations

from crossdock.pacing.rate_limit_and_retry_settings import RateLimit
from crossdock.pacing.request_allowance import RequestAllowance
from crossdock.pacing.token_bucket import BucketState, LimitEstimate, MemoryBucketStore
from crossdock.reading.sources.api_token_buckets import ApiBucket, RequestAllowanceOfRun, SharedBuckets
from crossdock.reading.transport.http_answers_and_errors import Answer
from crossdock.testing.manual_clock import ManualClock


def _store(clock: ManualClock) -> MemoryBucketStore:
    return MemoryBucketStore(
        clock, BucketState.from_estimate(LimitEstimate().with_capped_rate(1.0, "set").with_capped_burst(10, "set"))
    )


def test_reading_and_delivery_spend_one_bucket() -> None:
    """What delivery has taken is not there for a request that reads, and the other way round."""
    clock = ManualClock()
    store = _store(clock)
    delivery, reading = (
        RequestAllowance(clock, store),
        RequestAllowanceOfRun(clock, ApiBucket(clock, RequestAllowance(clock, store))),
    )
    spent = len(delivery.take_available(5))
    before = clock.monotonic()
    for _ in range(10):
        reading.record_answer(reading.wait_for_token(None), Answer(200, {}, b""), throttled=False)
    assert (spent, reading.usage.requests) == (5, 10)
    assert clock.monotonic() - before >= 15 - 10  # one token a second, and ten at the beginning
    assert store.take_available(0, 0).bucket_state.spent == 15
    assert delivery.take_available(1) == []


def test_a_refusal_stops_delivery_as_well() -> None:
    """After a 429 with Retry-After, nothing is sent for that time."""
    clock = ManualClock()
    store = _store(clock)
    bucket = ApiBucket(clock, RequestAllowance(clock, store))
    sent = bucket.take_token_or_wait_s(None, live=False)
    assert not isinstance(sent, float)
    bucket.record_answer(sent, Answer(429, {"retry-after": "30"}, b""), throttled=True)
    assert RequestAllowance(clock, store).take_available(1) == []


def test_a_kept_bucket_is_used_by_every_run_of_the_session() -> None:
    """It is not replaced once nobody uses it."""
    clock = ManualClock()
    buckets, bucket = SharedBuckets(), ApiBucket(clock, RequestAllowance(clock, _store(clock)))
    buckets.add_bucket_in_use("the platform", bucket)
    for _ in range(2):
        joined = buckets.acquire_bucket("the platform", clock, RateLimit(), None)
        assert joined is bucket
        buckets.release_bucket(joined)
