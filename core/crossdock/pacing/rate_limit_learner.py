"""Learns the rate limit from reports of the server, or else from accepted and refused requests.

A refused request shows that the bucket is empty. Requests are then sent at an even speed, slightly above the estimate,
until the next one is refused. The requests accepted in between, divided by the time, are the rate to within one token
and the noise of requests that overlap, so each such interval is longer and its estimate more accurate than the one
before.

A bucket of one token stays empty or full, whatever was sent before; there the range between the speeds that it accepts
and refuses is narrowed instead.
"""

from __future__ import annotations

import math
import zlib
from collections import deque
from collections.abc import Callable, Iterable
from itertools import pairwise

from msgspec import Struct, structs

from crossdock.pacing.answer_headers import MAX_WAIT_S, RateHeaders
from crossdock.pacing.token_bucket import UNSURE, BucketState, BucketStoreWithLastState, LimitEstimate, Origin

LOWEST_PER_S = 0.1


class BucketSample(Struct, frozen=True):
    """The bucket held *level* tokens at *at*, on the monotonic clock, after *accepted* requests in total."""

    at: float
    accepted: int
    level: float = 0.0

    def refill_rate_since(self, earlier: BucketSample) -> float:
        """Return the tokens per second that were added in between, provided that the bucket was never full."""
        gained = self.accepted - earlier.accepted + self.level - earlier.level
        return max(gained / (self.at - earlier.at), LOWEST_PER_S)


class AnsweredRequest(Struct, frozen=True):
    """An answered request. Instants are on the monotonic clock.

    Attributes:
        number: The number of its token.
        sent_at: When the token was taken.
        answered_at: When the answer arrived.
        latency_s: The shortest latency of recent requests.
        sample: The moment at which the request reached the bucket, taken as half-way.
        paced: Whether it had waited for its token.
        others: Other requests that were in flight when it was sent, or were sent until its answer arrived.
    """

    number: int
    sent_at: float
    answered_at: float
    latency_s: float
    sample: BucketSample
    paced: bool = False
    others: int = 0

    @property
    def max_sample_error_tokens(self) -> float:
        """Tokens by which *sample* may be wrong, because requests that overlap arrive in any order."""
        return min(self.others, 2 + 0.2 * self.others)


EACH, STEP_S = 1000, 0.2  # so many requests are all remembered, and later ones at this distance
ROUNDING = 0.05  # in tokens


class BurstEstimator:
    """Observes the bucket from the start of a run until it is first empty.

    Args:
        known: The burst that an earlier run learned or that is configured; None if unknown.
        full: Whether the bucket is full at the start, as far as is known.
    """

    def __init__(self, known: int | None = None, *, full: bool) -> None:
        self._known, self._full = known, full
        self._samples: list[BucketSample] = []
        self._empty: BucketSample | None = None

    @property
    def is_observing(self) -> bool:
        return self._full and self._empty is None

    def record_accepted_request(self, sample: BucketSample) -> None:
        """Record that a request was accepted; *sample* counts it."""
        if not self.is_observing:
            return
        if len(self._samples) < EACH or sample.at >= self._samples[-1].at + STEP_S:
            self._samples.append(sample)

    def record_empty_bucket(self, sample: BucketSample) -> None:
        """Record that the bucket was empty. Only the first time after an accepted request counts."""
        if self._empty is None and self._samples:
            self._empty = sample

    def fix_burst_for_rate(self, rate_per_s: float) -> None:
        """Keep the burst that follows from this rate, whatever the rate becomes."""
        self._known, self._full = self.burst(rate_per_s), False

    @property
    def accepted_until_empty(self) -> int:
        """The requests that were accepted until the bucket was first empty; 0 before."""
        return self._empty.accepted - self._samples[0].accepted + 1 if self._empty is not None else 0

    def mean_accepted_per_s(self) -> float:
        """Return the rate of accepted requests, which is above the bucket's, or it would not be empty."""
        if self._empty is None or not self._samples or self._empty.at <= self._samples[0].at:
            return 1.0
        return self._empty.refill_rate_since(self._samples[0])

    def burst(self, rate_per_s: float) -> int | None:
        """Return the burst of a bucket of this rate, at most the known one; None if it was not full at the start or
        has not been empty.

        After a slow start the bucket stays full for a while, so the highest level at any sample counts.
        """
        end = self._empty
        if end is None or not self._full:
            return self._known
        if self._known is not None and end.accepted - self._samples[0].accepted >= self._known:
            return self._known
        held = (end.accepted - one.accepted - rate_per_s * (end.at - one.at) for one in self._samples)
        gaps = [later.at - one.at for one, later in pairwise([*self._samples, end])]
        # a bucket of one token accepts no two requests as close to each other as ones of which it refused the second
        least = 2 if min(gaps[:-1], default=math.inf) <= gaps[-1] else 1
        return max(least, math.ceil(max(held) + 1 - ROUNDING))


