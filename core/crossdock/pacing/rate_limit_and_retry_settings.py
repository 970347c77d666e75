"""The settings of a config for the rate limit of an API, for retries and for requests in flight."""

from __future__ import annotations

import math
from typing import Annotated, Protocol

from pydantic import Field

from crossdock.pacing.token_bucket import UNLIMITED, LimitEstimate
from crossdock.values.config_base_types import MAX_S, ConfigModel


class Retry(ConfigModel):
    """Retries of requests that failed in transit or with a temporary error."""

    attempts: Annotated[int, Field(ge=1, le=20)] = 6
    """Attempts for one request while others succeed; after that it is left to the next run. If none has succeeded yet,
    the run stops after so many, which takes as long as a ``Retry-After`` demands."""
    give_up_after_s: Annotated[float, Field(ge=0, le=MAX_S)] = 300.0
    """Seconds without a successful request after which the run stops, if one has succeeded before."""
    base_s: Annotated[float, Field(gt=0, le=MAX_S)] = 0.5
    """Upper bound of the first pause in seconds. It doubles with each attempt; the pause is drawn uniformly below it
    (full jitter)."""
    cap_s: Annotated[float, Field(gt=0, le=MAX_S)] = 60.0
    """Upper bound of every pause, in seconds."""


InFlight = Annotated[int, Field(ge=1, le=128)]


class LimitSettings(Protocol):
    def estimate(self, earlier: LimitEstimate | None = None) -> LimitEstimate:
        """Return the limit before the first answer. Values that *earlier* runs found stay in use."""


class RateLimit(ConfigModel):
    """The rate limit of an API. A configured value is never exceeded; others are reported by answers or learned."""

    per_minute: Annotated[int, Field(gt=0)] | None = None
    """Requests per minute. Default: reported by the API or learned."""
    burst: Annotated[int, Field(ge=1)] | None = None
    """Requests that a full token bucket lets through at once. Default: reported or learned; 1 if only ``per_minute`` is
    set."""

    def estimate(self, earlier: LimitEstimate | None = None) -> LimitEstimate:
        most_per_s = self.per_minute / 60 if self.per_minute else math.inf
        return (
            LimitEstimate(most_per_s=most_per_s, most_at_once=self.burst or UNLIMITED)
            .configured_limit()
            .with_limits_found_by_earlier_runs(earlier)
        )
