"""Token buckets: the bucket, the estimated limit, its state, and the stores for threads, processes and hosts.

A bucket is an immutable value: the generic cell rate algorithm (ITU-T I.371, virtual scheduling). Its only state is the
instant until which tokens are spent, so it is exact and easy to share.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Literal, Protocol

from msgspec import Struct, structs

from crossdock.values.clock import Clock

ROUNDING = 1e-6  # of a token, or of a second


class Bucket(Struct, frozen=True):
    """*burst* tokens when full; one is added every ``1 / rate_per_s`` seconds.

    Attributes:
        spent_until: Seconds on the caller's clock; the bucket is full again at this instant.

    Raises:
        ValueError: If the rate is not positive and finite, or the burst is below one.
    """

    rate_per_s: float
    burst: int
    spent_until: float = -math.inf

    def __post_init__(self) -> None:
        if not 0 < self.rate_per_s < math.inf:
            raise ValueError(f"a rate of {self.rate_per_s} per second is not positive and finite")
        if self.burst < 1:
            raise ValueError(f"a burst of {self.burst} is below one")

    def level(self, now: float) -> float:
        """Return the tokens at *now*, with fractions, at most *burst*; negative for a debt.

        A clock that is set back yields no token twice.
        """
        return min(float(self.burst), self.burst - (self.spent_until - now) * self.rate_per_s)

    def tokens(self, now: float) -> int:
        return max(0, math.floor(self.level(now) + ROUNDING))

    def after_taking_tokens(self, now: float, cost: int) -> Bucket:
        """Return the bucket without *cost* tokens, which may leave a debt."""
        return structs.replace(self, spent_until=max(self.spent_until, now) + cost / self.rate_per_s)

    def wait_s(self, now: float, cost: int = 1) -> float:
        """Return the seconds from *now* until *cost* tokens are available; 0.0 if they are.

        Raises:
            ValueError: If *cost* exceeds *burst*, so that no wait is long enough.
        """
        if cost > self.burst:
            raise ValueError(f"{cost} tokens exceed a burst of {self.burst}")
        return max(0.0, self.spent_until - now - (self.burst - cost) / self.rate_per_s)

    def with_level(self, now: float, level: float) -> Bucket:
        """Return the bucket with *level* tokens at *now*, capped at *burst*."""
        return structs.replace(self, spent_until=now + (self.burst - min(level, self.burst)) / self.rate_per_s)

    def resized_with_same_level(self, now: float, rate_per_s: float, burst: int) -> Bucket:
        """Return a bucket of another rate and burst with the same level at *now*."""
        return Bucket(rate_per_s, burst).with_level(now, self.level(now))


Origin = Literal["set", "documented", "reported", "learned", "guessed", "unknown"]
UNSURE: frozenset[Origin] = frozenset({"learned", "guessed", "unknown"})
UNLIMITED = 10**9  # the burst of a bucket that has never been empty
LEARNED_SHARE = 0.99  # of a learned burst is spent at once: the estimate is accurate to one percent
DEFAULT_PER_S = 10_000 / 60  # while no rate is known; it matters only once a request is refused


class LimitEstimate(Struct, frozen=True):
    """A rate and a burst.

    Attributes:
        rate_per_s: Tokens per second; None if unknown.
        burst: Tokens in a full bucket; None if unknown.
        agreed: Number of consecutive estimates that confirmed a learned rate.
        most_per_s: Configured maximum of the rate, which no reported or learned rate exceeds.
        most_at_once: Configured maximum of the burst.

    Raises:
        ValueError: If the rate is not positive and finite, or the burst is below one.
    """

    rate_per_s: float | None = None
    rate_from: Origin = "unknown"
    burst: int | None = None
    burst_from: Origin = "unknown"
    agreed: int = 0
    most_per_s: float = math.inf
    most_at_once: int = UNLIMITED

    def __post_init__(self) -> None:
        rate_per_s = DEFAULT_PER_S if self.rate_per_s is None else self.rate_per_s
        Bucket(rate_per_s, 1 if self.burst is None else self.burst)

    def with_capped_rate(self, rate_per_s: float, origin: Origin, agreed: int = 0) -> LimitEstimate:
        """Return the same with another rate, capped at the configured one."""
        return structs.replace(self, rate_per_s=min(rate_per_s, self.most_per_s), rate_from=origin, agreed=agreed)

    def with_capped_burst(self, burst: int, origin: Origin) -> LimitEstimate:
        """Return the same with another burst, at least 1 and capped at the configured one."""
        return structs.replace(self, burst=max(1, min(burst, self.most_at_once)), burst_from=origin)

    def with_limits_found_by_earlier_runs(self, earlier: LimitEstimate | None) -> LimitEstimate:
        """Return the same with the reported or learned rate and burst of *earlier*."""
        estimate = self
        if earlier is not None and earlier.rate_per_s is not None and earlier.rate_from in {"reported", "learned"}:
            estimate = estimate.with_capped_rate(earlier.rate_per_s, earlier.rate_from, earlier.agreed)
        if earlier is not None and earlier.burst is not None and earlier.burst_from in {"reported", "learned"}:
            estimate = estimate.with_capped_burst(earlier.burst, earlier.burst_from)
        return estimate

    @property
    def burst_with_safety_margin(self) -> int:
        """The part of the burst to spend at once; `UNLIMITED` while the burst is unknown."""
        if self.burst is None:
            return UNLIMITED
        return max(1, int(self.burst * LEARNED_SHARE)) if self.burst_from == "learned" else self.burst

    def configured_limit(self) -> LimitEstimate:
        """Return what is configured, without anything that was documented, reported or learned."""
        estimate = LimitEstimate(most_per_s=self.most_per_s, most_at_once=self.most_at_once)
        if self.most_per_s < math.inf:
            estimate = estimate.with_capped_rate(self.most_per_s, "set").with_capped_burst(1, "documented")
        return estimate if self.most_at_once == UNLIMITED else estimate.with_capped_burst(self.most_at_once, "set")

    def configured_bucket(self) -> Bucket | None:
        """Return a full bucket of the configured maxima, or None without any. A missing maximum is the known value."""
        if self.most_per_s == math.inf and self.most_at_once == UNLIMITED:
            return None
        rate_per_s = self.most_per_s if self.most_per_s < math.inf else self.rate_per_s or DEFAULT_PER_S
        return Bucket(rate_per_s, self.burst_with_safety_margin)

    def bucket(self, full_again_at: float = -math.inf) -> Bucket:
        """Return a bucket of this size that is full again at *full_again_at*, on the caller's clock."""
        return Bucket(self.rate_per_s or DEFAULT_PER_S, self.burst_with_safety_margin, full_again_at)


