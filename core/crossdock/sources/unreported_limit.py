"""Learns a rate limit that an API does not report, from one reader's requests, which are sent one after the other.

The requests since a refused one are replayed against a token bucket. The rates at which it accepts and refuses as the
API did are the possible ones. The rate then rises from the lowest of them until a request is refused, so each refused
request narrows the range.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable

from crossdock.pacing.samples import Sample

REMEMBERED = 4096  # accepted requests; replaying them takes a tenth of a second
SEARCH_REQUESTS = 16  # in which the rate rises from the lowest possible one to the highest
FIRST_SHARE = 1 / 8  # of the highest possible rate: the search begins no lower
SURE = 1.06  # the search ends when the highest possible rate is at most this many times the lowest
MARGIN, MAX_MARGIN = 0.01, 0.16  # by which a known rate stays below the limit; doubled if a request is refused anyway
QUIET_REQUESTS = 1000  # accepted until a known rate begins to rise, in case that the limit has been raised
QUIET_GROWTH = 0.002  # per request, from then on
ROUNDING = 0.05  # of a token
SLOWEST_PER_S, FASTEST_PER_S = 1e-4, 1e5
HALVINGS = 26


class UnreportedLimit:
    """The search for the rate and the burst of one bucket, on a monotonic clock.

    Args:
        rate_per_s: What an earlier run learned; None if nothing is known.
        burst: Tokens in a full bucket; None if unknown.
        sure: Whether the rate is known, so that no search is needed.
        full: Whether the bucket is full, as far as is known.

    Attributes:
        rate_per_s: The rate to send at; None before the first refused request.
        burst: Tokens in a full bucket; None before the first refused request.
    """

    def __init__(self, rate_per_s: float | None, burst: int | None, *, sure: bool, full: bool) -> None:
        self.rate_per_s, self.burst, self.sure = rate_per_s, burst, sure
        self._full = full
        self._at_first: deque[Sample] = deque(maxlen=REMEMBERED)  # until the first refused request
        self._first_empty: Sample | None = None
        self._times: deque[float] = deque(maxlen=REMEMBERED)  # of accepted requests since the last refused one
        self._empty_at = -math.inf
        self._accepted = self._quiet = 0
        self._margin, self._growth = MARGIN, _growth(1.0, 2.0)
        self._width = math.inf  # of the range of possible rates, as a logarithm

    def accepted(self, at: float, *, paced: bool) -> None:
        """A request that reached the bucket *at* was accepted; *paced*: it had waited for its token."""
        self._accepted += 1
        self._quiet += 1
        self._times.append(at)
        if self._full and self._first_empty is None:
            self._at_first.append(Sample(at, self._accepted))
        if self.rate_per_s is not None and paced:
            growth = self._growth if not self.sure else QUIET_GROWTH if self._quiet > QUIET_REQUESTS else 0.0
            self.rate_per_s = min(FASTEST_PER_S, self.rate_per_s * (1 + growth))

    def refused(self, at: float, reported_per_s: float | None = None) -> None:
        """A request that reached the bucket *at* was refused; *reported_per_s*: the rate, if the API reports it."""
        quiet, self._quiet = self._quiet, 0
        is_first = self._full and self._first_empty is None and bool(self._at_first)
        if is_first:
            self._first_empty = Sample(at, self._accepted)
        if is_first and self.burst is not None and self._accepted <= self.burst:
            pass  # the burst has become smaller; that tells nothing about the rate
        elif reported_per_s is None:
            self._learn_rate(at, quiet)
        rate_per_s = reported_per_s or self.rate_per_s
        if rate_per_s is not None:
            self.burst = self._burst(rate_per_s)
        if self.sure:  # from now on the burst is known, whatever the rate becomes
            self._full, self._first_empty = False, None
        if self._times:
            self._times.clear()
            self._empty_at = at

    def _learn_rate(self, at: float, quiet: int) -> None:
        if not self._times:
            return  # it is still empty: nothing was measured since
        if self.rate_per_s is None:
            most = len(self._times) / max(at - self._times[0], 1 / FASTEST_PER_S)
            self._search(most * FIRST_SHARE, most)
        else:
            low, high = self._possible(at)
            if self.sure:
                self._margin = MARGIN if quiet >= QUIET_REQUESTS // 4 else min(2 * self._margin, MAX_MARGIN)
                high = min(high, self.rate_per_s * (1 - self._margin))
            self._search(min(low, high), high)

    def _possible(self, at: float) -> tuple[float, float]:
        """The lowest and the highest rate at which a bucket answers as the API did."""
        complete = self._empty_at > -math.inf and len(self._times) < REMEMBERED
        begin, most = (self._empty_at, 1.0) if complete else (self._times[0], math.inf)

        def refuses_too_little(rate: float) -> bool:
            return _replayed(self._times, at, Sample(begin, 0, 0.0), rate, self._burst(rate))[1] >= 1

        def accepts_all(rate: float) -> bool:
            return _replayed(self._times, at, Sample(begin, 0, most), rate, self._burst(rate))[0]

        high = _least(refuses_too_little, FASTEST_PER_S)
        return _least(accepts_all, high), high

    def _burst(self, rate_per_s: float) -> int:
        """The burst that explains the first refused request at this rate, not more than is known."""
        end = self._first_empty
        if end is None or (self.burst is not None and self.sure and self._accepted > 2 * self.burst):
            return self.burst or 1
        # after a slow start the bucket stays full for a while, so the highest level at any request counts
        held = (end.accepted - one.accepted - rate_per_s * (end.at - one.at) for one in self._at_first)
        return max(1, math.ceil(max(held) + 1 - ROUNDING))

    def _search(self, low: float, high: float) -> None:
        low = max(low, high * FIRST_SHARE)
        self.sure = high <= SURE * low
        self.rate_per_s = low * (1 - MARGIN) if self.sure else low
        width = math.log(high / low)
        # a range that stays wide becomes smaller if the rate rises more slowly
        self._growth = self._growth / 2 if width > 0.9 * self._width else _growth(low, high)
        self._width = width


def _growth(low: float, high: float) -> float:
    return float((high / low) ** (1 / SEARCH_REQUESTS)) - 1


def _least(enough: Callable[[float], bool], most: float) -> float:
    """The lowest rate that is *enough*, provided that *most* is."""
    low, high = math.log(SLOWEST_PER_S), math.log(most)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(math.exp(middle)) else (middle, high)
    return math.exp(high)


def _replayed(times: Iterable[float], at: float, begin: Sample, rate: float, burst: int) -> tuple[bool, float]:
    """Whether a bucket accepts all requests that reach it at *times*, and its level *at* the end."""
    accepts_all, level, last = True, begin.level, begin.at
    for time in times:
        level = min(burst, level + rate * (time - last))
        accepts_all &= level >= 1
        level, last = max(0.0, level - 1), time
    return accepts_all, min(burst, level + rate * (at - last))
