"""What the rate limit of an API lets one connection request now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from crossdock.clock import Clock
from crossdock.pacing import rate_headers
from crossdock.pacing.bucket_store import BucketState
from crossdock.pacing.limit_estimate import UNLIMITED, UNSURE, LimitEstimate
from crossdock.pacing.rate_headers import RateHeaders
from crossdock.pacing.rate_limit import LimitSettings
from crossdock.pacing.samples import Sample
from crossdock.pacing.throttled_waits import throttled_wait_s
from crossdock.sources.api_usage import ApiUsage
from crossdock.sources.query_costs import QueryCosts
from crossdock.sources.reported_levels import ReportedLevels
from crossdock.sources.unreported_limit import UnreportedLimit
from crossdock.transport.http_answers import Answer

LEAST_WAIT_S = 0.00001
FIRST_PER_S = 1.0  # while nothing is known of a bucket that is empty
PAUSE_S, MAX_PAUSE_S = 1.0, 60.0  # after a refused request, until the rate is known: how many tokens are added tells it
KEPT_BACK_FROM = (
    4  # of a burst of this size one token is not spent, since requests arrive less evenly than they are sent
)
NO_HEADERS = RateHeaders("none")


class SourceAllowance:
    """The allowance of one connection: of requests, and for GraphQL of the cost that answers report.

    For one thread, which sends one request after the other.

    Args:
        earlier: The state of the bucket at the end of the last run.
        waiting: Called before each wait with its length, and with zero when a request need not wait.

    Attributes:
        usage: What was requested.
    """

    def __init__(
        self,
        clock: Clock,
        limit: LimitSettings,
        earlier: BucketState | None = None,
        waiting: Callable[[timedelta], None] = lambda _: None,
    ) -> None:
        self._clock, self._offset = clock, clock.now().timestamp() - clock.monotonic()
        self._configured, self._reads_headers = limit, True
        self._levels, self._costs = ReportedLevels(), QueryCosts()
        estimate, now = limit.estimate(earlier.estimate if earlier else None), self._now
        self._state = earlier.carried_over(now, estimate) if earlier else BucketState.of(estimate)
        full = self._state.bucket.level(now) >= self._state.bucket.burst
        learned = estimate.rate_per_s if estimate.rate_from == "learned" else None
        self._limit = UnreportedLimit(learned, estimate.burst, sure=estimate.agreed > 0, full=full)
        self._fastest_s, self._refused_in_a_row = 0.0, 0
        self._paced = self._from_full = False
        self._waiting = waiting
        self.usage = ApiUsage()

    @property
    def bucket_state(self) -> BucketState:
        """The bucket as it was last seen, with the rate that the next run begins with."""
        estimate, learned = self._state.estimate, self._limit.accepted_per_s
        if learned is None or estimate.rate_per_s != self._limit.rate_per_s:
            return self._state
        return replace(self._state, estimate=estimate.with_rate(learned, "learned", int(self._limit.sure)))

    @property
    def _now(self) -> float:
        """The present as the bucket's state has it: the time of day at the start, and monotonic from then on."""
        return self._offset + self._clock.monotonic()

    def take(self, query: str | None) -> float:
        """Wait until a request may be sent; returns when that was.

        Args:
            query: Of a GraphQL request.
        """
        self._paced = False
        while (wait_s := self._wait_s(query)) > 0:
            self._paced = True
            self._waiting(timedelta(seconds=wait_s))
            self._clock.sleep(max(LEAST_WAIT_S, wait_s))
            self.usage.waited_s += wait_s
        if not self._paced:
            self._waiting(timedelta())
        now, bucket = self._now, self._state.bucket
        self._from_full = bucket.spent_until <= now
        self._state = replace(self._state, bucket=bucket.take(now, 1), spent=self._state.spent + 1, as_of=now)
        self.usage.requests += 1
        return now

    def _wait_s(self, query: str | None) -> float:
        cost_s = 0.0 if query is None else self._costs.wait_s(query, self._clock.monotonic())
        return max(cost_s, self._state.wait_s(self._now, self._kept_back))

    @property
    def _kept_back(self) -> int:
        burst = self._state.bucket.burst
        return 1 if KEPT_BACK_FROM <= burst < UNLIMITED else 0

    def answered(
        self, sent_at: float, answer: Answer, *, throttled: bool, query: str | None = None, body: Any = None
    ) -> None:
        """Learn from *answer*.

        Args:
            sent_at: What `take` returned.
            throttled: Whether the rate limit refused the request, whatever the status says.
            body: The JSON of a GraphQL answer.
        """
        reports_cost = query is not None and self._costs.read(query, body, self._clock.monotonic())
        self.usage.throttled += throttled
        if throttled and reports_cost:
            return  # the cost was too high for the moment; the number of requests was not
        headers = rate_headers.read(answer.headers) if self._reads_headers else None
        headers = headers or NO_HEADERS
        was_unknown = self._state.bucket.burst == UNLIMITED
        self._adopt(headers)
        if throttled:
            self._levels.refused(headers.remaining)
        if self._levels.misleading and self._reads_headers:
            self._state, headers = BucketState.of(self._configured.estimate()), NO_HEADERS
            self._reads_headers = False
        if throttled:
            self._refused(sent_at, self._now, throttled_wait_s(answer.headers, answer.body))
        else:
            self._accepted(sent_at, self._now, headers.remaining, was_unknown=was_unknown)

    def _adopt(self, headers: RateHeaders) -> None:
        """Take over the rate and the burst that the API reports."""
        estimate = self._state.estimate
        if headers.burst is not None:
            estimate = estimate.with_burst(int(headers.burst), "reported")
        if headers.rate_per_s is not None:
            estimate = estimate.with_rate(headers.rate_per_s, "reported")
        self._resize(estimate)

    def _accepted(self, sent_at: float, now: float, remaining: float | None, *, was_unknown: bool) -> None:
        latency_s, self._refused_in_a_row = now - sent_at, 0
        reached_at, late_s = (sent_at + now) / 2, latency_s - self._fastest_s
        self._fastest_s = min(self._fastest_s or latency_s, latency_s)
        if self._from_full and self._state.bucket.burst < UNLIMITED:
            # a full bucket gains nothing until the request arrives, which is later than others by up to this
            bucket = self._state.bucket
            self._state = replace(self._state, bucket=replace(bucket, spent_until=bucket.spent_until + late_s))
        self._limit.accepted(reached_at, paced=self._paced)
        # a small bucket is mostly empty: its levels do not tell the rate
        sample = Sample(reached_at, self.usage.requests - self.usage.throttled, remaining or 0.0)
        is_told = remaining is not None and self._state.bucket.burst >= KEPT_BACK_FROM
        if is_told:
            self._levels.check(sample)
        if self._state.estimate.rate_from in UNSURE:
            self._learn_rate(sample if is_told else None)
        if remaining is not None:
            self._correct(now, remaining, most=remaining + (0 if was_unknown else 1))

    def _learn_rate(self, reported: Sample | None) -> None:
        estimate = self._state.estimate
        if reported is not None:
            rate_per_s = self._levels.rate(reported, estimate.burst) or estimate.rate_per_s or FIRST_PER_S
            self._resize(estimate.with_rate(rate_per_s, "learned", agreed=1))
        elif self._limit.rate_per_s is not None:
            self._resize(self._with_learned_rate(self._limit.rate_per_s))

    def _correct(self, now: float, reported: float, most: float) -> None:
        """Adopt a reported level, which is a whole number and so too low by less than one."""
        bucket, estimate = self._state.bucket, self._state.estimate
        level = min(bucket.level(now), most)
        if bucket.rate_per_s < estimate.most_per_s:  # a configured rate is never exceeded
            level = max(level, reported)
        self._state = replace(self._state, bucket=bucket.with_level(now, level))

    def _refused(self, sent_at: float, now: float, retry_after_s: float | None) -> None:
        estimate = self._state.estimate
        if estimate.rate_from == "reported":
            self._limit.refused((sent_at + now) / 2, estimate.rate_per_s)
        else:
            self._limit.refused((sent_at + now) / 2)
            if self._limit.rate_per_s is not None:
                estimate = self._with_learned_rate(self._limit.rate_per_s)
        first_s = 1 / estimate.rate_per_s if estimate.rate_per_s else PAUSE_S
        pause_s = min(MAX_PAUSE_S, first_s * 2.0 ** min(self._refused_in_a_row, 10))
        if retry_after_s is not None:
            pause_s = retry_after_s
        if estimate.burst_from in UNSURE and self._limit.burst is not None:
            estimate = estimate.with_burst(self._limit.burst, "learned")
        self._refused_in_a_row += 1
        self._resize(estimate)
        bucket = self._state.bucket
        if estimate.rate_per_s:
            # what is added in the pause is not spent at once: it may be less than expected
            bucket = bucket.with_level(now + pause_s, 1 + self._kept_back)
        until, refused = max(self._state.frozen_until, now + pause_s), self._state.refused + 1
        self._state = replace(self._state, bucket=bucket, refused=refused, frozen_until=until, as_of=now)

    def _with_learned_rate(self, rate_per_s: float) -> LimitEstimate:
        return self._state.estimate.with_rate(rate_per_s, "learned", agreed=int(self._limit.sure))

    def _resize(self, estimate: LimitEstimate) -> None:
        """Continue with another estimate."""
        if estimate == self._state.estimate:
            return
        now, size, bucket = self._now, estimate.bucket(), self._state.bucket
        if bucket.burst == UNLIMITED:  # tokens taken so far count against the burst that is known now
            bucket = replace(bucket, burst=size.burst)
        resized = bucket.resized(now, size.rate_per_s, size.burst)
        self._state = replace(self._state, bucket=resized, estimate=estimate, as_of=now)
