"""What the rate limit of an API lets one connection request now."""

from __future__ import annotations

import math
from typing import Any

from crossdock.clock import Clock
from crossdock.pacing import rate_headers
from crossdock.pacing.allowance import Allowance, Token
from crossdock.pacing.bucket_store import BucketState, MemoryStore
from crossdock.pacing.rate_limit import RateLimit
from crossdock.pacing.token_bucket import Bucket
from crossdock.transport.http_answers import Answer

LEAST_WAIT_S = 0.001


class SourceAllowance:
    """The allowance of one connection: of requests, and for GraphQL of the cost that answers report.

    Args:
        earlier: The state of the bucket at the end of the last run.

    Attributes:
        requests: How many were sent.
        throttled: How many of them the API refused.
    """

    def __init__(self, clock: Clock, limit: RateLimit, earlier: BucketState | None = None) -> None:
        estimate, now = limit.estimate(earlier.estimate if earlier else None), clock.now().timestamp()
        state = earlier.carried_over(now, estimate) if earlier else BucketState.of(estimate)
        self._clock, self._allowance = clock, Allowance(clock, MemoryStore(clock, state), ceiling=1)
        self._costs = QueryCosts()
        self.requests = self.throttled = 0

    @property
    def bucket_state(self) -> BucketState:
        """The bucket as it was last seen."""
        return self._allowance.bucket_state

    @property
    def summary(self) -> str:
        """The number of requests, of which some were throttled, for the report of a run."""
        number = f"{self.requests:,} API request{'' if self.requests == 1 else 's'}"
        return f"{number}, {self.throttled:,} throttled"

    def take(self, query: str | None) -> Token:
        """Wait until a request may be sent.

        Args:
            query: Of a GraphQL request.
        """
        if query is not None:
            self._clock.sleep(self._costs.wait_s(query, self._clock.monotonic()))
        while not (tokens := self._allowance.take(1)):
            self._clock.sleep(max(LEAST_WAIT_S, self._allowance.wait_s()))
        self.requests += 1
        return tokens[0]

    def answered(
        self, token: Token, answer: Answer, *, throttled: bool, query: str | None = None, body: Any = None
    ) -> None:
        """Learn from *answer*.

        Args:
            throttled: Whether the rate limit refused the request, whatever the status says.
            body: The JSON of a GraphQL answer.
        """
        reports_cost = query is not None and self._costs.read(query, body, self._clock.monotonic())
        self.throttled += throttled
        if throttled and reports_cost:
            return  # the cost was too high for the moment; the number of requests was not
        # a source sends one request at a time, so a refusal without a time always means an empty bucket
        wait_s = (rate_headers.retry_after_s(answer.headers) or 0.0) if throttled else None
        headers = rate_headers.read(answer.headers)
        self._allowance.answered(token, accepted=not throttled, headers=headers, retry_after_s=wait_s)


class QueryCosts:
    """A bucket of GraphQL cost, as ``extensions.cost`` of the answers reports it (Shopify's form)."""

    def __init__(self) -> None:
        self._bucket: Bucket | None = None
        self._costs: dict[str, int] = {}

    def wait_s(self, query: str, now: float) -> float:
        """Seconds until *query* can be paid; 0 while its cost or the limit is unknown."""
        if self._bucket is None:
            return 0.0
        return self._bucket.wait_s(now, min(self._costs.get(query, 1), self._bucket.burst))

    def read(self, query: str, body: Any, now: float) -> bool:
        """Take over what an answer reports; False if it reports no cost."""
        cost = _members(_members(_members(body).get("extensions")).get("cost"))
        status = _members(cost.get("throttleStatus"))
        names = ("maximumAvailable", "currentlyAvailable", "restoreRate")
        most, left, per_s = (_number(status.get(name)) for name in names)
        if not most or left is None or not per_s:
            return False
        self._bucket = Bucket(per_s, max(1, int(most))).with_level(now, left)
        requested = _number(cost.get("requestedQueryCost"))
        if requested is not None:
            self._costs[query] = max(1, math.ceil(requested))
        return True


def _members(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> float | None:
    """*value* if it is a number from 0 to 1e9."""
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        return None
    number = float(value)
    return number if 0 <= number <= rate_headers.MOST else None
