"""The level follows our own requests, and corrections that headers report."""

from __future__ import annotations

import math

import pytest
from tests.allowances import configured

from crossdock.pacing.answer_headers import RateHeaders
from crossdock.pacing.rate_limit_learner import AnsweredRequest, BucketSample, LimitLearner
from crossdock.pacing.request_allowance import ServerLevelTracker
from crossdock.pacing.token_bucket import BucketState, BucketStoreWithLastState, LimitEstimate, MemoryBucketStore
from crossdock.testing.manual_clock import ManualClock

LATENCY_S = 0.2


class Bench:
    """A tracker of a bucket in memory."""

    def __init__(self, estimate: LimitEstimate) -> None:
        self.clock = ManualClock()
        self.view = BucketStoreWithLastState(
            self.clock, MemoryBucketStore(self.clock, BucketState.from_estimate(estimate))
        )
        self.tracker = ServerLevelTracker(self.view, LimitLearner(self.view), self.clock.monotonic())

    def take(self, count: int) -> int:
        """Take tokens; the number of the first."""
        taken = self.view.take_available(count, 0)
        self.tracker.record_first_take_from_full_bucket(taken, self.clock.monotonic())
        return taken.bucket_state.spent - taken.count + 1

    def answer(
        self, number: int, *, accepted: bool = True, fastest_s: float = LATENCY_S, others: int = 49
    ) -> AnsweredRequest:
        now = self.clock.monotonic()
        sample = BucketSample(now - LATENCY_S / 2, number)
        request = AnsweredRequest(number, now - LATENCY_S, now, LATENCY_S, sample, others=others)
        self.tracker.delay_filling_by_first_answer(request, fastest_s, accepted=accepted)
        return request

    def read(self, remaining: float, number: int, *, accepted: bool = True, others: int = 49) -> None:
        headers = RateHeaders("triple", remaining, 100)
        self.tracker.correct_limit_and_level_by_headers(
            headers, self.answer(number, accepted=accepted, others=others), accepted=accepted
        )

    @property
    def level(self) -> float:
        return self.view.last_state.bucket.level(self.view.now)


def test_a_full_bucket_gains_nothing_until_the_first_request_arrives() -> None:
    """A first answer that is later than others is taken off, once, whichever request it is for."""
    bench = Bench(configured(10, 100))
    first = bench.take(50)
    bench.clock.advance(LATENCY_S)
    for number in (first + 1, first):
        bench.answer(number, fastest_s=LATENCY_S - 0.15)
        assert bench.level == pytest.approx(50.5)


@pytest.mark.parametrize(
    ("accepted", "fastest_s", "level"),
    [pytest.param(True, 0.0, 51, id="the first: half of the round trip"), pytest.param(False, 0.0, 52, id="refused")],
)
def test_without_other_latencies_the_way_to_the_server_is_taken_off(
    accepted: bool, fastest_s: float, level: float
) -> None:
    """Unless the first request is refused, for then the bucket was not full."""
    bench = Bench(configured(10, 100))
    first = bench.take(50)
    bench.clock.advance(LATENCY_S)
    bench.answer(first, accepted=accepted, fastest_s=fastest_s)
    assert bench.level == pytest.approx(level)


def test_the_expected_level() -> None:
    """The start, what was added and what was accepted."""
    bench = Bench(configured(10, 100))
    start = bench.clock.monotonic()
    assert bench.tracker.expected_level(BucketSample(start + 2.0, 49)) == pytest.approx(71)
    assert bench.tracker.expected_level(BucketSample(start + 60.0, 49)) == 100
    assert Bench(LimitEstimate()).tracker.expected_level(BucketSample(1.0, 5)) == math.inf


@pytest.mark.parametrize(
    ("remaining", "level"),
    [pytest.param(20, 20, id="another user spends too"), pytest.param(49, 50, id="within the tolerance: unchanged")],
)
def test_a_reported_level_is_adopted_if_it_differs(remaining: float, level: float) -> None:
    """Three tokens more or less are explained by requests in flight."""
    bench = Bench(configured(10, 100))
    first = bench.take(50)
    bench.read(remaining, first + 49)
    assert bench.level == pytest.approx(level, abs=1.01)
    assert bench.tracker.has_trusted_reports(bench.clock.monotonic())


def test_levels_that_leap_are_ignored() -> None:
    """A server that reports a full and an empty bucket in turn is no longer read."""
    bench = Bench(configured(10, 100))
    for n in range(12):
        bench.clock.advance(0.5)
        bench.read(100 * (n % 2), bench.take(1))
    assert not bench.tracker.has_trusted_reports(bench.clock.monotonic())
    assert bench.level > 90


@pytest.mark.parametrize(("remaining", "level"), [(47, 49.0), (49, 50.0), (52, 53.0)])
def test_the_level_beside_a_single_request_is_exact(remaining: float, level: float) -> None:
    """Nothing else explains a difference of more than the fraction that is not reported."""
    bench = Bench(configured(10, 100))
    bench.take(49)
    bench.read(remaining, bench.take(1), others=0)
    assert bench.level == pytest.approx(min(level, 50.0), abs=1e-5)


def test_the_levels_of_another_limit_are_ignored() -> None:
    """Two refused requests beside which tokens are reported: what was reported is forgotten."""
    bench = Bench(LimitEstimate())
    for _ in range(2):
        assert bench.view.last_state.estimate.burst in {None, 100}
        bench.read(50, bench.take(1), accepted=False)
    assert bench.view.last_state.estimate == LimitEstimate()
    bench.read(50, bench.take(1))
    assert bench.view.last_state.estimate == LimitEstimate()
