"""The level follows our own requests, and corrections that headers report."""

from __future__ import annotations

import math

import pytest
from tests.allowances import configured

from crossdock.pacing.bucket_store import BucketState, MemoryStore
from crossdock.pacing.bucket_view import BucketView
from crossdock.pacing.level_tracker import LevelTracker
from crossdock.pacing.limit_estimate import LimitEstimate
from crossdock.pacing.limit_learner import LimitLearner
from crossdock.pacing.rate_headers import RateHeaders
from crossdock.pacing.samples import AnsweredRequest, Sample
from crossdock.pacing.unreported_rate import RateEstimator
from crossdock.testing.manual_clock import ManualClock

LATENCY_S = 0.2


class Bench:
    """A tracker of a bucket in memory."""

    def __init__(self, estimate: LimitEstimate) -> None:
        self.clock, rate = ManualClock(), RateEstimator()
        self.view = BucketView(self.clock, MemoryStore(self.clock, BucketState.of(estimate)), rate.adopt)
        learner = LimitLearner(self.view, rate, self.clock.monotonic())
        self.tracker = LevelTracker(self.view, learner, self.clock.monotonic())

    def take(self, count: int) -> int:
        """Take tokens; the number of the first."""
        taken = self.view.take(count, 0)
        self.tracker.taken(taken)
        return taken.bucket_state.spent - taken.count + 1

    def answer(self, number: int, *, accepted: bool = True) -> AnsweredRequest:
        now = self.clock.monotonic()
        return self.tracker.answered(number, now - LATENCY_S, now, LATENCY_S, accepted=accepted)

    @property
    def level(self) -> float:
        return self.view.state.bucket.level(self.view.now)


def test_a_full_bucket_gains_nothing_until_the_first_request_arrives() -> None:
    """Half of the round trip is taken off, once."""
    bench = Bench(configured(10, 100))
    first = bench.take(50)
    bench.clock.advance(LATENCY_S)
    for number in (first, first + 1):
        bench.answer(number)
        assert bench.level == pytest.approx(51)


def test_the_expected_level() -> None:
    """The start, what was added and what was accepted; refused requests take no token."""
    bench = Bench(configured(10, 100))
    start = bench.clock.monotonic()
    first = bench.take(50)
    bench.answer(first, accepted=False)
    request = bench.answer(first + 49)
    assert request.sample.accepted == 49
    assert bench.tracker.expected(Sample(start + 2.0, 49)) == pytest.approx(71)
    assert bench.tracker.expected(Sample(start + 60.0, 49)) == 100
    assert Bench(LimitEstimate()).tracker.expected(Sample(1.0, 5)) == math.inf


@pytest.mark.parametrize(
    ("remaining", "level"),
    [pytest.param(20, 20, id="another user spends too"), pytest.param(49, 50, id="within the tolerance: unchanged")],
)
def test_a_reported_level_is_adopted_if_it_differs(remaining: float, level: float) -> None:
    """Three tokens more or less are explained by requests in flight."""
    bench = Bench(configured(10, 100))
    first = bench.take(50)
    bench.tracker.read(RateHeaders("triple", remaining, 100), bench.answer(first + 49))
    assert bench.level == pytest.approx(level, abs=1.01)
    assert bench.tracker.has_reports(bench.clock.monotonic())


def test_levels_that_leap_are_ignored() -> None:
    """A server that reports a full and an empty bucket in turn is no longer read."""
    bench = Bench(configured(10, 100))
    for n in range(12):
        bench.clock.advance(0.5)
        bench.tracker.read(RateHeaders("triple", 100 * (n % 2), 100), bench.answer(bench.take(1)))
    assert not bench.tracker.has_reports(bench.clock.monotonic())
    assert bench.level > 90
