"""Keeps the level of the local bucket in line with the server's, as far as the levels that it reports can be trusted.

Some proxies invent levels, and some platforms report another bucket's.
"""

from __future__ import annotations

import math
from collections import deque

from msgspec import structs

from crossdock.pacing.answered_request_samples import AnsweredRequest, BucketSample
from crossdock.pacing.estimated_rate_limit_and_origin import DEFAULT_PER_S, UNLIMITED, UNSURE
from crossdock.pacing.rate_limit_headers import RateHeaders
from crossdock.pacing.rate_limit_learner import LimitLearner
from crossdock.pacing.token_bucket import ROUNDING
from crossdock.pacing.token_bucket_store import BucketAccess, BucketState, TakenTokens

WINDOW = 50  # reported levels
MAX_LEAPS = 3  # of them that rise faster than a bucket fills
LEAP = 3.0  # times the known rate
MAX_EMPTY = 30  # consecutive reports of an empty bucket without a refusal
MAX_CONTRADICTED = 2  # consecutive refused requests beside which tokens are reported
BAN_S = 60.0  # doubles each time
FRESH_S = 2.0
SHORTEST_S = 0.5  # a rate is measured over more time if requests overlap
LONGEST_S = 60.0  # and over one to two times this time


class ReportedLevels:
    """The reported levels of one bucket, on the monotonic clock.

    Attributes:
        misleading: Whether they describe another limit or none: tokens are reported where requests are refused, or
            none although requests are accepted.
    """

    def __init__(self) -> None:
        self.misleading = False
        self._contradicted = 0
        self._latest: BucketSample | None = None
        self._leaps: deque[bool] = deque(maxlen=WINDOW)
        self._empty = self._bans = 0
        self._banned_until = self._trusted_at = -math.inf
        self._base: BucketSample | None = None
        self._next: BucketSample | None = None
        self._rate_per_s: float | None = None

    def are_trusted(self, now: float) -> bool:
        return now >= self._banned_until and not self.misleading

    def were_trusted_recently(self, now: float) -> bool:
        """Return whether a level was trusted in the last two seconds."""
        return now - self._trusted_at < FRESH_S and self.are_trusted(now)

    def record_level_at_refusal(self, remaining: float | None) -> None:
        """Record that a request was refused by an answer that reports *remaining* tokens."""
        self._empty = 0
        if remaining is not None:
            self._contradicted = self._contradicted + 1 if remaining >= 1 else 0
        self.misleading |= self._contradicted >= MAX_CONTRADICTED

    def record_and_check_level(self, reported: BucketSample, rate_per_s: float, latency_s: float, now: float) -> bool:
        """Return whether the reported level is newer than the latest and can be trusted."""
        latest = self._latest
        if not self.are_trusted(now) or (latest is not None and reported.at <= latest.at):
            return False
        self._latest = reported
        if latest is not None:
            gained = reported.level - latest.level + reported.accepted - latest.accepted
            self._leaps.append(gained > LEAP * rate_per_s * (reported.at - latest.at + latency_s) + 3)
        self._empty = self._empty + 1 if reported.level < 1 else 0
        self.misleading |= self._empty >= MAX_EMPTY
        if self._leaps.count(True) >= MAX_LEAPS:
            self._distrust_temporarily(now)
        if not self.are_trusted(now):
            return False
        self._trusted_at = now
        return True

    def _distrust_temporarily(self, now: float) -> None:
        self._banned_until = now + BAN_S * 2.0 ** min(self._bans, 6)
        self._bans += 1
        self._latest = None
        self._base = self._next = self._rate_per_s = None
        self._leaps.clear()

    def record_level_and_measure_rate(
        self, request: AnsweredRequest, reported: BucketSample, burst: int | None
    ) -> float | None:
        """Return tokens per second, at most the real rate, or None while that is unknown.

        Levels are whole numbers, so the rate that they show is too low by up to one token, and never too high.
        """
        if self._base is None or self._next is None:
            self._base = self._next = reported
            return None
        gained = (
            reported.accepted
            - self._base.accepted
            + reported.level
            - self._base.level
            - request.max_sample_error_tokens
        )
        span = reported.at - self._base.at
        is_long = span > (SHORTEST_S if request.others else 0.0)
        rate_per_s = (gained - 1) / span if gained >= 2 and is_long else 0.0
        if burst is not None and reported.level >= burst - 1:  # tokens added to a full bucket are lost
            self._base = self._next = reported
            self._rate_per_s = max(self._rate_per_s or 0.0, rate_per_s) or None
            return self._rate_per_s
        if reported.at - self._next.at > LONGEST_S:
            self._base, self._next = self._next, reported
        self._rate_per_s = rate_per_s or self._rate_per_s
        return self._rate_per_s


SMALL = 4  # a bucket with fewer tokens is mostly empty: its levels do not show the rate


