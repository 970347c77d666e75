"""The requests that a token bucket permits now. Nothing here waits."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from crossdock.pacing.bucket_store import BucketState, BucketStore
from crossdock.pacing.bucket_view import BucketView
from crossdock.pacing.level_tracker import LevelTracker
from crossdock.pacing.limit_estimate import UNLIMITED, LimitEstimate
from crossdock.pacing.limit_learner import LimitLearner
from crossdock.pacing.rate_headers import RateHeaders
from crossdock.pacing.reduced_rate import ReducedRate
from crossdock.pacing.samples import AnsweredRequest
from crossdock.pacing.token_bucket import Bucket
from crossdock.pacing.unreported_rate import RateEstimator
from crossdock.values.clock import Clock

Priority = Literal["batch", "live"]
RESERVE: Mapping[Priority, int] = {"batch": 100, "live": 400}  # burst divided by the reserve


@dataclass(frozen=True, slots=True)
class Token:
    """The token *number* of its bucket, taken at *at* on the monotonic clock."""

    number: int
    at: float


class Allowance:
    """Tokens of one bucket for one thread. Threads and processes that share the bucket share its *store*.

    A reserve stays unspent, because requests sent apart may arrive together. ``batch`` leaves more of it than
    ``live``, so that live requests find a token while a batch is running.

    Args:
        reduced: The part of the bucket that may be used; None for all of it.
    """

    def __init__(
        self,
        clock: Clock,
        store: BucketStore,
        *,
        ceiling: int = 128,
        priority: Priority = "batch",
        reduced: ReducedRate | None = None,
    ) -> None:
        rate_estimator = RateEstimator()
        self._clock, self._priority = clock, priority
        self._reduced = reduced or ReducedRate(clock, lambda: 100)
        self._view = BucketView(clock, store, rate_estimator.adopt)
        self._in_flight_limit = InFlightLimit(ceiling)
        self._learner = LimitLearner(self._view, rate_estimator, clock.monotonic())
        self._level_tracker = LevelTracker(self._view, self._learner, clock.monotonic())
        self._unexpected_429s = Unexpected429s()

    @property
    def bucket_state(self) -> BucketState:
        return self._view.state

    @property
    def estimate(self) -> LimitEstimate:
        return self._view.state.estimate

    @property
    def tokens(self) -> int | None:
        """Tokens in the bucket; None while its size is unknown."""
        return None if self.estimate.burst is None else self._view.state.bucket.tokens(self._view.now)

    def take(self, wanted: int) -> Sequence[Token]:
        now = self._clock.monotonic()
        if not self._level_tracker.has_reports(now):
            self._learner.probe(now)
        taken = self._view.take(self._reduced.available(wanted, *self._whole()), self._kept_back())
        self._reduced.take(taken.count)
        self._level_tracker.taken(taken)
        last = taken.bucket_state.spent
        return [Token(number, now) for number in range(last - taken.count + 1, last + 1)]

    def wait_s(self) -> float:
        """Return seconds until a token is available, as far as this process knows."""
        wait_s = self._view.state.wait_s(self._view.now, self._kept_back())
        return max(wait_s, self._reduced.wait_s(*self._whole()))

    def _whole(self) -> tuple[Bucket, float]:
        bucket = self._view.state.bucket
        return bucket, bucket.level(self._view.now)

    def room(self, in_flight: int) -> int:
        limit = self._in_flight_limit.limit
        most = self._learner.max_in_flight(self._in_flight_limit.latency_s)
        return max(0, (limit if most is None else min(limit, most)) - in_flight)

    def _kept_back(self) -> int:
        return self._reserve() - self._unexpected_429s.checks_left(self._view.state.spent)

    def _reserve(self) -> int:
        burst = self._view.state.bucket.burst
        if burst == UNLIMITED:
            return 0
        part = burst // RESERVE[self._priority]
        return min(burst - 1, max(2, part)) if self._priority == "batch" else min(max(0, burst - 2), max(1, part))

    def answered(
        self, token: Token, *, accepted: bool, headers: RateHeaders | None = None, retry_after_s: float | None = None
    ) -> None:
        """Learn from the answer to the request that took *token*.

        Args:
            accepted: False if the rate limit refused it (429).
        """
        now = self._clock.monotonic()
        self._in_flight_limit.answered(now, now - token.at, self._view.state.bucket.rate_per_s)
        self._unexpected_429s.answered(token.number, accepted=accepted)
        latency_s = self._in_flight_limit.latency_s
        request = self._level_tracker.answered(token.number, token.at, now, latency_s, accepted=accepted)
        self._learner.add(request.sample)
        if not accepted:
            self._refused(request, retry_after_s)
        if headers is not None:
            self._level_tracker.read(headers, request)

    def _refused(self, request: AnsweredRequest, retry_after_s: float | None) -> None:
        if request.sent_at <= self._learner.empty_at:
            return  # sent before the bucket was known to be empty
        expected = self._level_tracker.expected(request.sample) <= self._reserve() / 2
        if retry_after_s is None and not self._unexpected_429s.is_credible(expected=expected):
            self._unexpected_429s.verify(self._view.state.spent)
            return
        self._unexpected_429s.clear()
        self._level_tracker.restart_empty(request.sample)
        self._learner.restart_empty(request, self._reserve(), retry_after_s)


FEWEST = 32
WINDOW = 64  # answers


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
        self._answers: deque[tuple[float, float]] = deque(maxlen=WINDOW)  # (answered at, latency in seconds)
        self._since_update = 0
        self.limit = min(FEWEST, ceiling)
        self.latency_s = 0.0

    def answered(self, at: float, latency_s: float, rate_per_s: float) -> None:
        """Record an answer that arrived at *at*; *rate_per_s* is the rate of the bucket."""
        self._answers.append((at, latency_s))
        self._since_update += 1
        if self._since_update < WINDOW // 4 and self.latency_s:
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

    def verify(self, spent: int) -> None:
        """Verify with the requests that take the tokens after the first *spent*."""
        if self._first is None:
            self._first, self._checks = spent + 1, []

    def checks_left(self, spent: int) -> int:
        """Return the tokens that may be taken for checks beyond those in the bucket."""
        return 0 if self._first is None else max(0, self._first + CHECKS - 1 - spent)

    def answered(self, number: int, *, accepted: bool) -> None:
        self._latest.append(accepted)
        self._answered += 1
        if self._answered == REMEMBERED:
            self._answered, self._false_alarms = self._answered // 2, self._false_alarms // 2
        if self._first is not None and self._first <= number < self._first + CHECKS:
            self._checks.append(accepted)
            if len(self._checks) == CHECKS and not self._confirmed():
                self._first = None
                self._false_alarms += 1

    def is_credible(self, *, expected: bool) -> bool:
        """Return whether a 429 means an empty bucket. If false alarms are frequent, even an expected one needs
        proof.
        """
        frequent = self._false_alarms >= 2 and self._false_alarms * FREQUENT > self._answered
        return self._confirmed() or (expected and not frequent)

    def _confirmed(self) -> bool:
        return self._latest.count(False) >= FAILING_LATEST or self._checks.count(False) >= FAILING_CHECKS
