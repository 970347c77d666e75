"""Learns a rate limit that an API does not report, from one reader's requests, which are sent one after the other.

A refused request shows that the bucket is empty. Requests are then sent at an even speed, slightly above the estimate,
until the next one is refused. The requests accepted in between, divided by the time, are the rate to within one token,
so each such interval is longer and its estimate more accurate than the one before.

A bucket of one token stays empty or full, whatever was sent before; there the range between the speeds that it accepts
and refuses is narrowed instead.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from itertools import pairwise

from crossdock.pacing.samples import Sample

REMEMBERED = 4096  # accepted requests until the first refused one, from which the burst is estimated
ACCURACY = 0.005  # relative, of a known rate; one in 200 requests is refused while it is measured
STEP_TOKENS = 2  # tokens beyond the estimate that are spent at one speed before the next higher one
FIRST_STEP, MAX_STEP = 0.5, 1.0  # growth of the speed, which doubles while nothing is refused
QUIET_STEP = 0.01  # growth of a known speed, at first
QUIET_REQUESTS = 1000  # accepted requests until a known rate begins to rise, in case the limit has been raised
SLOWEST_PER_S, FASTEST_PER_S = 1e-4, 1e5
HALVINGS = 20
ROUNDING = 0.05  # in tokens


class UnreportedLimit:
    """The search for the rate and the burst of one bucket, on a monotonic clock.

    Args:
        rate_per_s: What an earlier run learned; None if nothing is known.
        burst: Tokens in a full bucket; None if unknown.
        sure: Whether the rate is known, so that no search is needed.
        full: Whether the bucket is full, as far as is known.

    Attributes:
        rate_per_s: The rate to send at; None until two requests were refused.
        burst: Tokens in a full bucket; None until the rate is known.
        accepted_per_s: The highest rate that was accepted for long, to begin the next run with.
        sure: Whether `accepted_per_s` is the limit.
    """

    def __init__(self, rate_per_s: float | None, burst: int | None, *, sure: bool, full: bool) -> None:
        self.rate_per_s = self.accepted_per_s = rate_per_s
        self.burst, self.sure = burst, sure
        self._full, self._known_burst = full, burst
        self._at_first: deque[Sample] = deque(maxlen=REMEMBERED)  # until the first refused request
        self._first_empty: Sample | None = None
        self._empty_at: float | None = None
        self._accepted = self._since_empty = self._at_speed = 0
        self._times: deque[float] = deque(maxlen=REMEMBERED)  # of accepted requests since the last refused one
        self._refused_per_s = math.inf
        self._step, self._rising = FIRST_STEP, False

    def accepted(self, at: float, *, paced: bool) -> None:
        """Record that a request which reached the bucket *at* was accepted; *paced* if it had waited for its token."""
        self._accepted += 1
        self._since_empty += 1
        self._times.append(at)
        if self._full and self._first_empty is None:
            self._at_first.append(Sample(at, self._accepted))
        if self.rate_per_s is not None and paced:
            self._at_speed += 1
            is_known = (self.sure or self._empty_at is None) and not self._rising
            if self._at_speed >= (QUIET_REQUESTS if is_known else STEP_TOKENS / self._step):
                self._rise(self.rate_per_s)

    def refused(self, at: float, reported_per_s: float | None = None) -> None:
        """Record that a request which reached the bucket *at* was refused; *reported_per_s* is the rate the API
        reports.
        """
        if self._full and self._first_empty is None and self._at_first:
            self._first_empty = Sample(at, self._accepted)
        if reported_per_s is None:
            self._learn_rate(at)
        rate_per_s = reported_per_s or self.rate_per_s
        if rate_per_s is not None:
            self.burst = self._burst(rate_per_s)
        if self.sure:  # from now on the burst is known, whatever the rate becomes
            self._full, self._first_empty = False, None
        if self._since_empty:
            self._empty_at, self._since_empty = at, 0
            self._times.clear()
        self._at_speed, self._rising = 0, False

    def _rise(self, speed: float) -> None:
        if (self.sure or self._empty_at is None) and not self._rising:
            self._step, self._refused_per_s = QUIET_STEP, math.inf
        elif not self.sure and self._empty_at is not None:  # the level was not enough to hide that it is too fast
            self.accepted_per_s = speed
            if self._refused_per_s <= speed * (1 + ACCURACY):
                self._settle(speed)
                return
        self.rate_per_s = min(FASTEST_PER_S, speed * (1 + self._step), speed + (self._refused_per_s - speed) / 3)
        self._step = min(MAX_STEP, 2 * self._step)
        self._at_speed, self._rising = 0, True

    def _learn_rate(self, at: float) -> None:
        speed, count, began = self.rate_per_s, self._since_empty, self._empty_at
        if began is None:  # the level was not known
            if self._rising:
                self.rate_per_s, self.sure = self.accepted_per_s, False
                self._step = QUIET_STEP
        elif not count:
            if speed is not None:
                self._try(speed / 2, FIRST_STEP)
        elif self.burst == 1 and speed is not None:
            self._narrow(speed, count)
        else:
            self._measure(began, at)

    def _measure(self, began: float, at: float) -> None:
        """Learn from the requests between two instants at which the bucket was empty."""
        least = (self._since_empty - 1) / (at - began)
        if len(self._times) < self._since_empty:  # too many to keep
            low, high = least, (self._since_empty + 1) / (at - began)
        else:
            low = max(least, _rate(self._times, Sample(began, 0, 1), Sample(at, 0, 0), self._burst))
            high = max(low, _rate(self._times, Sample(began, 0, 0), Sample(at, 0, 1), self._burst))
        if self.rate_per_s is not None:  # from an empty bucket only a speed above the rate is refused
            high = max(low, min(high, self.rate_per_s))
        self._refused_per_s, width = high, high - low
        if high - low <= 2 * ACCURACY * low:
            self._settle(low)
        elif high > 4 * low:
            self._try(self._since_empty / (at - began), FIRST_STEP)
        else:
            self._try((low + high) / 2 + width / 8, width / (low + high) / 2)

    def _narrow(self, speed: float, count: int) -> None:
        """Record that a bucket of one token refused a request at this speed."""
        low, self._refused_per_s = self.accepted_per_s or 0.0, speed
        if low >= speed * (1 - ACCURACY):
            low = speed / (1 + max(ACCURACY, 1 / (1 + count)))
            self._try(low, FIRST_STEP)
        elif low * (1 + ACCURACY) >= speed:
            self._settle(low)
        else:
            self.sure, self.rate_per_s = False, low + (speed - low) / 3
            self._step = max(ACCURACY, (speed / low - 1) / 3) if low else FIRST_STEP

    def _try(self, speed: float, step: float) -> None:
        self.rate_per_s, self.sure, self._step = speed, False, step
        self.accepted_per_s = speed

    def _settle(self, rate_per_s: float) -> None:
        self.rate_per_s = self.accepted_per_s = rate_per_s
        self.sure, self._at_speed, self._rising = True, 0, False

    def _burst(self, rate_per_s: float) -> int:
        """Return the burst that explains the first refused request at this rate, up to the known maximum."""
        end, known = self._first_empty, self._known_burst
        if end is None or (known is not None and end.accepted > known):
            return self.burst or 1
        # after a slow start the bucket stays full for a while, so the highest level at any request counts
        held = (end.accepted - one.accepted - rate_per_s * (end.at - one.at) for one in self._at_first)
        gaps = [later.at - one.at for one, later in pairwise([*self._at_first, end])]
        # a bucket of one token accepts no two requests as close to each other as ones of which it refused the second
        least = 2 if gaps and min(gaps[:-1], default=math.inf) <= gaps[-1] else 1
        return max(least, math.ceil(max(held) + 1 - ROUNDING))


def _rate(times: Iterable[float], begin: Sample, end: Sample, burst_at: Callable[[float], int]) -> float:
    """Return the rate at which a bucket, from which a token is taken at *times*, reaches the level of *end*."""
    low, high = math.log(SLOWEST_PER_S), math.log(FASTEST_PER_S)
    for _ in range(HALVINGS):
        rate = math.exp((low + high) / 2)
        burst, level, last = burst_at(rate), begin.level, begin.at
        for time in times:
            level, last = min(burst, level + rate * (time - last)) - 1, time
        if level + rate * (end.at - last) < end.level:
            low = math.log(rate)
        else:
            high = math.log(rate)
    return math.exp((low + high) / 2)
