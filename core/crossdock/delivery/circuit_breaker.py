"""When nearly everything fails: stop sending, ask with single requests, and come back slowly."""

from __future__ import annotations

import random
from collections import deque

from crossdock.delivery.retry_budget import DOUBLINGS, pause_s

WATCHED = 20  # latest outcomes that tell whether the platform works
OPENS_AT = 16  # failures among them: an outage fails nearly all, and what fails half of the time still gets work done
FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 30.0  # between two probes; half of it is certain: fewer than one a second


class CircuitBreaker:
    """Says how many requests may be on their way; a value with a memory, on its caller's clock.

    Closed: *limit*. After `OPENS_AT` failures among the last `WATCHED` outcomes open: none, but for one probe after
    each pause. Once a probe gets through it ramps: one more on its way for each success, as TCP does, until *limit*.

    Attributes:
        probes: How many probes failed since it opened.
        failing_since: When the failures began that no success has ended; None while it works.
        worked: True once anything got through.
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

    def room(self, now: float, in_flight: int) -> int:
        """How many requests may leave now."""
        if self._probe_at is not None:
            return 1 if in_flight == 0 and now >= self._probe_at else 0
        return max(0, self._window - in_flight)

    def wait_s(self, now: float) -> float:
        """Seconds until the next probe; 0.0 while it is not open."""
        return 0.0 if self._probe_at is None else max(0.0, self._probe_at - now)

    def succeeded(self) -> None:
        """The platform has answered a request, with whatever decision."""
        self.worked, self.failing_since, self.probes = True, None, 0
        if self._probe_at is not None:
            self._probe_at, self._window = None, 1
            self._latest.clear()
        elif self._window < self._limit:
            self._window += 1
        self._latest.append(True)

    def failed(self, now: float, retry_after_s: float | None, *, probe: bool) -> None:
        """A request got no decision.

        Args:
            retry_after_s: When the platform wants to be asked again.
            probe: It left while the breaker was open; others only come home late.
        """
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
