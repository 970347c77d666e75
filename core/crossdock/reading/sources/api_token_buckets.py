"""The token buckets of the APIs that the runs of a session read, possibly at the same time, and what they permit one
run.

Some APIs limit the cost of GraphQL queries instead of the number of requests.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from typing import Any

from msgspec import Struct

from crossdock.pacing import answer_headers
from crossdock.pacing.answer_headers import Throttling
from crossdock.pacing.rate_limit_and_retry_settings import LimitSettings
from crossdock.pacing.request_allowance import RequestAllowance, TakenToken
from crossdock.pacing.token_bucket import Bucket, BucketState, MemoryBucketStore
from crossdock.reading.transport.http_answers_and_errors import Answer
from crossdock.values.clock import Clock
from crossdock.values.json_paths import object_or_empty


class GraphQLCostBucket:
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

    def adopt_reported_cost(self, query: str, body: Any, now: float) -> bool:
        """Adopt what an answer reports. Return False if it reports no cost."""
        cost = object_or_empty(object_or_empty(object_or_empty(body).get("extensions")).get("cost"))
        status = object_or_empty(cost.get("throttleStatus"))
        names = ("maximumAvailable", "currentlyAvailable", "restoreRate")
        most, left, per_s = (_valid_number_or_none(status.get(name)) for name in names)
        if not most or left is None or not per_s:
            return False
        self._bucket = Bucket(per_s, max(1, int(most))).with_level(now, left)
        requested = _valid_number_or_none(cost.get("requestedQueryCost"))
        if requested is not None:
            self._costs[query] = max(1, math.ceil(requested))
        return True


def _valid_number_or_none(value: Any) -> float | None:
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        return None
    number = float(value)
    return number if 0 <= number <= answer_headers.MOST else None


class SentRequest(Struct, frozen=True, eq=False):
    """A request that took a token, with the query of a GraphQL request; two are never equal."""

    token: TakenToken
    query: str | None


class ApiBucket:
    """An allowance of requests, and for GraphQL of the cost that answers report, for threads that read one API.

    Requests of live runs have priority over those of batches.

    Attributes:
        users: How many runs use it now.
    """

    def __init__(self, clock: Clock, allowance: RequestAllowance) -> None:
        self._clock, self._allowance, self._lock = clock, allowance, threading.Lock()
        self._costs = GraphQLCostBucket()
        self._in_flight: list[SentRequest] = []
        self._live: list[str | None] = []  # queries of live requests that wait for a token
        self.users = 0

    @property
    def state(self) -> BucketState:
        with self._lock:
            return self._allowance.bucket_state

    @contextmanager
    def with_priority_over_batches(self, query: str | None) -> Iterator[None]:
        """Let batches leave the next token to a live request within the block."""
        with self._lock:
            self._live.append(query)
        try:
            yield
        finally:
            with self._lock:
                self._live.remove(query)

    def take_token_or_wait_s(self, query: str | None, *, live: bool) -> SentRequest | float:
        """Take the token of a request that is sent now, or return the seconds until one may be free.

        Args:
            query: The query of a GraphQL request.
            live: Whether it has priority over batches.
        """
        with self._lock:
            first = () if live else tuple(self._live)
            wait_s = max(self._cost_wait_s(query, first), self._allowance.wait_s(len(first)) if first else 0.0)
            tokens = () if wait_s > 0 else self._allowance.take_available(1)
            if not tokens:
                return max(wait_s, self._allowance.wait_s(len(first)))
            sent = SentRequest(tokens[0], query)
            self._in_flight.append(sent)
            return sent

    def _cost_wait_s(self, query: str | None, first: Sequence[str | None]) -> float:
        if query is None:
            return 0.0
        unpaid = [each for each in (*first, *(sent.query for sent in self._in_flight)) if each is not None]
        return self._costs.wait_s(query, self._clock.monotonic(), unpaid)

    def record_answer(
        self, sent: SentRequest, answer: Answer, *, throttled: bool, wait_s: float | None = None, body: Any = None
    ) -> None:
        """Learn from *answer*.

        Args:
            throttled: Whether the rate limit refused the request, whatever the status says.
            wait_s: The wait that the connector reads off a throttled answer; None for that of a header or a text.
            body: The JSON of a GraphQL answer.
        """
        with self._lock:
            self._in_flight.remove(sent)
            reports_cost = sent.query is not None and self._costs.adopt_reported_cost(
                sent.query, body, self._clock.monotonic()
            )
            if throttled and reports_cost and wait_s is None:
                self._allowance.record_unanswered(sent.token)  # the cost was too high; the number of requests was not
                return
            self._allowance.record_answer(
                sent.token,
                accepted=not throttled,
                headers=answer_headers.read_rate_limit_headers(answer.headers),
                retry_after_s=Throttling(wait_s).wait_after_answer_s(answer.headers, answer.body)
                if throttled
                else None,
            )

    def forget_refusals_since(self, earlier: BucketState) -> None:
        """Go on with what was learned until *earlier*: what was refused since then was not the rate of requests.

        What was spent stays, and so does a pause, which may be for others.
        """
        with self._lock:
            kept = self._allowance.bucket_state.carried_to_next_run(self._clock.now().timestamp(), earlier.estimate)
            self._allowance = RequestAllowance(self._clock, MemoryBucketStore(self._clock, kept), one_by_one=True)

    def record_unanswered_request(self, sent: SentRequest) -> None:
        """Record that *sent* has no answer. Its token is spent."""
        with self._lock:
            self._in_flight.remove(sent)
            self._allowance.record_unanswered(sent.token)


def make_api_bucket(clock: Clock, limit: LimitSettings, earlier: BucketState | None = None) -> ApiBucket:
    """Return the bucket of an API that is only read.

    Args:
        earlier: The state of the bucket at the end of the last run.
    """
    estimate = limit.estimate(earlier.estimate if earlier else None)
    store = MemoryBucketStore(clock, BucketState.from_earlier_run(earlier, estimate, clock.now().timestamp()))
    return ApiBucket(clock, RequestAllowance(clock, store, one_by_one=True))


class SharedBuckets:
    """The buckets of a session by connection. For threads."""

    def __init__(self) -> None:
        self._lock, self._buckets = threading.Lock(), dict[str, ApiBucket]()

    def acquire_bucket(
        self, connection: str, clock: Clock, limit: LimitSettings, earlier: BucketState | None
    ) -> ApiBucket:
        """Return the bucket of *connection* until `release_bucket`: one that other runs use, or one that continues the
        last.

        Args:
            earlier: The bucket that the state has of the last run. It may be older or newer than what this session
                knows.
        """
        with self._lock:
            shared = self._buckets.get(connection)
            if shared is None or not shared.users:
                states = (earlier, None if shared is None else shared.state)
                newest = max((each for each in states if each is not None), key=lambda each: each.as_of, default=None)
                shared = self._buckets[connection] = make_api_bucket(clock, limit, newest)
            shared.users += 1
            return shared

    def add_bucket_in_use(self, connection: str, bucket: ApiBucket) -> None:
        with self._lock:
            self._buckets[connection] = bucket
            bucket.users += 1

    def release_bucket(self, shared: ApiBucket) -> None:
        with self._lock:
            shared.users -= 1


LEAST_WAIT_S = 0.00001


class RequestAllowanceOfRun:
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
                taken = self._wait_until_token_is_taken(query, taken)
        self.usage.requests += 1
        return taken

    def _wait_until_token_is_taken(self, query: str | None, taken: SentRequest | float) -> SentRequest:
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
