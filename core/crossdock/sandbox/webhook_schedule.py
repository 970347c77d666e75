"""When a delivery is attempted again: the schedule that Standard Webhooks 1.0 recommends, with jitter."""

from __future__ import annotations

from collections.abc import Sequence
from random import uniform

DELAYS_S: Sequence[int] = (0, 5, 5 * 60, 30 * 60, *(hours * 3600 for hours in (2, 5, 10, 14, 20, 24)))
JITTER = 0.1  # a delay is at most this share longer, never shorter


def next_attempt_s(made: int) -> float | None:
    """Return the seconds until the next attempt after *made* failed ones; None if there is none."""
    if made >= len(DELAYS_S):
        return None
    return DELAYS_S[made] * uniform(1, 1 + JITTER)  # noqa: S311  spreads load, protects nothing
