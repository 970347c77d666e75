"""JWTs that a client signs to authenticate at a token endpoint, checked with another implementation's parts."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

from crossdock.errors import ConfigError
from crossdock.reading.transport.client_assertions import ALGORITHMS, ClientAssertion, SignatureAlgorithm

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RSA = rsa.generate_private_key(65537, 2048)
EC = {256: ec.generate_private_key(ec.SECP256R1()), 384: ec.generate_private_key(ec.SECP384R1()),
      512: ec.generate_private_key(ec.SECP521R1())}  # fmt: skip


def pem(key: Any, passphrase: bytes | None = None) -> str:
    lock: Any = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    content: bytes = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock)
    return content.decode()


def decoded(part: str) -> bytes:
    return urlsafe_b64decode(part + "=" * (-len(part) % 4))


def parts(token: str) -> tuple[Any, Any, bytes, bytes]:
    """Header, claims, signed content and signature."""
    header, claims, signature = token.split(".")
    return json.loads(decoded(header)), json.loads(decoded(claims)), f"{header}.{claims}".encode(), decoded(signature)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_signature_can_be_verified(algorithm: SignatureAlgorithm) -> None:
    """With the public key, in the form of RFC 7518: for ECDSA the two numbers, each with the length of the curve."""
    bits = int(algorithm[2:])
    digest = {256: hashes.SHA256(), 384: hashes.SHA384(), 512: hashes.SHA512()}[bits]
    key: Any = EC[bits] if algorithm.startswith("ES") else RSA
    header, _, content, signature = parts(ClientAssertion(pem(key), None, algorithm).token("me", "https://a", NOW))
    assert header == {"typ": "JWT", "alg": algorithm}
    if algorithm.startswith("ES"):
        size = {256: 32, 384: 48, 512: 66}[bits]
        assert len(signature) == 2 * size
        numbers = int.from_bytes(signature[:size], "big"), int.from_bytes(signature[size:], "big")
        key.public_key().verify(utils.encode_dss_signature(*numbers), content, ec.ECDSA(digest))
    elif algorithm.startswith("PS"):
        key.public_key().verify(signature, content, padding.PSS(padding.MGF1(digest), bits // 8), digest)
    else:
        key.public_key().verify(signature, content, padding.PKCS1v15(), digest)


def test_the_claims_are_those_of_the_rfc_and_of_the_vendor() -> None:
    """Each token has an id of its own, and lives for five minutes; declared claims are added or replace others."""
    made = ClientAssertion(pem(RSA), "kid-1", claims={"scope": ["a", "b"], "aud": "https://issuer"})
    (header, first, *_), (_, second, *_) = (parts(made.token("me", "https://a", NOW)) for _ in range(2))
    assert header["kid"] == "kid-1"
    assert first.pop("jti") != second.pop("jti")
    times = {"iat": 1_767_225_600, "exp": 1_767_225_900}
    assert first == {"iss": "me", "sub": "me", "aud": "https://issuer", "scope": ["a", "b"], **times}


@pytest.mark.parametrize(
    ("key", "algorithm", "says"),
    [
        ("-----BEGIN", "PS256", "is not a private key in PEM without a passphrase"),
        (pem(RSA, b"secret"), "PS256", "is not a private key in PEM without a passphrase"),
        (pem(EC[256]), "PS256", "is not an RSA key, which PS256 needs"),
        (pem(RSA), "ES256", "is not a key of the curve secp256r1, which ES256 needs"),
        (pem(EC[384]), "ES256", "is not a key of the curve secp256r1, which ES256 needs"),
    ],
)
def test_a_key_that_cannot_sign_is_an_error_of_the_config(key: str, algorithm: SignatureAlgorithm, says: str) -> None:
    """The message says what is needed, and quotes nothing of the key."""
    with pytest.raises(ConfigError) as refused:
        ClientAssertion(key, None, algorithm).token("me", "https://a", NOW)
    assert str(refused.value) == f"the private key {says}"