def limit_text(known: LimitEstimate) -> str:
    """Describe a limit for people: its rate and burst, and how each is known."""
    sure = f", {known.agreed + 1} estimates agree" if known.rate_from == "learned" and known.agreed else ""
    rate = f"{known.rate_per_s * 60:,.0f} a minute ({known.rate_from}{sure})" if known.rate_per_s else "rate unknown"
    burst = f"burst {known.burst:,} ({known.burst_from})" if known.burst else "burst unknown"
    learning = "" if known.rate_per_s and known.burst else "; it is learned from answers"
    return f"{rate}, {burst}{learning}"


class BucketState(Struct, frozen=True):
    """A bucket with its counters. Instants are seconds on the store's clock.

    Attributes:
        bucket: May fill at a slightly different rate than the estimate for a while, to probe for a higher limit.
        spent: Tokens taken by all users since the bucket was created.
        refused: Requests that the server refused.
        frozen_until: No token is available before this instant (``Retry-After``).
        as_of: When the state was last changed.
    """

    bucket: Bucket
    estimate: LimitEstimate
    spent: int = 0
    refused: int = 0
    frozen_until: float = 0.0
    as_of: float = 0.0

    @classmethod
    def from_estimate(cls, estimate: LimitEstimate) -> BucketState:
        return cls(estimate.bucket(), estimate)

    @classmethod
    def from_earlier_run(cls, earlier: BucketState | None, estimate: LimitEstimate, now: float) -> BucketState:
        """Return the state for a run that begins now with *estimate*, after the last one left *earlier*."""
        return earlier.carried_to_next_run(now, estimate) if earlier else cls.from_estimate(estimate)

    def take_available(self, now: float, wanted: int, reserve: int) -> tuple[BucketState, int]:
        """Take at most *wanted* tokens, leaving *reserve*. Return the new state and the number taken."""
        available = 0 if now < self.frozen_until else math.floor(self.bucket.level(now) + ROUNDING) - reserve
        count = max(0, min(wanted, available))
        if count == 0:
            return self, 0
        return structs.replace(
            self, bucket=self.bucket.after_taking_tokens(now, count), spent=self.spent + count, as_of=now
        ), count

    def wait_s(self, now: float, reserve: int) -> float:
        cost = min(reserve + 1, self.bucket.burst)
        return max(0.0, self.frozen_until - now, self.bucket.wait_s(now, cost))

    def adjusted_to_clock(self, now: float, tolerance_s: float = 0.0) -> BucketState:
        """Adjust the state to a clock that was set back, so that its last change lies after *now*.

        Its instants then move back as well, as if no time had passed since. A difference of up to *tolerance_s* is
        ignored.
        """
        ahead = self.as_of - now
        if ahead <= tolerance_s:
            return self
        bucket = structs.replace(self.bucket, spent_until=self.bucket.spent_until - ahead)
        return structs.replace(self, bucket=bucket, frozen_until=self.frozen_until - ahead, as_of=now)

    def carried_to_next_run(self, now: float, estimate: LimitEstimate) -> BucketState:
        """Return the state for the next run: with its *estimate*, and an empty bucket at worst."""
        kept = self.adjusted_to_clock(now)
        bucket = estimate.bucket(
            min(kept.bucket.spent_until, now + estimate.burst_with_safety_margin / estimate.bucket().rate_per_s)
        )
        return structs.replace(kept, bucket=bucket, estimate=estimate)


