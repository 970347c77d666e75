"""Access to a stored bucket, with the state that this user saw last."""

from __future__ import annotations

from dataclasses import replace

from crossdock.pacing.bucket_store import BucketState, BucketStore, Change, TakenTokens
from crossdock.pacing.rate_limit_estimate import UNLIMITED, LimitEstimate
from crossdock.values.clock import Clock


class BucketAccess:
    """Accesses a store and keeps the last result."""

    def __init__(self, clock: Clock, store: BucketStore) -> None:
        self._clock, self._store = clock, store
        self.take(0, 0)

    @property
    def state(self) -> BucketState:
        return self.last.bucket_state

    @property
    def now(self) -> float:
        return self.last.now + self._clock.monotonic() - self._seen_at

    def take(self, wanted: int, reserve: int) -> TakenTokens:
        return self._remember(self._store.take(wanted, reserve))

    def change(self, change: Change) -> None:
        self._remember(self._store.change(change))

    def set_level(self, level: float) -> None:
        self.change(lambda state, now: replace(state, bucket=state.bucket.with_level(now, level)))

    def resize(self, estimate: LimitEstimate, rate_per_s: float | None = None) -> None:
        size = estimate.bucket()

        def change(state: BucketState, now: float) -> BucketState:
            bucket = state.bucket
            if bucket.burst == UNLIMITED:  # tokens taken so far count against the burst that is known now
                bucket = replace(bucket, burst=size.burst)
            resized = bucket.resized(now, rate_per_s or size.rate_per_s, size.burst)
            return replace(state, bucket=resized, estimate=estimate)

        self.change(change)

    def _remember(self, taken: TakenTokens) -> TakenTokens:
        self.last, self._seen_at = taken, self._clock.monotonic()
        return taken
