"""The allowance's promises on a manual clock: reserve, lanes, refusals, and what is known from run to run."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.allowances import allowance, known

from crossdock.pacing.allowance import Allowance, Token
from crossdock.pacing.bucket_store import BucketState, MemoryStore
from crossdock.pacing.limit_estimate import UNLIMITED, LimitEstimate
from crossdock.pacing.rate_headers import RateHeaders, read
from crossdock.pacing.token_bucket import Bucket
from crossdock.testing.manual_clock import ManualClock


def answer(pacer: Allowance, clock: ManualClock, tickets: list[Token], **told: object) -> None:
    """All of *tickets* are answered a twentieth of a second later."""
    clock.advance(0.05)
    for token in tickets:
        pacer.answered(token, accepted=True, **told)  # type: ignore[arg-type]  # named facts


def test_the_reserve_stays_unspent() -> None:
    """Of a hundred tokens a batch takes 98 at once, and one more each tenth of a second."""
    clock = ManualClock()
    pacer = allowance(clock, 10, 100)
    assert len(pacer.take(1000)) == 98
    assert pacer.wait_s() == pytest.approx(0.1)
    clock.advance(0.1001)
    assert len(pacer.take(1000)) == 1


def test_live_work_finds_a_token_in_the_middle_of_a_batch() -> None:
    """Where a batch waits, a live request that shares its bucket does not."""
    clock = ManualClock()
    store = MemoryStore(clock, BucketState.of(known(10, 100)))
    batch, live = Allowance(clock, store), Allowance(clock, store, priority="live")
    assert len(batch.take(1000)) == 98
    assert batch.wait_s() > 0
    assert (live.wait_s(), len(live.take(1))) == (0.0, 1)


def test_jobs_share_fairly() -> None:
    """Two batches that always want more get the same, within one token."""
    clock = ManualClock()
    store = MemoryStore(clock, BucketState.of(known(100, 100)))
    pacers, got = [Allowance(clock, store) for _ in range(2)], [0, 0]
    for pacer in pacers:
        pacer.take(50)
    for turn in range(1000):
        clock.advance(0.01)
        order = (0, 1) if turn % 2 else (1, 0)
        for index in order:
            got[index] += len(pacers[index].take(1))
    assert sum(got) == pytest.approx(1000, abs=2)
    assert abs(got[0] - got[1]) <= 2


def test_nothing_leaves_before_the_server_wants_to_be_asked_again() -> None:
    """After ``Retry-After: 3`` nothing is given for three seconds, whatever the bucket holds; a quarter of an hour is
    the longest that is believed."""
    clock = ManualClock()
    pacer = allowance(clock, 10, 100)
    first, *_ = pacer.take(1)
    pacer.answered(first, accepted=False, retry_after_s=3.0)
    clock.advance(2.99)
    assert not pacer.take(1)
    clock.advance(0.02)
    (second,) = pacer.take(1)
    pacer.answered(second, accepted=False, retry_after_s=1e9)
    assert pacer.wait_s() == pytest.approx(900, abs=1)


def test_the_next_run_knows_what_the_last_one_spent() -> None:
    """A bucket that is opened again goes on where it was left, not full."""
    clock = ManualClock()
    first = allowance(clock, 10, 100)
    first.take(1000)
    clock.advance(1.001)
    now = clock.now().timestamp()
    second = Allowance(clock, MemoryStore(clock, first.bucket_state.filled(now, known(10, 100))))
    assert len(second.take(1000)) == 10


def test_a_wall_clock_set_back_does_not_stall() -> None:
    """A time far ahead in the state is cut to what an empty bucket needs to fill."""
    clock = ManualClock()
    ahead = BucketState(Bucket(10, 100, clock.now().timestamp() + 1e6), known(10, 100))
    pacer = Allowance(clock, MemoryStore(clock, ahead.filled(clock.now().timestamp(), known(10, 100))))
    assert pacer.wait_s() <= 10.2


def test_what_a_person_has_set_is_not_exceeded() -> None:
    """A platform that tells of more than is set changes nothing; one that tells of less is believed."""
    clock = ManualClock()
    pacer = allowance(clock, 10, 100)
    answer(pacer, clock, list(pacer.take(1)), told=RateHeaders("draft10", 5000, 6000, 50.0))
    assert (pacer.known.rate_per_s, pacer.known.burst) == (10, 100)
    answer(pacer, clock, list(pacer.take(1)), told=RateHeaders("draft10", 3, 40, 5.0))
    assert (pacer.known.rate_per_s, pacer.known.burst) == (5, 40)
    assert pacer.bucket_state.bucket.level(clock.now().timestamp()) <= 4


def test_what_is_told_is_known_at_once() -> None:
    """One answer tells an unknown bucket whole: its rate, its size, and what is left in it."""
    clock = ManualClock()
    pacer = Allowance(clock, MemoryStore(clock, BucketState.of(LimitEstimate())))
    assert pacer.tokens is None
    headers = {"ratelimit-policy": '"a";q=600;w=60', "ratelimit": '"a";r=100;t=1'}
    answer(pacer, clock, list(pacer.take(1)), told=read(headers, 0.0))
    assert pacer.known == LimitEstimate(10, "told", 600, "told")
    assert pacer.bucket_state.bucket.tokens(clock.now().timestamp()) == 100


def test_another_process_learns_too() -> None:
    """What one of two that share a bucket is told, the other knows with its next token."""
    clock = ManualClock()
    store = MemoryStore(clock, BucketState.of(LimitEstimate()))
    one, other = Allowance(clock, store), Allowance(clock, store)
    answer(one, clock, list(one.take(1)), told=RateHeaders("draft10", 99, 100, 10.0))
    other.take(1)
    assert other.known == one.known


def test_a_bare_refusal_alone_proves_nothing() -> None:
    """A single 429 in the middle of a full bucket costs nothing but its own token: those after it check it."""
    clock = ManualClock()
    pacer = allowance(clock, 10, 1000)
    doubted, *others = pacer.take(20)
    clock.advance(0.05)
    pacer.answered(doubted, accepted=False)
    for token in [*others, *pacer.take(10)]:
        pacer.answered(token, accepted=True)
    assert pacer.tokens is not None
    assert pacer.tokens > 900


@given(st.floats(allow_nan=True, allow_infinity=True), st.integers(-5, 5))
def test_an_impossible_limit_is_no_limit(rate: float, burst: int) -> None:
    """A rate that is not positive and finite, and a burst below one, are refused where they are said."""
    if 0 < rate < math.inf and burst >= 1:
        assert LimitEstimate(rate, "set", burst, "set").bucket().burst == burst
    else:
        with pytest.raises(ValueError, match="lets"):
            LimitEstimate(rate, "set", burst, "set")


_TOLD = st.builds(
    RateHeaders,
    st.just("triple"),
    st.none() | st.floats(0, 1e9),
    st.none() | st.floats(1, 1e9),
    st.none() | st.floats(1e-9, 1e9),
    st.none() | st.floats(0, 900),
    st.none() | st.floats(0, 900),
)


@given(st.lists(st.tuples(st.integers(1, 40), st.booleans(), st.none() | _TOLD, st.floats(0, 30)), max_size=40))
def test_nonsense_never_makes_a_storm_or_an_end(
    stream_order: list[tuple[int, bool, RateHeaders | None, float]],
) -> None:
    """Whatever is answered, no more leaves than a person has set, and something does within a quarter of an hour."""
    clock = ManualClock()
    pacer, taken = allowance(clock, 10, 50), 0
    for wanted, accepted, told, pause_s in stream_order:
        tickets = pacer.take(min(wanted, pacer.room(0)))
        taken += len(tickets)
        clock.advance(0.01 + pause_s)
        for token in tickets:
            pacer.answered(token, accepted=accepted, told=told)
    assert taken <= 50 + 10 * clock.monotonic() + 4 * len(stream_order)  # four that check a refusal are lent
    clock.advance(pacer.wait_s() + 1e-3)
    assert pacer.wait_s() <= 900
    assert pacer.room(0) > 0


def test_an_unknown_bucket_begins_with_few() -> None:
    """While nothing is known, few are on their way, since all of them are refused when the bucket turns out empty."""
    clock = ManualClock()
    pacer = Allowance(clock, MemoryStore(clock, BucketState.of(LimitEstimate())))
    assert pacer.bucket_state.bucket.burst == UNLIMITED
    assert 1 <= pacer.room(0) <= 8