REMEMBERED = 4096  # accepted requests between two refused ones; among more the bucket is not simulated
ACCURACY = 0.005  # relative, of a known rate; one in 200 requests is refused while it is measured
STEP_TOKENS = 2  # tokens beyond the estimate that are spent at one speed before the next higher one
FIRST_STEP, MAX_STEP = 0.5, 1.0  # growth of the speed, which doubles while nothing is refused
CAREFUL_STEP = 0.1  # growth with many requests in flight, unless `MOST_REFUSED` permits more
MOST_REFUSED = 2  # requests in flight beyond what is added meanwhile
QUIET_STEP = 0.01  # growth of a known speed, at first
QUIET_REQUESTS = 1000  # accepted requests until a known rate begins to rise, in case the limit has been raised
QUIET_S = 1500.0  # a wait of a minute that the search causes is `MOST_WAITED` of it
MOST_WAITED = 0.04  # the share of the time that may be lost to waits which the search for a raised limit causes
FILLED_PART = 8  # of the tokens after a wait, which are spent beyond the rate at each speed that is tried first
HIDING = 10  # tokens after a wait, from which they hide for long that a speed is too high
DISPROVED = 1.25  # times the rate of an earlier run, which more accepted requests disprove
DISPROVED_AFTER = 32  # accepted requests, after each of which that is looked for
REACHED = 0.5  # of a speed; one that is not used shows nothing
LEAST = 0.9  # of a rate that an earlier run accepted, without being sure
SLOWEST_PER_S, FASTEST_PER_S = 1e-4, 1e5
SHORTEST_S = 1e-6  # answers may arrive at once
HALVINGS = 20