BucketChange = Callable[[BucketState, float], BucketState]  # from a state and the present on the store's clock


class TakenTokens(Struct, frozen=True):
    """*count* tokens taken at *now* on the store's clock. The last one has the number ``bucket_state.spent``."""

    count: int
    bucket_state: BucketState
    now: float


class BucketStore(Protocol):
    """A bucket shared by threads, processes or hosts. Both methods are atomic."""

    def take_available(self, wanted: int, reserve: int) -> TakenTokens:
        """Take at most *wanted* tokens, leaving *reserve*. Zero only reads."""

    def change(self, change: BucketChange) -> TakenTokens:
        """Replace the state by the result of *change*, which may be called more than once."""


class MemoryBucketStore:
    """A bucket for the threads of one process. Its clock starts at the time of day and is monotonic from then on."""

    def __init__(self, clock: Clock, bucket_state: BucketState) -> None:
        self._clock, self._bucket_state, self._lock = clock, bucket_state, threading.Lock()
        self._offset = clock.now().timestamp() - clock.monotonic()

    def take_available(self, wanted: int, reserve: int) -> TakenTokens:
        with self._lock:
            now = self._offset + self._clock.monotonic()
            self._bucket_state, count = self._bucket_state.take_available(now, wanted, reserve)
            return TakenTokens(count, self._bucket_state, now)

    def change(self, change: BucketChange) -> TakenTokens:
        with self._lock:
            now = self._offset + self._clock.monotonic()
            self._bucket_state = structs.replace(change(self._bucket_state, now), as_of=now)
            return TakenTokens(0, self._bucket_state, now)


class BucketStoreWithLastState:
    """Accesses a store and keeps the last result."""

    def __init__(self, clock: Clock, store: BucketStore) -> None:
        self._clock, self._store = clock, store
        self.take_available(0, 0)

    @property
    def last_state(self) -> BucketState:
        return self.last.bucket_state

    @property
    def now(self) -> float:
        return self.last.now + self._clock.monotonic() - self._seen_at

    def take_available(self, wanted: int, reserve: int) -> TakenTokens:
        return self._keep_last_result(self._store.take_available(wanted, reserve))

    def change(self, change: BucketChange) -> None:
        self._keep_last_result(self._store.change(change))

    def set_level(self, level: float) -> None:
        self.change(lambda state, now: structs.replace(state, bucket=state.bucket.with_level(now, level)))

    def resize_to_estimate(self, estimate: LimitEstimate, rate_per_s: float | None = None) -> None:
        size = estimate.bucket()

        def change(state: BucketState, now: float) -> BucketState:
            bucket = state.bucket
            if bucket.burst == UNLIMITED:  # tokens taken so far count against the burst that is known now
                bucket = structs.replace(bucket, burst=size.burst)
            resized = bucket.resized_with_same_level(now, rate_per_s or size.rate_per_s, size.burst)
            return structs.replace(state, bucket=resized, estimate=estimate)

        self.change(change)

    def _keep_last_result(self, taken: TakenTokens) -> TakenTokens:
        self.last, self._seen_at = taken, self._clock.monotonic()
        return taken


class Forecast(Struct, frozen=True):
    """The time that *requests* need.

    Attributes:
        at_once: How many can be sent now; None if the limit is unknown.
        rate_per_s: The rate of the others; None if unknown.
        seconds: Until the last of them can be sent; None if the limit is unknown.
    """

    requests: int
    at_once: int | None
    rate_per_s: float | None
    seconds: float | None


def forecast_request_duration(bucket_state: BucketState, requests: int, now: float) -> Forecast:
    """Return the time that *requests* need from *now*, in seconds on the clock of *bucket_state*."""
    estimate = bucket_state.estimate
    if estimate.burst is None or estimate.rate_per_s is None:
        return Forecast(requests, None, estimate.rate_per_s, None)
    level = bucket_state.bucket.level(now)
    wait_s = max(0.0, bucket_state.frozen_until - now) if requests else 0.0
    seconds = max(wait_s, (requests - level) / estimate.rate_per_s, 0.0)
    return Forecast(requests, min(requests, max(0, int(level))), estimate.rate_per_s, seconds)
