"""Storage of a token bucket: in memory for the threads of a process, or in a database for processes and hosts."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct, structs

from crossdock.pacing.estimated_rate_limit_and_origin import UNLIMITED, LimitEstimate
from crossdock.pacing.token_bucket import ROUNDING, Bucket
from crossdock.values.clock import Clock


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


Change = Callable[[BucketState, float], BucketState]  # from a state and the present on the store's clock


class TakenTokens(Struct, frozen=True):
    """*count* tokens taken at *now* on the store's clock. The last one has the number ``bucket_state.spent``."""

    count: int
    bucket_state: BucketState
    now: float


class BucketStore(Protocol):
    """A bucket shared by threads, processes or hosts. Both methods are atomic."""

    def take_available(self, wanted: int, reserve: int) -> TakenTokens:
        """Take at most *wanted* tokens, leaving *reserve*. Zero only reads."""

    def change(self, change: Change) -> TakenTokens:
        """Replace the state by the result of *change*, which may be called more than once."""


class MemoryStore:
    """A bucket for the threads of one process. Its clock starts at the time of day and is monotonic from then on."""

    def __init__(self, clock: Clock, bucket_state: BucketState) -> None:
        self._clock, self._bucket_state, self._lock = clock, bucket_state, threading.Lock()
        self._offset = clock.now().timestamp() - clock.monotonic()

    def take_available(self, wanted: int, reserve: int) -> TakenTokens:
        with self._lock:
            now = self._offset + self._clock.monotonic()
            self._bucket_state, count = self._bucket_state.take_available(now, wanted, reserve)
            return TakenTokens(count, self._bucket_state, now)

    def change(self, change: Change) -> TakenTokens:
        with self._lock:
            now = self._offset + self._clock.monotonic()
            self._bucket_state = structs.replace(change(self._bucket_state, now), as_of=now)
            return TakenTokens(0, self._bucket_state, now)


class BucketAccess:
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
        return self._remember(self._store.take_available(wanted, reserve))

    def change(self, change: Change) -> None:
        self._remember(self._store.change(change))

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

    def _remember(self, taken: TakenTokens) -> TakenTokens:
        self.last, self._seen_at = taken, self._clock.monotonic()
        return taken
