"""Transactions of the state: all or nothing, read-only where they only look, exact in every value."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import PIN
from tests.examples import examples
from tests.unit.state.samples import AT, SCOPE, binding, start

from crossdock.errors import StateError
from crossdock.pacing.token_bucket import Bucket, BucketState, LimitEstimate
from crossdock.state import (
    RunResult,
    State,
    create_or_upgrade_state,
    parse_database_url,
)


def test_a_failed_block_leaves_nothing(state: State) -> None:
    """A transaction whose block raises has no effect."""
    run = start(state)
    with pytest.raises(ZeroDivisionError), state.begin() as tx:
        tx.bindings.put(SCOPE, [binding(1)], run_id=run, at=AT)
        raise ZeroDivisionError
    with state.begin() as tx:
        assert tx.bindings.get(SCOPE, [1]) == {}


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    digits=st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**15), max_value=10**15),
    instant=st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.timezones()),  # noqa: DTZ001
    spent_until=st.floats(0, 4e9),
)
def test_not_a_cent_and_not_a_second_drifts(
    state: State, digits: Decimal, instant: datetime, spent_until: float
) -> None:
    """Decimals of 15 + 4 digits, instants of any zone and buckets come back equal."""
    run = start(state)
    bucket_state = BucketState(Bucket(10, 100, spent_until), LimitEstimate(10, "learned", 101, "reported", agreed=3))
    with state.begin() as tx:
        tx.bindings.put(SCOPE, [binding(1, payload={"n": digits})], run_id=run, at=AT)
        tx.buckets.put("b", bucket_state)
        tx.runs.finish(run, RunResult("done"), at=instant)
        assert tx.bindings.get(SCOPE, [1])[1].payload == {"n": digits}
        assert tx.buckets.get("b") == bucket_state
        assert tx.runs.listed(limit=1)[0].finished_at == instant.astimezone(
            UTC
        )  # an ambiguous local time equals no other zone's


def test_a_look_writes_nothing(state: State) -> None:
    """What only looks is refused every write, and the next transaction is not."""
    with pytest.raises(StateError, match="(?i)read.?only"), state.begin_read_only() as tx:
        tx.runs.start(business_date="2026-03-29", at=AT)
    with pytest.raises(StateError, match="(?i)read.?only"):
        state.run_read_only(lambda tx: tx.runs.start(business_date="2026-03-29", at=AT))
    run = start(state)
    assert state.run_read_only(lambda tx: [each.id for each in tx.runs.listed(limit=9)]) == [run]


def test_a_look_waits_for_no_writer(tmp_path: Path) -> None:
    """A read-only transaction sees the data before an unfinished write, and flushes nothing during a run."""
    url = parse_database_url("sqlite:///state.db", tmp_path)
    create_or_upgrade_state(url, PIN)
    state, other = State(url, PIN), State(url, PIN)
    run, log = start(state), tmp_path / "state.db-wal"
    with state.begin() as tx, other.begin_read_only() as seen:
        tx.runs.start(business_date="2026-03-30", at=AT)
        assert [each.id for each in seen.runs.listed(limit=9)] == [run]
    with state.hold_run_lease("test"):
        before = log.stat().st_mtime_ns
        with state.begin_read_only() as seen:
            assert len(seen.runs.listed(limit=9)) == 2
        assert log.stat().st_mtime_ns == before
        state.run_transaction(lambda tx: tx.runs.listed(limit=1))
        assert log.stat().st_mtime_ns > before, "a transaction that may write confirms the lease"
    state.close()
    other.close()
