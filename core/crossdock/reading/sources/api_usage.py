"""The number of requests and the waiting time of a run at one API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class ApiUsage:
    requests: int = 0
    throttled: int = 0
    waited_s: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Return JSON without floats, which the state does not store."""
        return {"requests": self.requests, "throttled": self.throttled, "waited_ms": round(1000 * self.waited_s)}
