"""The settings for delivery to a target, in the platform's section and in a connection that is a target."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

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
