"""The cost of GraphQL queries, which some APIs limit instead of the number of requests."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from crossdock.pacing import rate_limit_headers
from crossdock.pacing.token_bucket import Bucket


class QueryCosts:
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

    def adopt_reported(self, query: str, body: Any, now: float) -> bool:
        """Adopt what an answer reports. Return False if it reports no cost."""
        cost = _object_or_empty(_object_or_empty(_object_or_empty(body).get("extensions")).get("cost"))
        status = _object_or_empty(cost.get("throttleStatus"))
        names = ("maximumAvailable", "currentlyAvailable", "restoreRate")
        most, left, per_s = (_number(status.get(name)) for name in names)
        if not most or left is None or not per_s:
            return False
        self._bucket = Bucket(per_s, max(1, int(most))).with_level(now, left)
        requested = _number(cost.get("requestedQueryCost"))
        if requested is not None:
            self._costs[query] = max(1, math.ceil(requested))
        return True


def _object_or_empty(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        return None
    number = float(value)
    return number if 0 <= number <= rate_limit_headers.MOST else None
