from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crossdock.sandbox.webhook_deliveries import JITTER, RETRY_DELAYS_S, seconds_to_next_attempt


def test_the_schedule_is_the_published_one() -> None:
    """0 s, 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h."""
    hour = 3600
    assert list(RETRY_DELAYS_S) == [0, 5, 300, 1800, 2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, 24 * hour]


@given(st.integers(0, 30))
def test_a_delay_is_never_shorter_and_at_most_a_tenth_longer(made: int) -> None:
    """After the last attempt there is none."""
    delay_s = seconds_to_next_attempt(made)
    if made >= 10:
        assert delay_s is None
    else:
        assert delay_s is not None
        assert RETRY_DELAYS_S[made] <= delay_s <= RETRY_DELAYS_S[made] * (1 + JITTER)
