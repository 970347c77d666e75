"""How a sandbox behaves: the one place for everything in which two sandboxes may differ."""

from __future__ import annotations

from dataclasses import dataclass

from crossdock.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSettings:
    """Limits and manners of one sandbox.

    Attributes:
        rate_per_min: Requests a minute that a credential's bucket regains; documented as 10,000.
        burst: Requests that a full bucket holds; an assumption.
        max_body_bytes: A longer request body is answered 413.
        delay_s: Seconds by which every API answer is held back after its effect; its key counts as running meanwhile.
    """

    rate_per_min: int = 10_000
    burst: int = 2_000
    max_body_bytes: int = 1 << 20
    delay_s: float = 0.0

    def __post_init__(self) -> None:
        for name in ("rate_per_min", "burst", "max_body_bytes"):
            if getattr(self, name) < 1:
                raise ConfigError("must be at least 1", where=f"sandbox {name}", hint="Give a positive whole number.")
        if self.delay_s < 0:
            raise ConfigError("must not be negative", where="sandbox delay_s", hint="Give seconds, or 0 for none.")
