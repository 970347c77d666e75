"""A bucket in the state is read as it was written; the shared one is tested in tests/integration/pacing."""

from __future__ import annotations

import math

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples

from crossdock.pacing.token_bucket import Bucket, BucketState, LimitEstimate
from crossdock.state import State


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rate=st.floats(0.001, 1e6), burst=st.integers(1, 10**6), times=st.tuples(*[st.floats(0, 4e9)] * 3))
def test_a_bucket_is_read_as_written(state: State, rate: float, burst: int, times: tuple[float, float, float]) -> None:
    """Rates and times keep every bit; the latest version of a name counts."""
    spent_until, frozen_until, as_of = times
    known = LimitEstimate(rate, "learned", burst, "reported", agreed=3)
    written = BucketState(Bucket(rate, burst, spent_until), known, 7, 2, frozen_until, as_of)
    with state.begin() as tx:
        tx.buckets.put("b", BucketState.from_estimate(known))
        tx.buckets.put("b", written)
        assert tx.buckets.get("b") == written
        assert tx.buckets.get("c") is None


def test_an_unused_bucket_is_full(state: State) -> None:
    """A bucket that was full for ever is stored as full since long ago: databases spell infinity differently."""
    known = LimitEstimate(1.0, "learned", 5, "reported")
    with state.begin() as tx:
        tx.buckets.put("b", BucketState(Bucket(1.0, 5, -math.inf), known))
        found = tx.buckets.get("b")
    assert found is not None
    assert found.bucket.spent_until == 0.0
