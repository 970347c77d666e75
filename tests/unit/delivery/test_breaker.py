"""A platform that is down is asked with single requests, and is not stormed when it comes back."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.delivery.circuit_breaker import FIRST_PAUSE_S, LONGEST_PAUSE_S, OPENS_AT, WATCHED, Breaker

LIMIT = 8


@pytest.fixture
def breaker() -> Breaker:
    return Breaker(LIMIT, random.Random(1))


def fail(breaker: Breaker, times: int, *, now: float = 0.0, probe: bool = False) -> None:
    for _ in range(times):
        breaker.failed(now, None, probe=probe)


def opened(breaker: Breaker, *, now: float = 0.0) -> Breaker:
    fail(breaker, OPENS_AT, now=now)
    assert breaker.is_open
    return breaker


def probed(breaker: Breaker, now: float, *, retry_after_s: float | None = None) -> float:
    """Let a probe fail at *now*, and tell the pause until the next one."""
    assert breaker.room(now, 0) == 1
    breaker.failed(now, retry_after_s, probe=True)
    return breaker.wait_s(now)


def test_it_opens_when_nearly_all_of_the_latest_fail(breaker: Breaker) -> None:
    """Fifteen failures among twenty outcomes change nothing, the sixteenth stops all sending."""
    for _ in range(WATCHED - OPENS_AT):
        breaker.succeeded()
    fail(breaker, OPENS_AT - 1)
    assert breaker.room(0.0, 0) == LIMIT
    fail(breaker, 1)
    assert breaker.is_open
    assert breaker.room(0.0, 0) == 0


def test_failures_before_the_latest_twenty_are_forgotten(breaker: Breaker) -> None:
    """However many failed, it stays closed while fewer than sixteen of the latest twenty did."""
    for _ in range(10):
        fail(breaker, OPENS_AT - 1)
        for _ in range(WATCHED - OPENS_AT + 1):
            breaker.succeeded()
    assert breaker.room(0.0, 0) == LIMIT


def test_one_probe_a_pause(breaker: Breaker) -> None:
    """While it is open one request may leave after the pause, and none besides it."""
    opened(breaker)
    pause = breaker.wait_s(0.0)
    assert FIRST_PAUSE_S / 2 <= pause <= FIRST_PAUSE_S
    assert breaker.room(pause - 0.001, 0) == 0
    assert breaker.room(pause, 0) == 1
    assert breaker.room(pause + 1000.0, 1) == 0
    assert breaker.room(pause + 1000.0, LIMIT) == 0


def test_late_answers_are_no_probes(breaker: Breaker) -> None:
    """What left before it opened and fails later neither counts as a probe nor moves the next one."""
    opened(breaker)
    pause = breaker.wait_s(0.0)
    fail(breaker, 50, now=pause / 2)
    assert breaker.probes == 0
    assert breaker.room(pause, 0) == 1


def test_pauses_grow_to_half_a_minute(breaker: Breaker) -> None:
    """Each failed probe doubles the longest pause up to 30 seconds, of which half is certain."""
    opened(breaker)
    now, longest = breaker.wait_s(0.0), FIRST_PAUSE_S
    for number in range(1, 12):
        longest = min(LONGEST_PAUSE_S, 2 * longest)
        pause = probed(breaker, now)
        assert longest / 2 <= pause <= longest
        assert breaker.probes == number
        now += pause
    assert longest == LONGEST_PAUSE_S


def test_an_outage_of_a_day_does_not_end_the_probes(breaker: Breaker) -> None:
    """Thousands of failed probes, as a patient config allows, leave the pause at half a minute."""
    opened(breaker)
    now = breaker.wait_s(0.0)
    for _ in range(5000):
        now += probed(breaker, now)
    assert breaker.wait_s(now - 0.001) <= LONGEST_PAUSE_S


def test_the_platforms_own_word_is_longer_than_a_pause(breaker: Breaker) -> None:
    """No probe leaves before Retry-After is over; one shorter than the pause shortens nothing."""
    for _ in range(OPENS_AT):
        breaker.failed(0.0, 120.0, probe=False)
    assert breaker.wait_s(0.0) == 120.0
    assert probed(breaker, 120.0, retry_after_s=600.0) == 600.0
    assert probed(breaker, 720.0, retry_after_s=0.5) > FIRST_PAUSE_S


def test_it_comes_back_one_by_one(breaker: Breaker) -> None:
    """After a probe that got through one request is on its way, then one more for each success, up to the limit."""
    opened(breaker)
    breaker.succeeded()
    rooms = []
    for _ in range(LIMIT + 3):
        rooms.append(breaker.room(0.0, 0))
        breaker.succeeded()
    assert rooms == [*range(1, LIMIT + 1), LIMIT, LIMIT, LIMIT]


def test_a_storm_on_the_way_back_opens_it_again(breaker: Breaker) -> None:
    """Ten failures while it comes back stop all sending, and the next way back begins with one request."""
    opened(breaker)
    for _ in range(4):
        breaker.succeeded()
    assert breaker.room(0.0, 0) == 4
    opened(breaker, now=50.0)
    assert breaker.probes == 0
    assert breaker.room(50.0, 0) == 0
    breaker.succeeded()
    assert breaker.room(50.0, 0) == 1


def test_it_knows_since_when_nothing_gets_through(breaker: Breaker) -> None:
    """The time of the first failure stands until a success, and whether anything ever worked is not forgotten."""
    assert not breaker.worked
    fail(breaker, 1, now=3.0)
    fail(breaker, 1, now=9.0)
    assert breaker.failing_since == 3.0
    breaker.succeeded()
    assert breaker.worked
    fail(breaker, 1, now=11.0)
    assert breaker.failing_since == 11.0
    assert breaker.worked


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
    breaker, now = Breaker(limit, random.Random(seed)), 0.0
    out: list[OnItsWay] = []
    for step, number, retry_after_s in steps:
        room = breaker.room(now, len(out))
        assert 0 <= room <= limit - len(out)
        if step == "leave":
            out += [OnItsWay(breaker.is_open) for _ in range(min(room, number))]
        elif step == "wait":
            now += number * 2.0
        elif out:
            back = out.pop(number % len(out))
            if step == "succeed":
                breaker.succeeded()
            else:
                breaker.failed(now, retry_after_s, probe=back.probe)
        assert sum(each.probe for each in out) <= 1
        assert not breaker.is_open or breaker.room(now + 1e9, 0) == 1, "an open one asks again some day"
