"""Token buckets of APIs, kept from run to run."""

from __future__ import annotations

from crossdock.pacing.token_bucket import BucketState, LimitEstimate
from crossdock.runs import stored_rate_limits
from crossdock.state import State


def bucket(burst: int, as_of: float) -> BucketState:
    estimate = LimitEstimate().with_capped_rate(10, "reported").with_capped_burst(burst, "reported")
    return BucketState(estimate.bucket(), estimate, as_of=as_of)


def bursts(state: State, *connections: str) -> dict[str, int | None]:
    with state.begin_read_only() as tx:
        return {name: each.estimate.burst for name, each in stored_rate_limits.read(tx, connections, {"erp"}).items()}


def test_each_connection_has_its_bucket(state: State) -> None:
    """A connection that was never read has none."""
    with state.begin() as tx:
        stored_rate_limits.write(tx, {"shop": bucket(7, 1)})
        tx.buckets.put("platform", bucket(50, 2))
    assert bursts(state, "shop", "new") == {"shop": 7}


def test_a_connection_that_reads_the_platform_begins_with_what_was_seen_last(state: State) -> None:
    """Of the bucket of its own and that of delivery, the one that was used later counts."""
    assert bursts(state, "erp") == {}
    with state.begin() as tx:
        tx.buckets.put("platform", bucket(50, 2))
    assert bursts(state, "erp") == {"erp": 50}
    with state.begin() as tx:
        stored_rate_limits.write(tx, {"erp": bucket(60, 3)})
    assert bursts(state, "erp") == {"erp": 60}
    with state.begin() as tx:
        tx.buckets.put("platform", bucket(70, 4))
    assert bursts(state, "erp") == {"erp": 70}