class RateSearch:
    """The search for the rate of one bucket.

    Args:
        rate_per_s: What an earlier run learned; None if nothing is known.
        burst: Estimates the burst from the rate.
        sure: Whether the rate is known, so that no search is needed.
        accepted: How many requests were accepted before.

    Attributes:
        rate_per_s: The rate to send at; None until two requests were refused.
        accepted_per_s: The highest rate that was accepted for long, to begin the next run with.
        least_per_s: What the bucket gives in any case, in all likelihood.
        sure: Whether `accepted_per_s` is the limit.
    """

    def __init__(self, rate_per_s: float | None, burst: BurstEstimator, *, sure: bool, accepted: int = 0) -> None:
        self.rate_per_s = self.accepted_per_s = rate_per_s
        self.sure, self._burst, self._size = sure, burst, burst.burst(0.0)
        self.least_per_s = _lower_bound_of_rate(rate_per_s, sure=sure)
        self._empty_at: float | None = None
        self._accepted_until_empty = accepted
        self._at_speed = _assumed_accepted_requests_before_run(rate_per_s, accepted)
        self._speed_since, self._counted_since = -math.inf, -math.inf
        self._times: deque[float] = deque(maxlen=REMEMBERED)  # of accepted requests since the last refused one
        self._refused_per_s = math.inf
        self._step, self._rising = FIRST_STEP, False
        self._wait_s = self._measured_least_per_s = 0.0

    def adopt_rate_learned_by_other_user(self, rate_per_s: float, speed: float, *, sure: bool) -> None:
        """Adopt what another user of the bucket has learned, and the speed at which it sends."""
        if rate_per_s != self.accepted_per_s or sure != self.sure:
            self.accepted_per_s, self.least_per_s = rate_per_s, _lower_bound_of_rate(rate_per_s, sure=sure)
            self.sure, self._step = sure, QUIET_STEP if sure else FIRST_STEP
        self.rate_per_s, self._at_speed, self._rising = speed, 0, speed != rate_per_s

    def begin_at_unmeasured_rate(self, rate_per_s: float, step: float = QUIET_STEP) -> None:
        """Begin with a rate that was not measured, and send faster by *step* at first."""
        self._set_unsure_rate_and_step(rate_per_s, step)

    def adjust_rate_after_acceptance(self, request: AnsweredRequest, reserve: int = 0) -> bool:
        """Record an accepted request. Return whether that has changed a rate.

        Args:
            reserve: Tokens that are spent at too high a speed before a request is refused.
        """
        self._times.append(request.sample.at)
        if self.rate_per_s is None or request.sent_at < self._speed_since:
            return False
        if (
            self._rising
            and len(self._times) % DISPROVED_AFTER == 0
            and self._raise_disproved_rate_of_earlier_run(request)
        ):
            return True
        is_known = (self.sure or self._empty_at is None) and not self._rising
        self._at_speed += request.paced or is_known
        if not request.paced:
            return False
        if self._at_speed == 1:
            self._counted_since = request.sent_at
        # what is in flight at too high a speed is refused
        self._step = min(self._step, max(CAREFUL_STEP, MOST_REFUSED / max(1, request.others)))
        tokens = max(STEP_TOKENS, reserve / 4) + request.max_sample_error_tokens
        if self._empty_at is not None and not self.sure and self._refused_per_s == math.inf:
            tokens += self._tokens_after_wait(self.rate_per_s) / FILLED_PART
        quiet = max(QUIET_REQUESTS, self._wait_s * self.rate_per_s / MOST_WAITED)
        needed = quiet if is_known else tokens / self._step
        reached = self._at_speed > self.rate_per_s * REACHED * (request.answered_at - self._counted_since)
        if self._at_speed < needed or not (is_known or reached):
            return False
        before = self.rate_per_s, self.sure
        self._raise_or_fix_rate(self.rate_per_s, self._rate_shown_by_acceptance(request, reserve, self.rate_per_s))
        if before != (self.rate_per_s, self.sure):
            self._speed_since = request.answered_at
        return True

    def adjust_rate_after_refusal(self, request: AnsweredRequest, wait_s: float = 0.0) -> None:
        """Record that a request was refused because the bucket was empty, and that the server demands a wait."""
        self._wait_s, self._measured_least_per_s = wait_s, 0.0
        sample = request.sample
        count = sample.accepted - self._accepted_until_empty
        self._choose_rate_after_refusal(sample.at, count, request.max_sample_error_tokens)
        self._speed_since = request.answered_at
        if count > 0:
            self._empty_at, self._accepted_until_empty = sample.at, sample.accepted
            self._times.clear()
        if self.rate_per_s is not None:
            self._size = self._burst.burst(self.rate_per_s)
            if self.sure:
                self._burst.fix_burst_for_rate(self.rate_per_s)
        self._at_speed, self._rising = 0, False

    def _rate_shown_by_acceptance(self, request: AnsweredRequest, reserve: int, speed: float) -> float:
        """Return the rate that is shown by acceptance at *speed* until now."""
        filled = self._tokens_after_wait(speed) if self._refused_per_s < math.inf else 0.0
        is_low = reserve + request.max_sample_error_tokens < STEP_TOKENS and filled < HIDING
        if is_low or self._empty_at is None:
            return speed  # the level was not enough to hide that it is too fast
        count = request.sample.accepted - self._accepted_until_empty - 1 - request.max_sample_error_tokens
        passed_s = request.sample.at - self._empty_at
        since_wait_per_s = (count - filled) / max(SHORTEST_S, passed_s - self._wait_s)
        shown = max(count / max(SHORTEST_S, passed_s), since_wait_per_s)
        return max(self._measured_least_per_s, self.least_per_s or 0.0, min(speed, shown))

    def _tokens_after_wait(self, rate_per_s: float) -> float:
        """Return the tokens that a bucket of this rate had after the wait that the server has demanded."""
        return min(self._wait_s * rate_per_s, self._burst.burst(rate_per_s) or 0)

    def _raise_or_fix_rate(self, speed: float, shown_per_s: float) -> None:
        if (self.sure or self._empty_at is None) and not self._rising:
            self._step = QUIET_STEP if self._empty_at is not None else min(self._step, FIRST_STEP)
            self._refused_per_s = math.inf
        elif not self.sure and self._empty_at is not None:
            self.accepted_per_s = shown_per_s
            if self._refused_per_s <= shown_per_s * (1 + ACCURACY):
                self._set_sure_rate(shown_per_s)
                return
            if self._refused_per_s <= speed * (1 + ACCURACY):  # it may have been found too low
                if self._at_speed < QUIET_REQUESTS:
                    return
                self._step, self._refused_per_s = QUIET_STEP, math.inf
        most = speed + (self._refused_per_s - speed) / 3
        self.rate_per_s = min(FASTEST_PER_S, speed * (1 + self._step), most)
        self._step = min(MAX_STEP, 2 * self._step)
        self._at_speed, self._rising = 0, True

    def _choose_rate_after_refusal(self, at: float, count: int, noise: float) -> None:
        speed, began = self.rate_per_s, self._empty_at
        if began is None:  # the level was not known
            shown = self._rate_disproving_earlier_runs(at, count, noise) if self._rising else None
            if shown is not None and speed is not None:
                self._set_unsure_rate_and_step(min(speed, shown), FIRST_STEP)
            elif self._rising:
                self.rate_per_s, self._step = self.accepted_per_s, QUIET_STEP
        elif count <= 0:
            if speed is not None:
                self._set_unsure_rate_and_step(speed / 2, FIRST_STEP)
        elif speed is not None and self._size == 1:
            self._narrow_rate_range_of_one_token_bucket(speed, count)
        else:
            self._measure_rate_between_refusals(began, at, count, noise)

    def _raise_disproved_rate_of_earlier_run(self, request: AnsweredRequest) -> bool:
        """Raise the rate that the next run begins with, also if the sender is too slow to be refused."""
        now, count, speed = request.sample.at, request.sample.accepted - self._accepted_until_empty, self.rate_per_s
        if speed is None or self._empty_at is not None:
            return False
        shown = self._rate_disproving_earlier_runs(now, count, request.max_sample_error_tokens)
        if shown is None:
            return False
        latest_per_s = (DISPROVED_AFTER - 1) / max(SHORTEST_S, now - self._times[-DISPROVED_AFTER])
        self.accepted_per_s, self.sure = min(speed, max(shown, latest_per_s)), False
        return True

    def _rate_disproving_earlier_runs(self, at: float, count: int, noise: float) -> float | None:
        """Return the rate that is shown by the requests accepted since the start, if it disproves that of earlier runs.

        It is the lowest one at which the known burst, of a bucket that was full at the start, explains them.
        """
        known, size = self.accepted_per_s, self._size
        if known is None or size is None or len(self._times) != count:
            return None
        full, empty = BucketSample(self._times[0], 0, size + 1 + noise), BucketSample(at, 0, 0)
        shown = _refill_rate_found_by_simulation(self._times, full, empty, lambda _: size)
        return shown if shown > known * DISPROVED else None

    def _measure_rate_between_refusals(self, began: float, at: float, count: int, noise: float) -> None:
        """Learn from the requests between two instants at which the bucket was empty."""
        least, most = (max(0.0, count + error) / (at - began) for error in (-1 - noise, 1 + noise))
        low, high = least, most
        if len(self._times) == count:  # neither too many to keep, nor those of other users
            low = max(
                least,
                _refill_rate_found_by_simulation(
                    self._times, BucketSample(began, 0, 1 + noise), BucketSample(at, 0, 0), self._burst_at_rate
                ),
            )
            high = max(
                low,
                _refill_rate_found_by_simulation(
                    self._times, BucketSample(began, 0, 0), BucketSample(at, 0, 1 + noise), self._burst_at_rate
                ),
            )
        known = self.accepted_per_s
        if self.sure and known is not None and low <= known <= high:
            self.rate_per_s, self._step = known, QUIET_STEP
            return
        if self.rate_per_s is not None:  # from an empty bucket only a speed above the rate is refused
            high = max(low, min(high, self.rate_per_s))
        self._refused_per_s, width, self.least_per_s = high, high - low, max(0.0, 2 * low - high)
        self._measured_least_per_s = low
        if high - low <= 2 * ACCURACY * low:
            self._set_sure_rate(low)
        elif high > 4 * low:
            self._set_unsure_rate_and_step(count / (at - began), FIRST_STEP)
        else:
            self._set_unsure_rate_and_step((low + high) / 2 + width / 8, width / (low + high) / 2)

    def _narrow_rate_range_of_one_token_bucket(self, speed: float, count: int) -> None:
        """Record that a bucket of one token refused a request at this speed."""
        low, self._refused_per_s = self.accepted_per_s or 0.0, speed
        if low >= speed * (1 - ACCURACY):
            low = speed / (1 + max(ACCURACY, 1 / (1 + count)))
            self._set_unsure_rate_and_step(low, FIRST_STEP)
        elif low * (1 + ACCURACY) >= speed:
            self._set_sure_rate(low)
        else:
            self.sure, self.rate_per_s = False, low + (speed - low) / 3
            self._step = max(ACCURACY, (speed / low - 1) / 3) if low else FIRST_STEP

    def _set_unsure_rate_and_step(self, speed: float, step: float) -> None:
        self.rate_per_s, self.sure, self._step = speed, False, step
        self.accepted_per_s = speed
        self.least_per_s = min(self.least_per_s or speed, speed)

    def _set_sure_rate(self, rate_per_s: float) -> None:
        self.rate_per_s = self.accepted_per_s = self.least_per_s = rate_per_s
        self.sure, self._at_speed, self._rising = True, 0, False

    def _burst_at_rate(self, rate_per_s: float) -> int:
        return self._burst.burst(rate_per_s) or 1


