"""Pauses between attempts."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from crossdock.pacing.backoff import jittered_backoff_pause_s


@given(attempt=st.integers(1, 5000), base_s=st.floats(0.001, 10), cap_s=st.floats(0.001, 600), seed=st.integers(0, 99))
def test_a_pause_is_within_its_bounds(attempt: int, base_s: float, cap_s: float, seed: int) -> None:
    """However often it failed, a pause is between zero and its cap, and between zero and the doubled base."""
    pause = jittered_backoff_pause_s(attempt, base_s=base_s, cap_s=cap_s, rng=random.Random(seed))
    assert 0.0 <= pause <= cap_s
    assert pause <= base_s * 2.0 ** min(attempt - 1, 60)
