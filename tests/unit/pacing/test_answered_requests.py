"""Two samples of a bucket yield a rate."""

from __future__ import annotations

import pytest

from crossdock.pacing.rate_limit_learner import LOWEST_PER_S, BucketSample


@pytest.mark.parametrize(
    ("later", "rate"),
    [
        pytest.param(BucketSample(10, 150), 5, id="accepted requests"),
        pytest.param(BucketSample(10, 100, 20.0), 2, id="a higher level"),
        pytest.param(BucketSample(10, 150, -10.0), 4, id="a debt"),
        pytest.param(BucketSample(10, 100), LOWEST_PER_S, id="nothing gained"),
    ],
)
def test_rate_since(later: BucketSample, rate: float) -> None:
    """Tokens gained: those accepted, and those that the level has risen by."""
    assert later.refill_rate_since(BucketSample(0, 100)) == rate