def _assumed_accepted_requests_before_run(rate_per_s: float | None, accepted: int) -> int:
    """Return how many requests at a known rate count as accepted before the run, so that also runs of few look for a
    raised limit: one run in so many, drawn by a hash, that they last for `QUIET_S` together.
    """
    if rate_per_s is None or not accepted:
        return 0
    of = math.ceil(max(QUIET_REQUESTS, QUIET_S * rate_per_s))
    return max(0, QUIET_REQUESTS - zlib.crc32(b"%d" % accepted) % of)


def _lower_bound_of_rate(rate_per_s: float | None, *, sure: bool) -> float | None:
    return rate_per_s if sure or rate_per_s is None else LEAST * rate_per_s


def _refill_rate_found_by_simulation(
    times: Iterable[float], begin: BucketSample, end: BucketSample, burst_at: Callable[[float], int]
) -> float:
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


FIRST_PER_S = 1.0  # while nothing is known of a bucket whose level is reported
PAUSE_S, MAX_PAUSE_S = 1.0, 60.0  # after a refused request, until the rate is known from the added tokens
GUESSED_PART = 3  # of the accepted rate, if none is known and many requests are in flight
SLOWER_PART = 2  # of the accepted rate, after a wait that the server demands
FEW = 3  # accepted requests, whose rate tells nothing
MEASURING_S = 0.5  # the same as `PAUSE_S`, with many requests in flight
FIRST_IN_FLIGHT, SEARCH_IN_FLIGHT = 8, 40  # with an unknown limit: once the bucket is empty all of them are refused
SEARCH_PER_S = 400.0  # enough requests for this rate are in flight, or a slow network never empties the bucket


