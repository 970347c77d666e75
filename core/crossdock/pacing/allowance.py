"""What a tenant's bucket lets us send: spent to a small reserve, corrected by answers, learned where nobody tells."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from crossdock.clock import Clock
from crossdock.pacing.bucket_store import BucketState, BucketStore, TakenTokens
from crossdock.pacing.burst_estimator import BurstEstimator
from crossdock.pacing.header_trust import HeaderTrust
from crossdock.pacing.in_flight_limit import InFlight
from crossdock.pacing.limit_estimate import UNLIMITED, LimitEstimate
from crossdock.pacing.rate_estimator import SURE, Anchor, RateEstimator, excess
from crossdock.pacing.rate_headers import MAX_WAIT_S, RateHeaders
from crossdock.pacing.unexpected_429s import Unexpected429s

Priority = Literal["batch", "live"]
RESERVE: Mapping[Priority, int] = {"batch": 100, "live": 400}  # one part of so many of the burst stays unspent
UNSURE = frozenset({"learned", "guessed", "unknown"})
ROUNDING_S = 1e-6
MEASURING_S = 0.5  # a pause that lets an unknown bucket fill a little, to see how fast it does
FIRST_IN_FLIGHT, OPEN_IN_FLIGHT = 8, 63  # of an unknown bucket: all that is on its way is refused once it is empty
OPEN_PER_S = 400.0  # but enough for so many a second, or a slow network never sees the bottom
PACE_S = 0.1  # between two changes of the pace
FRESH_S = 2.0  # so long a told level makes it needless to try how fast one may go


@dataclass(frozen=True, slots=True)
class Token:
    """A token that was taken: the *number*-th of its bucket, at *at* on the monotonic clock."""

    number: int
    at: float


class Allowance:
    """Tokens of one bucket for one thread. Threads and processes that share the bucket share its *store*.

    Requests that leave apart may arrive together, so a reserve stays unspent: ``batch`` leaves more than ``live``, and
    live work finds a token in the middle of a batch.

    Args:
        ceiling: Most requests on their way at once.

    Attributes:
        in_flight: How many requests should be on their way.
    """

    def __init__(self, clock: Clock, store: BucketStore, *, ceiling: int = 128, priority: Priority = "batch") -> None:
        self._clock, self._store, self._priority = clock, store, priority
        self.in_flight = InFlight(ceiling)
        self._header_trust, self._unexpected_429s = HeaderTrust(), Unexpected429s()
        self._rate_estimator = RateEstimator()
        grant = self._note(store.take(0, 0))
        level = grant.bucket_state.bucket.level(grant.now)
        self._burst_estimator = BurstEstimator(full=level >= grant.bucket_state.bucket.burst)
        self._own = Anchor(clock.monotonic(), grant.bucket_state.spent, level)  # since when our own accounts hold
        self._refused = self._first_of_full = 0
        self._guessing = False  # the rate is no estimate yet
        self._reacted_at = self._paced_at = -math.inf
        self._since = grant.bucket_state.spent  # the last token taken before the bucket was empty

    # What may leave

    def take(self, wanted: int) -> Sequence[Token]:
        """Tickets for what may leave now, at most *wanted*."""
        now = self._clock.monotonic()
        self._keep_pace(now)
        grant = self._note(self._store.take(wanted, self._kept_back()))
        first = grant.bucket_state.spent - grant.count + 1
        bucket = grant.bucket_state.bucket
        if grant.count and bucket.spent_until <= grant.now + grant.count / bucket.rate_per_s + ROUNDING_S:
            self._first_of_full = first
        return [Token(number, now) for number in range(first, first + grant.count)]

    def wait_s(self) -> float:
        """Seconds until there is a token, as far as this process knows."""
        return self._grant.bucket_state.wait_s(self._store_now(), self._kept_back())

    def room(self, in_flight: int) -> int:
        """How many more requests may be on their way when *in_flight* are."""
        limit = self.in_flight.limit
        if self.known.burst is None or (self._searching and not self._rate_estimator.agreed):
            since = self._grant.bucket_state.spent - self._since
            most = max(OPEN_IN_FLIGHT, round(OPEN_PER_S * self.in_flight.latency_s))
            slow = min(FIRST_IN_FLIGHT + since // 2, most + since // 400)
            documented = 0.0 if self.known.rate_from in UNSURE else self.known.rate_per_s or 0.0
            limit = min(limit, max(slow, round(2 * documented * self.in_flight.latency_s)))
        return max(0, limit - in_flight)

    @property
    def known(self) -> LimitEstimate:
        """What is known of the limit now."""
        return self.bucket_state.known

    @property
    def tokens(self) -> int | None:
        """What could leave at once; None while nobody knows."""
        return None if self.known.burst is None else self.bucket_state.bucket.tokens(self._store_now())

    @property
    def bucket_state(self) -> BucketState:
        """The bucket as it was seen last."""
        return self._grant.bucket_state

    @property
    def _searching(self) -> bool:
        """The rate was found to be another in this run; one that an earlier run has left is good until then."""
        return self.known.rate_from in UNSURE and self._reacted_at > -math.inf

    def _kept_back(self) -> int:
        return self._reserve() - self._unexpected_429s.checks_left(self.bucket_state.spent)

    def _reserve(self) -> int:
        burst = self.bucket_state.bucket.burst
        if burst == UNLIMITED:
            return 0
        part = burst // RESERVE[self._priority]
        return min(burst - 1, max(2, part)) if self._priority == "batch" else min(max(0, burst - 2), max(1, part))

    # What answers teach

    def answered(
        self, token: Token, *, accepted: bool, told: RateHeaders | None = None, retry_after_s: float | None = None
    ) -> None:
        """The request of *token* was answered: let in by the limit or refused, with what the answer told of it."""
        now = self._clock.monotonic()
        self.in_flight.answered(now, now - token.at, self.bucket_state.bucket.rate_per_s)
        self._unexpected_429s.answered(token.number, accepted=accepted)
        self._refused += not accepted
        if token.number == self._first_of_full:
            self._stayed_full((now - token.at) / 2 if accepted else 0.0)
        # a request meets the bucket in the middle of its way; all that left before it met the bucket earlier
        met = Anchor((token.at + now) / 2, token.number - self._refused)
        self._burst_estimator.passed(met)
        if not accepted:
            self._header_trust.refused()
            self._was_refused(token, met, now, retry_after_s)
        if told is not None:
            self._was_told(token, met, now, told)

    def _stayed_full(self, seconds: float) -> None:
        """The server's bucket was full until our first request came, so it has gained nothing in these *seconds*."""
        self._first_of_full = 0

        def change(bucket_state: BucketState, at: float) -> BucketState:
            level = bucket_state.bucket.level(at) - seconds * bucket_state.bucket.rate_per_s
            return replace(bucket_state, bucket=bucket_state.bucket.holding(at, level))

        if self.bucket_state.bucket.burst != UNLIMITED:
            self._note(self._store.change(change))

    def _was_refused(self, token: Token, met: Anchor, now: float, retry_after_s: float | None) -> None:
        if token.at <= self._reacted_at:
            return  # it left before we knew: the same episode
        expected = self._expected(met) <= self._reserve() / 2 and not self._unexpected_429s.usual
        if retry_after_s is None and not expected and not self._unexpected_429s.confirmed:
            self._unexpected_429s.raised(self.bucket_state.spent)
            return
        self._reacted_at = now
        self._unexpected_429s.clear()
        self._burst_estimator.ended(met)
        self._rate_estimator.saw_empty(met, self.in_flight.latency_s)
        self._own = met
        self._empty(retry_after_s)

    def _expected(self, met: Anchor) -> float:
        """The level that our own accounts gave the bucket then."""
        if self.known.rate_per_s is None or self.known.burst is None:
            return math.inf
        own = self._own
        level = own.level + self.known.rate_per_s * (met.at - own.at) - (met.accepted - own.accepted)
        return min(level, self.known.spendable)

    def _empty(self, retry_after_s: float | None) -> None:
        """Begin anew with an empty bucket; the reserve fills first, and is a longer pause where it was too short."""
        measuring = self._rate_estimator.rate_per_s is None
        self._guessing = measuring or (self._guessing and self.known.rate_per_s == self._rate_estimator.rate_per_s)
        if measuring:
            self._rate_estimator.rate_per_s = self._burst_estimator.mean_per_s() / 4
        pause = max(MEASURING_S, 4 * self.in_flight.latency_s) if measuring else 0.0
        known = self._learned()
        owed = self._reserve() * (2 ** min(self._rate_estimator.hasty, 8) - 1)
        freeze = max(pause, min(MAX_WAIT_S, retry_after_s or 0.0))
        self._since = self.bucket_state.spent

        def change(bucket_state: BucketState, at: float) -> BucketState:
            bucket = known.bucket().holding(at + pause, -owed)
            frozen_until = max(bucket_state.frozen_until, at + freeze)
            return replace(
                bucket_state, bucket=bucket, known=known, refused=bucket_state.refused + 1, frozen_until=frozen_until
            )

        self._note(self._store.change(change))

    def _learned(self) -> LimitEstimate:
        known, rate, agreed = self.known, self._rate_estimator.rate_per_s, self._rate_estimator.agreed
        assert rate is not None
        if min(rate, known.most_per_s) != known.rate_per_s or (known.rate_from == "learned" and agreed != known.agreed):
            known = known.with_rate(rate, "guessed" if self._guessing else "learned", agreed)
        if self._guessing:  # what is left of the opening at its mean rate was in the bucket at least
            return known.with_burst(self._burst_estimator.burst(self._burst_estimator.mean_per_s()) or 1, "guessed")
        burst = self._burst_estimator.burst(rate)
        if burst is not None and (known.burst_from in UNSURE or burst < (known.burst or 0)):
            return known.with_burst(burst, "learned")
        return known.with_burst(1, "learned") if known.burst is None else known

    def _was_told(self, token: Token, met: Anchor, now: float, told: RateHeaders) -> None:
        if not self._header_trust.believed(now):
            return
        self._adopt(told)
        if told.remaining is None:
            return
        rate, latency_s = self.bucket_state.bucket.rate_per_s, self.in_flight.latency_s
        reading = replace(met, level=told.remaining)
        if not self._header_trust.told(reading, rate, latency_s, now):
            if not self._header_trust.believed(now):
                self._set_level(self._expected(Anchor(now, self.bucket_state.spent - self._refused)))
            return
        if told.rate_per_s is None and self._rate_estimator.saw_level(
            reading, latency_s, self.bucket_state.bucket.burst
        ):
            self._learned_from_levels()
        level = told.remaining + rate * (now - met.at) - (self.bucket_state.spent - token.number)
        known = self.bucket_state.bucket.level(self._store_now())
        if abs(level - known) > max(3.0, self.bucket_state.bucket.burst / 200, rate * latency_s / 4):
            self._set_level(level)

    def _adopt(self, told: RateHeaders) -> None:
        """Take over the size of the bucket that the server tells."""
        known = self.known
        if told.burst is not None and int(told.burst) != known.burst:
            known = known.with_burst(int(told.burst), "told")
        if told.rate_per_s is not None and told.rate_per_s != known.rate_per_s:
            known = known.with_rate(told.rate_per_s, "told")
        if known != self.known:
            self._resize(known)

    def _learned_from_levels(self) -> None:
        assert self._rate_estimator.rate_per_s is not None
        self._resize(self.known.with_rate(self._rate_estimator.rate_per_s, "learned"))

    def _keep_pace(self, now: float) -> None:
        """Where the rate was learned, go a little faster the longer nothing is refused."""
        known = self.known
        learned = known.rate_from in UNSURE or (known.burst_from == "learned" and self._burst_estimator.under_way)
        told = now - self._header_trust.latest_at < FRESH_S and self._header_trust.believed(now)
        if known.rate_per_s is None or known.burst is None or not learned or told or now - self._paced_at < PACE_S:
            return
        self._paced_at = now
        quiet_s = now - max(self._reacted_at, self._own.at)
        agreed = self._rate_estimator.agreed if self._searching else SURE
        self._resize(known, min(known.most_per_s, known.rate_per_s * (1 + excess(agreed, quiet_s))))

    def _resize(self, known: LimitEstimate, pace_per_s: float | None = None) -> None:
        """Go on with what is known, for a while at another pace."""
        size = known.bucket()
        rate_per_s = pace_per_s or size.rate_per_s

        def change(bucket_state: BucketState, at: float) -> BucketState:
            bucket = bucket_state.bucket
            if bucket.burst == UNLIMITED:  # what was taken so far came out of the burst that is known now
                bucket = replace(bucket, burst=size.burst)
            return replace(bucket_state, bucket=bucket.turned(at, rate_per_s, size.burst), known=known)

        self._note(self._store.change(change))

    def _set_level(self, level: float) -> None:
        self._note(
            self._store.change(
                lambda bucket_state, at: replace(bucket_state, bucket=bucket_state.bucket.holding(at, level))
            )
        )

    def _note(self, grant: TakenTokens) -> TakenTokens:
        """Remember what was seen; what another process has learned is known here too."""
        self._grant, self._granted_at = grant, self._clock.monotonic()
        known = grant.bucket_state.known
        if known.rate_per_s != self._rate_estimator.rate_per_s:
            self._rate_estimator.rate_per_s, self._rate_estimator.agreed = known.rate_per_s, known.agreed
        return grant

    def _store_now(self) -> float:
        return self._grant.now + self._clock.monotonic() - self._granted_at
