"""The rate limit of an API, learned from the requests of the runs that read it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from crossdock.pacing import rate_headers
from crossdock.pacing.bucket_store import BucketState
from crossdock.pacing.header_trust import HeaderTrust
from crossdock.pacing.limit_estimate import UNLIMITED, UNSURE, LimitEstimate
from crossdock.pacing.rate_headers import RateHeaders
from crossdock.pacing.rate_limit import LimitSettings
from crossdock.pacing.samples import Sample
from crossdock.pacing.throttled_waits import throttled_wait_s
from crossdock.pacing.token_bucket import Bucket
from crossdock.reading.sources.unreported_limit import UnreportedLimit
from crossdock.reading.transport.http_results import Answer
from crossdock.values.clock import Clock

FIRST_PER_S = 1.0  # while nothing is known of a bucket that is empty
PAUSE_S, MAX_PAUSE_S = 1.0, 60.0  # after a refused request, until the rate is known from the added tokens
KEPT_BACK_FROM = 4  # from this burst on, one token is kept: requests arrive less evenly than they are sent
NO_HEADERS = RateHeaders("none")


@dataclass(frozen=True, slots=True, eq=False)
class SentRequest:
    """A request that took a token; two are never equal.

    Attributes:
        at: When it was sent, in seconds on the bucket's clock.
        number: How many requests had been sent by then.
        query: The query of a GraphQL request.
        paced: Whether it had waited for the token.
        from_full: Whether the bucket was full.
        beside: Whether another request was in flight.
    """

    at: float
    number: int
    query: str | None
    paced: bool
    from_full: bool
    beside: bool


class SourceBucket:
    """The token bucket of one connection's API: of requests, and for GraphQL of the cost that answers report.

    Nothing here waits. It learns exactly from requests that are sent one after the other. It learns less from requests
    that overlap, and assumes that the tokens of those in flight are still to be subtracted.

    Args:
        earlier: The state of the bucket at the end of the last run.
    """

    def __init__(self, clock: Clock, limit: LimitSettings, earlier: BucketState | None = None) -> None:
        self._clock, self._offset = clock, clock.now().timestamp() - clock.monotonic()
        self._configured, self._reads_headers = limit, True
        self._levels, self._costs = ReportedLevels(), QueryCosts()
        estimate, now = limit.estimate(earlier.estimate if earlier else None), self._now
        self._state = earlier.carried_over(now, estimate) if earlier else BucketState.of(estimate)
        full = self._state.bucket.level(now) >= self._state.bucket.burst
        learned = estimate.rate_per_s if estimate.rate_from == "learned" else None
        self._limit = UnreportedLimit(learned, estimate.burst, sure=estimate.agreed > 0, full=full)
        self._fastest_s, self._refused_in_a_row = 0.0, 0
        self._sent = self._throttled = 0
        self._in_flight: list[SentRequest] = []
        self._reached_at = self._refused_at = -math.inf

    @property
    def state(self) -> BucketState:
        """The bucket as last seen, with the rate for the start of the next run."""
        estimate, learned = self._state.estimate, self._limit.accepted_per_s
        if learned is None or estimate.rate_per_s != self._limit.rate_per_s:
            return self._state
        return replace(self._state, estimate=estimate.with_rate(learned, "learned", int(self._limit.sure)))

    @property
    def _now(self) -> float:
        """The present in the terms of the bucket's state: the time of day at the start, and monotonic from then on."""
        return self._offset + self._clock.monotonic()

    def wait_s(self, query: str | None, first: Sequence[str | None] = ()) -> float:
        """Return the seconds until a request may be sent, as far as is known now.

        Args:
            query: The query of a GraphQL request.
            first: The queries of requests that are sent before it.
        """
        now, state = self._now, self._state
        if first:
            state = replace(state, bucket=state.bucket.take(now, len(first)))
        unpaid = [each for each in (*first, *(sent.query for sent in self._in_flight)) if each is not None]
        cost_s = 0.0 if query is None else self._costs.wait_s(query, self._clock.monotonic(), unpaid)
        return max(cost_s, state.wait_s(now, self._kept_back))

    def take(self, query: str | None, *, paced: bool) -> SentRequest:
        """Take the token of a request that is sent now. The caller must call `answered` or `lost` afterwards."""
        now, bucket = self._now, self._state.bucket
        self._state = replace(self._state, bucket=bucket.take(now, 1), spent=self._state.spent + 1, as_of=now)
        self._sent += 1
        sent = SentRequest(now, self._sent, query, paced, bucket.spent_until <= now, bool(self._in_flight))
        self._in_flight.append(sent)
        return sent

    @property
    def _kept_back(self) -> int:
        burst = self._state.bucket.burst
        return 1 if KEPT_BACK_FROM <= burst < UNLIMITED else 0

    def lost(self, sent: SentRequest) -> None:
        self._in_flight.remove(sent)

    def answered(self, sent: SentRequest, answer: Answer, *, throttled: bool, body: Any = None) -> None:
        """Learn from *answer*.

        Args:
            throttled: Whether the rate limit refused the request, whatever the status says.
            body: The JSON of a GraphQL answer.
        """
        self._in_flight.remove(sent)
        reports_cost = sent.query is not None and self._costs.read(sent.query, body, self._clock.monotonic())
        self._throttled += throttled
        if throttled and reports_cost:
            return  # the cost was too high; the number of requests was not
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
            self._refused(sent, self._now, throttled_wait_s(answer.headers, answer.body))
        else:
            self._accepted(sent, self._now, headers.remaining, was_unknown=was_unknown)

    def _adopt(self, headers: RateHeaders) -> None:
        estimate = self._state.estimate
        if headers.burst is not None:
            estimate = estimate.with_burst(int(headers.burst), "reported")
        if headers.rate_per_s is not None:
            estimate = estimate.with_rate(headers.rate_per_s, "reported")
        self._resize(estimate)

    def _accepted(self, sent: SentRequest, now: float, remaining: float | None, *, was_unknown: bool) -> None:
        latency_s, self._refused_in_a_row = now - sent.at, 0
        self._reached_at = max(self._reached_at, (sent.at + now) / 2)
        late_s = latency_s - self._fastest_s
        self._fastest_s = min(self._fastest_s or latency_s, latency_s)
        alone, bucket = not sent.beside and sent.number == self._sent, self._state.bucket
        if sent.from_full and bucket.burst < UNLIMITED:
            # a full bucket gains nothing until the request arrives, which is later than others by up to this
            late_s = late_s if alone else min(late_s, 1 / bucket.rate_per_s)
            self._state = replace(self._state, bucket=replace(bucket, spent_until=bucket.spent_until + late_s))
        if sent.at >= self._refused_at:  # otherwise it arrived before the bucket was known to be empty
            self._limit.accepted(self._reached_at, paced=sent.paced)
        # a small bucket is mostly empty: its levels do not show the rate
        is_told = remaining is not None and self._state.bucket.burst >= KEPT_BACK_FROM
        if alone or not is_told:
            self._learn(remaining if is_told else None)
        if remaining is not None:
            others = len(self._in_flight)  # requests whose tokens the report may not have subtracted
            self._correct(now, remaining - others, most=remaining - others if was_unknown else remaining + 1)

    def _learn(self, remaining: float | None) -> None:
        """Learn the rate from a request that was accepted, and from the level that its answer reports."""
        sample = Sample(self._reached_at, self._sent - self._throttled, remaining or 0.0)
        if remaining is not None:
            self._levels.check(sample)
        if self._state.estimate.rate_from in UNSURE:
            self._learn_rate(None if remaining is None else sample)

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

    def _refused(self, sent: SentRequest, now: float, retry_after_s: float | None) -> None:
        if sent.at < self._refused_at:  # that the bucket is empty was found out meanwhile
            until = max(self._state.frozen_until, now + (retry_after_s or 0.0))
            self._state = replace(self._state, refused=self._state.refused + 1, frozen_until=until, as_of=now)
            return
        self._refused_at = now
        self._reached_at = max(self._reached_at, (sent.at + now) / 2)
        estimate = self._state.estimate
        if estimate.rate_from == "reported":
            self._limit.refused(self._reached_at, estimate.rate_per_s)
        else:
            self._limit.refused(self._reached_at)
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
        if estimate == self._state.estimate:
            return
        now, size, bucket = self._now, estimate.bucket(), self._state.bucket
        if bucket.burst == UNLIMITED:  # tokens taken so far count against the burst that is known now
            bucket = replace(bucket, burst=size.burst)
        resized = bucket.resized(now, size.rate_per_s, size.burst)
        self._state = replace(self._state, bucket=resized, estimate=estimate, as_of=now)


