"""What a run requested of the API of one connection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class ApiUsage:
    """The requests of one connection.

    Attributes:
        requests: How many were sent.
        throttled: How many of them the rate limit refused.
        waited_s: Seconds that were spent waiting for the rate limit.
    """

    requests: int = 0
    throttled: int = 0
    waited_s: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Without floats, which the state does not store."""
        return {"requests": self.requests, "throttled": self.throttled, "waited_ms": round(1000 * self.waited_s)}
