"""Assertions by which a client authenticates with a private key in place of a secret (RFC 7521, RFC 7523)."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, get_args
from uuid import uuid4

from crossdock.errors import ConfigError
from crossdock.values import exact_json
from crossdock.values.config_base_types import Secret

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
LIFE_S = 300
SignatureAlgorithm = Literal["PS256", "PS384", "PS512", "RS256", "RS384", "RS512", "ES256", "ES384", "ES512"]
"""An algorithm of RFC 7518 with which a client signs."""
ALGORITHMS: tuple[SignatureAlgorithm, ...] = get_args(SignatureAlgorithm)
_CURVES = {"ES256": "secp256r1", "ES384": "secp384r1", "ES512": "secp521r1"}


@dataclass(frozen=True)
class ClientAssertion:
    """A JWT that a client signs for each request for a token.

    Args:
        private_key: In PEM, without a passphrase.
        key_id: By which the server knows the certificate or public key (``kid``); None for a server that has only one.
        algorithm: RSA with PSS (``PS``) or PKCS #1 (``RS``), or ECDSA (``ES``), each with SHA-2 of 256, 384 or 512 bits
            (RFC 7518).
        claims: Added to those of RFC 7523, or in place of them, such as ``scope`` or ``aud``.
    """

    private_key: Secret | str
    key_id: Secret | str | None = None
    algorithm: SignatureAlgorithm = "PS256"
    claims: Mapping[str, Any] = field(default_factory=dict)

    def token(self, client_id: str, audience: str, now: datetime) -> str:
        """Return a JWT in compact form, valid for five minutes. Raises ConfigError if the key cannot sign it."""
        issued = int(now.timestamp())
        times = {"iat": issued, "exp": issued + LIFE_S}
        claims = {"iss": client_id, "sub": client_id, "aud": audience, "jti": str(uuid4()), **times, **self.claims}
        key_id = self.key_id.reveal() if isinstance(self.key_id, Secret) else self.key_id
        header = {"typ": "JWT", "alg": self.algorithm} | ({} if key_id is None else {"kid": key_id})
        content = f"{_base64url(exact_json.dumps(header))}.{_base64url(exact_json.dumps(claims))}"
        return f"{content}.{_base64url(self._signature(content.encode()))}"

    def _signature(self, content: bytes) -> bytes:
        # few connections sign anything
        from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils  # noqa: PLC0415

        text = self.private_key if isinstance(self.private_key, str) else self.private_key.reveal()
        try:
            key = serialization.load_pem_private_key(text.encode(), None)
        except (ValueError, TypeError):
            raise self._key_error("is not a private key in PEM without a passphrase") from None
        digest = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}[self.algorithm[2:]]
        if self.algorithm.startswith("ES"):
            if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name != _CURVES[self.algorithm]:
                raise self._key_error(
                    f"is not a key of the curve {_CURVES[self.algorithm]}, which {self.algorithm} needs"
                )
            size = (key.curve.key_size + 7) // 8
            numbers = utils.decode_dss_signature(key.sign(content, ec.ECDSA(digest)))
            return b"".join(number.to_bytes(size, "big") for number in numbers)
        if not isinstance(key, rsa.RSAPrivateKey):
            raise self._key_error(f"is not an RSA key, which {self.algorithm} needs")
        is_pss = self.algorithm.startswith("PS")
        scheme = padding.PSS(padding.MGF1(digest), digest.digest_size) if is_pss else padding.PKCS1v15()
        return key.sign(content, scheme, digest)

    def _key_error(self, problem: str) -> ConfigError:
        name = "the private key" if isinstance(self.private_key, str) else self.private_key.reference
        return ConfigError(f"{name} {problem}", code="secret_invalid")


def _base64url(content: bytes) -> str:
    return urlsafe_b64encode(content).decode().rstrip("=")
