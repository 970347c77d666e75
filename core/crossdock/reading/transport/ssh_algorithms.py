"""The algorithms of SSH connections: safe ones, and old ones that a config permits for one server."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha1
from typing import Any, Literal, get_args

import paramiko
from cryptography.hazmat.primitives.hashes import SHA1
from paramiko.kex_group14 import KexGroup14SHA256

OldAlgorithm = Literal[
    "diffie-hellman-group14-sha1", "ssh-rsa", "aes128-cbc", "aes192-cbc", "aes256-cbc", "3des-cbc", "hmac-sha1",
    "hmac-sha1-96", "hmac-md5", "hmac-md5-96",
]  # fmt: skip
"""An unsafe algorithm of SSH that a server may be permitted to use."""
OLD: Sequence[OldAlgorithm] = get_args(OldAlgorithm)

_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr", "aes192-ctr", "aes256-ctr")
_OFFERS = {  # the words for each kind of paramiko's errors
    "kex algorithm": "kex_algo_list",
    "host key": "server_key_algo_list",
    "ciphers": "server_encrypt_algo_list",
    "macs": "server_mac_algo_list",
}
_NAME = re.compile(r"[A-Za-z0-9@._+-]{1,64}")
_SHOWN = 20
_TOO_OLD = "the server is too old to be used safely: ask its operator to update it, or fetch its files by other means"


class _KexGroup14Sha1(KexGroup14SHA256):
    name = "diffie-hellman-group14-sha1"
    hash_algo = sha1


class _Sha1RsaKey(paramiko.RSAKey):
    HASHES = {"ssh-rsa": SHA1}  # type: ignore[misc]  # noqa: RUF012  as in paramiko


class SafeTransport(paramiko.Transport):
    """A transport that uses only safe algorithms, and *permitted* old ones if the server offers nothing better."""

    _kex_info = {**paramiko.Transport._kex_info, _KexGroup14Sha1.name: _KexGroup14Sha1}  # type: ignore[attr-defined]  # noqa: RUF012, SLF001
    _key_info = {**paramiko.Transport._key_info, "ssh-rsa": _Sha1RsaKey}  # type: ignore[attr-defined]  # noqa: RUF012, SLF001

    def __init__(
        self, sock: Any, refused_keys: Sequence[str], permitted: Sequence[OldAlgorithm], *, max_packet: int
    ) -> None:
        macs = [name for name in OLD if name.startswith("hmac-") and name not in permitted]
        refused = {"keys": refused_keys, "macs": macs}
        super().__init__(sock, disabled_algorithms=refused, default_max_packet_size=max_packet)
        options = self.get_security_options()
        options.ciphers = (*_CIPHERS, *(name for name in permitted if name.endswith("-cbc")))
        options.kex = (*options.kex, *(name for name in permitted if name.startswith("diffie-")))
        options.key_types = (*options.key_types, *(name for name in permitted if name == "ssh-rsa"))
        self._offered: dict[str, Any] = {}

    def _really_parse_kex_init(self, m: Any, ignore_first_byte: bool = False) -> Any:
        parsed: dict[str, Any] = super()._really_parse_kex_init(m, ignore_first_byte)  # type: ignore[misc]
        if not ignore_first_byte:  # else it is logged, not the server's
            self._offered = {kind: list(parsed[member]) for kind, member in _OFFERS.items()}
        return parsed

    def old_algorithms_in_use(self) -> list[str]:
        agreed = next([name] for name in self.preferred_kex if name in self._offered["kex algorithm"])
        own: Any = self  # the types of paramiko are incomplete
        agreed.append(own.host_key_type)
        for cipher, mac in ((own.local_cipher, own.local_mac), (own.remote_cipher, own.remote_mac)):
            agreed += [cipher] if cipher.endswith("gcm@openssh.com") else [cipher, mac]
        return [name for name in OLD if name in agreed]

    def describe_no_shared_algorithm(self, text: str) -> tuple[str, str] | None:
        """Return what the server offers instead, and what to do; None if paramiko's *text* names no kind."""
        own = {
            "kex algorithm": self.preferred_kex,
            "host key": self.preferred_keys,
            "ciphers": self.preferred_ciphers,
            "macs": self.preferred_macs,
        }
        kind = next((kind for kind in own if kind in text), None)
        if kind is None:
            return None
        offered = [name for name in self._offered.get(kind, ()) if _NAME.fullmatch(name)][:_SHOWN]
        offers = f"the server offers {', '.join(offered) or 'nothing'}, and none of {', '.join(own[kind])}"
        hint = _TOO_OLD
        if old := next((name for name in OLD if name in offered), None):
            hint = f"{hint}; or permit it for this server, with less safety: old_algorithms: [{old}]"
        return f"no acceptable {kind}: {offers}", hint
