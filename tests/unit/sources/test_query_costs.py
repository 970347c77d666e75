"""GraphQL queries wait until their cost is available."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crossdock.reading.sources.api_token_buckets import GraphQLCostBucket


@given(
    rate=st.integers(1, 50),
    most=st.integers(1, 1000),
    costs=st.lists(st.integers(1, 1000), min_size=1, max_size=30),
)
def test_a_query_whose_cost_is_known_is_never_refused(rate: int, most: int, costs: list[int]) -> None:
    """It waits until its cost is available, and no longer."""
    bucket, now, level = GraphQLCostBucket(), 0.0, float(most)
    for number, wanted in enumerate(costs):
        cost, query = min(wanted, most), str(number % 3)
        for is_known in (False, True):  # the first time tells the cost
            wait_s = bucket.wait_s(query, now)
            now, level = now + wait_s, min(most, level + wait_s * rate)
            assert not is_known or level >= cost - 1e-3
            level -= cost if level >= cost else 0
            status = {"maximumAvailable": most, "currentlyAvailable": level, "restoreRate": rate}
            body = {"extensions": {"cost": {"requestedQueryCost": cost, "throttleStatus": status}}}
            assert bucket.adopt_reported_cost(query, body, now)
