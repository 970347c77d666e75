"""Setting the time of day neither pauses nor refills a bucket."""

from __future__ import annotations

from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, text
from tests.allowances import configured
from tests.examples import examples

from crossdock.pacing.token_bucket import BucketState, BucketStore, LimitEstimate, MemoryBucketStore
from crossdock.state import SharedBucket, State, StateUrl
from crossdock.state.tables.token_buckets import SET_BACK_S
from crossdock.testing.manual_clock import ManualClock

RATE_PER_S, BURST = 10.0, 100
ESTIMATE = configured(RATE_PER_S, BURST)
DAY_S = 86_400.0
STEPS_S = st.floats(60.0, 30 * DAY_S) | st.floats(-30 * DAY_S, -60.0)
Turn = tuple[float, int, float]  # seconds that pass, tokens that are wanted, seconds by which the clock is set
TURNS = st.lists(st.tuples(st.floats(0.0, 20.0), st.integers(0, 150), STEPS_S | st.just(0.0)), max_size=12)


def taken(store: BucketStore, clock: ManualClock, turns: list[Turn], *, stepped: bool) -> list[int]:
    """The number of tokens taken in each turn."""
    given_ = []
    for seconds, wanted, step in turns:
        clock.advance(seconds)
        if stepped:
            clock.step(step)
        given_.append(store.take_available(wanted, 0).count)
    return given_


@given(turns=TURNS)
def test_within_a_run_a_step_changes_nothing(turns: list[Turn]) -> None:
    """A bucket in memory gives the same tokens at the same moments, whatever the clock is set to."""
    results = []
    for stepped in (False, True):
        clock = ManualClock()
        results.append(
            taken(MemoryBucketStore(clock, BucketState.from_estimate(ESTIMATE)), clock, turns, stepped=stepped)
        )
    assert results[0] == results[1]


@settings(max_examples=examples(20))
@given(turns=TURNS)
def test_a_bucket_in_a_file_ignores_the_time_of_day(
    tmp_path_factory: pytest.TempPathFactory, turns: list[Turn]
) -> None:
    """Processes that share a bucket in SQLite get the same tokens, whatever the clock is set to."""
    results = []
    for stepped in (False, True):
        clock = ManualClock()
        url = StateUrl.create("sqlite", database=str(tmp_path_factory.mktemp("shared") / "bucket.db"))
        with closing(SharedBucket(url, clock, "b", lambda earlier: earlier or ESTIMATE)) as store:
            results.append(taken(store, clock, turns, stepped=stepped))
    assert results[0] == results[1]


@given(step=STEPS_S, spent=st.integers(1, BURST), frozen_s=st.none() | st.floats(0.0, 900.0))
def test_a_step_between_runs_does_not_lengthen_the_wait(step: float, spent: int, frozen_s: float | None) -> None:
    """A run after a step waits at most as long as one without it, and a step back yields no token twice."""
    waits, tokens = [], []
    for stepped in (False, True):
        clock = ManualClock()
        store = MemoryBucketStore(clock, BucketState.from_estimate(ESTIMATE))
        left = store.take_available(spent, 0).bucket_state
        if frozen_s is not None:
            now = clock.now().timestamp()
            left = BucketState(left.bucket, left.estimate, left.spent, 1, now + frozen_s, now)
        if stepped:
            clock.step(step)
        next_ = left.carried_to_next_run(clock.now().timestamp(), ESTIMATE)
        waits.append(next_.wait_s(clock.now().timestamp(), 0))
        tokens.append(next_.bucket.tokens(clock.now().timestamp()))
    assert waits[1] <= waits[0] + 1e-3
    assert step > 0 or tokens[1] <= tokens[0]


def test_the_state_keeps_when_a_bucket_was_changed(state: State) -> None:
    """The bucket is read back with the instant of its last change."""
    clock = ManualClock()
    left = MemoryBucketStore(clock, BucketState.from_estimate(ESTIMATE)).take_available(30, 0).bucket_state
    with state.begin() as tx:
        tx.buckets.put("platform", left)
    with state.begin_read_only() as tx:
        assert tx.buckets.get("platform") == left
    assert left.as_of == pytest.approx(clock.now().timestamp())


@pytest.mark.parametrize("ahead_s", [60.0, 7_200.0, 30 * DAY_S])
def test_a_database_clock_that_is_set_back_blocks_nobody(state_url: StateUrl, ahead_s: float) -> None:
    """A shared bucket that was used while the clock was ahead gives tokens at its normal rate."""
    clock = ManualClock()
    slow = LimitEstimate(1e-3, "set", BURST, "set")
    with closing(SharedBucket(state_url, clock, "b", lambda earlier: earlier or slow)) as store:
        assert store.take_available(BURST - 10, 0).count == BURST - 10
    engine = create_engine(state_url)
    with engine.begin() as connection:  # as if all of that had happened on a clock that was ahead
        moved = "spent_until = spent_until + :by, frozen_until = as_of + :by + 3, as_of = as_of + :by"
        connection.execute(text(f"UPDATE buckets SET {moved}"), {"by": ahead_s})
    engine.dispose()
    with closing(SharedBucket(state_url, clock, "b", lambda earlier: earlier or slow)) as store:
        taken_now = store.take_available(0, 0)
        assert taken_now.bucket_state.wait_s(taken_now.now, 0) <= 3.0
        assert taken_now.bucket_state.bucket.tokens(taken_now.now) == 10
        assert taken_now.bucket_state.as_of <= taken_now.now + SET_BACK_S


def test_a_bucket_of_an_earlier_version_is_recreated(state_url: StateUrl) -> None:
    """A shared bucket without the instant of its last change is replaced by a full one."""
    engine = create_engine(state_url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE buckets (name VARCHAR(512) PRIMARY KEY, spent_until FLOAT)"))
        connection.execute(text("INSERT INTO buckets VALUES ('b', 1e12)"))
    engine.dispose()
    with closing(SharedBucket(state_url, ManualClock(), "b", lambda earlier: earlier or ESTIMATE)) as store:
        assert store.take_available(BURST, 0).count == BURST
