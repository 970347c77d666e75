"""Where a bucket lives that several spend: in this process's memory, or in a database that all of them reach."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from crossdock.clock import Clock
from crossdock.pacing.bucket import Bucket
from crossdock.pacing.known import Known


@dataclass(frozen=True, slots=True)
class Purse:
    """A bucket with its accounts; all instants are seconds since the epoch on the store's clock.

    Attributes:
        known: What is known of the limit; the bucket may grow at another pace for a while, to find out more.
        spent: Tokens that were taken since it was made, by all.
        refused: How many of them the server refused, so that they took none of its own.
        frozen_until: Nothing is given before this instant, because the server said so.
    """

    bucket: Bucket
    known: Known
    spent: int = 0
    refused: int = 0
    frozen_until: float = 0.0

    @classmethod
    def of(cls, known: Known) -> Purse:
        """A full bucket of this size."""
        return cls(known.bucket(), known)

    def taken(self, now: float, wanted: int, reserve: int) -> tuple[Purse, int]:
        """The purse after at most *wanted* tokens were taken, *reserve* of them left where they are; and how many."""
        there = 0 if now < self.frozen_until else math.floor(self.bucket.level(now) + 1e-6) - reserve
        count = max(0, min(wanted, there))
        if count == 0:
            return self, 0
        return replace(self, bucket=self.bucket.take(now, count), spent=self.spent + count), count

    def wait_s(self, now: float, reserve: int) -> float:
        """Seconds until one token beyond *reserve* is given."""
        cost = min(reserve + 1, self.bucket.burst)
        return max(0.0, self.frozen_until - now, self.bucket.wait_s(now, cost))

    def filled(self, now: float, known: Known) -> Purse:
        """The purse of the next run: what is known may have changed, and never more than an empty bucket is owed."""
        bucket = known.bucket(min(self.bucket.spent_until, now + known.spendable / known.bucket().rate_per_s))
        return replace(self, bucket=bucket, known=known)


@dataclass(frozen=True, slots=True)
class Grant:
    """What a store gave: *count* tokens, the last of which is number *purse.spent*, at *now* on its clock."""

    count: int
    purse: Purse
    now: float


class BucketStore(Protocol):
    """A bucket that threads, processes or hosts share; both calls are atomic among all of them."""

    def take(self, wanted: int, reserve: int) -> Grant:
        """Take at most *wanted* tokens, leaving *reserve*; zero just looks."""

    def change(self, change: Callable[[Purse, float], Purse]) -> Grant:
        """Replace the purse by what *change* makes of it at this instant of the store's clock; may call it again."""


class MemoryStore:
    """For the threads of one process."""

    def __init__(self, clock: Clock, purse: Purse) -> None:
        self._clock, self._purse, self._lock = clock, purse, threading.Lock()

    def take(self, wanted: int, reserve: int) -> Grant:
        with self._lock:
            now = self._clock.now().timestamp()
            self._purse, count = self._purse.taken(now, wanted, reserve)
            return Grant(count, self._purse, now)

    def change(self, change: Callable[[Purse, float], Purse]) -> Grant:
        with self._lock:
            now = self._clock.now().timestamp()
            self._purse = change(self._purse, now)
            return Grant(0, self._purse, now)
