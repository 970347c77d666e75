"""Which waiting runs may start."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from crossdock.services.fleet.fleet_scheduler import QueuedRun, RunSlots

DUE = datetime(2026, 11, 24, 2, 30, tzinfo=UTC)


def place(tenant: str, *hosts: str, minutes: int = 0, expected_s: float = 0.0, is_slow: bool = False) -> QueuedRun:
    return QueuedRun(DUE + timedelta(minutes=minutes), expected_s, tenant, frozenset(hosts), is_slow)


def names(places: list[QueuedRun]) -> list[str]:
    return [each.tenant for each in places]


def test_those_due_first_are_first_and_among_equals_the_shortest() -> None:
    """A tenant that was due later waits, however short its run is."""
    waiting = [place("late", minutes=1), place("long", expected_s=60.0), place("short", expected_s=1.0)]
    assert names(RunSlots(2, 2).choose_runs_to_start(waiting, [])) == ["short", "long"]
    assert names(RunSlots(3, 2).choose_runs_to_start(waiting, [place("other")])) == ["short", "long"]


def test_a_host_that_is_busy_does_not_delay_others() -> None:
    """The runs of its other tenants wait; those that read elsewhere start."""
    waiting = [place("a", "ftp"), place("b", "ftp"), place("c", "shop", minutes=1), place("d", "ftp", "shop")]
    assert names(RunSlots(9, 2).choose_runs_to_start(waiting, [place("x", "ftp")])) == ["a", "c"]


def test_slow_tenants_leave_half_of_the_slots() -> None:
    """However many of them wait, and however early they were due."""
    waiting = [place(f"slow{each}", is_slow=True) for each in range(8)] + [place("quick", minutes=30)]
    assert names(RunSlots(4, 9).choose_runs_to_start(waiting, [])) == ["slow0", "slow1", "quick"]
    assert names(RunSlots(1, 9).choose_runs_to_start(waiting, [])) == ["slow0"], "a single slot is for all"


PLACES = st.lists(
    st.builds(
        place,
        st.uuids().map(str),
        st.sampled_from(["a", "b", "c"]),
        minutes=st.integers(-2, 2),
        expected_s=st.sampled_from([0.0, 5.0, 700.0]),
        is_slow=st.booleans(),
    ),
    max_size=30,
)


@given(waiting=PLACES, at_once=st.integers(1, 8), per_host=st.integers(1, 4))
def test_no_limit_is_exceeded_and_no_slot_is_left_empty(waiting: list[QueuedRun], at_once: int, per_host: int) -> None:
    """Started one after the other, each run starts; at no time are there more than the limits allow."""
    slots, running, started = RunSlots(at_once, per_host), list[QueuedRun](), list[QueuedRun]()
    left = list(waiting)
    while left:
        chosen = slots.choose_runs_to_start(left, running)
        running += chosen
        started += chosen
        left = [each for each in left if each not in chosen]
        assert len(running) <= at_once
        assert max(Counter(host for each in running for host in each.hosts).values()) <= per_host
        assert sum(each.is_slow for each in running) <= slots.most_slow_runs_at_once
        assert running, "one may always start"
        running.pop(0)
    assert sorted(started) == sorted(waiting)
