"""The requests that a token bucket permits now, and how answers correct its level. Nothing here waits.

The levels that answers report are believed as far as they can be trusted: some proxies invent levels, and some
platforms report another bucket's.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct, structs

from crossdock.pacing.answer_headers import RateHeaders
from crossdock.pacing.rate_limit_learner import AnsweredRequest, BucketSample, LimitLearner
from crossdock.pacing.token_bucket import (
    DEFAULT_PER_S,
    ROUNDING,
    UNLIMITED,
    UNSURE,
    Bucket,
    BucketState,
    BucketStore,
    BucketStoreWithLastState,
    LimitEstimate,
    TakenTokens,
)
from crossdock.values.clock import Clock

LEVEL_WINDOW = 50  # reported levels
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
        self._leaps: deque[bool] = deque(maxlen=LEVEL_WINDOW)
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

    def detect_misleading_level_at_refusal(self, remaining: float | None) -> None:
        """Record that a request was refused by an answer that reports *remaining* tokens."""
        self._empty = 0
        if remaining is not None:
            self._contradicted = self._contradicted + 1 if remaining >= 1 else 0
        self.misleading |= self._contradicted >= MAX_CONTRADICTED

    def record_level_if_new_and_trusted(
        self, reported: BucketSample, rate_per_s: float, latency_s: float, now: float
    ) -> bool:
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


class ServerLevelTracker:
    """The server's level, as expected from this process's requests and as reported by headers.

    Args:
        now: On the monotonic clock.
    """

    def __init__(self, view: BucketStoreWithLastState, learner: LimitLearner, now: float) -> None:
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
        least_per_s = self._learner.lower_bound_per_s
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

    def correct_limit_and_level_by_headers(
        self, headers: RateHeaders, request: AnsweredRequest, *, accepted: bool
    ) -> None:
        """Correct limit and level by an answer's report, unless the reports have proved wrong."""
        now = request.answered_at
        if not self._reports.are_trusted(now):
            return
        if not accepted:
            self._reports.detect_misleading_level_at_refusal(headers.remaining)
        changed = not self._reports.misleading and self._learner.adopt_reported_limit(headers)
        if headers.remaining is not None:
            self._correct_by_reported_level(headers.remaining, headers, request, exactly=changed)
        if self._reports.misleading:
            self._learner.restart_search_with_estimate(self._view.last_state.estimate.configured_limit())

    def _correct_by_reported_level(
        self, remaining: float, headers: RateHeaders, request: AnsweredRequest, *, exactly: bool
    ) -> None:
        now, state = request.answered_at, self._view.last_state
        estimate, rate_per_s = state.estimate, state.bucket.rate_per_s
        reported = structs.replace(request.sample, level=remaining)
        is_small = estimate.burst is not None and estimate.burst < SMALL
        most_per_s = max(rate_per_s, DEFAULT_PER_S) if estimate.rate_from in UNSURE else rate_per_s
        if is_small or self._reports.record_level_if_new_and_trusted(reported, most_per_s, request.latency_s, now):
            if not is_small and headers.rate_per_s is None and estimate.rate_from in UNSURE:
                self._rate_shown = True
                self._learner.adopt_rate_shown_by_levels(
                    self._reports.record_level_and_measure_rate(request, reported, estimate.burst)
                )
            self._set_level_if_outside_tolerance(remaining, request, rate_per_s, exactly=exactly)
        elif not self._reports.are_trusted(now):
            if self._rate_shown:
                self._learner.restart_search_with_estimate(
                    structs.replace(estimate.configured_limit(), burst=estimate.burst, burst_from=estimate.burst_from)
                )
            self._view.set_level(self.expected_level(BucketSample(now, state.spent - state.refused)))

    def _set_level_if_outside_tolerance(
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


ASKED_AGAIN_S = 1.0  # while nothing may be taken, since the percentage may change


class BucketShare:
    """A percentage of the rate and burst of a bucket, for one thread.

    It is a second bucket, from which each token must be taken, too. It begins with its percentage of the whole bucket's
    tokens, so that a restarted run gets no additional burst.

    Args:
        percent: Returns the percentage of the whole bucket, 0 to 100. It is called each time, so the percentage may
            change.
    """

    def __init__(self, clock: Clock, percent: Callable[[], int]) -> None:
        self._clock, self._percent = clock, percent
        self._own: Bucket | None = None

    def available_tokens(self, wanted: int, whole: Bucket, level: float) -> int:
        """Return how many of *wanted* tokens may be taken from *whole*, which has *level* tokens now."""
        percent = self._percent()
        if percent >= 100:
            self._own = None
            return wanted
        if percent <= 0:
            return 0
        own = self._own_bucket(percent, whole, level)
        return min(wanted, own.tokens(self._clock.monotonic()))

    def take(self, count: int) -> None:
        if self._own is not None and count:
            self._own = self._own.after_taking_tokens(self._clock.monotonic(), count)

    def wait_s(self, whole: Bucket, level: float) -> float:
        """Return seconds until a token is available, as long as the percentage is the same."""
        percent = self._percent()
        if percent >= 100:
            return 0.0
        if percent <= 0:
            return ASKED_AGAIN_S
        return self._own_bucket(percent, whole, level).wait_s(self._clock.monotonic())

    def _own_bucket(self, percent: int, whole: Bucket, level: float) -> Bucket:
        now, rate_per_s = self._clock.monotonic(), whole.rate_per_s * percent / 100
        # a burst that is unknown is reduced to what the rate gives in a second
        burst = max(1, int(rate_per_s if whole.burst == UNLIMITED else whole.burst * percent // 100))
        if self._own is None:
            part = burst if whole.burst == UNLIMITED else max(level, 0.0) * percent / 100
            self._own = Bucket(rate_per_s, burst).with_level(now, part)
        elif (self._own.rate_per_s, self._own.burst) != (rate_per_s, burst):
            self._own = self._own.resized_with_same_level(now, rate_per_s, burst)
        return self._own


Priority = Literal["batch", "live"]
RESERVE: Mapping[Priority, int] = {"batch": 100, "live": 400}  # burst divided by the reserve


class TakenToken(Struct, frozen=True):
    """The token *number* of its bucket, taken at *at* on the monotonic clock.

    Attributes:
        paced: Whether the request had to wait for it.
        others: Requests in flight when it was taken.
    """

    number: int
    at: float
    paced: bool = False
    others: int = 0


class RequestAllowance:
    """Tokens of one bucket for one thread. Threads and processes that share the bucket share its *store*.

    A reserve stays unspent, because requests sent apart may arrive together. ``batch`` leaves more of it than
    ``live``, so that live requests find a token while a batch is running.

    Args:
        reduced: The part of the bucket that may be used; None for all of it.
        one_by_one: Whether hardly any request is sent before the one before it is answered. Then a reserve of one token
            is enough, and each 429 is believed.
    """

    def __init__(
        self,
        clock: Clock,
        store: BucketStore,
        *,
        ceiling: int = 128,
        priority: Priority = "batch",
        reduced: BucketShare | None = None,
        one_by_one: bool = False,
    ) -> None:
        self._clock, self._priority, self._one_by_one = clock, priority, one_by_one
        self._reduced = reduced or BucketShare(clock, lambda: 100)
        self._view = BucketStoreWithLastState(clock, store)
        self._in_flight_limit = InFlightLimit(ceiling)
        self._learner = LimitLearner(self._view)
        self._level_tracker = ServerLevelTracker(self._view, self._learner, clock.monotonic())
        self._unexpected_429s = Unexpected429s()
        self._in_flight = set[int]()  # numbers of tokens
        self._is_short = False  # whether tokens were wanted that the bucket did not have

    @property
    def bucket_state(self) -> BucketState:
        return self._view.last_state

    @property
    def limit_estimate(self) -> LimitEstimate:
        return self._view.last_state.estimate

    @property
    def tokens(self) -> int | None:
        """Tokens in the bucket; None while its size is unknown."""
        return None if self.limit_estimate.burst is None else self._view.last_state.bucket.tokens(self._view.now)

    def take_available(self, wanted: int) -> Sequence[TakenToken]:
        """Take at most *wanted* tokens. The caller must call `record_answer` or `record_unanswered` for
        each.
        """
        now = self._clock.monotonic()
        taken = self._view.take_available(
            self._reduced.available_tokens(wanted, *self._bucket_and_level()), self._reserve_reduced_by_checks()
        )
        self._learner.adopt_limits_learned_by_other_users()
        self._reduced.take(taken.count)
        self._level_tracker.record_first_take_from_full_bucket(taken, now)
        last, others = taken.bucket_state.spent, len(self._in_flight)
        numbers = range(last - taken.count + 1, last + 1)
        paced, self._is_short = self._is_short, taken.count < wanted
        self._in_flight.update(numbers)
        return [TakenToken(number, now, paced, others + number - numbers[0]) for number in numbers]

    def wait_s(self, tokens_needed_before: int = 0) -> float:
        """Return seconds until a token is left after *tokens_needed_before* others, as far as this process knows."""
        state, now = self._view.last_state, self._view.now
        if tokens_needed_before:
            state = structs.replace(state, bucket=state.bucket.after_taking_tokens(now, tokens_needed_before))
        return max(
            state.wait_s(now, self._reserve_reduced_by_checks()), self._reduced.wait_s(*self._bucket_and_level())
        )

    def _bucket_and_level(self) -> tuple[Bucket, float]:
        bucket = self._view.last_state.bucket
        return bucket, bucket.level(self._view.now)

    def free_in_flight_slots(self, in_flight: int) -> int:
        limit = self._in_flight_limit.limit
        most = self._learner.max_in_flight_while_searching(self._in_flight_limit.latency_s)
        return max(0, (limit if most is None else min(limit, most)) - in_flight)

    def _reserve_reduced_by_checks(self) -> int:
        return self._tokens_kept_in_reserve() - self._unexpected_429s.tokens_left_for_checks(
            self._view.last_state.spent
        )

    def _tokens_kept_in_reserve(self) -> int:
        burst = self._view.last_state.bucket.burst
        if burst == UNLIMITED:
            return 0
        if self._one_by_one:
            return int(burst >= SMALL)
        part = burst // RESERVE[self._priority]
        return min(burst - 1, max(2, part)) if self._priority == "batch" else min(max(0, burst - 2), max(1, part))

    def record_unanswered(self, token: TakenToken) -> None:
        """Record that the request has no answer, or was not sent. Its token is spent."""
        self._in_flight.discard(token.number)

    def record_answer(
        self,
        token: TakenToken,
        *,
        accepted: bool,
        headers: RateHeaders | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        """Learn from the answer to the request that took *token*.

        Args:
            accepted: False if the rate limit refused it (429).
        """
        now, fastest_s = self._clock.monotonic(), self._in_flight_limit.latency_s
        self._in_flight.discard(token.number)
        self._in_flight_limit.record_answer(now, now - token.at, self._view.last_state.bucket.rate_per_s)
        self._unexpected_429s.record_answer(token.number, accepted=accepted)
        if not accepted:
            self._view.change(lambda state, _: structs.replace(state, refused=state.refused + 1))
        request = self._new_answered_request(token, now)
        self._level_tracker.delay_filling_by_first_answer(request, fastest_s, accepted=accepted)
        if headers is not None:
            self._level_tracker.correct_limit_and_level_by_headers(headers, request, accepted=accepted)
        if accepted:
            self._learner.learn_from_accepted_request(
                request, self._tokens_kept_in_reserve(), is_reported=self._level_tracker.has_trusted_reports(now)
            )
        else:
            self._learn_from_refusal_if_credible(request, retry_after_s)

    def _new_answered_request(self, token: TakenToken, now: float) -> AnsweredRequest:
        state, latency_s = self._view.last_state, self._in_flight_limit.latency_s
        others = max(token.others, state.spent - token.number)
        sample = BucketSample((token.at + now) / 2, token.number - state.refused)
        return AnsweredRequest(token.number, token.at, now, latency_s, sample, token.paced, others)

    def _learn_from_refusal_if_credible(self, request: AnsweredRequest, retry_after_s: float | None) -> None:
        if request.sent_at <= self._learner.empty_at:  # sent before the bucket was known to be empty
            if retry_after_s is not None:
                self._learner.pause_sending(retry_after_s)
            return
        if retry_after_s is None and not self._one_by_one:
            expected = self._level_tracker.expected_level(request.sample) <= self._tokens_kept_in_reserve() / 2
            if not self._unexpected_429s.is_refusal_credible(expected=expected):
                self._unexpected_429s.begin_verification_by_next_requests(self._view.last_state.spent)
                return
        self._unexpected_429s.clear()
        self._level_tracker.restart_with_empty_bucket(request.sample)
        self._learner.learn_from_refused_request(request, self._tokens_kept_in_reserve(), retry_after_s)


FEWEST = 32
ANSWER_WINDOW = 64  # answers


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
        self._answers: deque[tuple[float, float]] = deque(maxlen=ANSWER_WINDOW)  # (answered at, latency in seconds)
        self._since_update = 0
        self.limit = min(FEWEST, ceiling)
        self.latency_s = 0.0

    def record_answer(self, at: float, latency_s: float, rate_per_s: float) -> None:
        """Record an answer that arrived at *at*; *rate_per_s* is the rate of the bucket."""
        self._answers.append((at, latency_s))
        self._since_update += 1
        if self._since_update < ANSWER_WINDOW // 4 and self.latency_s:
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


CHECKS = 4
FAILING_CHECKS = 3
LATEST = 6
FAILING_LATEST = 5  # among many requests no check is needed
FREQUENT = 200  # answers per false alarm, at most
REMEMBERED = 4_000  # answers


class Unexpected429s:
    def __init__(self) -> None:
        self._answered = self._false_alarms = 0
        self.clear()

    def clear(self) -> None:
        self._latest: deque[bool] = deque(maxlen=LATEST)
        self._checks: list[bool] = []
        self._first: int | None = None

    def begin_verification_by_next_requests(self, spent: int) -> None:
        """Verify with the requests that take the tokens after the first *spent*."""
        if self._first is None:
            self._first, self._checks = spent + 1, []

    def tokens_left_for_checks(self, spent: int) -> int:
        """Return the tokens that may be taken for checks beyond those in the bucket."""
        return 0 if self._first is None else max(0, self._first + CHECKS - 1 - spent)

    def record_answer(self, number: int, *, accepted: bool) -> None:
        self._latest.append(accepted)
        self._answered += 1
        if self._answered == REMEMBERED:
            self._answered, self._false_alarms = self._answered // 2, self._false_alarms // 2
        if self._first is not None and self._first <= number < self._first + CHECKS:
            self._checks.append(accepted)
            if len(self._checks) == CHECKS and not self._is_confirmed():
                self._first = None
                self._false_alarms += 1

    def is_refusal_credible(self, *, expected: bool) -> bool:
        """Return whether a 429 means an empty bucket. If false alarms are frequent, even an expected one needs
        proof.
        """
        frequent = self._false_alarms >= 2 and self._false_alarms * FREQUENT > self._answered
        return self._is_confirmed() or (expected and not frequent)

    def _is_confirmed(self) -> bool:
        return self._latest.count(False) >= FAILING_LATEST or self._checks.count(False) >= FAILING_CHECKS