class LevelTracker:
    """The server's level, as expected from this process's requests and as reported by headers.

    Args:
        now: On the monotonic clock.
    """

    def __init__(self, view: BucketAccess, learner: LimitLearner, now: float) -> None:
        self._view, self._learner, self._reports = view, learner, ReportedLevels()
        state = view.last_state
        self._start = BucketSample(now, state.spent - state.refused, state.bucket.level(view.last.now))
        self._taken_from_full: tuple[int, float] | None = None  # number and time of the first token, until an answer
        self._configured, self._counted = state.bucket, state.spent
        self._rate_shown = False  # whether the rate is from levels

    def restart_with_empty_bucket(self, sample: BucketSample) -> None:
        self._start = sample

    def expected_level(self, sample: BucketSample) -> float:
        """Return the level at *sample* if only we use the bucket; infinite while the limit is unknown."""
        estimate, start = self._view.last_state.estimate, self._start
        least_per_s = self._learner.assured_per_s
        if least_per_s is None or estimate.burst is None:
            return math.inf
        added, spent = least_per_s * (sample.at - start.at), sample.accepted - start.accepted
        return min(start.level + added - spent, estimate.burst_with_safety_margin)

    def has_trusted_reports(self, now: float) -> bool:
        return self._reports.were_trusted_recently(now)

    def record_first_take_from_full_bucket(self, taken: TakenTokens, now: float) -> None:
        """Record that tokens were taken *now*, on the monotonic clock."""
        bucket = taken.bucket_state.bucket
        self._level_at_configured_limit()
        if taken.count and bucket.spent_until <= taken.now + taken.count / bucket.rate_per_s + ROUNDING:
            self._taken_from_full = taken.bucket_state.spent - taken.count + 1, now

    def delay_filling_by_first_answer(self, request: AnsweredRequest, fastest_s: float, *, accepted: bool) -> None:
        """Record an answer; *fastest_s* is the shortest latency of the requests before, 0.0 for the first one.

        A full bucket gains nothing until the first request reaches the server, which may be later than for others.
        """
        if self._taken_from_full is None or request.number < self._taken_from_full[0]:
            return
        since_s = request.answered_at - self._taken_from_full[1]
        self._taken_from_full = None
        late_s = since_s - fastest_s if fastest_s else since_s / 2
        if accepted and late_s > 0 and self._view.last_state.bucket.burst < UNLIMITED:
            self._view.change(lambda state, _: _with_delayed_filling(state, late_s))

    def correct_by_headers(self, headers: RateHeaders, request: AnsweredRequest, *, accepted: bool) -> None:
        """Correct limit and level by an answer's report, unless the reports have proved wrong."""
        now = request.answered_at
        if not self._reports.are_trusted(now):
            return
        if not accepted:
            self._reports.record_level_at_refusal(headers.remaining)
        changed = not self._reports.misleading and self._learner.adopt_reported_limit(headers)
        if headers.remaining is not None:
            self._correct_by_reported_level(headers.remaining, headers, request, exactly=changed)
        if self._reports.misleading:
            self._learner.restart_with_estimate(self._view.last_state.estimate.configured_limit())

    def _correct_by_reported_level(
        self, remaining: float, headers: RateHeaders, request: AnsweredRequest, *, exactly: bool
    ) -> None:
        now, state = request.answered_at, self._view.last_state
        estimate, rate_per_s = state.estimate, state.bucket.rate_per_s
        reported = structs.replace(request.sample, level=remaining)
        is_small = estimate.burst is not None and estimate.burst < SMALL
        most_per_s = max(rate_per_s, DEFAULT_PER_S) if estimate.rate_from in UNSURE else rate_per_s
        if is_small or self._reports.record_and_check_level(reported, most_per_s, request.latency_s, now):
            if not is_small and headers.rate_per_s is None and estimate.rate_from in UNSURE:
                self._rate_shown = True
                self._learner.adopt_rate_shown_by_levels(
                    self._reports.record_level_and_measure_rate(request, reported, estimate.burst)
                )
            self._adopt_level_outside_tolerance(remaining, request, rate_per_s, exactly=exactly)
        elif not self._reports.are_trusted(now):
            if self._rate_shown:
                self._learner.restart_with_estimate(
                    structs.replace(estimate.configured_limit(), burst=estimate.burst, burst_from=estimate.burst_from)
                )
            self._view.set_level(self.expected_level(BucketSample(now, state.spent - state.refused)))

    def _adopt_level_outside_tolerance(
        self, remaining: float, request: AnsweredRequest, rate_per_s: float, *, exactly: bool
    ) -> None:
        """Adopt a level that differs by more than its fraction and the requests in flight explain."""
        state = self._view.last_state
        level = remaining + rate_per_s * (request.answered_at - request.sample.at) - (state.spent - request.number)
        level = min(level, self._level_at_configured_limit())
        tolerance = max(3.0, state.bucket.burst / 200, rate_per_s * request.latency_s / 4) if request.others else 0.0
        difference = state.bucket.level(self._view.now) - level
        if exactly or not -tolerance <= difference <= 1 + tolerance:
            is_above = difference > 0 and not exactly and not request.others
            self._view.set_level(level + is_above)

    def _level_at_configured_limit(self) -> float:
        """Return the level of a bucket of the configured size from which all tokens so far were taken.

        A larger bucket of the server may hold more, and so may one from which requests take less than a token.
        """
        state, now = self._view.last_state, self._view.now
        size = state.estimate.configured_bucket()
        if size is None:
            return math.inf
        bucket = self._configured
        if bucket.burst == UNLIMITED:  # tokens taken so far count against the burst that is known now
            bucket = structs.replace(bucket, burst=size.burst)
        bucket = bucket.resized_with_same_level(now, size.rate_per_s, size.burst).after_taking_tokens(
            now, state.spent - self._counted
        )
        self._configured, self._counted = bucket, state.spent
        return bucket.level(now)


def _with_delayed_filling(state: BucketState, late_s: float) -> BucketState:
    return structs.replace(state, bucket=structs.replace(state.bucket, spent_until=state.bucket.spent_until + late_s))
