"""Exponential backoff with full jitter."""

from __future__ import annotations

import random

MAX_DOUBLINGS = 60  # more would overflow a float in an outage of hours


def jittered_backoff_pause_s(attempt: int, *, base_s: float, cap_s: float, rng: random.Random) -> float:
    """Return the seconds to wait after the *attempt*-th failure, counted from 1.

    The pause is drawn evenly from zero to ``base_s * 2 ** (attempt - 1)``, at most *cap_s* ("full jitter", AWS
    architecture blog).
    """
    return rng.uniform(0.0, min(cap_s, base_s * 2.0 ** min(attempt - 1, MAX_DOUBLINGS)))
