"""The rate is found from the requests that are accepted and refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from crossdock.pacing.rate_limit_learner import (
    QUIET_REQUESTS,
    AnsweredRequest,
    BucketSample,
    BurstEstimator,
    RateSearch,
)

LATENCY_S = 0.05


def request(at: float, accepted: int, *, paced: bool = True, others: int = 0) -> AnsweredRequest:
    return AnsweredRequest(accepted, at, at, LATENCY_S, BucketSample(at, accepted), paced, others)


def search(rate_per_s: float | None = None, *, sure: bool = False, burst: int | None = None) -> RateSearch:
    return RateSearch(rate_per_s, BurstEstimator(burst, full=burst is None), sure=sure)


@settings(max_examples=examples(50), deadline=None)
@given(rate=st.floats(0.1, 200), burst=st.integers(1, 50), latency_s=st.floats(0.0005, 0.01))
def test_the_search_in_any_bucket_is_seldom_refused(rate: float, burst: int, latency_s: float) -> None:
    """Of 5,000 requests at most one in a hundred is refused."""
    estimator = BurstEstimator(full=True)
    found, level, now, before = RateSearch(None, estimator, sure=False), float(burst), 0.0, 0.0
    accepted, refused = 0, 0
    while accepted < 5_000:
        level, before = min(burst, level + rate * (now - before)), now
        if level >= 1:
            level, accepted = level - 1, accepted + 1
            one = request(now, accepted, paced=found.rate_per_s is not None)
            estimator.record_accepted_request(one.sample)
            found.adjust_rate_after_acceptance(one)
            now += max(latency_s, 1 / found.rate_per_s if found.rate_per_s else 0.0)
        else:
            refused += 1
            estimator.record_empty_bucket(BucketSample(now, accepted))
            found.adjust_rate_after_refusal(request(now, accepted))
            now += max(1.0, 1 / (found.rate_per_s or 1.0)) if not found.sure else 1 / (found.rate_per_s or 1.0)
    assert refused <= 50


def test_a_refused_first_request_tells_nothing() -> None:
    """The bucket was empty before."""
    found = search()
    found.adjust_rate_after_refusal(request(1.0, 0))
    assert found.rate_per_s is None


@given(st.integers(5, 1000), st.integers(2, 8))
def test_a_steady_rate_is_found_and_confirmed(rate: int, count: int) -> None:
    """Moments at which the bucket is empty, four seconds apart, yield the rate to within one token; overlapping
    requests to within the order in which they arrive.
    """
    for others in (0, 10):
        found = search(burst=100)
        for second in range(4, 4 * count + 4, 4):
            found.adjust_rate_after_refusal(request(second, rate * second, others=others))
        assert found.rate_per_s == pytest.approx(rate, abs=(1 + min(others, 4)) / 2)


def test_another_rate_replaces_the_estimate() -> None:
    """A rate that differs by more than the noise is adopted at once."""
    found = search(burst=100)
    for second, accepted in ((4, 400), (8, 800), (12, 1200), (16, 1400)):
        found.adjust_rate_after_refusal(request(second, accepted, others=5))
    assert found.rate_per_s == pytest.approx(50, rel=0.05)
    assert found.least_per_s == pytest.approx(47, rel=0.05)


def test_a_rate_that_is_known_survives_moments_that_are_close_together() -> None:
    """With many requests in flight they show little, so that what was measured over a longer time is kept."""
    found = search(burst=1000)
    for at, accepted in ((10.0, 1000), (110.0, 11_000), (110.5, 11_040)):
        found.adjust_rate_after_refusal(request(at, accepted, others=50))
    assert found.sure
    assert found.rate_per_s == pytest.approx(100, rel=0.01)


def test_a_rate_of_another_user_is_adopted() -> None:
    """The rate, whether it is sure, and the speed at which the other sends."""
    found = search(20.0)
    found.adopt_rate_learned_by_other_user(5.0, 6.0, sure=True)
    assert (found.accepted_per_s, found.rate_per_s, found.sure) == (5.0, 6.0, True)


@pytest.mark.parametrize(("paced", "speeds"), [(True, [15.0, 60.0, 120.0]), (False, [10.0] * 3)])
def test_the_rate_of_an_earlier_run_rises_faster_and_faster(paced: bool, speeds: list[float]) -> None:
    """After a thousand requests by a half, and then twofold; not by requests that waited for no token."""
    found, found_speeds, now = search(10.0, sure=True, burst=10), [], 0.0
    for number in range(QUIET_REQUESTS + 6):
        now += 1 / (found.rate_per_s or 1.0)
        found.adjust_rate_after_acceptance(request(now, number, paced=paced))
        if number + 1 in {QUIET_REQUESTS, QUIET_REQUESTS + 4, QUIET_REQUESTS + 6}:
            found_speeds.append(found.rate_per_s)
    assert found_speeds == pytest.approx(speeds, rel=1e-3)


def test_a_speed_that_is_not_reached_shows_nothing() -> None:
    """A sender that is slower than its speed does not raise it further."""
    found = search(10.0, sure=True, burst=10)
    for number in range(5 * QUIET_REQUESTS):
        found.adjust_rate_after_acceptance(request(number / 2, number))
    assert found.rate_per_s == pytest.approx(15.0)


def test_with_many_requests_in_flight_the_speed_rises_slowly() -> None:
    """All that are in flight at too high a speed would be refused."""
    speeds = []
    for others in (0, 40):
        found, now = search(10.0, sure=True, burst=1000), 0.0
        for number in range(QUIET_REQUESTS + 5000):
            now += 1 / (found.rate_per_s or 1.0)
            found.adjust_rate_after_acceptance(request(now, number, others=others), reserve=10)
        assert found.rate_per_s is not None
        speeds.append(found.rate_per_s)
    assert speeds[0] > 10 * speeds[1] > 100