class QueryCosts:
    """A bucket of GraphQL cost, as ``extensions.cost`` of the answers reports it (Shopify's form)."""

    def __init__(self) -> None:
        self._bucket: Bucket | None = None
        self._costs: dict[str, int] = {}

    def wait_s(self, query: str, now: float, unpaid: Iterable[str] = ()) -> float:
        """Return the seconds until *query* can be paid after those *unpaid*; 0 while its cost or the limit is
        unknown.
        """
        if self._bucket is None:
            return 0.0
        cost = sum(self._costs.get(each, 1) for each in (query, *unpaid))
        return self._bucket.wait_s(now, min(cost, self._bucket.burst))

    def read(self, query: str, body: Any, now: float) -> bool:
        """Adopt what an answer reports. Return False if it reports no cost."""
        cost = _members(_members(_members(body).get("extensions")).get("cost"))
        status = _members(cost.get("throttleStatus"))
        names = ("maximumAvailable", "currentlyAvailable", "restoreRate")
        most, left, per_s = (_number(status.get(name)) for name in names)
        if not most or left is None or not per_s:
            return False
        self._bucket = Bucket(per_s, max(1, int(most))).with_level(now, left)
        requested = _number(cost.get("requestedQueryCost"))
        if requested is not None:
            self._costs[query] = max(1, math.ceil(requested))
        return True


