"""The estimate follows headers and refusals."""

from __future__ import annotations

import math

import pytest

from crossdock.pacing.bucket_store import BucketState, MemoryStore
from crossdock.pacing.bucket_view import BucketView
from crossdock.pacing.limit_estimate import LimitEstimate, Origin
from crossdock.pacing.limit_learner import LimitLearner
from crossdock.pacing.rate_headers import RateHeaders
from crossdock.pacing.samples import AnsweredRequest, Sample
from crossdock.pacing.unreported_rate import RateEstimator
from crossdock.testing.manual_clock import ManualClock

LATENCY_S = 0.05


class Bench:
    """A learner of a bucket in memory."""

    def __init__(self, estimate: LimitEstimate) -> None:
        self.clock, rate = ManualClock(), RateEstimator()
        self.view = BucketView(self.clock, MemoryStore(self.clock, BucketState.of(estimate)), rate.adopt)
        self.learner = LimitLearner(self.view, rate, self.clock.monotonic())

    def refuse(self, accepted: int, retry_after_s: float | None = None) -> None:
        now = self.clock.monotonic()
        request = AnsweredRequest(accepted + 1, now - LATENCY_S, now, LATENCY_S, Sample(now, accepted))
        self.learner.restart_empty(request, 2, retry_after_s)

    @property
    def level(self) -> float:
        return self.view.state.bucket.level(self.view.now)


def test_reported_values_are_adopted_up_to_the_configured_ones() -> None:
    """Headers replace an estimate, but not a configured maximum."""
    bench = Bench(LimitEstimate(most_per_s=10))
    bench.learner.adopt(RateHeaders("draft10", 50, 100, 25.0))
    assert bench.view.state.estimate == LimitEstimate(10, "reported", 100, "reported", most_per_s=10)


def test_two_refusals_teach_rate_and_burst() -> None:
    """Of an unknown limit: 300 accepted in one second, then 80 in four, are 20 per second and a burst of 280."""
    bench = Bench(LimitEstimate())
    assert bench.learner.max_in_flight(LATENCY_S) == 8
    bench.learner.add(Sample(bench.clock.monotonic(), 0))
    bench.clock.advance(1.0)
    bench.refuse(300)
    assert bench.view.state.estimate.rate_from == "guessed"
    assert bench.level < 0
    bench.clock.advance(4.0)
    bench.refuse(380)
    estimate = bench.view.state.estimate
    assert (estimate.rate_from, estimate.burst_from) == ("learned", "learned")
    assert estimate.rate_per_s == pytest.approx(20)
    assert estimate.burst == 280
    assert bench.learner.empty_at == bench.clock.monotonic()


def test_refusals_in_a_row_leave_a_growing_debt() -> None:
    """A reserve that is too small becomes a longer pause."""
    bench, levels = Bench(LimitEstimate(10, "learned", 100, "set", agreed=2)), []
    for n in range(4):
        bench.refuse(n)
        levels.append(bench.level)
        bench.clock.advance(0.1)
    assert levels == pytest.approx([0, -2, -6, -14], abs=1e-5)


@pytest.mark.parametrize(("wait_s", "frozen_s"), [(None, 0.0), (3.0, 3.0), (1e9, 900.0)])
def test_retry_after_freezes_the_bucket(wait_s: float | None, frozen_s: float) -> None:
    """Not longer than 15 minutes."""
    bench = Bench(LimitEstimate(10, "set", 100, "set"))
    bench.refuse(0, wait_s)
    assert bench.view.state.frozen_until - bench.view.now == pytest.approx(frozen_s)


@pytest.mark.parametrize(("origin", "faster"), [("set", False), ("reported", False), ("learned", True)])
def test_only_a_learned_rate_is_probed(origin: Origin, *, faster: bool) -> None:
    """A configured or reported rate is not exceeded."""
    bench = Bench(LimitEstimate(10, origin, 100, "set"))
    bench.clock.advance(5.0)
    bench.learner.probe(bench.clock.monotonic())
    assert (bench.view.state.bucket.rate_per_s > 10) == faster
    assert bench.view.state.estimate.rate_per_s == 10
    assert bench.learner.empty_at == -math.inf
