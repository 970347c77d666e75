"""A rate limit is found from the requests that are accepted and refused."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from crossdock.reading.sources.unreported_limit import UnreportedLimit


@settings(max_examples=examples(50), deadline=None)
@given(rate=st.floats(0.1, 200), burst=st.integers(1, 50), latency_s=st.floats(0.0005, 0.01))
def test_the_search_in_any_bucket_is_seldom_refused(rate: float, burst: int, latency_s: float) -> None:
    """Of 5,000 requests at most one in a hundred is refused."""
    limit, level, now, before = UnreportedLimit(None, None, sure=False, full=True), float(burst), 0.0, 0.0
    accepted_at, refused = list[float](), 0
    while len(accepted_at) < 5_000:
        level, before = min(burst, level + rate * (now - before)), now
        if level >= 1:
            level -= 1
            accepted_at.append(now)
            limit.accepted(now, paced=limit.rate_per_s is not None)
            now += max(latency_s, 1 / limit.rate_per_s if limit.rate_per_s else 0.0)
        else:
            refused += 1
            limit.refused(now)
            now += max(1.0, 1 / (limit.rate_per_s or 1.0)) if not limit.sure else 1 / (limit.rate_per_s or 1.0)
    assert refused <= 50


def test_a_refused_first_request_tells_nothing() -> None:
    """The bucket was empty before."""
    limit = UnreportedLimit(None, None, sure=False, full=True)
    limit.refused(1.0)
    assert (limit.rate_per_s, limit.burst) == (None, None)
