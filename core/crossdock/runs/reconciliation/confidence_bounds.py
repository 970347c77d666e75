"""Statistical bounds for all records from a sample."""

from __future__ import annotations

import math

CONFIDENCE = 0.95


def highest_differing_share(sampled: int, differing: int, *, confidence: float = CONFIDENCE) -> float:
    """Return the highest share of differing records, with this confidence.

    This is the upper bound of Clopper and Pearson (1934) for a sample that is small compared with the whole. A larger
    share would show so few differences with a probability below 1 - *confidence*. *sampled* is at least 1.
    """
    if differing >= sampled:
        return 1.0
    low, high = differing / sampled, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _probability_of_at_most(sampled, differing, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def _probability_of_at_most(number: int, successes: int, share: float) -> float:
    if share in {0.0, 1.0}:
        return 1.0 if share == 0.0 else float(successes >= number)
    logs = (
        math.lgamma(number + 1)
        - math.lgamma(each + 1)
        - math.lgamma(number - each + 1)
        + each * math.log(share)
        + (number - each) * math.log1p(-share)
        for each in range(successes + 1)
    )
    return math.fsum(map(math.exp, logs))
