"""How many requests may be on their way: as many as latency needs, not as many as there is memory for.

By Little's law a rate needs ``rate * latency`` requests on their way; twice as many leave room for jitter. Each one
more is one more that may be in doubt after a crash, and one more that is refused when a bucket turns out to be empty.
"""

from __future__ import annotations

from collections import deque

FEWEST = 32
WATCHED = 64  # answers


class InFlight:
    """A limit that follows latency and throughput, on a monotonic clock.

    Args:
        ceiling: Most of all.

    Attributes:
        limit: How many may be on their way now.
        latency_s: The shortest of the latest answers.
    """

    def __init__(self, ceiling: int) -> None:
        self._ceiling = ceiling
        self._answers: deque[tuple[float, float]] = deque(maxlen=WATCHED)  # (when, latency_s)
        self._since_update = 0
        self.limit = min(FEWEST, ceiling)
        self.latency_s = 0.0

    def answered(self, at: float, latency_s: float, rate_per_s: float) -> None:
        """An answer came at *at*; *rate_per_s* is what the bucket lets through in the long run."""
        self._answers.append((at, latency_s))
        self._since_update += 1
        if self._since_update < WATCHED // 4 and self.latency_s:
            return
        self._since_update = 0
        self.latency_s = min(latency for _, latency in self._answers)
        span = at - self._answers[0][0]
        throughput = (len(self._answers) - 1) / span if span > 0 else 0.0
        # where no token is missing each waits for the one before, and the mean tells that there is room for more
        mean_s = sum(latency for _, latency in self._answers) / len(self._answers)
        needed = 2 * max(rate_per_s * self.latency_s, throughput * mean_s)
        # answers come in bunches, so what they need is taken back slowly
        self.limit = min(self._ceiling, max(FEWEST, round(needed), self.limit - max(1, self.limit // 16)))
