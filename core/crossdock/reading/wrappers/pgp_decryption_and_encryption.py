"""Messages of OpenPGP (RFC 9580): encrypted to a key, signed by another, or both.

Keys are those of the config, and no others: none is looked up, and no trust in one makes another one valid.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

from pydantic import BeforeValidator, Field

from crossdock.errors import RefusedError
from crossdock.reading.wrappers.gnupg import Failure, GpgResult, Keyring
from crossdock.reading.wrappers.wrapper import Part, WorkFolder, WrapperSettings
from crossdock.values.config_base_types import ConfigModel, ConfigPath, SecretRef

_BEGIN = re.compile(rb"-----BEGIN PGP (SIGNED MESSAGE|MESSAGE)-----[ \t]*\r?\n")
_END = b"-----END PGP MESSAGE-----"
_END_OF_TEXT = b"-----END PGP SIGNATURE-----"
_MAX_ARMOR_LINE, _MAX_LINE = 1 << 10, 1 << 20
_AGAIN = "Fetch the file again in binary mode; if the error remains, ask the sender to write it again."
_CORRECT = "Correct decrypt in the config, or ask the sender."
_MARKERS = {10, 21}  # a marker and padding say nothing
_LETTERS = {1: "K", 3: "W", 18: "E", 20: "E", 9: "N", 2: "S", 4: "O", 8: "C", 11: "L", 5: "P", 6: "P", 7: "P", 14: "P"}
"""Kinds of packets, by tag: session Keys, Words that encrypt, Encrypted data (with No integrity protection),
Signatures, One-pass signatures, Compressed data, Literal data, Public or secret keys."""
_MAX_PACKETS = 1000
_IS_KEY = ("P.*", "is a key, and no message", "Ask the sender for the file itself.")
_FAULTS = {
    True: (
        _IS_KEY,
        ("[SOCL].*", "is not encrypted, as declared", _CORRECT),
        ("W+E", "is encrypted with a password, and not to a key", "Ask the sender to encrypt it to your public key."),
        (
            "[KW]*N.*",
            "can be changed unnoticed, because it has no integrity protection",
            "Ask the sender to encrypt with integrity protection (MDC), as all programs of today do.",
        ),
    ),
    False: (
        _IS_KEY,
        ("[KWEN].*", "is encrypted, and no key is declared", _CORRECT),
        ("S+", "is a signature without the file", "Ask the sender to sign with: gpg --sign FILE"),
        ("L", "is not signed", "Ask the sender to sign it; nothing shows who wrote it."),
    ),
}
"""What may be wrong with the packets of messages that should be encrypted, or not."""


def _normalized_fingerprint(value: Any) -> Any:
    return value.replace(" ", "").upper() if isinstance(value, str) else value


Fingerprint = Annotated[str, BeforeValidator(_normalized_fingerprint), Field(pattern="^([0-9A-F]{40}|[0-9A-F]{64})$")]
Signer = Annotated[Fingerprint | ConfigPath, Field(union_mode="left_to_right")]


class PgpKey(ConfigModel):
    """A secret key."""

    key: SecretRef
    """The secret key, in ASCII armor."""
    passphrase: SecretRef | None = None
    """Its passphrase, if it has one."""


class PgpSettings(WrapperSettings):
    """A message of OpenPGP, in binary form or in ASCII armor; needs the program ``gpg``."""

    kind: Literal["pgp"]
    decrypt: PgpKey | None = None
    """The secret key that files are encrypted to. Without it they are only signed."""
    signed_by: Annotated[tuple[Signer, ...], Field(max_length=100)] = ()
    """Files with the public keys of the senders, one of whom has signed. With fingerprints beside them, only those keys
    of the files count. Required without ``decrypt``."""
    encrypt_to: Annotated[tuple[ConfigPath, ...], Field(max_length=100)] = ()
    """Files with the public keys of those who may read what is written."""
    sign_with: PgpKey | None = None
    """The key that signs what is written."""
    armor: bool = False
    """Whether what is written is in ASCII armor."""

    @property
    def signer_files_and_allowed_fingerprints(self) -> tuple[Sequence[Path], frozenset[str]]:
        paths = [each for each in self.signed_by if isinstance(each, Path)]
        return paths, frozenset(each for each in self.signed_by if isinstance(each, str))

    def check_settings_for_reading(self) -> None:
        if self.decrypt is None and not self.signed_by:
            raise ValueError("pgp: give decrypt, signed_by or both")
        if self.encrypt_to or self.sign_with or self.armor:
            raise ValueError("pgp: encrypt_to, sign_with and armor are for files that are written")
        if self.signed_by and not self.signer_files_and_allowed_fingerprints[0]:
            raise ValueError("pgp.signed_by: a fingerprint needs a file with its public key beside it")

    def check_settings_for_writing(self) -> None:
        if self.sign_with is None and not self.encrypt_to:
            raise ValueError("pgp: give encrypt_to, sign_with or both")
        if self.decrypt or self.signed_by:
            raise ValueError("pgp: decrypt and signed_by are for files that are read")


class PgpWrapper:
    settings, wrapping_description, file_name_ending = PgpSettings, "a PGP message", ".pgp"

    def recognizes_head(self, head: bytes) -> bool:
        return _BEGIN.match(head.lstrip()) is not None or _begins_with_packet(head)

    def unwrap(self, part: Part, settings: PgpSettings, work_folder: WorkFolder) -> Iterator[Part]:
        meter = work_folder.make_unpacking_meter(settings, part, "bytes of PGP")
        with part.content.open("rb") as file, _without_armor(file, part.name, work_folder) as binary:
            size = file.seek(0, 2)
            if binary is not None:
                _check_packets(binary, part.name, is_encrypted=settings.decrypt is not None)
            elif settings.decrypt is not None:
                raise _refusal("is signed as clear text, and not encrypted as declared", part.name, _CORRECT)
            with _keyring(settings, work_folder.folder) as keys:

                def blocks() -> Iterator[bytes]:
                    for block in keys.decrypted_blocks(binary or file, most_s=settings.max_s):
                        meter.count_and_check_limits(block, size)
                        yield block
                    meter.check_time()

                path = work_folder.write_file(blocks())
                if failure := _first_failure(keys.result, settings):
                    path.unlink()
                    raise _refusal(failure.message, part.name, failure.hint)
        yield replace(part, content=path)

    def wrap(self, part: Part, settings: PgpSettings, work_folder: WorkFolder) -> Path:
        with Keyring(work_folder.folder) as keys, part.content.open("rb") as file:
            signer = None
            if settings.sign_with is not None:
                signer = keys.add_secret_key(settings.sign_with.key, settings.sign_with.passphrase)
            armor, most_s = settings.armor, settings.max_s
            return work_folder.write_file(
                keys.encrypt_and_sign(file, encrypt_to=settings.encrypt_to, signer=signer, armor=armor, most_s=most_s)
            )


@contextmanager
def _keyring(settings: PgpSettings, folder: Path) -> Iterator[Keyring]:
    with Keyring(folder) as keys:
        if settings.decrypt is not None:
            keys.add_secret_key(settings.decrypt.key, settings.decrypt.passphrase)
        paths, fingerprints = settings.signer_files_and_allowed_fingerprints
        for path in paths:
            keys.add_trusted_keys(path)
        keys.trust_only(fingerprints)
        yield keys


def _first_failure(result: GpgResult, settings: PgpSettings) -> Failure | None:
    if settings.decrypt is not None and (failure := result.decryption_failure):
        return failure
    if settings.signed_by and (failure := result.signature_failure):
        return failure
    return result.damage_failure


def _refusal(message: str, name: str, hint: str = _AGAIN) -> RefusedError:
    return RefusedError(f"the PGP message {message}", where=name, hint=hint, code="pgp_message_refused")


def _begins_with_packet(head: bytes) -> bool:
    try:
        tag, _, _ = _packet_header(head)
    except (IndexError, ValueError):
        return False
    return tag in _LETTERS


def _packet_header(data: bytes) -> tuple[int, int, int | None]:
    """Return tag, length of the header and length of the body of a packet (RFC 9580, 4.2).

    The length is None if the body comes in parts, of which the length is in the header, and -1 up to the end.

    Raises:
        ValueError: If no packet begins there.
        IndexError: If *data* ends before.
    """
    first = data[0]
    if not first & 0x80:
        raise ValueError
    if not first & 0x40:
        kind, tag = first & 3, (first >> 2) & 0xF
        return (tag, 1, -1) if kind == 3 else (tag, 1 + (1 << kind), _big_endian_number(data[1:], 1 << kind))
    tag, length = first & 0x3F, data[1]
    if length < 192:
        return tag, 2, length
    if length < 224:
        return tag, 3, ((length - 192) << 8) + data[2] + 192
    return (tag, 6, _big_endian_number(data[2:], 4)) if length == 255 else (tag, 1, None)


def _big_endian_number(data: bytes, length: int) -> int:
    if len(data) < length:
        raise IndexError
    return int.from_bytes(data[:length])


def _packet_tags(message: BinaryIO) -> Iterator[int]:
    """Yield the tags of the outermost packets and pass over their bodies. Errors are those of `_packet_header`."""
    size, at = message.seek(0, 2), 0
    while at < size:
        message.seek(at)
        tag, header, length = _packet_header(message.read(6))
        yield tag
        at += header
        while length is None:
            message.seek(at)
            at += 1 + (1 << (_big_endian_number(message.read(1), 1) & 0x1F))
            message.seek(at)
            _, header, length = _packet_header(b"\xc0" + message.read(5))
            at += header - 1
        at = size if length < 0 else at + length
        if at > size:
            raise IndexError


def _check_packets(message: BinaryIO, name: str, *, is_encrypted: bool) -> None:
    """Refuse what is no message, or not of the declared kind; GnuPG is silent about some of what follows a message."""
    found = _packet_kinds_as_letters(message, name)
    for pattern, text, hint in _FAULTS[is_encrypted]:
        if re.fullmatch(pattern, found):
            raise _refusal(text, name, hint)
    if not re.fullmatch("[KW]+E" if is_encrypted else "C|O+[LC]S+|S+[LC]", found):
        raise _refusal("is damaged or followed by other data", name)


def _packet_kinds_as_letters(message: BinaryIO, name: str) -> str:
    found = ""
    try:
        for tag in _packet_tags(message):
            found += "" if tag in _MARKERS else _LETTERS.get(tag, "?")
            if len(found) > _MAX_PACKETS:
                raise _refusal("has too many packets", name)
    except IndexError:
        raise _refusal("is cut", name) from None
    except ValueError:
        found += "?"
    return found


@contextmanager
def _without_armor(file: BinaryIO, name: str, work_folder: WorkFolder) -> Iterator[BinaryIO | None]:
    """Open the message without its ASCII armor; None if it is text with a signature below it."""
    begin = _BEGIN.match(file.read(_MAX_ARMOR_LINE).lstrip())
    file.seek(0)
    if begin is None:
        yield file
        return
    if begin[1] != b"MESSAGE":
        _check_end_line_is_last(file, _END_OF_TEXT, name)
        yield None
        return
    path = work_folder.write_file(_dearmored(file, name))
    try:
        with path.open("rb") as message:
            yield message
    finally:
        path.unlink()


def _check_end_line_is_last(file: BinaryIO, end: bytes, name: str) -> None:
    """Refuse what goes on behind the line *end*, or lacks it: GnuPG passes over text around a message."""
    is_over = False
    while line := file.readline(_MAX_LINE):
        if is_over and line.strip():
            raise _refusal("is followed by other data", name)
        is_over = is_over or line.strip() == end
    if not is_over:
        raise _refusal("is cut", name)


def _dearmored(file: BinaryIO, name: str) -> Iterator[bytes]:
    while not _BEGIN.match(file.readline(_MAX_ARMOR_LINE).lstrip()):
        pass
    while file.readline(_MAX_ARMOR_LINE).strip():
        pass  # what is said about the message
    text, at = b"", file.tell()
    while (line := file.readline(_MAX_ARMOR_LINE).strip()) and not line.startswith((b"=", b"-")):
        text, at = text + line, file.tell()
        whole = len(text) // 4 * 4
        yield _decoded_base64(text[:whole], name)
        text = text[whole:]
    if text:
        raise _refusal("is cut", name)
    file.seek(at)
    _check_end_line_is_last(file, _END, name)


def _decoded_base64(text: bytes, name: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise _refusal("has damaged ASCII armor", name) from error
