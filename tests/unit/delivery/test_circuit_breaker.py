"""A platform that is down is asked with single requests, and is not stormed when it comes back."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.writing.delivery.send_queue_and_threads import (
    FIRST_PAUSE_S,
    LONGEST_PAUSE_S,
    OPENS_AT,
    WATCHED,
    CircuitBreaker,
)

LIMIT = 8


@pytest.fixture
def circuit_breaker() -> CircuitBreaker:
    return CircuitBreaker(LIMIT, random.Random(1))


def fail(circuit_breaker: CircuitBreaker, times: int, *, now: float = 0.0, probe: bool = False) -> None:
    for _ in range(times):
        circuit_breaker.record_failure(now, None, probe=probe)


def opened(circuit_breaker: CircuitBreaker, *, now: float = 0.0) -> CircuitBreaker:
    fail(circuit_breaker, OPENS_AT, now=now)
    assert circuit_breaker.is_open
    return circuit_breaker


def probed(circuit_breaker: CircuitBreaker, now: float, *, retry_after_s: float | None = None) -> float:
    """Let a probe fail at *now*, and tell the pause until the next one."""
    assert circuit_breaker.free_slots(now, 0) == 1
    circuit_breaker.record_failure(now, retry_after_s, probe=True)
    return circuit_breaker.seconds_to_next_probe(now)


def test_it_opens_when_nearly_all_of_the_latest_fail(circuit_breaker: CircuitBreaker) -> None:
    """Fifteen failures among twenty outcomes change nothing, the sixteenth stops all sending."""
    for _ in range(WATCHED - OPENS_AT):
        circuit_breaker.record_success()
    fail(circuit_breaker, OPENS_AT - 1)
    assert circuit_breaker.free_slots(0.0, 0) == LIMIT
    fail(circuit_breaker, 1)
    assert circuit_breaker.is_open
    assert circuit_breaker.free_slots(0.0, 0) == 0


def test_failures_before_the_latest_twenty_are_forgotten(circuit_breaker: CircuitBreaker) -> None:
    """However many failed, it stays closed while fewer than sixteen of the latest twenty did."""
    for _ in range(10):
        fail(circuit_breaker, OPENS_AT - 1)
        for _ in range(WATCHED - OPENS_AT + 1):
            circuit_breaker.record_success()
    assert circuit_breaker.free_slots(0.0, 0) == LIMIT


def test_one_probe_a_pause(circuit_breaker: CircuitBreaker) -> None:
    """While it is open one request may leave after the pause, and none besides it."""
    opened(circuit_breaker)
    pause = circuit_breaker.seconds_to_next_probe(0.0)
    assert FIRST_PAUSE_S / 2 <= pause <= FIRST_PAUSE_S
    assert circuit_breaker.free_slots(pause - 0.001, 0) == 0
    assert circuit_breaker.free_slots(pause, 0) == 1
    assert circuit_breaker.free_slots(pause + 1000.0, 1) == 0
    assert circuit_breaker.free_slots(pause + 1000.0, LIMIT) == 0


def test_late_answers_are_no_probes(circuit_breaker: CircuitBreaker) -> None:
    """What left before it opened and fails later neither counts as a probe nor moves the next one."""
    opened(circuit_breaker)
    pause = circuit_breaker.seconds_to_next_probe(0.0)
    fail(circuit_breaker, 50, now=pause / 2)
    assert circuit_breaker.probes == 0
    assert circuit_breaker.free_slots(pause, 0) == 1


def test_pauses_grow_to_half_a_minute(circuit_breaker: CircuitBreaker) -> None:
    """Each failed probe doubles the longest pause up to 30 seconds, of which half is certain."""
    opened(circuit_breaker)
    now, longest = circuit_breaker.seconds_to_next_probe(0.0), FIRST_PAUSE_S
    for number in range(1, 12):
        longest = min(LONGEST_PAUSE_S, 2 * longest)
        pause = probed(circuit_breaker, now)
        assert longest / 2 <= pause <= longest
        assert circuit_breaker.probes == number
        now += pause
    assert longest == LONGEST_PAUSE_S


def test_an_outage_of_a_day_does_not_end_the_probes(circuit_breaker: CircuitBreaker) -> None:
    """Thousands of failed probes, as a patient config allows, leave the pause at half a minute."""
    opened(circuit_breaker)
    now = circuit_breaker.seconds_to_next_probe(0.0)
    for _ in range(5000):
        now += probed(circuit_breaker, now)
    assert circuit_breaker.seconds_to_next_probe(now - 0.001) <= LONGEST_PAUSE_S


def test_the_platforms_own_word_is_longer_than_a_pause(circuit_breaker: CircuitBreaker) -> None:
    """No probe leaves before Retry-After is over; one shorter than the pause shortens nothing."""
    for _ in range(OPENS_AT):
        circuit_breaker.record_failure(0.0, 120.0, probe=False)
    assert circuit_breaker.seconds_to_next_probe(0.0) == 120.0
    assert probed(circuit_breaker, 120.0, retry_after_s=600.0) == 600.0
    assert probed(circuit_breaker, 720.0, retry_after_s=0.5) > FIRST_PAUSE_S


def test_it_comes_back_one_by_one(circuit_breaker: CircuitBreaker) -> None:
    """After a probe that got through one request is on its way, then one more for each success, up to the limit."""
    opened(circuit_breaker)
    circuit_breaker.record_success()
    rooms = []
    for _ in range(LIMIT + 3):
        rooms.append(circuit_breaker.free_slots(0.0, 0))
        circuit_breaker.record_success()
    assert rooms == [*range(1, LIMIT + 1), LIMIT, LIMIT, LIMIT]


def test_a_storm_on_the_way_back_opens_it_again(circuit_breaker: CircuitBreaker) -> None:
    """Ten failures while it comes back stop all sending, and the next way back begins with one request."""
    opened(circuit_breaker)
    for _ in range(4):
        circuit_breaker.record_success()
    assert circuit_breaker.free_slots(0.0, 0) == 4
    opened(circuit_breaker, now=50.0)
    assert circuit_breaker.probes == 0
    assert circuit_breaker.free_slots(50.0, 0) == 0
    circuit_breaker.record_success()
    assert circuit_breaker.free_slots(50.0, 0) == 1


def test_it_knows_since_when_nothing_gets_through(circuit_breaker: CircuitBreaker) -> None:
    """The time of the first failure stands until a success, and whether anything ever worked is not forgotten."""
    assert not circuit_breaker.worked
    fail(circuit_breaker, 1, now=3.0)
    fail(circuit_breaker, 1, now=9.0)
    assert circuit_breaker.failing_since == 3.0
    circuit_breaker.record_success()
    assert circuit_breaker.worked
    fail(circuit_breaker, 1, now=11.0)
    assert circuit_breaker.failing_since == 11.0
    assert circuit_breaker.worked


@dataclass(slots=True)
class OnItsWay:
    probe: bool


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["leave", "succeed", "fail", "wait"]),
        st.integers(0, 20),
        st.sampled_from([None, 0.0, 5.0, 900.0]),
    ),
    max_size=120,
)


@given(limit=st.integers(1, 12), steps=STEPS, seed=st.integers(0, 99))
def test_never_more_than_the_limit_and_never_two_probes(
    limit: int, steps: list[tuple[str, int, float | None]], seed: int
) -> None:
    """Whatever happens in whatever order, there is no room above the limit, and at most one probe is on its way."""
    circuit_breaker, now = CircuitBreaker(limit, random.Random(seed)), 0.0
    out: list[OnItsWay] = []
    for step, number, retry_after_s in steps:
        room = circuit_breaker.free_slots(now, len(out))
        assert 0 <= room <= limit - len(out)
        if step == "leave":
            out += [OnItsWay(circuit_breaker.is_open) for _ in range(min(room, number))]
        elif step == "wait":
            now += number * 2.0
        elif out:
            back = out.pop(number % len(out))
            if step == "succeed":
                circuit_breaker.record_success()
            else:
                circuit_breaker.record_failure(now, retry_after_s, probe=back.probe)
        assert sum(each.probe for each in out) <= 1
        assert not circuit_breaker.is_open or circuit_breaker.free_slots(now + 1e9, 0) == 1, (
            "an open one asks again some day"
        )
