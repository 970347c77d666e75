"""A rate limit in a config."""

from __future__ import annotations

import math
from typing import Annotated, Protocol

from pydantic import Field

from crossdock.pacing.estimated_rate_limit_and_origin import UNLIMITED, LimitEstimate
from crossdock.values.config_base_types import ConfigModel


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
            .with_earlier_findings(earlier)
        )
