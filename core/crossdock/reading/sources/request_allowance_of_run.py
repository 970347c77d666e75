"""What the rate limit of an API permits one run to request."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

from msgspec import Struct

from crossdock.pacing.token_bucket import BucketState
from crossdock.reading.sources.shared_token_buckets import ApiBucket, SentRequest
from crossdock.reading.transport.http_answer_and_error_types import Answer
from crossdock.values.clock import Clock

LEAST_WAIT_S = 0.00001


class SourceAllowance:
    """The allowance of one run at the API of one connection.

    For one thread, which sends one request after the other. Runs in other threads may share the bucket.

    Args:
        waiting: Called before each wait with its length, and with zero when a request need not wait.
        live: Whether its requests have priority over those of batches that share the bucket.
    """

    def __init__(
        self,
        clock: Clock,
        bucket: ApiBucket,
        waiting: Callable[[timedelta], None] = lambda _: None,
        *,
        live: bool = False,
    ) -> None:
        self._clock, self._bucket, self._waiting, self._live = clock, bucket, waiting, live
        self.usage = ApiUsage()

    @property
    def bucket_state(self) -> BucketState:
        """The bucket as last seen, with the rate for the start of the next run."""
        return self._bucket.state

    def wait_for_token(self, query: str | None) -> SentRequest:
        """Wait until a request may be sent. The caller must call `record_answer` or `record_unanswered_request`
        afterwards.

        Args:
            query: The query of a GraphQL request.
        """
        taken = self._bucket.take_token_or_wait_s(query, live=self._live)
        if isinstance(taken, SentRequest):
            self._waiting(timedelta())
        else:
            with self._bucket.with_priority_over_batches(query) if self._live else nullcontext():
                taken = self._take_after_waits(query, taken)
        self.usage.requests += 1
        return taken

    def _take_after_waits(self, query: str | None, taken: SentRequest | float) -> SentRequest:
        while not isinstance(taken, SentRequest):
            self._waiting(timedelta(seconds=taken))
            self._clock.sleep(max(LEAST_WAIT_S, taken))
            self.usage.waited_s += taken
            taken = self._bucket.take_token_or_wait_s(query, live=self._live)
        return taken

    def record_answer(
        self, sent: SentRequest, answer: Answer, *, throttled: bool, wait_s: float | None = None, body: Any = None
    ) -> None:
        """Learn from *answer*.

        Args:
            sent: What `wait_for_token` returned.
            throttled: Whether the rate limit refused the request, whatever the status says.
            wait_s: The wait that the connector reads off a throttled answer; None for that of a header or a text.
            body: The JSON of a GraphQL answer.
        """
        self.usage.throttled += throttled
        self._bucket.record_answer(sent, answer, throttled=throttled, wait_s=wait_s, body=body)

    def forget_refusals_since(self, earlier: BucketState) -> None:
        """Go on with `bucket_state` as it was *earlier*: what was refused since then was not the rate of requests."""
        self._bucket.forget_refusals_since(earlier)

    def record_unanswered_request(self, sent: SentRequest) -> None:
        self._bucket.record_unanswered_request(sent)


class ApiUsage(Struct):
    requests: int = 0
    throttled: int = 0
    waited_s: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Return JSON without floats, which the state does not store."""
        return {"requests": self.requests, "throttled": self.throttled, "waited_ms": round(1000 * self.waited_s)}
