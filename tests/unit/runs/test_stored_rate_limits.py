"""Token buckets of APIs, kept from run to run."""

from __future__ import annotations

from crossdock.pacing.token_bucket import BucketState, LimitEstimate
from crossdock.runs import session_shared_by_runs
from crossdock.state import State


def bucket(burst: int, as_of: float) -> BucketState:
    estimate = LimitEstimate().with_capped_rate(10, "reported").with_capped_burst(burst, "reported")
    return BucketState(estimate.bucket(), estimate, as_of=as_of)


def bursts(state: State, *connections: str) -> dict[str, int | None]:
    with state.begin_read_only() as tx:
        return {
            name: each.estimate.burst
            for name, each in session_shared_by_runs.read_rate_limits_of_source_apis(tx, connections, {"erp"}).items()
        }


def test_each_connection_has_its_bucket(state: State) -> None:
    """A connection that was never read has none."""
    with state.begin() as tx:
        session_shared_by_runs.write_rate_limits_of_source_apis(tx, {"shop": bucket(7, 1)})
        tx.buckets.put("platform", bucket(50, 2))
    assert bursts(state, "shop", "new") == {"shop": 7}


def test_a_connection_that_reads_the_platform_begins_with_what_was_seen_last(state: State) -> None:
    """Of the bucket of its own and that of delivery, the one that was used later counts."""
    assert bursts(state, "erp") == {}
    with state.begin() as tx:
        tx.buckets.put("platform", bucket(50, 2))
    assert bursts(state, "erp") == {"erp": 50}
    with state.begin() as tx:
        session_shared_by_runs.write_rate_limits_of_source_apis(tx, {"erp": bucket(60, 3)})
    assert bursts(state, "erp") == {"erp": 60}
    with state.begin() as tx:
        tx.buckets.put("platform", bucket(70, 4))
    assert bursts(state, "erp") == {"erp": 70}
