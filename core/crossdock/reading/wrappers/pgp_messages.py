"""Messages of OpenPGP (RFC 9580): encrypted to a key, signed by another, or both.

Keys are those of the config, and no others: none is looked up, and no trust in one makes another one valid. The
program ``gpg`` of GnuPG (2.2 or later) runs with these keys alone, in a private folder that is removed again.
"""

from __future__ import annotations

import base64
import os
import re
import resource
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, Self

from pydantic import BeforeValidator, Field

from crossdock.errors import ConfigError, RefusedError
from crossdock.reading.wrappers.wrapper import BLOCK, NamedFile, WorkFolder, WrapperSettings
from crossdock.values.config_base_types import ConfigModel, ConfigPath, Secret, SecretRef
from crossdock.values.safe_local_files import read_regular_file_within_limit

_MAX_KEY_FILE = 1 << 20
_MAX_PASSPHRASE = 4096  # fits into a pipe
_MAX_MEMORY = 250 << 20
_MAX_FOLDER = 70  # characters: the path of a socket below it has at most 107
_KEY_S = 60  # for what only concerns keys
_SECRET = 16  # flag of IMPORT_OK (GnuPG's doc/DETAILS)
_NO_KEY = "9"  # why a signature was not checked
_WEAK = {"1": "MD5", "2": "SHA-1", "3": "RIPEMD-160"}
_EXPIRED = {
    "EXPKEYSIG": "is signed with a key that has expired",
    "REVKEYSIG": "is signed with a key that was revoked",
    "EXPSIG": "has a signature that has expired",
}
_AGENT = "disable-scdaemon\ns2k-count 65536\n"
"""No smart cards, and no time spent on protecting the copy of a key, which is removed again."""
_INSTALL = "install GnuPG, such as with: apt install gnupg"
_AGAIN = "Fetch the file again in binary mode; if the error remains, ask the sender to write it again."
_KEY_HINT = "Compare the keys with the sender's, over another way than that of the files; correct the config."
_OPTIONS = (
    "--no-options", "--batch", "--no-tty", "--quiet", "--disable-dirmngr", "--no-auto-key-retrieve",
    "--no-auto-check-trustdb", "--trust-model", "always", "--pinentry-mode", "loopback",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class GpgFailure:
    message: str
    hint: str = _AGAIN


@dataclass(frozen=True)
class GpgResult:
    """What ``gpg`` says about one message (GnuPG's doc/DETAILS), as lines of words."""

    lines: Sequence[Sequence[str]]
    exit_code: int
    pinned: Collection[str]

    @cached_property
    def _status_keywords(self) -> set[str]:
        return {line[0] for line in self.lines}

    @cached_property
    def decryption_failure(self) -> GpgFailure | None:
        if "DECRYPTION_OKAY" in self._status_keywords:
            return None
        if "DECRYPTION_KEY" not in self._status_keywords:
            if "KEY_CONSIDERED" in self._status_keywords:  # it is there, and could not be used
                return GpgFailure("cannot be decrypted: the passphrase of the key is wrong or missing", _KEY_HINT)
            return GpgFailure("is encrypted to another key than the declared one", _KEY_HINT)
        return GpgFailure("was cut or changed after it was encrypted")

    @cached_property
    def signature_failure(self) -> GpgFailure | None:
        failures = [self._failure_of_signature(signature) for signature in self._group_signature_lines()]
        if not failures:
            return GpgFailure("is not signed", "Ask the sender to sign it; nothing shows who wrote it.")
        if "BADSIG" in self._status_keywords:
            return GpgFailure("was changed after it was signed")
        return None if None in failures else failures[0]

    @cached_property
    def damage_failure(self) -> GpgFailure | None:
        unknown = [line for line in self.lines if line[0] == "ERRSIG"]
        is_other_signer = self.exit_code == 2 and unknown and all(line[6:7] == [_NO_KEY] for line in unknown)
        bad = self._status_keywords & {"NODATA", "UNEXPECTED", "FAILURE", "ERROR", "BADMDC", "DECRYPTION_FAILED"}
        texts = [line for line in self.lines if line[0] == "PLAINTEXT"]
        if (self.exit_code and not is_other_signer) or bad or len(texts) != 1:
            return GpgFailure("is damaged or followed by other data")
        return None

    def _group_signature_lines(self) -> list[dict[str, Sequence[str]]]:
        found = list[dict[str, Sequence[str]]]()
        for line in self.lines:
            if line[0] == "NEWSIG":
                found.append({})
            elif found:
                found[-1].setdefault(line[0], line)
        return [each for each in found if each.keys() & {"VALIDSIG", "ERRSIG", "BADSIG"}]

    def _failure_of_signature(self, signature: dict[str, Sequence[str]]) -> GpgFailure | None:
        if (error := signature.get("ERRSIG")) is not None and error[6:7] == [_NO_KEY]:
            return GpgFailure(f"is signed by another key than the declared ones, {error[-1]}", _KEY_HINT)
        valid = signature.get("VALIDSIG", ())
        if len(valid) < 11 or error is not None:
            return GpgFailure("has a signature that cannot be verified", "Ask the sender to sign with SHA-256.")
        if valid[10] not in self.pinned:
            return GpgFailure(f"is signed by another key than the declared ones, {valid[10]}", _KEY_HINT)
        if word := next((word for word in _EXPIRED if word in signature), None):
            return GpgFailure(_EXPIRED[word], "Ask the sender for the key as it is now, or to sign with another.")
        if valid[8] in _WEAK:
            return GpgFailure(f"is signed with {_WEAK[valid[8]]}, which can be forged", "Ask the sender for SHA-256.")
        return None if "GOODSIG" in signature else GpgFailure("has a signature that cannot be verified")


@dataclass(slots=True)
class TemporaryKeyring:
    """Keys in a folder of their own, as long as the context is open.

    Args:
        folder: Where that folder is, if its path is short enough for sockets. It is then swept with *folder* after a
            kill.
    """

    folder: Path
    result: GpgResult = field(default_factory=lambda: GpgResult((), 1, ()))
    _home: Path = field(default_factory=Path)
    _program: str = ""
    _passphrase: str = ""
    _pinned: set[str] = field(default_factory=set)

    def __enter__(self) -> Self:
        program = shutil.which("gpg")
        if program is None:
            raise ConfigError("PGP needs the program gpg", hint=_INSTALL, code="program_missing")
        place = self.folder if len(str(self.folder)) <= _MAX_FOLDER else None
        self._program, self._home = program, Path(tempfile.mkdtemp(prefix="pgp-", dir=place))
        (self._home / "gpg-agent.conf").write_text(_AGENT)
        return self

    def __exit__(self, *_: object) -> None:
        kill = [shutil.which("gpgconf") or "gpgconf", "--homedir", str(self._home), "--kill", "all"]
        with suppress(OSError, subprocess.SubprocessError):  # the agent ends without its folder, too
            subprocess.run(kill, check=False, capture_output=True, timeout=_KEY_S, env=self._environment)  # noqa: S603
        shutil.rmtree(self._home, ignore_errors=True)

    def add_secret_key(self, key: Secret, passphrase: Secret | None) -> str:
        """Add a secret key, and return its fingerprint. Raises ConfigError if it is none."""
        self._passphrase = passphrase.reveal() if passphrase else ""
        if len(self._passphrase) > _MAX_PASSPHRASE:
            raise ConfigError(f"the passphrase of the secret {key.reference} is too long", code="pgp_key_unusable")
        found = [line for line in self._import_keys(key.reveal().encode()) if int(line[1]) & _SECRET]
        if not found:
            hint = "export it with: gpg --armor --export-secret-keys KEY"
            raise ConfigError(
                f"the secret {key.reference} is no secret key of PGP in ASCII armor", hint=hint, code="pgp_key_unusable"
            )
        return found[0][2]

    def add_trusted_keys(self, path: Path) -> None:
        """Add the public keys in a file, whose signatures count. Raises ConfigError if it has none."""
        try:
            content = read_regular_file_within_limit(path, _MAX_KEY_FILE)
        except OSError as error:
            raise ConfigError(
                f"the public key cannot be read: {error.strerror}", where=str(path), code="pgp_key_unusable"
            ) from error
        found = self._import_keys(content)
        if not found or any(int(line[1]) & _SECRET for line in found):
            what = "holds a secret key" if found else "holds no public key of PGP"
            raise ConfigError(
                what, where=str(path), hint="export it with: gpg --armor --export KEY", code="pgp_key_unusable"
            )
        self._pinned.update(line[2] for line in found)

    def trust_only_fingerprints(self, fingerprints: Collection[str]) -> None:
        """Let only *fingerprints* count, if there are some. Raises ConfigError if one is in no file."""
        if missing := sorted(set(fingerprints) - self._pinned):
            raise ConfigError(
                f"no file of signed_by holds the key {missing[0]}", hint=_KEY_HINT, code="pgp_key_unusable"
            )
        if fingerprints:
            self._pinned.intersection_update(fingerprints)

    def decrypted_blocks(self, message: BinaryIO, *, most_s: float) -> Iterator[bytes]:
        """Yield what is in *message*, from its beginning. It may not be used before `result` is asked."""
        with self._running_gpg("--decrypt", stdin=message, most_s=most_s) as (process, status):
            yield from _read_stdout_in_blocks(process)
            exit_code = process.wait()
        self.result = GpgResult(_status_lines(status), exit_code, frozenset(self._pinned))

    def encrypt_and_sign(
        self, content: BinaryIO, *, encrypt_to: Sequence[Path], signer: str | None, armor: bool, most_s: float
    ) -> Iterator[bytes]:
        """Yield a message with *content*, from its beginning.

        Raises:
            ConfigError: If a key cannot be used.
        """
        command = ["--armor"] if armor else []
        for path in encrypt_to:
            command += ["--recipient-file", str(path)]
        command += ["--encrypt"] if encrypt_to else []
        command += ["--local-user", signer, "--sign"] if signer else []
        with self._running_gpg(*command, stdin=content, most_s=most_s) as (process, status):
            yield from _read_stdout_in_blocks(process)
            exit_code = process.wait()
        if exit_code:
            is_recipient = any(line[0] == "INV_RECP" for line in _status_lines(status))
            hint = "It may be missing, have expired, or be made for another use, or its passphrase may be wrong."
            raise ConfigError(
                f"gpg cannot use the key of {'encrypt_to' if is_recipient else 'sign_with'}",
                hint=hint,
                code="pgp_key_unusable",
            )

    def _import_keys(self, keys: bytes) -> list[Sequence[str]]:
        with tempfile.TemporaryFile(dir=self._home) as file:
            file.write(keys)
            file.flush()
            with self._running_gpg("--import", stdin=file, most_s=_KEY_S) as (process, status):
                process.communicate()
            return [line for line in _status_lines(status) if line[0] == "IMPORT_OK" and len(line) == 3]

    @property
    def _environment(self) -> dict[str, str]:
        return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "GNUPGHOME": str(self._home)}

    @contextmanager
    def _running_gpg(
        self, *command: str, stdin: BinaryIO, most_s: float
    ) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
        status = self._home / "status"
        status.unlink(missing_ok=True)
        os.lseek(stdin.fileno(), 0, os.SEEK_SET)  # the buffer of Python has read on
        read_end, write_end = os.pipe()
        os.write(write_end, self._passphrase.encode() + b"\n")
        os.close(write_end)
        options = [*_OPTIONS, "--status-file", str(status), "--passphrase-fd", str(read_end)]
        try:
            process = subprocess.Popen(  # noqa: S603
                [self._program, *options, *command],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # it quotes names of people
                pass_fds=(read_end,),
                env=self._environment,
            )
        finally:
            os.close(read_end)
        if hasattr(resource, "prlimit"):
            with suppress(OSError, ValueError):  # it has ended, or a lower limit is already set
                resource.prlimit(process.pid, resource.RLIMIT_AS, (_MAX_MEMORY, _MAX_MEMORY))
        watchdog = threading.Timer(most_s, process.kill)
        watchdog.start()
        try:
            yield process, status
        finally:
            watchdog.cancel()
            process.kill()
            assert process.stdout is not None
            process.stdout.close()
            process.wait()


