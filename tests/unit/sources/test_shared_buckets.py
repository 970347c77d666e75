"""Runs that read one API at the same time keep its limit together, and live ones go first."""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping
from datetime import timedelta

import pytest
from msgspec import structs
from tests.unit.sources.simulated_vendors import Headers, Reader, TokenBucket, draft, shopify, silent
from tests.unit.sources.virtual_threads import VirtualThreads

from crossdock.pacing.rate_limit_and_retry_settings import RateLimit
from crossdock.pacing.token_bucket import BucketState
from crossdock.reading.sources.api_token_buckets import ApiBucket, RequestAllowanceOfRun, SharedBuckets, make_api_bucket
from crossdock.reading.transport.http_answers_and_errors import Answer
from crossdock.testing.manual_clock import ManualClock

BATCH, LIVE = 400, 60


class _Site:
    """A vendor with a strict limit, and runs that read it through one bucket.

    Attributes:
        order: Which run sent each request.
        overtaken: For each live request, how many requests of the batch were sent while it waited.
        refused: How many were refused.
        used: The share of the rate that was used until the batch ended; above 1 with the burst.
    """

    def __init__(
        self, rate: float, burst: int, headers: Headers, limit: RateLimit, earlier: BucketState | None
    ) -> None:
        self.threads = VirtualThreads()
        self._vendor, self._headers = TokenBucket(rate, burst, 0.0), headers
        self._bucket, self._lock = make_api_bucket(self.threads, limit, earlier), threading.Lock()
        self.order, self.overtaken, self.refused = list[str](), list[int](), 0
        self.used = 0.0

    def batch(self) -> None:
        """Requests one after the other."""
        allowance = RequestAllowanceOfRun(self.threads, self._bucket)
        for _ in range(BATCH):
            self._request(allowance, "batch")
        assert allowance.usage.requests == BATCH
        self.used = len(self.order) / self.threads.monotonic() / self._vendor.rate

    def live(self) -> None:
        """Requests at random times."""
        rng, allowance = random.Random(5), RequestAllowanceOfRun(self.threads, self._bucket, live=True)
        for _ in range(LIVE):
            self.threads.sleep(rng.uniform(0.0, 2.0))
            before = self.order.count("batch")
            self._request(allowance, "live")
            self.overtaken.append(self.order[: self._last_live()].count("batch") - before)
        assert allowance.usage.requests == LIVE

    def _last_live(self) -> int:
        return len(self.order) - self.order[::-1].index("live")

    def _request(self, allowance: RequestAllowanceOfRun, name: str) -> None:
        sent = allowance.wait_for_token(None)
        self.order.append(name)
        self.threads.sleep(0.02)
        with self._lock:
            accepted = self._vendor.accepts(self.threads.monotonic())
            headers: Mapping[str, str] = self._headers(self._vendor, accepted)
        self.refused += not accepted
        self.threads.sleep(0.02)
        allowance.record_answer(sent, Answer(200 if accepted else 429, headers, b""), throttled=not accepted)


@pytest.mark.nightly(but=["2.0-40", "10.0-10-learned"])
@pytest.mark.parametrize("known", ["configured", "reported", "levels", "learned"])
@pytest.mark.parametrize(("rate", "burst"), [(2.0, 1), (2.0, 40), (10.0, 10)])
def test_a_known_limit_is_kept_by_two_runs_and_used(known: str, rate: float, burst: int) -> None:
    """None of them is throttled, a live request waits for one of the batch at most, and nearly all is used."""
    headers = {"reported": draft, "levels": shopify}.get(known, silent)
    earlier = None
    if known == "learned" or (known == "levels" and burst == 1):  # the levels of a small bucket do not tell the rate
        reader = Reader(TokenBucket, rate, burst, headers)
        reader.run(2_000)
        earlier = reader.run().state
    limit = RateLimit(per_minute=int(60 * rate), burst=burst) if known == "configured" else RateLimit()
    site = _Site(rate, burst, headers, limit, earlier)
    site.threads.run([site.batch, site.live])
    assert site.refused == 0
    assert len(site.order) == BATCH + LIVE
    assert max(site.overtaken) <= 1
    assert site.used >= 0.95


def test_the_limit_of_an_api_is_learned_by_two_runs_together() -> None:
    """A limit that is not reported is found from a few refused requests, as by one run."""
    site = _Site(10.0, 10, silent, RateLimit(), None)
    site.threads.run([site.batch, site.live])
    assert 0 < site.refused <= 12