class LimitLearner:
    """Keeps the estimate of a shared bucket up to date.

    Attributes:
        empty_at: When the bucket was last found empty, on the monotonic clock; ``-inf`` before the first time.
    """

    def __init__(self, view: BucketStoreWithLastState) -> None:
        state = view.last_state
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
        self._seen = _learned_rate_send_rate_and_sureness(state)

    @property
    def _is_rate_disproved(self) -> bool:
        """Whether a refusal has disproved the rate. Until then the estimate of an earlier run is used."""
        return self._view.last_state.estimate.rate_from in UNSURE and self.empty_at > -math.inf

    @property
    def lower_bound_per_s(self) -> float | None:
        """The rate that the bucket gives in any case; None while it is unknown."""
        estimate = self._view.last_state.estimate
        least = self._search.least_per_s if estimate.rate_from in UNSURE else None
        return estimate.rate_per_s if least is None else least

    def max_in_flight_while_searching(self, latency_s: float) -> int | None:
        """Return the most requests in flight while the limit is being searched for; None otherwise."""
        estimate = self._view.last_state.estimate
        is_known = self._search.rate_per_s is not None and not self._guessing
        if estimate.burst is not None and (not self._is_rate_disproved or is_known):
            return None
        spent = self._view.last_state.spent - self._spent_when_empty
        most = max(SEARCH_IN_FLIGHT, round(SEARCH_PER_S * latency_s))
        documented = 0.0 if estimate.rate_from in UNSURE else estimate.rate_per_s or 0.0
        return max(min(FIRST_IN_FLIGHT + spent // 2, most + spent // 400), round(2 * documented * latency_s))

    def adopt_limits_learned_by_other_users(self) -> None:
        """Adopt what other users of the bucket have learned."""
        seen, self._seen = self._seen, _learned_rate_send_rate_and_sureness(self._view.last_state)
        if self._seen is not None and self._seen != seen:
            self._search.adopt_rate_learned_by_other_user(*self._seen[:2], sure=self._seen[2])

    def learn_from_accepted_request(self, request: AnsweredRequest, reserve: int, *, is_reported: bool) -> None:
        """Learn from an accepted request.

        Args:
            is_reported: Whether the level is reported, so that no higher rate is tried.
        """
        self._burst.record_accepted_request(request.sample)
        estimate = self._view.last_state.estimate
        is_earlier = request.sent_at < self.empty_at  # it arrived before the bucket was known to be empty
        if is_reported or is_earlier or estimate.rate_from not in UNSURE:
            return
        if self._search.adjust_rate_after_acceptance(request, reserve):
            found, speed = self._estimate_with_found_rate(estimate), self._rate_to_send_at(estimate)
            if speed != self._view.last_state.bucket.rate_per_s or not _are_nearly_same_rates(found, estimate):
                self._view.resize_to_estimate(found, speed)
                self._seen = _learned_rate_send_rate_and_sureness(self._view.last_state)

    def _rate_to_send_at(self, estimate: LimitEstimate) -> float | None:
        speed = self._search.rate_per_s
        return None if speed is None or estimate.rate_from not in UNSURE else min(speed, estimate.most_per_s)

    def _estimate_with_found_rate(self, estimate: LimitEstimate) -> LimitEstimate:
        found = self._search.accepted_per_s
        is_told = estimate.rate_from not in UNSURE
        if found is None or (is_told and min(found, estimate.most_per_s) == estimate.rate_per_s):
            return estimate
        origin: Origin = "guessed" if self._guessing else "learned"
        return estimate.with_capped_rate(found, origin, int(self._search.sure))

    def adopt_rate_shown_by_levels(self, rate_per_s: float | None) -> None:
        """Adopt the rate that reported levels show; None while they show none."""
        estimate = self._view.last_state.estimate
        shown = estimate.with_capped_rate(rate_per_s or estimate.rate_per_s or FIRST_PER_S, "learned", agreed=1)
        if shown.rate_per_s != self._view.last_state.bucket.rate_per_s and not _are_nearly_same_rates(shown, estimate):
            self._view.resize_to_estimate(shown)

    def adopt_reported_limit(self, headers: RateHeaders) -> bool:
        """Adopt the limit that an answer reports. Return whether that changes anything."""
        estimate = self._view.last_state.estimate
        if headers.burst is not None and int(headers.burst) != estimate.burst:
            estimate = estimate.with_capped_burst(int(headers.burst), "reported")
        if headers.rate_per_s is not None and headers.rate_per_s != estimate.rate_per_s:
            estimate = estimate.with_capped_rate(headers.rate_per_s, "reported")
        if estimate == self._view.last_state.estimate:
            return False
        self._view.resize_to_estimate(estimate)
        return True

    def restart_search_with_estimate(self, estimate: LimitEstimate) -> None:
        """Continue with *estimate*, since what was reported has proved wrong."""
        self._search = RateSearch(None, self._burst, sure=False, accepted=self._accepted_when_empty)

        def change(state: BucketState, now: float) -> BucketState:
            bucket = estimate.bucket()
            if estimate.burst is not None:
                bucket = state.bucket.resized_with_same_level(now, bucket.rate_per_s, bucket.burst)
            return structs.replace(state, bucket=bucket, estimate=estimate)

        self._view.change(change)
        self._seen = _learned_rate_send_rate_and_sureness(self._view.last_state)

    def learn_from_refused_request(self, request: AnsweredRequest, reserve: int, retry_after_s: float | None) -> None:
        """Continue with an empty bucket, in debt if refusals follow each other because *reserve* was too small."""
        few = request.sample.accepted - self._accepted_when_empty <= request.max_sample_error_tokens
        self._in_a_row = self._in_a_row + 1 if few and self.empty_at > -math.inf else 0
        self.empty_at = request.answered_at
        self._accepted_when_empty, self._spent_when_empty = request.sample.accepted, self._view.last_state.spent
        self._burst.record_empty_bucket(request.sample)
        estimate, wait_s = self._view.last_state.estimate, min(MAX_WAIT_S, retry_after_s or 0.0)
        if estimate.rate_from != "reported":
            self._adjust_search_after_refusal(request, estimate.rate_per_s, wait_s)
            estimate = self._estimate_with_found_rate(estimate)
        estimate = self._estimate_with_found_burst(estimate)
        pause_s = self._rate_measuring_pause_s(request, estimate)
        freeze_s = max(pause_s, wait_s)
        debt = max(1, reserve) * (2 ** min(self._in_a_row, 8) - 1)
        speed = self._rate_to_send_at(estimate)

        def change(state: BucketState, now: float) -> BucketState:
            bucket, until = estimate.bucket(), now + freeze_s
            if estimate.rate_per_s is not None:
                bucket = structs.replace(bucket, rate_per_s=speed or bucket.rate_per_s).with_level(now + pause_s, -debt)
                if estimate.rate_from in UNSURE and not self._search.sure:  # less may be added than expected
                    bucket = bucket.with_level(until, min(bucket.level(until), reserve + 1))
            frozen_until = max(state.frozen_until, until)
            return structs.replace(state, bucket=bucket, estimate=estimate, frozen_until=frozen_until)

        self._view.change(change)
        self._seen = _learned_rate_send_rate_and_sureness(self._view.last_state)

    def _adjust_search_after_refusal(self, request: AnsweredRequest, known: float | None, wait_s: float) -> None:
        """Learn from a refused request. If no rate is *known*, continue with a part of the accepted one: with many
        requests in flight many would be refused at full speed, and after a wait the bucket is full as at the start, so
        that the same speed would show the same.
        """
        self._search.adjust_rate_after_refusal(request, wait_s)
        self._guessing = False
        if self._search.rate_per_s is not None:
            return
        if known is not None:
            self._search.begin_at_unmeasured_rate(known)
        elif request.others:
            self._guessing = True
            self._search.begin_at_unmeasured_rate(self._burst.mean_accepted_per_s() / GUESSED_PART, step=CAREFUL_STEP)
        elif wait_s >= PAUSE_S and self._burst.accepted_until_empty > FEW:
            self._search.begin_at_unmeasured_rate(self._burst.mean_accepted_per_s() / SLOWER_PART, step=FIRST_STEP)

    def _rate_measuring_pause_s(self, request: AnsweredRequest, estimate: LimitEstimate) -> float:
        """Return the seconds in which a bucket whose rate is unknown fills, so that its rate can be measured."""
        if estimate.rate_per_s is None:
            return min(MAX_PAUSE_S, PAUSE_S * 2.0 ** min(self._in_a_row, 10))
        return max(MEASURING_S, 4 * request.latency_s) if self._guessing else 0.0

    def pause_sending(self, retry_after_s: float) -> None:
        """Send nothing for so long."""
        wait_s = min(MAX_WAIT_S, retry_after_s)
        if self._view.last_state.frozen_until < self._view.now + wait_s:
            self._view.change(
                lambda state, now: structs.replace(state, frozen_until=max(state.frozen_until, now + wait_s))
            )

    def _estimate_with_found_burst(self, estimate: LimitEstimate) -> LimitEstimate:
        is_unsure = estimate.burst_from in UNSURE
        if self._guessing and is_unsure:  # accepted requests less those at their mean rate: the burst is at least that
            return estimate.with_capped_burst(self._burst.burst(self._burst.mean_accepted_per_s()) or 1, "guessed")
        if estimate.rate_per_s is None or self._guessing:
            return estimate
        burst = self._burst.burst(estimate.rate_per_s)
        if burst is not None and (is_unsure or burst < (estimate.burst or 0)):
            return estimate.with_capped_burst(burst, "learned")
        return estimate.with_capped_burst(1, "learned") if estimate.burst is None else estimate


def _are_nearly_same_rates(one: LimitEstimate, other: LimitEstimate) -> bool:
    """Return whether they differ too little to be written down."""
    if one.rate_per_s is None or other.rate_per_s is None or (one.agreed > 0) != (other.agreed > 0):
        return False
    return abs(one.rate_per_s - other.rate_per_s) < ACCURACY * other.rate_per_s


def _learned_rate_send_rate_and_sureness(state: BucketState) -> tuple[float, float, bool] | None:
    """Return the rate, the speed and whether the rate is sure; None if the rate is not learned."""
    estimate = state.estimate
    if estimate.rate_per_s is None or estimate.rate_from not in UNSURE:
        return None
    return estimate.rate_per_s, state.bucket.rate_per_s, estimate.agreed > 0
