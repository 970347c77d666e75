"""Who is let in, and how often: API keys, of which only the SHA-256 is kept, and their rate limit."""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from crossdock.sandbox.problems import ProblemError

_ROUNDING = 1e-9  # so that who waits exactly long enough is not refused for the last bit of a float


class Credential(NamedTuple):
    """What is kept of an API key. Requests are permitted, limited and witnessed by it."""

    id: str
    tenant: str
    key_hash: bytes


NOBODY = Credential("", "", b"")


def mint(tenant: str) -> tuple[Credential, str]:
    """Make a key; it names its credential, so that looking it up compares no secret."""
    name = secrets.token_hex(6)
    key = f"sbx_{name}_{secrets.token_hex(24)}"
    return Credential(name, tenant, hashlib.sha256(key.encode()).digest()), key


def prove(known: Mapping[str, Credential], headers: Mapping[str, str]) -> Credential:
    """Find out which credential a request has; 401 without a *known* key, 403 if it is none of the tenant named."""
    scheme, _, key = headers.get("authorization", "").partition(" ")
    credential = known.get(key.split("_")[1]) if key.count("_") == 2 else None
    given = hashlib.sha256(key.encode()).digest()
    if scheme.lower() != "bearer" or not credential or not hmac.compare_digest(credential.key_hash, given):
        raise ProblemError(401, "A known bearer credential is needed.", headers={"www-authenticate": "Bearer"})
    if headers.get("x-tenant-slug") != credential.tenant:
        raise ProblemError(403, "x-tenant-slug does not name the tenant of this credential.")
    return credential


@dataclass(slots=True)
class TokenBucket:
    """Tokens grow by *rate* a second up to *burst*; a request takes one, a refused request none."""

    rate: float
    burst: int
    tokens: float
    filled_at: float

    def take(self, now: float) -> float:
        """Take a token and return 0.0, or return the seconds until there is one."""
        elapsed = max(0.0, now - self.filled_at)
        self.tokens = min(float(self.burst), self.tokens + elapsed * self.rate)
        self.filled_at = now
        if self.tokens < 1 - _ROUNDING:
            return self.seconds_to_next()
        self.tokens = max(0.0, self.tokens - 1)
        return 0.0

    def seconds_to_next(self) -> float:
        """Seconds until the number of whole tokens grows."""
        return (1 - self.tokens % 1) / self.rate


class Limits:
    """A bucket for each credential, and the header fields of draft-ietf-httpapi-ratelimit-headers-10 about it."""

    def __init__(self, rate_per_min: int, burst: int) -> None:
        self._rate, self._burst = rate_per_min / 60, burst
        self._buckets: dict[Credential, TokenBucket] = {}
        self.policy = {"ratelimit-policy": f'"default";q={burst};w={math.ceil(burst / self._rate)}'}

    def take(self, caller: Credential, now: float) -> dict[str, str]:
        """Take one token and tell what is left, as header fields; 429 when there is none."""
        bucket = self._buckets.setdefault(caller, TokenBucket(self._rate, self._burst, self._burst, now))
        wait_s = bucket.take(now)
        more_in_s = max(1, math.ceil(wait_s or bucket.seconds_to_next()))
        told = {**self.policy, "ratelimit": f'"default";r={int(bucket.tokens + _ROUNDING)};t={more_in_s}'}
        if wait_s:
            raise ProblemError(429, "The request quota is used up.", headers={**told, "retry-after": str(more_in_s)})
        return told
