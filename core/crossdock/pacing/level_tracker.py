"""Keeps the level of the local bucket in line with the server's."""

from __future__ import annotations

import math
from dataclasses import replace

from crossdock.pacing.bucket_store import BucketState, TakenTokens
from crossdock.pacing.bucket_view import BucketView
from crossdock.pacing.header_trust import HeaderTrust
from crossdock.pacing.limit_estimate import UNLIMITED
from crossdock.pacing.limit_learner import LimitLearner
from crossdock.pacing.rate_headers import RateHeaders
from crossdock.pacing.samples import AnsweredRequest, Sample
from crossdock.pacing.token_bucket import ROUNDING


class LevelTracker:
    """The server's level, as expected from this process's requests and as reported by headers.

    Args:
        now: On the monotonic clock.
    """

    def __init__(self, view: BucketView, learner: LimitLearner, now: float) -> None:
        self._view, self._learner, self._trust = view, learner, HeaderTrust()
        self._start = Sample(now, view.state.spent, view.state.bucket.level(view.last.now))
        self._refused = 0
        self._first_of_full = 0  # the number of the first token taken from a full bucket
        self._configured, self._counted = view.state.bucket, view.state.spent

    def restart_empty(self, sample: Sample) -> None:
        self._start = sample

    def expected(self, sample: Sample) -> float:
        """Return the level at *sample* if only we use the bucket; infinite while the limit is unknown."""
        estimate, start = self._view.state.estimate, self._start
        if estimate.rate_per_s is None or estimate.burst is None:
            return math.inf
        added, spent = estimate.rate_per_s * (sample.at - start.at), sample.accepted - start.accepted
        return min(start.level + added - spent, estimate.spendable)

    def has_reports(self, now: float) -> bool:
        return self._trust.fresh(now)

    def taken(self, taken: TakenTokens) -> None:
        bucket = taken.bucket_state.bucket
        self._permitted()
        if taken.count and bucket.spent_until <= taken.now + taken.count / bucket.rate_per_s + ROUNDING:
            self._first_of_full = taken.bucket_state.spent - taken.count + 1

    def answered(self, number: int, sent_at: float, now: float, latency_s: float, *, accepted: bool) -> AnsweredRequest:
        """Count the answer. A full bucket gains nothing until the first request reaches the server."""
        if not accepted:
            self._refused += 1
            self._trust.refused()
        if number == self._first_of_full:
            self._first_of_full = 0
            self._lower_by((now - sent_at) / 2 if accepted else 0.0)
        return AnsweredRequest(number, sent_at, now, latency_s, Sample((sent_at + now) / 2, number - self._refused))

    def _lower_by(self, seconds: float) -> None:
        def change(state: BucketState, now: float) -> BucketState:
            level = state.bucket.level(now) - seconds * state.bucket.rate_per_s
            return replace(state, bucket=state.bucket.with_level(now, level))

        if self._view.state.bucket.burst != UNLIMITED:
            self._view.change(change)

    def read(self, headers: RateHeaders, request: AnsweredRequest) -> None:
        """Correct limit and level by an answer's report, unless the reports have proved wrong."""
        now = request.answered_at
        if not self._trust.trusted(now):
            return
        self._learner.adopt(headers)
        if headers.remaining is None:
            return
        rate_per_s, latency_s = self._view.state.bucket.rate_per_s, request.latency_s
        reported = replace(request.sample, level=headers.remaining)
        if self._trust.check(reported, rate_per_s, latency_s, now):
            if headers.rate_per_s is None:
                self._learner.add_level(reported, latency_s)
            self._correct(headers.remaining, request, rate_per_s)
        elif not self._trust.trusted(now):
            self._view.set_level(self.expected(Sample(now, self._view.state.spent - self._refused)))

    def _correct(self, remaining: float, request: AnsweredRequest, rate_per_s: float) -> None:
        """Adopt a level that differs by more than the requests in flight explain."""
        state = self._view.state
        level = remaining + rate_per_s * (request.answered_at - request.sample.at) - (state.spent - request.number)
        level = min(level, self._permitted())
        tolerance = max(3.0, state.bucket.burst / 200, rate_per_s * request.latency_s / 4)
        if abs(level - state.bucket.level(self._view.now)) > tolerance:
            self._view.set_level(level)

    def _permitted(self) -> float:
        """Return the level of a bucket of the configured size from which all tokens so far were taken.

        A larger bucket of the server may hold more, and so may one from which requests take less than a token.
        """
        state, now = self._view.state, self._view.now
        size = state.estimate.configured_bucket()
        if size is None:
            return math.inf
        bucket = self._configured
        if bucket.burst == UNLIMITED:  # tokens taken so far count against the burst that is known now
            bucket = replace(bucket, burst=size.burst)
        bucket = bucket.resized(now, size.rate_per_s, size.burst).take(now, state.spent - self._counted)
        self._configured, self._counted = bucket, state.spent
        return bucket.level(now)
