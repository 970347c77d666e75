"""Who is let in, and how often: API keys, of which only the SHA-256 is kept, and their rate limit."""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from crossdock.resources import ResourceName
from crossdock.sandbox import rate_limit_headers
from crossdock.sandbox.problem_answers import ProblemError
from crossdock.sandbox.rate_limit_headers import Dialect, Quota

_ROUNDING = 1e-9  # so that who waits exactly long enough is not refused for the last bit of a float


class Caller(NamedTuple):
    """What is kept of an API key. Requests are permitted, limited and witnessed by it."""

    id: str
    tenant: str
    key_hash: bytes
    scopes: str = ""  # with blanks between, as OAuth writes them


NOBODY = Caller("", "", b"")
_SCOPED: Mapping[ResourceName, str] = {
    "invoice": "invoices",
    "order": "orders",
    "customer": "customers",
    "product": "products",
    "inventory_lot": "lots",
    "warehouse_bin": "bins",
    "ledger_account": "accounts",
}
SCOPES = tuple(f"{what}:{may}" for what in (*_SCOPED.values(), "*") for may in ("read", "write"))


def mint(tenant: str, scopes: str) -> tuple[Caller, str]:
    """Make a key; it names its credential, so that looking it up compares no secret."""
    name = secrets.token_hex(6)
    key = f"sbx_{name}_{secrets.token_hex(24)}"
    return Caller(name, tenant, hashlib.sha256(key.encode()).digest(), scopes), key


def prove(known: Mapping[str, Caller], headers: Mapping[str, str]) -> Caller:
    """Find out which credential a request has; 401 without a *known* key, 403 if it is none of the tenant named."""
    scheme, _, key = headers.get("authorization", "").partition(" ")
    credential = known.get(key.split("_")[1]) if key.count("_") == 2 else None
    given = hashlib.sha256(key.encode()).digest()
    if scheme.lower() != "bearer" or not credential or not hmac.compare_digest(credential.key_hash, given):
        raise ProblemError(401, "A known bearer credential is needed.", headers={"www-authenticate": "Bearer"})
    if headers.get("x-tenant-slug") != credential.tenant:
        raise ProblemError(403, "x-tenant-slug does not name the tenant of this credential.")
    return credential


def permit(caller: Caller, resource: ResourceName, method: str) -> None:
    """Let a request pass that *caller*'s scopes allow, else 403 with what it needs (RFC 6750 section 3.1)."""
    needed = scope_of(resource, method)
    if not _allows(caller.scopes, needed):
        challenge = f'Bearer error="insufficient_scope", scope="{needed}"'
        detail = f"This credential has not the scope {needed}."
        raise ProblemError(403, detail, headers={"www-authenticate": challenge})


def scope_of(resource: ResourceName, method: str) -> str:
    """The scope that a *method* on a *resource* needs."""
    return f"{_SCOPED[resource]}:{'read' if method == 'GET' else 'write'}"


@cache
def _allows(scopes: str, needed: str) -> bool:
    """Whether one of the *scopes* is the one that is *needed*, or more: writing is reading too, and ``*`` is all."""
    what, _, may = needed.partition(":")
    enough = {f"{name}:{verb}" for name in (what, "*") for verb in {may, "write"}}
    return not enough.isdisjoint(scopes.split())


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
    """A bucket for each credential, and what answers tell of it in one dialect."""

    def __init__(self, rate_per_min: int, burst: int, dialect: Dialect = "draft10") -> None:
        self._rate, self._burst, self._dialect = rate_per_min / 60, burst, dialect
        self._buckets: dict[Caller, TokenBucket] = {}
        self.policy = rate_limit_headers.policy(dialect, burst, math.ceil(burst / self._rate))

    def take(self, caller: Caller, now: float) -> dict[str, str]:
        """Take one token and tell what is left, as header fields; 429 when there is none."""
        bucket = self._buckets.setdefault(caller, TokenBucket(self._rate, self._burst, self._burst, now))
        wait_s = bucket.take(now)
        more_in_s = max(1, math.ceil(wait_s or bucket.seconds_to_next()))
        full_in_s = math.ceil((self._burst - bucket.tokens) / self._rate)
        told = self._told(int(bucket.tokens + _ROUNDING), more_in_s, full_in_s, now)
        if wait_s:
            advice = {} if self._dialect == "none" else {"retry-after": str(more_in_s)}
            raise ProblemError(429, "The request quota is used up.", headers={**told, **advice})
        return told

    def lie(self, now: float, *, plenty: bool) -> dict[str, str]:
        """Tell of a full bucket, or of an empty one for an hour; neither is ever true after a request."""
        return self._told(self._burst, 1, 0, now) if plenty else self._told(0, 3600, 3600, now)

    def _told(self, left: int, more_in_s: int, full_in_s: int, now: float) -> dict[str, str]:
        return {
            **self.policy,
            **rate_limit_headers.told(self._dialect, Quota(self._burst, left, more_in_s, full_in_s, now)),
        }
