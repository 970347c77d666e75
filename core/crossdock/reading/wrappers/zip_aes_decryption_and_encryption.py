"""The encryption of zip archives with AES, as WinZip specified it ("AES Encryption Information", AE-1 and AE-2).

A member is salt, two bytes that verify the password, the encrypted data, and ten bytes of its HMAC-SHA1.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Iterator

from msgspec import Struct

METHOD = 99
HEADER_ID = 0x9901
_ITERATIONS = 1000
_VERIFIER, MAC = 2, 10
_AES_BLOCK = 16


class AesHeader(Struct, frozen=True):
    """What a member's extra field says. *has_crc*: whether its checksum is that of the content (AE-1)."""

    has_crc: bool
    strength: int
    method: int

    @property
    def salt_bytes(self) -> int:
        return 4 * (self.strength + 1)

    @property
    def overhead_bytes(self) -> int:
        return self.salt_bytes + _VERIFIER + MAC


def parse_aes_header(extra: bytes) -> AesHeader | None:
    while len(extra) >= 4:
        kind, size = int.from_bytes(extra[:2], "little"), int.from_bytes(extra[2:4], "little")
        data, extra = extra[4 : 4 + size], extra[4 + size :]
        if kind == HEADER_ID and len(data) == 7 and data[2:4] == b"AE" and 1 <= data[4] <= 3 and data[0] in {1, 2}:
            return AesHeader(data[0] == 1, data[4], int.from_bytes(data[5:7], "little"))
    return None


def aes_extra_field(method: int) -> bytes:
    """Return the extra field of a member with *method*, encrypted with a key of 256 bits, without a checksum."""
    return b"\x01\x99\x07\x00\x02\x00AE\x03" + method.to_bytes(2, "little")


class MemberCipher:
    """The key stream and the HMAC of one member. Data is handled in order, in blocks of any size."""

    def __init__(self, password: bytes, salt: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # noqa: PLC0415  few zips have one

        length = 2 * len(salt)
        material = hashlib.pbkdf2_hmac("sha1", password, salt, _ITERATIONS, 2 * length + _VERIFIER)
        self.verifier = material[2 * length :]
        self._hmac = hmac.new(material[length : 2 * length], digestmod="sha1")
        self._aes = Cipher(algorithms.AES(material[:length]), modes.ECB()).encryptor()  # noqa: S305  of counters
        self._counter, self._left = 1, b""

    def decrypted(self, data: bytes) -> bytes:
        self._hmac.update(data)
        return self._apply_key_stream(data)

    def encrypted(self, data: bytes) -> bytes:
        found = self._apply_key_stream(data)
        self._hmac.update(found)
        return found

    def mac(self) -> bytes:
        return self._hmac.digest()[:MAC]

    def _apply_key_stream(self, data: bytes) -> bytes:
        """Combine *data* with the key stream: blocks that count up from 1, in little-endian order."""
        missing = len(data) - len(self._left)
        if missing > 0:
            number = -(-missing // _AES_BLOCK)
            counters = range(self._counter, self._counter + number)
            self._counter += number
            self._left += self._aes.update(b"".join(each.to_bytes(_AES_BLOCK, "little") for each in counters))
        stream, self._left = self._left[: len(data)], self._left[len(data) :]
        return (int.from_bytes(data, "little") ^ int.from_bytes(stream, "little")).to_bytes(len(data), "little")


def encrypt_member(password: bytes, blocks: Iterable[bytes]) -> Iterator[bytes]:
    salt = secrets.token_bytes(16)
    cipher = MemberCipher(password, salt)
    yield salt + cipher.verifier
    for block in blocks:
        yield cipher.encrypted(block)
    yield cipher.mac()
