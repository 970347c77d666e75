"""The estimate follows headers and refusals."""

from __future__ import annotations

import math

import pytest

from crossdock.pacing.answer_headers import RateHeaders
from crossdock.pacing.rate_limit_learner import QUIET_REQUESTS, AnsweredRequest, BucketSample, LimitLearner
from crossdock.pacing.token_bucket import (
    BucketState,
    BucketStoreWithLastState,
    LimitEstimate,
    MemoryBucketStore,
    Origin,
)
from crossdock.testing.manual_clock import ManualClock

LATENCY_S = 0.05


class Bench:
    """A learner of a bucket in memory."""

    def __init__(self, estimate: LimitEstimate) -> None:
        self.clock = ManualClock()
        self.store = MemoryBucketStore(self.clock, BucketState.from_estimate(estimate))
        self.view = BucketStoreWithLastState(self.clock, self.store)
        self.learner = LimitLearner(self.view)

    def accept(self, accepted: int, *, others: int = 8, is_reported: bool = False) -> None:
        self.learner.learn_from_accepted_request(self._request(accepted, others), 2, is_reported=is_reported)

    def refuse(self, accepted: int, retry_after_s: float | None = None, *, others: int = 8) -> None:
        self.learner.learn_from_refused_request(self._request(accepted, others), 2, retry_after_s)

    def _request(self, accepted: int, others: int) -> AnsweredRequest:
        now = self.clock.monotonic()
        sample = BucketSample(now, accepted)
        return AnsweredRequest(accepted, now - LATENCY_S, now, LATENCY_S, sample, paced=True, others=others)

    @property
    def level(self) -> float:
        return self.view.last_state.bucket.level(self.view.now)


def test_reported_values_are_adopted_up_to_the_configured_ones() -> None:
    """Headers replace an estimate, but not a configured maximum."""
    bench = Bench(LimitEstimate(most_per_s=10))
    bench.learner.adopt_reported_limit(RateHeaders("draft10", 50, 100, 25.0))
    assert bench.view.last_state.estimate == LimitEstimate(10, "reported", 100, "reported", most_per_s=10)


def test_two_refusals_teach_rate_and_burst() -> None:
    """Of an unknown limit: 300 accepted in one second, then 800 in forty, are 20 per second and a burst of 280."""
    bench = Bench(LimitEstimate())
    assert bench.learner.max_in_flight_while_searching(LATENCY_S) == 8
    bench.accept(1)
    bench.clock.advance(1.0)
    bench.refuse(300)
    assert bench.view.last_state.estimate.rate_from == "guessed"
    assert bench.level < 0
    bench.clock.advance(40.0)
    bench.refuse(1100)
    estimate = bench.view.last_state.estimate
    assert (estimate.rate_from, estimate.burst_from) == ("learned", "learned")
    assert estimate.rate_per_s == pytest.approx(20, rel=0.01)
    assert estimate.burst == pytest.approx(280, abs=1)
    assert bench.learner.empty_at == bench.clock.monotonic()


def test_refusals_in_a_row_leave_a_growing_debt() -> None:
    """A reserve that is too small becomes a longer pause."""
    bench, levels = Bench(LimitEstimate(10, "learned", 100, "set", agreed=2)), []
    for n in range(4):
        bench.refuse(n)
        levels.append(bench.level)
        bench.clock.advance(0.1)
    assert levels == pytest.approx([0, -2, -6, -14], abs=1e-5)


def test_one_request_after_the_other_needs_no_guess() -> None:
    """They wait for a second, twice as long after each refusal, and are sent at full speed until the next one."""
    bench, pauses = Bench(LimitEstimate()), []
    for _ in range(3):
        bench.refuse(0, others=0)
        pauses.append(bench.view.last_state.wait_s(bench.view.now, 0))
        bench.clock.advance(pauses[-1])
    assert bench.view.last_state.estimate == LimitEstimate()
    assert pauses == pytest.approx([1.0, 2.0, 4.0], abs=1e-5)


@pytest.mark.parametrize(("wait_s", "frozen_s"), [(None, 0.0), (3.0, 3.0), (1e9, 900.0)])
def test_retry_after_freezes_the_bucket(wait_s: float | None, frozen_s: float) -> None:
    """Not longer than 15 minutes."""
    bench = Bench(LimitEstimate(10, "set", 100, "set"))
    bench.refuse(0, wait_s)
    assert bench.view.last_state.frozen_until - bench.view.now == pytest.approx(frozen_s)


@pytest.mark.parametrize(
    ("origin", "is_reported", "faster"),
    [("set", False, False), ("reported", False, False), ("learned", False, True), ("learned", True, False)],
)
def test_only_a_learned_rate_is_exceeded(origin: Origin, *, is_reported: bool, faster: bool) -> None:
    """A configured or reported rate is not, nor one that is learned from reported levels."""
    bench = Bench(LimitEstimate(10, origin, 100, "set", agreed=1))
    for accepted in range(QUIET_REQUESTS + 1):
        bench.clock.advance(0.1)
        bench.accept(accepted, is_reported=is_reported)
    assert (bench.view.last_state.bucket.rate_per_s > 10) == faster
    assert bench.view.last_state.estimate.rate_per_s == 10
    assert bench.learner.empty_at == -math.inf


def test_a_refused_request_alone_does_not_disprove_a_configured_rate() -> None:
    """It stays until a lower one was measured."""
    bench = Bench(LimitEstimate(10, "set", 100, "set", most_per_s=10))
    bench.refuse(1000)
    assert (bench.view.last_state.estimate.rate_per_s, bench.view.last_state.estimate.rate_from) == (10, "set")
    bench.clock.advance(100.0)
    bench.refuse(1500)
    assert bench.view.last_state.estimate.rate_from == "learned"
    assert bench.view.last_state.estimate.rate_per_s == pytest.approx(5, rel=0.02)


def test_what_another_user_learns_is_adopted() -> None:
    """The next refused request is judged by the rate that the other has found."""
    bench = Bench(LimitEstimate(10, "learned", 100, "learned", agreed=1))
    other = LimitLearner(BucketStoreWithLastState(bench.clock, bench.store))
    bench.refuse(1000)
    bench.clock.advance(50.0)
    bench.refuse(2000)
    other._view.take_available(0, 0)
    other.adopt_limits_learned_by_other_users()
    assert other.lower_bound_per_s == bench.learner.lower_bound_per_s == pytest.approx(20, rel=0.01)


def test_a_retry_after_of_a_request_that_was_on_its_way_is_respected() -> None:
    """The wait is never shortened."""
    bench = Bench(LimitEstimate(10, "set", 100, "set"))
    for wait_s in (5.0, 2.0):
        bench.learner.pause_sending(wait_s)
    assert bench.view.last_state.frozen_until - bench.view.now == pytest.approx(5.0)


def test_a_limit_that_was_made_up_is_forgotten() -> None:
    """The configured one remains, or none, and the search begins anew."""
    bench = Bench(LimitEstimate())
    bench.learner.adopt_reported_limit(RateHeaders("draft10", 0, 100, 0.01))
    bench.learner.restart_search_with_estimate(bench.view.last_state.estimate.configured_limit())
    assert bench.view.last_state.estimate == LimitEstimate()
    assert bench.view.last_state.wait_s(bench.view.now, 0) == 0