def _bucket(clock: ManualClock, per_minute: int = 60, burst: int = 5) -> ApiBucket:
    return make_api_bucket(clock, RateLimit(per_minute=per_minute, burst=burst))


def test_a_batch_leaves_the_next_token_to_a_live_request_that_waits() -> None:
    """It is told to wait for the one after it; tokens beyond those it takes."""
    clock = ManualClock()
    bucket = _bucket(clock, burst=1)
    assert not isinstance(bucket.take_token_or_wait_s(None, live=False), float)
    with bucket.with_priority_over_batches(None):
        assert bucket.take_token_or_wait_s(None, live=True) == pytest.approx(1.0)
        assert bucket.take_token_or_wait_s(None, live=False) == pytest.approx(2.0)
        clock.advance(1.0)
        assert bucket.take_token_or_wait_s(None, live=False) == pytest.approx(1.0)
        assert not isinstance(bucket.take_token_or_wait_s(None, live=True), float)
    assert bucket.take_token_or_wait_s(None, live=False) == pytest.approx(1.0)


def test_a_long_download_holds_up_no_other_request() -> None:
    """Whenever its answer ends, and whatever was sent meanwhile."""
    clock = ManualClock()
    bucket = _bucket(clock)
    download = RequestAllowanceOfRun(clock, bucket)
    sent = download.wait_for_token(None)
    live = RequestAllowanceOfRun(clock, bucket, live=True)
    for _ in range(100):
        clock.advance(60)
        live.record_answer(live.wait_for_token(None), Answer(200, {}, b""), throttled=False)
    download.record_answer(sent, Answer(200, {}, b""), throttled=False)
    assert live.usage.waited_s == 0
    live.wait_for_token(None)
    assert live.usage.waited_s <= 1.0


def _cost(left: int) -> dict[str, object]:
    status = {"maximumAvailable": 100, "currentlyAvailable": left, "restoreRate": 10}
    return {"extensions": {"cost": {"requestedQueryCost": 40, "throttleStatus": status}}}


def test_queries_in_flight_are_paid_before_others() -> None:
    """Their cost is not in what answers report; one without an answer is forgotten."""
    clock = ManualClock()
    bucket = make_api_bucket(clock, RateLimit())
    one, other = RequestAllowanceOfRun(clock, bucket), RequestAllowanceOfRun(clock, bucket)
    one.record_answer(one.wait_for_token("{shop}"), Answer(200, {}, b""), throttled=False, body=_cost(60))
    sent = one.wait_for_token("{shop}")
    assert bucket.take_token_or_wait_s("{shop}", live=False) == pytest.approx(2.0)
    one.record_unanswered_request(sent)
    other.wait_for_token("{shop}")
    assert other.usage.waited_s == 0


def test_a_refusal_that_was_known_already_teaches_nothing() -> None:
    """Two requests that were on the way together are refused; the rate is not halved twice."""
    clock, told = ManualClock(), list[timedelta]()
    bucket = make_api_bucket(clock, RateLimit())
    runs = [RequestAllowanceOfRun(clock, bucket, told.append) for _ in range(2)]
    for answer in (200, 200, 429, 429):
        sent = [run.wait_for_token(None) for run in runs]
        clock.advance(0.1)
        for run, one in zip(runs, sent, strict=True):
            run.record_answer(one, Answer(answer, {}, b""), throttled=answer == 429)
    assert bucket.state.refused == 4
    assert max(told) <= timedelta(seconds=2)


def test_a_bucket_is_shared_while_it_is_used_and_continued_afterwards() -> None:
    """A later run begins with the newest of what the session knows and what the state has."""
    clock, buckets, limit = ManualClock(), SharedBuckets(), RateLimit(per_minute=60, burst=5)
    first = buckets.acquire_bucket("shop", clock, limit, None)
    assert buckets.acquire_bucket("shop", clock, limit, None) is first
    assert buckets.acquire_bucket("other", clock, limit, None) is not first
    first.take_token_or_wait_s(None, live=False)
    buckets.release_bucket(first)
    assert buckets.acquire_bucket("shop", clock, limit, None) is first
    buckets.release_bucket(first)
    buckets.release_bucket(first)
    stale = structs.replace(first.state, spent=0, as_of=0.0)
    later = buckets.acquire_bucket("shop", clock, limit, stale)
    assert later is not first
    assert later.state.spent == 1
    buckets.release_bucket(later)
    newer = structs.replace(later.state, spent=7, as_of=later.state.as_of + 1)
    assert buckets.acquire_bucket("shop", clock, limit, newer).state.spent == 7
