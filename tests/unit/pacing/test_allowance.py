"""The allowance on a manual clock: reserve, priorities, refusals, and what a run leaves to the next."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.allowances import allowance, configured

from crossdock.pacing.answer_headers import RateHeaders, read_rate_limit_headers
from crossdock.pacing.request_allowance import RequestAllowance, TakenToken
from crossdock.pacing.token_bucket import UNLIMITED, Bucket, BucketState, LimitEstimate, MemoryBucketStore
from crossdock.testing.manual_clock import ManualClock


def answer(pacer: RequestAllowance, clock: ManualClock, tokens: list[TakenToken], headers: RateHeaders | None) -> None:
    """All requests are answered after 50 ms."""
    clock.advance(0.05)
    for token in tokens:
        pacer.record_answer(token, accepted=True, headers=headers)


def test_the_reserve_stays_unspent() -> None:
    """Of 100 tokens a batch takes 98 at once, and one more each 100 ms."""
    clock = ManualClock()
    pacer = allowance(clock, 10, 100)
    assert len(pacer.take_available(1000)) == 98
    assert pacer.wait_s() == pytest.approx(0.1)
    clock.advance(0.1001)
    assert len(pacer.take_available(1000)) == 1


def test_live_requests_find_a_token_during_a_batch() -> None:
    """While a batch waits, a live request that shares its bucket does not."""
    clock = ManualClock()
    store = MemoryBucketStore(clock, BucketState.from_estimate(configured(10, 100)))
    batch, live = RequestAllowance(clock, store), RequestAllowance(clock, store, priority="live")
    assert len(batch.take_available(1000)) == 98
    assert batch.wait_s() > 0
    assert (live.wait_s(), len(live.take_available(1))) == (0.0, 1)


def test_jobs_share_fairly() -> None:
    """Two batches that always want more get the same, within one token."""
    clock = ManualClock()
    store = MemoryBucketStore(clock, BucketState.from_estimate(configured(100, 100)))
    pacers, got = [RequestAllowance(clock, store) for _ in range(2)], [0, 0]
    for pacer in pacers:
        pacer.take_available(50)
    for turn in range(1000):
        clock.advance(0.01)
        order = (0, 1) if turn % 2 else (1, 0)
        for index in order:
            got[index] += len(pacers[index].take_available(1))
    assert sum(got) == pytest.approx(1000, abs=2)
    assert abs(got[0] - got[1]) <= 2


def test_retry_after_is_respected() -> None:
    """No token is available for three seconds after ``Retry-After: 3``, whatever the level; 15 minutes are the longest
    accepted wait."""
    clock = ManualClock()
    pacer = allowance(clock, 10, 100)
    first, *_ = pacer.take_available(1)
    pacer.record_answer(first, accepted=False, retry_after_s=3.0)
    clock.advance(2.99)
    assert not pacer.take_available(1)
    clock.advance(0.02)
    (second,) = pacer.take_available(1)
    pacer.record_answer(second, accepted=False, retry_after_s=1e9)
    assert pacer.wait_s() == pytest.approx(900, abs=1)


def test_the_level_is_carried_over_to_the_next_run() -> None:
    """A bucket that is opened again has the level at which it was left."""
    clock = ManualClock()
    first = allowance(clock, 10, 100)
    first.take_available(1000)
    clock.advance(1.001)
    now = clock.now().timestamp()
    second = RequestAllowance(
        clock, MemoryBucketStore(clock, first.bucket_state.carried_to_next_run(now, configured(10, 100)))
    )
    assert len(second.take_available(1000)) == 10


def test_a_wall_clock_set_back_does_not_stall() -> None:
    """An instant far ahead in the state is capped at the time that an empty bucket needs to fill."""
    clock = ManualClock()
    ahead = BucketState(Bucket(10, 100, clock.now().timestamp() + 1e6), configured(10, 100))
    pacer = RequestAllowance(
        clock, MemoryBucketStore(clock, ahead.carried_to_next_run(clock.now().timestamp(), configured(10, 100)))
    )
    assert pacer.wait_s() <= 10.2


def test_a_configured_limit_is_not_exceeded() -> None:
    """A reported limit above the configured one changes nothing; one below it is adopted."""
    clock = ManualClock()
    pacer = allowance(clock, 10, 100)
    answer(pacer, clock, list(pacer.take_available(1)), RateHeaders("draft10", 5000, 6000, 50.0))
    assert (pacer.limit_estimate.rate_per_s, pacer.limit_estimate.burst) == (10, 100)
    answer(pacer, clock, list(pacer.take_available(1)), RateHeaders("draft10", 3, 40, 5.0))
    assert (pacer.limit_estimate.rate_per_s, pacer.limit_estimate.burst) == (5, 40)
    assert pacer.bucket_state.bucket.level(clock.now().timestamp()) <= 4


def test_a_reported_limit_is_adopted_at_once() -> None:
    """One answer reports rate, burst and level of an unknown bucket."""
    clock = ManualClock()
    pacer = RequestAllowance(clock, MemoryBucketStore(clock, BucketState.from_estimate(LimitEstimate())))
    assert pacer.tokens is None
    headers = {"ratelimit-policy": '"a";q=600;w=60', "ratelimit": '"a";r=100;t=1'}
    answer(pacer, clock, list(pacer.take_available(1)), read_rate_limit_headers(headers))
    assert pacer.limit_estimate == LimitEstimate(10, "reported", 600, "reported")
    assert pacer.bucket_state.bucket.tokens(clock.now().timestamp()) == 100


def test_an_estimate_is_shared() -> None:
    """What one of two users of a bucket learns, the other knows with its next token."""
    clock = ManualClock()
    store = MemoryBucketStore(clock, BucketState.from_estimate(LimitEstimate()))
    one, other = RequestAllowance(clock, store), RequestAllowance(clock, store)
    answer(one, clock, list(one.take_available(1)), RateHeaders("draft10", 99, 100, 10.0))
    other.take_available(1)
    assert other.limit_estimate == one.limit_estimate


def test_a_request_without_an_answer_is_no_longer_in_flight() -> None:
    """Its token is spent; the next request is sent beside nothing."""
    clock = ManualClock()
    pacer = allowance(clock, 10, 100)
    (one,) = pacer.take_available(1)
    (other,) = pacer.take_available(1)
    pacer.record_unanswered(one)
    pacer.record_answer(other, accepted=True)
    (last,) = pacer.take_available(1)
    assert (one.others, other.others, last.others, last.number) == (0, 1, 0, 3)


def test_a_single_429_proves_nothing() -> None:
    """A single 429 from a well-filled bucket costs only its own token: the following requests verify it."""
    clock = ManualClock()
    pacer = allowance(clock, 10, 1000)
    unexpected, *others = pacer.take_available(20)
    clock.advance(0.05)
    pacer.record_answer(unexpected, accepted=False)
    for token in [*others, *pacer.take_available(10)]:
        pacer.record_answer(token, accepted=True)
    assert pacer.tokens is not None
    assert pacer.tokens > 900


_HEADERS = st.builds(
    RateHeaders,
    st.just("triple"),
    st.none() | st.floats(0, 1e9),
    st.none() | st.floats(1, 1e9),
    st.none() | st.floats(1e-9, 1e9),
)


@given(st.lists(st.tuples(st.integers(1, 40), st.booleans(), st.none() | _HEADERS, st.floats(0, 30)), max_size=40))
def test_random_answers_neither_flood_nor_stall(
    rounds: list[tuple[int, bool, RateHeaders | None, float]],
) -> None:
    """Whatever is answered, the configured limit holds, and a token is available within 15 minutes."""
    clock = ManualClock()
    pacer, taken = allowance(clock, 10, 50), 0
    for wanted, accepted, headers, pause_s in rounds:
        tokens = pacer.take_available(min(wanted, pacer.free_in_flight_slots(0)))
        taken += len(tokens)
        clock.advance(0.01 + pause_s)
        for token in tokens:
            pacer.record_answer(token, accepted=accepted, headers=headers)
    assert taken <= 50 + 10 * clock.monotonic() + 4 * len(rounds)  # four tokens to verify a 429 are lent
    clock.advance(pacer.wait_s() + 1e-3)
    assert pacer.wait_s() <= 900
    assert pacer.free_in_flight_slots(0) > 0


def test_an_unknown_limit_starts_with_few_requests() -> None:
    """While the limit is unknown few requests are in flight, since all of them are refused if the bucket is empty."""
    clock = ManualClock()
    pacer = RequestAllowance(clock, MemoryBucketStore(clock, BucketState.from_estimate(LimitEstimate())))
    assert pacer.bucket_state.bucket.burst == UNLIMITED
    assert 1 <= pacer.free_in_flight_slots(0) <= 8
