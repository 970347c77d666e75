"""Seeds of the chaos tests: fixed, unless the environment names another."""

from __future__ import annotations

import os

VARIABLE = "CROSSDOCK_CHAOS_SEED"


def chaos_seed() -> int:
    """What all randomness of these tests is drawn from; printed by each of them."""
    return int(os.environ.get(VARIABLE, "20260101"))
