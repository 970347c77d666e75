"""Verifies ID tokens (OpenID Connect Core, section 3.1.3.7). Only this module imports joserfc (extra ``console``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import ECKey, Key, KeySet, RSAKey
from joserfc.jws import JWSRegistry
from msgspec import Struct

from crossdock.reading.transport.client_assertions import ALGORITHMS

LEEWAY_S = 60
_KINDS: Mapping[str, type[RSAKey | ECKey]] = {"RSA": RSAKey, "EC": ECKey}  # no key is shared with the provider


class InvalidIdTokenError(Exception):
    """The token proves nothing. The text says why, without parts of the token."""


class UnknownKeyError(InvalidIdTokenError):
    """The provider may have a new key since its keys were read."""


class ExpectedClaims(Struct, frozen=True):
    issuer: str
    audience: str
    nonce: str


def verified_claims(token: str, keys: object, expected: ExpectedClaims, now: int) -> Mapping[str, Any]:
    """Return the claims of *token*, signed by one of *keys* (the member of a JWK set). Raises InvalidIdTokenError."""
    registry = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
    registry.max_header_length = 8_192  # some providers put their certificates there
    try:
        found = jwt.decode(token, KeySet(list(_signature_keys_in_jwk_set(keys))), registry=registry).claims
        _claims_rules(expected, now).validate(found)
    except InvalidKeyIdError:
        raise UnknownKeyError("it is signed by an unknown key") from None
    except JoseError as error:
        raise InvalidIdTokenError(f"{type(error).__name__}: {error.description}") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidIdTokenError(type(error).__name__) from None
    party, audience = found.get("azp"), found["aud"]
    if party not in {None, expected.audience} or (party is None and isinstance(audience, list) and len(audience) > 1):
        raise InvalidIdTokenError("it is for another client")
    return found


def _claims_rules(expected: ExpectedClaims, now: int) -> jwt.JWTClaimsRegistry:
    return jwt.JWTClaimsRegistry(
        now,
        LEEWAY_S,
        iss={"essential": True, "value": expected.issuer},
        aud={"essential": True, "value": expected.audience},
        nonce={"essential": True, "value": expected.nonce},
        sub={"essential": True},
        exp={"essential": True},
        iat={"essential": True},
    )


def _signature_keys_in_jwk_set(keys: object) -> Iterator[Key]:
    """Yield the public keys for signatures; others of the set are for other clients."""
    for each in keys if isinstance(keys, list) else ():
        kind = _KINDS.get(each.get("kty", "")) if isinstance(each, dict) else None
        if kind is not None:
            try:
                yield kind.import_key({name: value for name, value in each.items() if isinstance(value, str | list)})
            except (JoseError, ValueError, TypeError):
                continue
