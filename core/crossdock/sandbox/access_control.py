"""Authentication by API key, of which only the SHA-256 is stored, and authorization by scope."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from crossdock.resources import ResourceName
from crossdock.sandbox.problem_errors import ProblemError


class Caller(NamedTuple):
    """The stored part of an API key. Access, rate limit and both logs refer to it."""

    id: str
    tenant: str
    key_hash: bytes
    scopes: str = ""  # separated by spaces, as in OAuth


NOBODY = Caller("", "", b"")
_SCOPE_NAMES: Mapping[ResourceName, str] = {
    "invoice": "invoices",
    "order": "orders",
    "customer": "customers",
    "product": "products",
    "inventory_lot": "lots",
    "warehouse_bin": "bins",
    "ledger_account": "accounts",
}
SCOPE_LABELS = {each: resource.replace("_", " ").capitalize() + "s" for resource, each in _SCOPE_NAMES.items()}
SCOPE_LABELS["webhooks"] = "Webhooks"
SCOPES = tuple(f"{name}:{access}" for name in (*_SCOPE_NAMES.values(), "webhooks", "*") for access in ("read", "write"))


def generate_key(tenant: str, scopes: str) -> tuple[Caller, str]:
    """A new key. It contains the id of its credential, so that the look-up compares no secret."""
    name = secrets.token_hex(6)
    key = f"sbx_{name}_{secrets.token_hex(24)}"
    return Caller(name, tenant, hashlib.sha256(key.encode()).digest(), scopes), key


def authenticate(known: Mapping[str, Caller], headers: Mapping[str, str]) -> Caller:
    """The caller of a request; 401 without a *known* key, 403 if the key belongs to another tenant."""
    scheme, _, key = headers.get("authorization", "").partition(" ")
    credential = known.get(key.split("_")[1]) if key.count("_") == 2 else None
    given = hashlib.sha256(key.encode()).digest()
    if scheme.lower() != "bearer" or not credential or not hmac.compare_digest(credential.key_hash, given):
        raise ProblemError(401, "A valid bearer credential is required.", headers={"www-authenticate": "Bearer"})
    if headers.get("x-tenant-slug") != credential.tenant:
        raise ProblemError(403, "x-tenant-slug does not name the tenant of this credential.")
    return credential


def authorize(caller: Caller, resource: ResourceName, method: str) -> None:
    """403 with the required scope if *caller* does not have it (RFC 6750 section 3.1)."""
    require(caller, required_scope(resource, method))


def require(caller: Caller, required: str) -> None:
    """403 if *caller* does not have the *required* scope."""
    if not allows(caller.scopes, required):
        challenge = f'Bearer error="insufficient_scope", scope="{required}"'
        detail = f"This credential does not have the scope {required}."
        raise ProblemError(403, detail, headers={"www-authenticate": challenge})


def required_scope(resource: ResourceName, method: str) -> str:
    return f"{_SCOPE_NAMES[resource]}:{'read' if method == 'GET' else 'write'}"


@cache
def allows(scopes: str, required: str) -> bool:
    """Whether one of the *scopes* includes the *required* one: writing includes reading, ``*`` every resource."""
    resource, _, access = required.partition(":")
    sufficient = {f"{name}:{each}" for name in (resource, "*") for each in {access, "write"}}
    return not sufficient.isdisjoint(scopes.split())
