"""No run plans with what it read of a record before another run worked on it."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from crossdock.state import Intent, Scope
from crossdock.writing.delivery.delivery_context import RecordsOfConcurrentRuns, RecordsOfRun

SCOPE = Scope("platform", "order", "shop")


def intent(key_hash: int) -> Intent:
    return cast("Intent", SimpleNamespace(scope=SCOPE, identity=SimpleNamespace(key_hash=key_hash)))


def others(run: RecordsOfRun, *keys: int) -> set[int]:
    """What *run* must leave out; its turn to plan ends at once."""
    found = run.begin_exclusive_planning_and_find_busy(SCOPE, keys)
    run.end_exclusive_planning()
    return found


def test_a_record_in_progress_is_left_to_its_run() -> None:
    """A record that one run sends is left out by others until it is settled, and then by those that read before."""
    everything = RecordsOfConcurrentRuns()
    nightly, live = everything.begin_run(), everything.begin_run()
    nightly.record_begin_of_reading()
    live.record_begin_of_reading()
    live.record_begin_of_work([intent(1)])
    assert others(nightly, 1, 2) == {1}
    assert others(live, 1, 2) == set()
    assert nightly.without_records_of_other_runs([intent(1), intent(2)])[0].identity.key_hash == 2
    live.record_end_of_work(intent(1))
    live.record_that_all_read_is_planned()
    assert others(nightly, 1) == {1}, "what it has read may be older"
    nightly.record_begin_of_reading()
    assert others(nightly, 1) == set()
    assert everything.marks == {}


def test_a_run_that_ends_leaves_nothing_in_progress() -> None:
    """What a run could not settle is in the state, and no longer its own."""
    everything = RecordsOfConcurrentRuns()
    nightly, live = everything.begin_run(), everything.begin_run()
    live.record_begin_of_reading()
    live.record_begin_of_work([intent(1)])
    live.end_run()
    nightly.record_begin_of_reading()
    assert others(nightly, 1) == set()
    nightly.end_run()
    assert (everything.marks, everything.runs) == ({}, [])


def test_runs_plan_in_turns() -> None:
    """Between planning and storing of one run, no other run plans."""
    everything = RecordsOfConcurrentRuns()
    one, two = everything.begin_run(), everything.begin_run()
    one.record_begin_of_reading()
    two.record_begin_of_reading()
    one.begin_exclusive_planning_and_find_busy(SCOPE, [1])
    seen: list[set[int]] = []
    thread = threading.Thread(target=lambda: seen.append(others(two, 1)))
    thread.start()
    one.record_begin_of_work([intent(1)])
    one.end_exclusive_planning()
    thread.join()
    assert seen == [{1}]


def test_marks_that_concern_nobody_are_forgotten() -> None:
    """A run alone, and one beside which nobody reads, keep no marks of settled records."""
    everything = RecordsOfConcurrentRuns()
    nightly, live = everything.begin_run(), everything.begin_run()
    nightly.record_begin_of_reading()
    for key in range(1_000):
        nightly.record_begin_of_work([intent(key)])
        nightly.record_end_of_work(intent(key))
    assert everything.marks == {}
    live.record_begin_of_reading()
    nightly.record_begin_of_work([intent(1)])
    nightly.record_end_of_work(intent(1))
    assert len(everything.marks) == 1
    live.record_that_all_read_is_planned()
    assert everything.marks == {}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["record_begin_of_reading", "plan", "settle", "record_that_all_read_is_planned"]),
        st.integers(0, 2),
        st.integers(0, 3),
    )
)


@given(steps=STEPS)
def test_any_order_of_steps_is_safe(steps: list[tuple[str, int, int]]) -> None:
    """A record that another run works on, or finished after this run began to read, is left out; no other is."""
    everything = RecordsOfConcurrentRuns()
    runs = [everything.begin_run() for _ in range(3)]
    read: list[int | None] = [None] * 3
    worked: dict[int, tuple[int, int | None]] = {}  # by key: the run and when it ended
    for time, (step, number, key) in enumerate(steps):
        run: Any = runs[number]
        if step in {"record_begin_of_reading", "record_that_all_read_is_planned"}:
            getattr(run, step)()
            read[number] = time if step == "record_begin_of_reading" else None
        elif step == "plan" and read[number] is not None:
            owner, ended = worked.get(key, (number, -1))
            since = read[number]
            assert since is not None
            expected = owner != number and (ended is None or ended > since)
            assert (others(run, key) == {key}) == expected
            if not expected:
                run.record_begin_of_work([intent(key)])
                worked[key] = number, None
        elif step == "settle" and worked.get(key) == (number, None):
            run.record_end_of_work(intent(key))
            worked[key] = number, time
