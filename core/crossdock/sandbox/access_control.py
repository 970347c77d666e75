"""Authentication by API key or access token, of which only the SHA-256 is stored, and authorization by scope."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping
from typing import NamedTuple

from crossdock.sandbox import scopes as scope_names
from crossdock.sandbox.problem_errors import ProblemError
from crossdock.sandbox.scopes import required_scope

_REALM = 'Bearer realm="sandbox"'


class Caller(NamedTuple):
    """The stored part of a credential. All tokens of an OAuth client have its id, so a retry may use another token."""

    id: str
    tenant: str
    key_hash: bytes
    scopes: str = ""  # separated by spaces, as in OAuth
    client_scopes: str = ""  # of the OAuth client; a token that leaves a narrowed scope out is narrowed nonetheless

    def permitted_single_record_names(self, resource: str, access: str) -> frozenset[str] | None:
        """Return the names of the records of *resource* that a request may touch, also through others; None for all."""
        for each in (self.scopes, self.client_scopes):
            permitted = scope_names.permitted_single_record_names(each, resource, access)
            if permitted is None or scope_names.is_narrowed_to_single_records(each, resource):
                return permitted
        return None


NOBODY = Caller("", "", b"")


def generate_api_key(tenant: str, scopes: str) -> tuple[Caller, str]:
    """Generate a key. It contains the id of its credential, so that the look-up compares no secret."""
    name = secrets.token_hex(6)
    key = f"sbx_{name}_{secrets.token_hex(24)}"
    return Caller(name, tenant, hashlib.sha256(key.encode()).digest(), scopes), key


def authenticate(
    known: Mapping[str, Caller], find_token: Callable[[str], Caller | None], headers: Mapping[str, str]
) -> Caller:
    """Return the caller, or raise 401 or 403. A challenge has an error only for a credential (RFC 6750 section 3.1)."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not given:
        raise ProblemError(401, "A valid bearer credential is required.", headers={"www-authenticate": _REALM})
    credential = _find_caller_by_key(known, given) or find_token(given)
    if credential is None:
        challenge = (
            f'{_REALM}, error="invalid_token", error_description="The credential is unknown, expired or revoked"'
        )
        raise ProblemError(401, "A valid bearer credential is required.", headers={"www-authenticate": challenge})
    if headers.get("x-tenant-slug") != credential.tenant:
        raise ProblemError(403, "x-tenant-slug does not name the tenant of this credential.")
    return credential


def raise_unless_authorized_for_resource(caller: Caller, resource: str, method: str) -> None:
    required = required_scope(resource, method)
    permitted = scope_names.permitted_single_record_names(caller.scopes, resource, required.rpartition(":")[2])
    if permitted is not None and not permitted:
        raise insufficient_scope_error(required)


def raise_unless_scope_granted(caller: Caller, required: str) -> None:
    if not scope_names.is_scope_included(caller.scopes, required):
        raise insufficient_scope_error(required)


def insufficient_scope_error(required: str) -> ProblemError:
    """Return a 403 that names the *required* scopes (RFC 6750 section 3.1)."""
    challenge = f'{_REALM}, error="insufficient_scope", scope="{required}"'
    detail = f"This credential does not have the scope {required}."
    return ProblemError(403, detail, headers={"www-authenticate": challenge})


def _find_caller_by_key(known: Mapping[str, Caller], key: str) -> Caller | None:
    credential = known.get(key.split("_")[1]) if key.count("_") == 2 else None
    given = hashlib.sha256(key.encode()).digest()
    return credential if credential and hmac.compare_digest(credential.key_hash, given) else None
