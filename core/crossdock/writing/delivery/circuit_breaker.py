"""The circuit breaker of a target: it limits the requests in flight, to one probe after each pause while it is open."""

from __future__ import annotations

import random
from collections import deque

from crossdock.pacing.backoff import DOUBLINGS, pause_s

WATCHED = 20  # latest outcomes
OPENS_AT = 16  # failures among them: in an outage nearly all fail; at half of them, work still gets done
FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 30.0  # between two probes; half of it is fixed, half is jitter


class CircuitBreaker:
    """Limits the requests in flight, on the caller's clock.

    It opens after `OPENS_AT` failures among the last `WATCHED` outcomes, and then lets one probe through after each
    pause. After a successful probe the limit grows by one with each success, as in TCP, up to *limit*.
    """

    def __init__(self, limit: int, rng: random.Random) -> None:
        self._limit, self._rng = limit, rng
        self._latest: deque[bool] = deque(maxlen=WATCHED)
        self._window = limit
        self._probe_at: float | None = None  # set while it is open
        self.probes = 0
        self.failing_since: float | None = None
        self.worked = False

    @property
    def is_open(self) -> bool:
        return self._probe_at is not None

    def free_slots(self, now: float, in_flight: int) -> int:
        if self._probe_at is not None:
            return 1 if in_flight == 0 and now >= self._probe_at else 0
        return max(0, self._window - in_flight)

    def seconds_to_next_probe(self, now: float) -> float:
        return 0.0 if self._probe_at is None else max(0.0, self._probe_at - now)

    def record_success(self) -> None:
        """Record that the target decided on a request, whatever the decision."""
        self.worked, self.failing_since, self.probes = True, None, 0
        if self._probe_at is not None:
            self._probe_at, self._window = None, 1
            self._latest.clear()
        elif self._window < self._limit:
            self._window += 1
        self._latest.append(True)

    def record_failure(self, now: float, retry_after_s: float | None, *, probe: bool) -> None:
        """Record that a request got no decision. Only a *probe* was sent while the breaker was open."""
        if self.failing_since is None:
            self.failing_since = now
        self._latest.append(False)
        if self._probe_at is not None:
            if not probe:
                return
            self.probes += 1
        elif self._latest.count(False) < OPENS_AT:
            return
        longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(self.probes, DOUBLINGS))
        pause = longest / 2 + pause_s(1, base_s=longest / 2, cap_s=longest, rng=self._rng)
        self._probe_at = now + max(pause, retry_after_s or 0.0)
