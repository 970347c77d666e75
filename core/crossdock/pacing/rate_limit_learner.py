"""Learns the rate limit from reports of the server, or else from refused requests."""

from __future__ import annotations

import math
from dataclasses import replace

from crossdock.pacing.answered_requests import AnsweredRequest
from crossdock.pacing.bucket_access import BucketAccess
from crossdock.pacing.bucket_store import BucketState
from crossdock.pacing.burst_estimator import BurstEstimator
from crossdock.pacing.rate_limit_estimate import UNSURE, LimitEstimate, Origin
from crossdock.pacing.rate_limit_headers import MAX_WAIT_S, RateHeaders
from crossdock.pacing.rate_search import ACCURACY, CAREFUL_STEP, RateSearch

FIRST_PER_S = 1.0  # while nothing is known of a bucket whose level is reported
PAUSE_S, MAX_PAUSE_S = 1.0, 60.0  # after a refused request, until the rate is known from the added tokens
GUESSED_PART = 3  # of the accepted rate, if none is known and many requests are in flight
MEASURING_S = 0.5  # the same as `PAUSE_S`, with many requests in flight
FIRST_IN_FLIGHT, SEARCH_IN_FLIGHT = 8, 40  # with an unknown limit: once the bucket is empty all of them are refused
SEARCH_PER_S = 400.0  # enough requests for this rate are in flight, or a slow network never empties the bucket


