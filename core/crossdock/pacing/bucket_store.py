"""Where a bucket lives that several spend: in this process's memory, or in a database that all of them reach."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from crossdock.clock import Clock
from crossdock.pacing.limit_estimate import LimitEstimate
from crossdock.pacing.token_bucket import Bucket


@dataclass(frozen=True, slots=True)
class BucketState:
    """A bucket with its accounts; all instants are seconds on the store's clock.

    Attributes:
        known: What is known of the limit; the bucket may grow at another pace for a while, to find out more.
        spent: Tokens that were taken since it was made, by all.
        refused: How many of them the server refused, so that they took none of its own.
        frozen_until: Nothing is given before this instant, because the server said so.
        as_of: When it was changed last.
    """

    bucket: Bucket
    known: LimitEstimate
    spent: int = 0
    refused: int = 0
    frozen_until: float = 0.0
    as_of: float = 0.0

    @classmethod
    def of(cls, known: LimitEstimate) -> BucketState:
        """A full bucket of this size."""
        return cls(known.bucket(), known)

    def taken(self, now: float, wanted: int, reserve: int) -> tuple[BucketState, int]:
        """The purse after at most *wanted* tokens were taken, *reserve* of them left where they are; and how many."""
        there = 0 if now < self.frozen_until else math.floor(self.bucket.level(now) + 1e-6) - reserve
        count = max(0, min(wanted, there))
        if count == 0:
            return self, 0
        return replace(self, bucket=self.bucket.take(now, count), spent=self.spent + count, as_of=now), count

    def wait_s(self, now: float, reserve: int) -> float:
        """Seconds until one token beyond *reserve* is given."""
        cost = min(reserve + 1, self.bucket.burst)
        return max(0.0, self.frozen_until - now, self.bucket.wait_s(now, cost))

    def at(self, now: float, tolerance_s: float = 0.0) -> BucketState:
        """The purse on a clock that shows *now*: if it was changed later than that, the clock was set back since.

        Its instants are moved by as much then, as if no time had passed. By how much it may have been changed later
        without that is *tolerance_s*.
        """
        ahead = self.as_of - now
        if ahead <= tolerance_s:
            return self
        bucket = replace(self.bucket, spent_until=self.bucket.spent_until - ahead)
        return replace(self, bucket=bucket, frozen_until=self.frozen_until - ahead, as_of=now)

    def filled(self, now: float, known: LimitEstimate) -> BucketState:
        """The purse of the next run: what is known may have changed, and never more than an empty bucket is owed."""
        kept = self.at(now)
        bucket = known.bucket(min(kept.bucket.spent_until, now + known.spendable / known.bucket().rate_per_s))
        return replace(kept, bucket=bucket, known=known)


@dataclass(frozen=True, slots=True)
class TakenTokens:
    """What a store gave: *count* tokens, the last of which is number *purse.spent*, at *now* on its clock."""

    count: int
    bucket_state: BucketState
    now: float


class BucketStore(Protocol):
    """A bucket that threads, processes or hosts share; both calls are atomic among all of them."""

    def take(self, wanted: int, reserve: int) -> TakenTokens:
        """Take at most *wanted* tokens, leaving *reserve*; zero just looks."""

    def change(self, change: Callable[[BucketState, float], BucketState]) -> TakenTokens:
        """Replace the purse by what *change* makes of it at this instant of the store's clock; may call it again."""


class MemoryStore:
    """For the threads of one process. Its clock shows the time of day when it is made, and is not set after that."""

    def __init__(self, clock: Clock, bucket_state: BucketState) -> None:
        self._clock, self._bucket_state, self._lock = clock, bucket_state, threading.Lock()
        self._began = clock.now().timestamp() - clock.monotonic()

    @property
    def _now(self) -> float:
        return self._began + self._clock.monotonic()

    def take(self, wanted: int, reserve: int) -> TakenTokens:
        with self._lock:
            now = self._now
            self._bucket_state, count = self._bucket_state.taken(now, wanted, reserve)
            return TakenTokens(count, self._bucket_state, now)

    def change(self, change: Callable[[BucketState, float], BucketState]) -> TakenTokens:
        with self._lock:
            now = self._now
            self._bucket_state = replace(change(self._bucket_state, now), as_of=now)
            return TakenTokens(0, self._bucket_state, now)