def _read_stdout_in_blocks(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    assert process.stdout is not None
    while block := process.stdout.read(BLOCK):
        yield block


def _status_lines(path: Path) -> list[Sequence[str]]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    lines = [line.split()[1:] for line in text.splitlines() if line.startswith("[GNUPG:] ")]
    return [line for line in lines if line]


_BEGIN = re.compile(rb"-----BEGIN PGP (SIGNED MESSAGE|MESSAGE)-----[ \t]*\r?\n")
_END = b"-----END PGP MESSAGE-----"
_END_OF_TEXT = b"-----END PGP SIGNATURE-----"
_MAX_ARMOR_LINE, _MAX_LINE = 1 << 10, 1 << 20
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

    def raise_unless_usable_for_reading(self) -> None:
        if self.decrypt is None and not self.signed_by:
            raise ValueError("pgp: give decrypt, signed_by or both")
        if self.encrypt_to or self.sign_with or self.armor:
            raise ValueError("pgp: encrypt_to, sign_with and armor are for files that are written")
        if self.signed_by and not self.signer_files_and_allowed_fingerprints[0]:
            raise ValueError("pgp.signed_by: a fingerprint needs a file with its public key beside it")

    def raise_unless_usable_for_writing(self) -> None:
        if self.sign_with is None and not self.encrypt_to:
            raise ValueError("pgp: give encrypt_to, sign_with or both")
        if self.decrypt or self.signed_by:
            raise ValueError("pgp: decrypt and signed_by are for files that are read")


class PgpWrapper:
    settings, wrapping_description, file_name_ending = PgpSettings, "a PGP message", ".pgp"

    def recognizes_head(self, head: bytes) -> bool:
        return _BEGIN.match(head.lstrip()) is not None or _is_packet_start(head)

    def unwrap(self, part: NamedFile, settings: PgpSettings, work_folder: WorkFolder) -> Iterator[NamedFile]:
        meter = work_folder.make_unpacking_meter(settings, part, "bytes of PGP")
        with part.content.open("rb") as file, _open_without_armor(file, part.name, work_folder) as binary:
            size = file.seek(0, 2)
            if binary is not None:
                _raise_if_packets_wrong(binary, part.name, is_encrypted=settings.decrypt is not None)
            elif settings.decrypt is not None:
                raise _refusal("is signed as clear text, and not encrypted as declared", part.name, _CORRECT)
            with _open_keyring_of_settings(settings, work_folder.folder) as keys:

                def blocks() -> Iterator[bytes]:
                    for block in keys.decrypted_blocks(binary or file, most_s=settings.max_s):
                        meter.count_and_raise_if_over_limits(block, size)
                        yield block
                    meter.raise_if_over_time()

                path = work_folder.write_file(blocks())
                if failure := _find_first_failure(keys.result, settings):
                    path.unlink()
                    raise _refusal(failure.message, part.name, failure.hint)
        yield replace(part, content=path)

    def wrap(self, part: NamedFile, settings: PgpSettings, work_folder: WorkFolder) -> Path:
        with TemporaryKeyring(work_folder.folder) as keys, part.content.open("rb") as file:
            signer = None
            if settings.sign_with is not None:
                signer = keys.add_secret_key(settings.sign_with.key, settings.sign_with.passphrase)
            armor, most_s = settings.armor, settings.max_s
            return work_folder.write_file(
                keys.encrypt_and_sign(file, encrypt_to=settings.encrypt_to, signer=signer, armor=armor, most_s=most_s)
            )


@contextmanager
def _open_keyring_of_settings(settings: PgpSettings, folder: Path) -> Iterator[TemporaryKeyring]:
    with TemporaryKeyring(folder) as keys:
        if settings.decrypt is not None:
            keys.add_secret_key(settings.decrypt.key, settings.decrypt.passphrase)
        paths, fingerprints = settings.signer_files_and_allowed_fingerprints
        for path in paths:
            keys.add_trusted_keys(path)
        keys.trust_only_fingerprints(fingerprints)
        yield keys


def _find_first_failure(result: GpgResult, settings: PgpSettings) -> GpgFailure | None:
    if settings.decrypt is not None and (failure := result.decryption_failure):
        return failure
    if settings.signed_by and (failure := result.signature_failure):
        return failure
    return result.damage_failure


def _refusal(message: str, name: str, hint: str = _AGAIN) -> RefusedError:
    return RefusedError(f"the PGP message {message}", where=name, hint=hint, code="pgp_message_refused")


def _is_packet_start(head: bytes) -> bool:
    try:
        tag, _, _ = _parse_packet_header(head)
    except (IndexError, ValueError):
        return False
    return tag in _LETTERS


def _parse_packet_header(data: bytes) -> tuple[int, int, int | None]:
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


def _read_packet_tags(message: BinaryIO) -> Iterator[int]:
    """Yield the tags of the outermost packets without their bodies. Errors are those of `_parse_packet_header`."""
    size, at = message.seek(0, 2), 0
    while at < size:
        message.seek(at)
        tag, header, length = _parse_packet_header(message.read(6))
        yield tag
        at += header
        while length is None:
            message.seek(at)
            at += 1 + (1 << (_big_endian_number(message.read(1), 1) & 0x1F))
            message.seek(at)
            _, header, length = _parse_packet_header(b"\xc0" + message.read(5))
            at += header - 1
        at = size if length < 0 else at + length
        if at > size:
            raise IndexError


def _raise_if_packets_wrong(message: BinaryIO, name: str, *, is_encrypted: bool) -> None:
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
        for tag in _read_packet_tags(message):
            found += "" if tag in _MARKERS else _LETTERS.get(tag, "?")
            if len(found) > _MAX_PACKETS:
                raise _refusal("has too many packets", name)
    except IndexError:
        raise _refusal("is cut", name) from None
    except ValueError:
        found += "?"
    return found


@contextmanager
def _open_without_armor(file: BinaryIO, name: str, work_folder: WorkFolder) -> Iterator[BinaryIO | None]:
    """Open the message without its ASCII armor; None if it is text with a signature below it."""
    begin = _BEGIN.match(file.read(_MAX_ARMOR_LINE).lstrip())
    file.seek(0)
    if begin is None:
        yield file
        return
    if begin[1] != b"MESSAGE":
        _raise_unless_end_line_is_last(file, _END_OF_TEXT, name)
        yield None
        return
    path = work_folder.write_file(_decode_armor(file, name))
    try:
        with path.open("rb") as message:
            yield message
    finally:
        path.unlink()


def _raise_unless_end_line_is_last(file: BinaryIO, end: bytes, name: str) -> None:
    """Refuse what goes on behind the line *end*, or lacks it: GnuPG passes over text around a message."""
    is_over = False
    while line := file.readline(_MAX_LINE):
        if is_over and line.strip():
            raise _refusal("is followed by other data", name)
        is_over = is_over or line.strip() == end
    if not is_over:
        raise _refusal("is cut", name)


def _decode_armor(file: BinaryIO, name: str) -> Iterator[bytes]:
    while not _BEGIN.match(file.readline(_MAX_ARMOR_LINE).lstrip()):
        pass
    while file.readline(_MAX_ARMOR_LINE).strip():
        pass  # what is said about the message
    text, at = b"", file.tell()
    while (line := file.readline(_MAX_ARMOR_LINE).strip()) and not line.startswith((b"=", b"-")):
        text, at = text + line, file.tell()
        whole = len(text) // 4 * 4
        yield _decode_base64_or_raise(text[:whole], name)
        text = text[whole:]
    if text:
        raise _refusal("is cut", name)
    file.seek(at)
    _raise_unless_end_line_is_last(file, _END, name)


def _decode_base64_or_raise(text: bytes, name: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise _refusal("has damaged ASCII armor", name) from error
