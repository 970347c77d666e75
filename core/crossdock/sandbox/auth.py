"""Who asks: API keys as bearer credentials. Only a key's SHA-256 is ever kept."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from crossdock.sandbox.answers import ProblemError

TENANT = "sandbox"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a request comes from, once its credential is proved; every permission hangs on this value."""

    tenant: str
    credential: str


@dataclass(frozen=True, slots=True)
class Credential:
    """What is kept of an API key: its public id, its tenant and its hash."""

    id: str
    tenant: str
    key_hash: bytes


def mint(tenant: str) -> tuple[Credential, str]:
    """Make a key; it names its credential, so that looking it up compares no secret."""
    credential_id = secrets.token_hex(6)
    key = f"sbx_{credential_id}_{secrets.token_hex(24)}"
    return Credential(credential_id, tenant, _hash(key)), key


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


class Keys:
    """The credentials in force."""

    def __init__(self, credentials: Iterable[Credential]) -> None:
        self._credentials = {each.id: each for each in credentials}

    def __len__(self) -> int:
        return len(self._credentials)

    def add(self, credential: Credential) -> None:
        self._credentials[credential.id] = credential

    def caller(self, headers: Mapping[str, str]) -> Caller:
        """Prove the credential and the tenant of a request.

        Raises:
            ProblemError: 401 without a known key; 403 when the key is not one of the tenant that is named.
        """
        scheme, _, key = headers.get("authorization", "").partition(" ")
        credential = self._credentials.get(key.split("_")[1]) if key.count("_") == 2 else None
        known = credential is not None and hmac.compare_digest(credential.key_hash, _hash(key))
        if scheme.lower() != "bearer" or credential is None or not known:
            raise ProblemError(401, "A known bearer credential is needed.", headers={"www-authenticate": "Bearer"})
        if headers.get("x-tenant-slug") != credential.tenant:
            raise ProblemError(403, "x-tenant-slug does not name the tenant of this credential.")
        return Caller(credential.tenant, credential.id)
