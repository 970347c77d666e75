"""The token bucket of a target for runs that also read the target."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from crossdock.pacing import rate_headers
from crossdock.pacing.allowance import Allowance, Token
from crossdock.pacing.bucket_store import BucketState, BucketStore
from crossdock.pacing.reduced_rate import ReducedRate
from crossdock.reading.sources.source_bucket import SentRequest
from crossdock.reading.transport.http_results import Answer
from crossdock.values.clock import Clock


class TargetBucket:
    """Takes the tokens of requests that read a target from the bucket of its delivery. For threads.

    Args:
        reduced: The part of the bucket that may be used; None for all of it.

    Attributes:
        users: How many runs use it now.
    """

    def __init__(self, clock: Clock, store: BucketStore, reduced: ReducedRate | None = None) -> None:
        self._allowance, self._lock = Allowance(clock, store, reduced=reduced), threading.Lock()
        self.users = 0

    @property
    def state(self) -> BucketState:
        with self._lock:
            return self._allowance.bucket_state

    def before_batches(self, query: str | None) -> AbstractContextManager[None]:  # noqa: ARG002  as SharedBucket
        """Do nothing: delivery takes what it needs, whoever reads."""
        return nullcontext()

    def take(self, query: str | None, *, paced: bool, live: bool) -> SentRequest | float:  # noqa: ARG002  as SharedBucket
        """Take the token of a request that is sent now, or return the seconds until one may be free."""
        with self._lock:
            tokens = self._allowance.take(1)
            if not tokens:
                return self._allowance.wait_s()
            return SentRequest(tokens[0].at, tokens[0].number, query, paced, from_full=False, beside=False)

    def answered(self, sent: SentRequest, answer: Answer, *, throttled: bool, body: Any = None) -> None:  # noqa: ARG002  as SharedBucket
        with self._lock:
            self._allowance.answered(
                Token(sent.number, sent.at),
                accepted=not throttled,
                headers=rate_headers.read(answer.headers),
                retry_after_s=rate_headers.retry_after_s(answer.headers) if throttled else None,
            )

    def lost(self, sent: SentRequest) -> None:
        """Record that *sent* has no answer. Its token is spent."""
