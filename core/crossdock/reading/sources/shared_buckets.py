"""The token buckets of the APIs that the runs of a session read, possibly at the same time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from crossdock.pacing.bucket_store import BucketState
from crossdock.pacing.rate_limit import LimitSettings
from crossdock.reading.sources.source_bucket import SentRequest, SourceBucket
from crossdock.reading.transport.http_results import Answer
from crossdock.values.clock import Clock


class ApiBucket(Protocol):
    """The bucket of one API: a `SharedBucket`, or that of a target which is read as well.

    Attributes:
        users: How many runs use it now.
    """

    users: int

    @property
    def state(self) -> BucketState: ...

    def before_batches(self, query: str | None) -> AbstractContextManager[None]: ...

    def take(self, query: str | None, *, paced: bool, live: bool) -> SentRequest | float: ...

    def answered(self, sent: SentRequest, answer: Answer, *, throttled: bool, body: Any = None) -> None: ...

    def lost(self, sent: SentRequest) -> None: ...


class SharedBucket:
    """A `SourceBucket` for threads, in which requests of live runs have priority over those of batches.

    Args:
        earlier: The state of the bucket at the end of the last run.

    Attributes:
        users: How many runs use it now.
    """

    def __init__(self, clock: Clock, limit: LimitSettings, earlier: BucketState | None = None) -> None:
        self._bucket, self._lock = SourceBucket(clock, limit, earlier), threading.Lock()
        self._live: list[str | None] = []  # queries of live requests that wait for a token
        self.users = 0

    @property
    def state(self) -> BucketState:
        with self._lock:
            return self._bucket.state

    @contextmanager
    def before_batches(self, query: str | None) -> Iterator[None]:
        """Let batches leave the next token to a live request within the block."""
        with self._lock:
            self._live.append(query)
        try:
            yield
        finally:
            with self._lock:
                self._live.remove(query)

    def take(self, query: str | None, *, paced: bool, live: bool) -> SentRequest | float:
        """Take the token of a request that is sent now, or return the seconds until one may be free.

        Args:
            query: The query of a GraphQL request.
            paced: Whether the request has waited for its token.
            live: Whether it has priority over batches.
        """
        with self._lock:
            wait_s = self._bucket.wait_s(query, () if live else self._live)
            return wait_s if wait_s > 0 else self._bucket.take(query, paced=paced)

    def answered(self, sent: SentRequest, answer: Answer, *, throttled: bool, body: Any = None) -> None:
        with self._lock:
            self._bucket.answered(sent, answer, throttled=throttled, body=body)

    def lost(self, sent: SentRequest) -> None:
        with self._lock:
            self._bucket.lost(sent)


class SharedBuckets:
    """The buckets of a session by connection. For threads."""

    def __init__(self) -> None:
        self._lock, self._buckets = threading.Lock(), dict[str, ApiBucket]()

    def join(self, connection: str, clock: Clock, limit: LimitSettings, earlier: BucketState | None) -> ApiBucket:
        """Return the bucket of *connection* until `leave`: the one that other runs use, or one that continues the last.

        Args:
            earlier: The bucket that the state has of the last run. It may be older or newer than what this session
                knows.
        """
        with self._lock:
            shared = self._buckets.get(connection)
            if shared is None or not shared.users:
                states = (earlier, None if shared is None else shared.state)
                newest = max((each for each in states if each is not None), key=lambda each: each.as_of, default=None)
                shared = self._buckets[connection] = SharedBucket(clock, limit, newest)
            shared.users += 1
            return shared

    def keep(self, connection: str, bucket: ApiBucket) -> None:
        with self._lock:
            self._buckets[connection] = bucket
            bucket.users += 1

    def leave(self, shared: ApiBucket) -> None:
        with self._lock:
            shared.users -= 1
