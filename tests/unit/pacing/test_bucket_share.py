"""A run takes its percentage of a bucket and leaves the rest, on simulated time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from msgspec import structs
from tests.allowances import configured
from tests.unit.pacing.simulation import Network, Server, Time, run
from tests.unit.pacing.test_simulated import Client

from crossdock.pacing.request_allowance import ASKED_AGAIN_S, BucketShare, RequestAllowance, TakenToken
from crossdock.pacing.token_bucket import Bucket, BucketState, LimitEstimate, MemoryBucketStore
from crossdock.testing.manual_clock import ManualClock

RATE, BURST = 100.0, 1_000


class Reduced(Client):
    """A simulated client that uses a part of its allowance."""

    def __init__(self, clock: Time, store: MemoryBucketStore, percent: Callable[[], int]) -> None:
        super().__init__(clock, store)
        self.allowance = RequestAllowance(clock, store, ceiling=100, reduced=BucketShare(clock, percent))
        self.take, self.wait_s, self.room = self._counted, self.allowance.wait_s, self.allowance.free_in_flight_slots
        self.taken = 0

    def _counted(self, wanted: int) -> Sequence[TakenToken]:
        tokens = self.allowance.take_available(wanted)
        self.taken += len(tokens)
        return tokens


def full(clock: Time) -> MemoryBucketStore:
    return MemoryBucketStore(clock, BucketState.from_estimate(configured(RATE, BURST)))


def empty(clock: Time) -> MemoryBucketStore:
    made = full(clock)
    made.change(lambda state, now: structs.replace(state, bucket=state.bucket.with_level(now, 0)))
    return made


@pytest.mark.nightly(but=["1", "20"])
@pytest.mark.parametrize("percent", [1, 20, 99])
def test_no_more_than_the_percentage_is_taken(percent: int) -> None:
    """In every span of time at most its part of the burst and of the rate is sent, and nearly that much is."""
    no_more_than_the_percentage_is_taken(percent, seconds=100)


def no_more_than_the_percentage_is_taken(percent: int, seconds: int) -> None:
    clock, server = Time(), Server(RATE, BURST)
    client = Reduced(clock, full(clock), lambda: percent)
    work = int((BURST + RATE * seconds) * percent / 100)
    result = run([client], clock, server, work=work, network=Network())
    sent = server.accepted
    burst, rate = max(1, BURST * percent // 100), RATE * percent / 100
    for first in range(0, len(sent), max(1, len(sent) // 50)):
        for last in range(first, len(sent), max(1, len(sent) // 50)):
            slack = 0.2 * rate + 1  # requests sent apart may arrive together
            assert last - first + 1 <= burst + rate * (sent[last] - sent[first]) + slack
    assert not server.refused
    assert result.seconds <= seconds * 1.02


def test_others_use_the_rest() -> None:
    """A second client of the same bucket gets what the reduced one leaves."""
    others_use_the_rest(work=2_500)


def others_use_the_rest(work: int) -> None:
    clock, server = Time(), Server(RATE, BURST, tokens=0)
    shared = empty(clock)
    reduced = Reduced(clock, shared, lambda: 20)
    result = run([reduced, Client(clock, shared)], clock, server, work=work, network=Network())
    assert reduced.taken == pytest.approx(0.2 * RATE * result.seconds, rel=0.05)
    assert len(server.accepted) == pytest.approx(RATE * result.seconds, rel=0.02)


@pytest.mark.nightly
def test_it_changes_while_a_run_goes_on() -> None:
    """From a second on all is used, from another one nothing, and then a part again."""
    clock, server = Time(), Server(RATE, BURST, tokens=0)

    def percent() -> int:
        return 20 if clock.s < 100 else 100 if clock.s < 200 else 0 if clock.s < 300 else 50

    run([Reduced(clock, empty(clock), percent)], clock, server, work=100_000, network=Network(), until=400)

    def rate(begin: float, end: float) -> float:
        return sum(begin <= t < end for t in server.accepted) / (end - begin)

    assert rate(20, 100) == pytest.approx(20, rel=0.05)
    assert rate(110, 200) >= RATE * 0.95
    assert rate(201, 300) == 0
    assert rate(330, 400) == pytest.approx(50, rel=0.05)


def test_a_burst_that_is_unknown_is_reduced_to_a_second() -> None:
    """Where no burst is known, it takes at once what its rate gives in a second."""
    clock = ManualClock()
    reduced = BucketShare(clock, lambda: 10)
    whole = LimitEstimate(RATE, "documented").bucket()
    assert reduced.available_tokens(500, whole, whole.level(0.0)) == 10
    reduced.take(10)
    assert reduced.available_tokens(500, whole, whole.level(0.0)) == 0
    assert reduced.wait_s(whole, whole.level(0.0)) == pytest.approx(0.1)
    clock.advance(0.1)
    assert reduced.available_tokens(500, whole, whole.level(0.0)) == 1


def test_it_begins_with_its_part_of_what_is_there() -> None:
    """A run that is started again finds no other burst: an empty bucket is empty for it too."""
    clock, whole = ManualClock(), Bucket(RATE, BURST)
    assert BucketShare(clock, lambda: 20).available_tokens(500, whole, 1_000.0) == 200
    assert BucketShare(clock, lambda: 20).available_tokens(500, whole, 100.0) == 20
    assert BucketShare(clock, lambda: 20).available_tokens(500, whole, -3.0) == 0


def test_the_extremes() -> None:
    """At 100 percent it changes nothing, and at 0 nothing is available, without a busy loop."""
    clock, whole = ManualClock(), Bucket(RATE, BURST)
    everything, nothing = BucketShare(clock, lambda: 100), BucketShare(clock, lambda: 0)
    assert (everything.available_tokens(500, whole, 1_000.0), everything.wait_s(whole, 0.0)) == (500, 0.0)
    assert (nothing.available_tokens(500, whole, 1_000.0), nothing.wait_s(whole, 1_000.0)) == (0, ASKED_AGAIN_S)