class LimitLearner:
    """Keeps the estimate of a shared bucket up to date.

    Attributes:
        empty_at: When the bucket was last found empty, on the monotonic clock; ``-inf`` before the first time.
    """

    def __init__(self, view: BucketAccess) -> None:
        state = view.state
        estimate, bucket = state.estimate, state.bucket
        full = bucket.level(view.last.now) >= bucket.burst
        learned = estimate.rate_per_s if estimate.rate_from in {"learned", "guessed"} else None
        self._view = view
        self._burst = BurstEstimator(estimate.burst, full=full)
        accepted = state.spent - state.refused
        self._search = RateSearch(learned, self._burst, sure=estimate.agreed > 0, accepted=accepted)
        self._guessing = estimate.rate_from == "guessed"  # whether the rate is a guess, not yet an estimate
        self._in_a_row = 0  # refused requests with hardly any accepted in between
        self.empty_at = -math.inf
        self._spent_when_empty = state.spent
        self._accepted_when_empty = accepted
        self._seen = _learned_rate(state)

    @property
    def _searching(self) -> bool:
        """Whether a refusal has disproved the rate. Until then the estimate of an earlier run is used."""
        return self._view.state.estimate.rate_from in UNSURE and self.empty_at > -math.inf

    @property
    def least_per_s(self) -> float | None:
        """The rate that the bucket gives in any case; None while it is unknown."""
        estimate = self._view.state.estimate
        least = self._search.least_per_s if estimate.rate_from in UNSURE else None
        return estimate.rate_per_s if least is None else least

    def max_in_flight(self, latency_s: float) -> int | None:
        """Return the most requests in flight while the limit is being searched for; None otherwise."""
        estimate = self._view.state.estimate
        is_known = self._search.rate_per_s is not None and not self._guessing
        if estimate.burst is not None and (not self._searching or is_known):
            return None
        spent = self._view.state.spent - self._spent_when_empty
        most = max(SEARCH_IN_FLIGHT, round(SEARCH_PER_S * latency_s))
        documented = 0.0 if estimate.rate_from in UNSURE else estimate.rate_per_s or 0.0
        return max(min(FIRST_IN_FLIGHT + spent // 2, most + spent // 400), round(2 * documented * latency_s))

    def adopt_from_other_users(self) -> None:
        """Adopt what other users of the bucket have learned."""
        seen, self._seen = self._seen, _learned_rate(self._view.state)
        if self._seen is not None and self._seen != seen:
            self._search.adopt(*self._seen[:2], sure=self._seen[2])

    def learn_from_accepted(self, request: AnsweredRequest, reserve: int, *, is_reported: bool) -> None:
        """Learn from an accepted request.

        Args:
            is_reported: Whether the level is reported, so that no higher rate is tried.
        """
        self._burst.add_accepted(request.sample)
        estimate = self._view.state.estimate
        is_earlier = request.sent_at < self.empty_at  # it arrived before the bucket was known to be empty
        if is_reported or is_earlier or estimate.rate_from not in UNSURE:
            return
        if self._search.record_accepted(request, reserve):
            found, speed = self._with_found_rate(estimate), self._send_rate(estimate)
            if speed != self._view.state.bucket.rate_per_s or not _nearly_same(found, estimate):
                self._view.resize(found, speed)
                self._seen = _learned_rate(self._view.state)

    def _send_rate(self, estimate: LimitEstimate) -> float | None:
        speed = self._search.rate_per_s
        return None if speed is None or estimate.rate_from not in UNSURE else min(speed, estimate.most_per_s)

    def _with_found_rate(self, estimate: LimitEstimate) -> LimitEstimate:
        found = self._search.accepted_per_s
        is_told = estimate.rate_from not in UNSURE
        if found is None or (is_told and min(found, estimate.most_per_s) == estimate.rate_per_s):
            return estimate
        origin: Origin = "guessed" if self._guessing else "learned"
        return estimate.with_rate(found, origin, int(self._search.sure))

    def learn_from_level(self, rate_per_s: float | None) -> None:
        """Adopt the rate that reported levels show; None while they show none."""
        estimate = self._view.state.estimate
        shown = estimate.with_rate(rate_per_s or estimate.rate_per_s or FIRST_PER_S, "learned", agreed=1)
        if shown.rate_per_s != self._view.state.bucket.rate_per_s and not _nearly_same(shown, estimate):
            self._view.resize(shown)

    def adopt_reported(self, headers: RateHeaders) -> bool:
        """Adopt the limit that an answer reports. Return whether that changes anything."""
        estimate = self._view.state.estimate
        if headers.burst is not None and int(headers.burst) != estimate.burst:
            estimate = estimate.with_burst(int(headers.burst), "reported")
        if headers.rate_per_s is not None and headers.rate_per_s != estimate.rate_per_s:
            estimate = estimate.with_rate(headers.rate_per_s, "reported")
        if estimate == self._view.state.estimate:
            return False
        self._view.resize(estimate)
        return True

    def restart_with(self, estimate: LimitEstimate) -> None:
        """Continue with *estimate*, since what was reported has proved wrong."""
        self._search = RateSearch(None, self._burst, sure=False, accepted=self._accepted_when_empty)

        def change(state: BucketState, now: float) -> BucketState:
            bucket = estimate.bucket()
            if estimate.burst is not None:
                bucket = state.bucket.resized(now, bucket.rate_per_s, bucket.burst)
            return replace(state, bucket=bucket, estimate=estimate)

        self._view.change(change)
        self._seen = _learned_rate(self._view.state)

    def restart_empty(self, request: AnsweredRequest, reserve: int, retry_after_s: float | None) -> None:
        """Continue with an empty bucket, in debt if refusals follow each other because *reserve* was too small."""
        few = request.sample.accepted - self._accepted_when_empty <= request.max_sample_error
        self._in_a_row = self._in_a_row + 1 if few and self.empty_at > -math.inf else 0
        self.empty_at = request.answered_at
        self._accepted_when_empty, self._spent_when_empty = request.sample.accepted, self._view.state.spent
        self._burst.add_empty(request.sample)
        estimate = self._view.state.estimate
        if estimate.rate_from != "reported":
            self._search_after_refusal(request, estimate.rate_per_s)
            estimate = self._with_found_rate(estimate)
        estimate = self._with_found_burst(estimate)
        pause_s = self._measuring_pause_s(request, estimate)
        freeze_s = max(pause_s, min(MAX_WAIT_S, retry_after_s or 0.0))
        debt = max(1, reserve) * (2 ** min(self._in_a_row, 8) - 1)
        speed = self._send_rate(estimate)

        def change(state: BucketState, now: float) -> BucketState:
            bucket, until = estimate.bucket(), now + freeze_s
            if estimate.rate_per_s is not None:
                bucket = replace(bucket, rate_per_s=speed or bucket.rate_per_s).with_level(now + pause_s, -debt)
                if estimate.rate_from in UNSURE:  # less may be added in the pause than expected
                    bucket = bucket.with_level(until, min(bucket.level(until), reserve + 1))
            frozen_until = max(state.frozen_until, until)
            return replace(state, bucket=bucket, estimate=estimate, frozen_until=frozen_until)

        self._view.change(change)
        self._seen = _learned_rate(self._view.state)

    def _search_after_refusal(self, request: AnsweredRequest, known: float | None) -> None:
        """Learn from a refused request. If no rate is *known*, guess a part of the accepted one: with many requests in
        flight many would be refused at full speed.
        """
        self._search.record_refused(request)
        self._guessing = False
        if self._search.rate_per_s is not None:
            return
        if known is not None:
            self._search.begin(known)
        elif request.others:
            self._guessing = True
            self._search.begin(self._burst.mean_accepted_per_s() / GUESSED_PART, step=CAREFUL_STEP)

    def _measuring_pause_s(self, request: AnsweredRequest, estimate: LimitEstimate) -> float:
        """Return the seconds in which a bucket whose rate is unknown fills, so that its rate can be measured."""
        if estimate.rate_per_s is None:
            return min(MAX_PAUSE_S, PAUSE_S * 2.0 ** min(self._in_a_row, 10))
        return max(MEASURING_S, 4 * request.latency_s) if self._guessing else 0.0

    def pause_sending(self, retry_after_s: float) -> None:
        """Send nothing for so long."""
        wait_s = min(MAX_WAIT_S, retry_after_s)
        if self._view.state.frozen_until < self._view.now + wait_s:
            self._view.change(lambda state, now: replace(state, frozen_until=max(state.frozen_until, now + wait_s)))

    def _with_found_burst(self, estimate: LimitEstimate) -> LimitEstimate:
        is_unsure = estimate.burst_from in UNSURE
        if self._guessing and is_unsure:  # accepted requests less those at their mean rate: the burst is at least that
            return estimate.with_burst(self._burst.burst(self._burst.mean_accepted_per_s()) or 1, "guessed")
        if estimate.rate_per_s is None or self._guessing:
            return estimate
        burst = self._burst.burst(estimate.rate_per_s)
        if burst is not None and (is_unsure or burst < (estimate.burst or 0)):
            return estimate.with_burst(burst, "learned")
        return estimate.with_burst(1, "learned") if estimate.burst is None else estimate


def _nearly_same(one: LimitEstimate, other: LimitEstimate) -> bool:
    """Return whether they differ too little to be written down."""
    if one.rate_per_s is None or other.rate_per_s is None or (one.agreed > 0) != (other.agreed > 0):
        return False
    return abs(one.rate_per_s - other.rate_per_s) < ACCURACY * other.rate_per_s


def _learned_rate(state: BucketState) -> tuple[float, float, bool] | None:
    """Return the rate, the speed and whether the rate is sure; None if the rate is not learned."""
    estimate = state.estimate
    if estimate.rate_per_s is None or estimate.rate_from not in UNSURE:
        return None
    return estimate.rate_per_s, state.bucket.rate_per_s, estimate.agreed > 0