def _members(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        return None
    number = float(value)
    return number if 0 <= number <= rate_headers.MOST else None


LONGEST_S = 60.0  # a rate is measured over one to two times this time
UNTRUSTED_AFTER = 2  # requests refused although tokens were reported


class ReportedLevels:
    """The reported levels of one bucket.

    Levels are whole numbers, so the rate that they show is too low by up to one token, and never too high.

    Attributes:
        misleading: Whether they describe another limit or none: tokens are reported where requests are refused, or
            always zero although requests are accepted.
    """

    def __init__(self) -> None:
        self._trust = HeaderTrust()
        self._contradicted = 0
        self.misleading = False
        self._base: Sample | None = None
        self._next: Sample | None = None
        self._rate_per_s: float | None = None

    def refused(self, remaining: float | None) -> None:
        """Record that a request was refused by an answer that reports *remaining* tokens."""
        self._trust.refused()
        self._contradicted += remaining is not None and remaining >= 1
        self.misleading |= self._contradicted >= UNTRUSTED_AFTER

    def check(self, sample: Sample) -> None:
        """Record that a request was accepted by an answer that reports this level."""
        self._trust.check(sample, math.inf, 0.0, sample.at)
        self.misleading |= not self._trust.trusted(sample.at)

    def rate(self, sample: Sample, burst: int | None) -> float | None:
        """Return tokens per second, at most the real rate, or None while that is unknown."""
        if self._base is None or self._next is None:
            self._base = self._next = sample
            return None
        gained = sample.accepted - self._base.accepted + sample.level - self._base.level
        rate_per_s = (gained - 1) / (sample.at - self._base.at) if gained >= 2 and sample.at > self._base.at else 0.0
        if burst is not None and sample.level >= burst - 1:  # tokens added to a full bucket are lost
            self._base = self._next = sample
            self._rate_per_s = max(self._rate_per_s or 0.0, rate_per_s) or None
            return self._rate_per_s
        if sample.at - self._next.at > LONGEST_S:
            self._base, self._next = self._next, sample
        self._rate_per_s = rate_per_s or self._rate_per_s
        return self._rate_per_s
