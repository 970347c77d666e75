"""The limit for requests in flight: as many as the latency requires.

By Little's law a rate needs ``rate * latency`` requests in flight; twice that leaves room for jitter. Each further
request would be one more in doubt after a crash, and one more refused when the bucket proves empty.
"""

from __future__ import annotations

from collections import deque

FEWEST = 32
WINDOW = 64  # answers


class InFlightLimit:
    """A limit that follows latency and throughput, on the monotonic clock.

    Args:
        ceiling: Upper bound of the limit.

    Attributes:
        limit: Requests that may be in flight now.
        latency_s: The shortest of the latest answers.
    """

    def __init__(self, ceiling: int) -> None:
        self._ceiling = ceiling
        self._answers: deque[tuple[float, float]] = deque(maxlen=WINDOW)  # (answered at, latency in seconds)
        self._since_update = 0
        self.limit = min(FEWEST, ceiling)
        self.latency_s = 0.0

    def answered(self, at: float, latency_s: float, rate_per_s: float) -> None:
        """Record an answer that arrived at *at*; *rate_per_s* is the rate of the bucket."""
        self._answers.append((at, latency_s))
        self._since_update += 1
        if self._since_update < WINDOW // 4 and self.latency_s:
            return
        self._since_update = 0
        self.latency_s = min(latency for _, latency in self._answers)
        span = at - self._answers[0][0]
        throughput = (len(self._answers) - 1) / span if span > 0 else 0.0
        # with plenty of tokens requests queue behind each other, and the mean latency shows that more fit
        mean_s = sum(latency for _, latency in self._answers) / len(self._answers)
        needed = 2 * max(rate_per_s * self.latency_s, throughput * mean_s)
        # answers arrive in bunches, so the limit is lowered slowly
        self.limit = min(self._ceiling, max(FEWEST, round(needed), self.limit - max(1, self.limit // 16)))
