"""Learns the rate limit from reports of the server, or else from refused requests."""

from __future__ import annotations

import math
from dataclasses import replace

from crossdock.pacing.bucket_store import BucketState
from crossdock.pacing.bucket_view import BucketView
from crossdock.pacing.limit_estimate import UNSURE, LimitEstimate
from crossdock.pacing.rate_headers import MAX_WAIT_S, RateHeaders
from crossdock.pacing.samples import AnsweredRequest, Sample
from crossdock.pacing.unreported_rate import SURE, RateEstimator, RateProbe

MEASURING_S = 0.5  # an unknown bucket fills for this long, so that its rate can be measured
FIRST_IN_FLIGHT, SEARCH_IN_FLIGHT = 8, 63  # with an unknown limit: once the bucket is empty all of them are refused
SEARCH_PER_S = 400.0  # enough requests for this rate are in flight, or a slow network never empties the bucket


class LimitLearner:
    """Keeps the estimate of a shared bucket up to date.

    Args:
        now: On the monotonic clock, as are all instants here.

    Attributes:
        empty_at: When the bucket was last found empty; ``-inf`` before the first time.
    """

    def __init__(self, view: BucketView, rate: RateEstimator, now: float) -> None:
        bucket = view.state.bucket
        self._view, self._rate, self._probe = view, rate, RateProbe(now)
        self._burst = BurstEstimator(full=bucket.level(view.last.now) >= bucket.burst)
        self._guessing = False  # whether the rate is a guess, not yet an estimate
        self.empty_at = -math.inf
        self._spent_when_empty = view.state.spent

    @property
    def _searching(self) -> bool:
        """Whether a refusal has disproved the rate. Until then the estimate of an earlier run is used."""
        return self._view.state.estimate.rate_from in UNSURE and self.empty_at > -math.inf

    def max_in_flight(self, latency_s: float) -> int | None:
        """Return the most requests in flight while the limit is being searched for; None otherwise."""
        estimate = self._view.state.estimate
        if estimate.burst is not None and (not self._searching or self._rate.agreed):
            return None
        spent = self._view.state.spent - self._spent_when_empty
        most = max(SEARCH_IN_FLIGHT, round(SEARCH_PER_S * latency_s))
        documented = 0.0 if estimate.rate_from in UNSURE else estimate.rate_per_s or 0.0
        return max(min(FIRST_IN_FLIGHT + spent // 2, most + spent // 400), round(2 * documented * latency_s))

    def probe(self, now: float) -> None:
        estimate = self._view.state.estimate
        learned = estimate.rate_from in UNSURE or (estimate.burst_from == "learned" and self._burst.under_way)
        if estimate.rate_per_s is None or estimate.burst is None or not learned:
            return
        factor = self._probe.factor(now, self._rate.agreed if self._searching else SURE)
        if factor is not None:
            self._view.resize(estimate, min(estimate.most_per_s, estimate.rate_per_s * factor))

    def add(self, sample: Sample) -> None:
        self._burst.add(sample)

    def add_level(self, sample: Sample, latency_s: float) -> None:
        """Record a level that the server reported without a rate."""
        if self._rate.add_level(sample, latency_s, self._view.state.bucket.burst):
            assert self._rate.rate_per_s is not None
            self._view.resize(self._view.state.estimate.with_rate(self._rate.rate_per_s, "learned"))

    def adopt(self, headers: RateHeaders) -> None:
        estimate = self._view.state.estimate
        if headers.burst is not None and int(headers.burst) != estimate.burst:
            estimate = estimate.with_burst(int(headers.burst), "reported")
        if headers.rate_per_s is not None and headers.rate_per_s != estimate.rate_per_s:
            estimate = estimate.with_rate(headers.rate_per_s, "reported")
        if estimate != self._view.state.estimate:
            self._view.resize(estimate)

    def restart_empty(self, request: AnsweredRequest, reserve: int, retry_after_s: float | None) -> None:
        """Continue with an empty bucket, in debt if refusals follow each other because *reserve* was too small."""
        self.empty_at = request.answered_at
        self._probe.refused(request.answered_at)
        self._burst.add_empty(request.sample)
        self._rate.add_empty(request.sample, request.latency_s)
        pause_s = max(MEASURING_S, 4 * request.latency_s) if self._guess_rate() else 0.0
        estimate = self._learned_estimate()
        debt = reserve * (2 ** min(self._rate.too_soon, 8) - 1)
        freeze_s = max(pause_s, min(MAX_WAIT_S, retry_after_s or 0.0))
        self._spent_when_empty = self._view.state.spent

        def change(state: BucketState, now: float) -> BucketState:
            bucket = estimate.bucket().with_level(now + pause_s, -debt)
            frozen_until = max(state.frozen_until, now + freeze_s)
            return replace(
                state, bucket=bucket, estimate=estimate, refused=state.refused + 1, frozen_until=frozen_until
            )

        self._view.change(change)

    def _guess_rate(self) -> bool:
        """Guess a quarter of the accepted rate if none is known. Return True if so."""
        if self._rate.rate_per_s is not None:
            self._guessing = self._guessing and self._view.state.estimate.rate_per_s == self._rate.rate_per_s
            return False
        self._guessing = True
        self._rate.rate_per_s = self._burst.mean_per_s() / 4
        return True

    def _learned_estimate(self) -> LimitEstimate:
        estimate, rate, agreed = self._view.state.estimate, self._rate.rate_per_s, self._rate.agreed
        assert rate is not None
        confirmed = estimate.rate_from == "learned" and agreed != estimate.agreed
        if min(rate, estimate.most_per_s) != estimate.rate_per_s or confirmed:
            estimate = estimate.with_rate(rate, "guessed" if self._guessing else "learned", agreed)
        if self._guessing:  # accepted requests less those at their mean rate: the burst is at least that
            return estimate.with_burst(self._burst.burst(self._burst.mean_per_s()) or 1, "guessed")
        burst = self._burst.burst(rate)
        if burst is not None and (estimate.burst_from in UNSURE or burst < (estimate.burst or 0)):
            return estimate.with_burst(burst, "learned")
        return estimate.with_burst(1, "learned") if estimate.burst is None else estimate


STEP_S = 0.2


class BurstEstimator:
    """Observes the bucket from the start of a run until it is first empty.

    Args:
        full: Whether the bucket is full at the start, as far as is known.
    """

    def __init__(self, *, full: bool) -> None:
        self._full = full
        self._samples: list[Sample] = []
        self._empty: Sample | None = None

    @property
    def under_way(self) -> bool:
        return self._full and self._empty is None

    def add(self, sample: Sample) -> None:
        if self.under_way and (not self._samples or sample.at >= self._samples[-1].at + STEP_S):
            self._samples.append(sample)

    def add_empty(self, sample: Sample) -> None:
        """Record that the bucket was empty. Only the first time counts."""
        if self._empty is None:
            self._empty = sample

    def mean_per_s(self) -> float:
        """Return the rate of accepted requests, which is above the bucket's, or it would not be empty."""
        if self._empty is None or not self._samples or self._empty.at <= self._samples[0].at:
            return 1.0
        return self._empty.rate_since(self._samples[0])

    def burst(self, rate_per_s: float) -> int | None:
        """Return the burst of a bucket of this rate; None if it was not full at the start or has not been empty.

        After a slow start the bucket stays full for a while, so the highest level at any sample counts.
        """
        if self._empty is None or not self._full:
            return None
        held = (self._empty.accepted - s.accepted - rate_per_s * (self._empty.at - s.at) for s in self._samples)
        return max(1, round(max(held, default=1.0)))
